"""The plan of ttnn.moe, the weight of the first expert of a mixture. Rules: ttnn 0.81.1, compared with its plans."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Final

from device.errors import DeviceError
from device.memory.layouts import TensorSpec, require_shard_spec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, TILE, Layout, MemoryConfig
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.programs.reduction.moe import ExpertWeight, expert_buffers

RANK: Final = 4
COUNT: Final = 32  # of scores that the program picks
LEAST_COLUMNS: Final = 64
NO_TILE: Final = (
    "DataflowBufferSpec 'cur_max' has num_entries = 0. num_entries must be set to a non-zero value.\n"
    "output_tensor: give one in TILE_LAYOUT"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MoeArguments:
    """A call."""

    scores: TensorSpec  # [N, C, H, experts], "input"
    experts: TensorSpec  # A row, "experts", which is added to the scores
    picked: TensorSpec  # A row, "picked", which is added to the largest scores
    count: int
    place: MemoryConfig | None = None
    target: TensorSpec | None = None  # The caller's tensor "target" that receives the result, if there is one


def plan_moe(call: MoeArguments, spec: DeviceSpec) -> Plan:
    """Plan the weights of expert 0 in the largest scores; raises DeviceError for a refused call."""
    scores, place = call.scores, call.place or DRAM_MEMORY_CONFIG
    if call.target is None:
        require_shard_spec(place, in_rows=False)
    shape = (*scores.shape[:-1], 1)
    made = call.target or TensorSpec(shape, scores.data_format, Layout.TILE, place)
    made.require_on(spec)
    for text in _refusals(call, place):
        raise DeviceError(text)

    def write(
        builder: PlanBuilder, read: PlanTensor, experts: PlanTensor, picked: PlanTensor, into: PlanTensor | None = None
    ) -> PlanTensor:
        result = into or PlanTensor("output", made)
        if scores.padded_shape[-1] != scores.shape[-1]:
            builder.leave_out_values("moe: scores in the padding of rows count as well; give whole tiles")
        if (result.spec.shape, result.spec.layout) != (shape, Layout.TILE):
            builder.leave_out_values(f"moe: output_tensor is none of {[*shape]} in TILE_LAYOUT; give such a tensor")
        if not all(tensor.data_format.is_float for tensor in (scores, call.experts, call.picked, made)):
            builder.leave_out_values("moe: numbers of integers are not simulated; typecast the tensors")
        op = ExpertWeight(shape=scores.shape, count=call.count, data_format=made.data_format)
        buffers = expert_buffers(read, experts, picked, result, spec)
        reads, output = ([read, experts, picked], result) if into is None else ([read, experts, picked, into], None)
        refused = None if prod(result.spec.matrix) >= TILE**2 else NO_TILE
        return builder.run("MoeDeviceOperation", op, reads, output, buffers, dataflow=True, refused=refused)

    tensors = {"input": scores, "experts": call.experts, "picked": call.picked, "target": call.target}
    return plan_of(tensors, spec, write)


def _refusals(call: MoeArguments, place: MemoryConfig) -> Iterator[str]:
    """The refusals of the device operation, in its order."""
    shape, advice = call.scores.padded_shape, "input_tensor: give scores [N, C, H, experts] in TILE_LAYOUT"
    if len(shape) != RANK:
        yield f"Input shape must be 4D, got {len(shape)}\n{advice}"
    if call.count != COUNT:
        yield f"K must be equal to 32, pad with -infinity if necessary to get 32, got {call.count}\nk: give {COUNT}"
    width, height = shape[-1], prod(shape[:-1])
    if width < LEAST_COLUMNS:
        yield f"Input shape inner dim {width} must be a multiple of 64, pad with -infinity if necessary\n{advice}"
    if width & width - 1:
        yield f"Input shape inner dim {width} must be a power of 2, pad with -infinity if necessary\n{advice}"
    if height % TILE:
        yield f"Input height (combined input_shape[0-2]) {height} must be a multiple of 32\n{advice}"
    if place.is_sharded():
        yield "Sharded implementation not supported yet\nmemory_config: give interleaved memory"
    if call.scores.layout is not Layout.TILE:
        yield f"The input must be in tiled format\n{advice}"
    rows = (("Topk", call.picked, "k", call.count), ("Expert", call.experts, "input_shape[-1]", call.scores.shape[-1]))
    for name, mask, side, length in rows:
        if prod(mask.shape) != length or mask.shape[-1] != length:
            yield (
                f"{name} mask must be row-broadcastable with last dim == {side}. Got rank={len(mask.shape)} and "
                f"shape=Shape({list(mask.shape)}) for {side}={length}\n{name.lower()}_mask_tensor: give one row"
            )
    for name, mask, _, _ in rows:
        high = (1, *mask.padded_shape)[-2]
        if high != TILE:
            yield f"{name} shape inner dim must be padded to 32, got {high}\n{name.lower()}_mask_tensor: use to_layout"
