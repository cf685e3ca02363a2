"""The plan of ttnn.sampling. Rules: ttnn 0.81.1, compared with its plans."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from device.cores import CoreRangeSet, cores_from, first_cores
from device.errors import DeviceError
from device.memory.layouts import TensorSpec, side
from device.memory.memory_config import TILE, Layout
from device.numbers.formats import BFLOAT16, INT32, UINT32
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.programs.buffer_shapes import require_cores
from ops.programs.reduction.sampling import UNDRAWN, SampleScores, sampling_buffers

RANK: Final = 4
MOST_USERS: Final = 32
INDICES: Final = (UINT32, INT32)
SHARES: Final = (BFLOAT16,)


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingArguments:
    """A call."""

    scores: TensorSpec  # [1, 1, users, scores], "input"
    indices: TensorSpec  # Of the scores, "indices"
    counts: TensorSpec  # [users], "counts": how many of the largest scores are drawn from
    shares: TensorSpec  # [users], "shares": the sum of their softmax
    temperatures: TensorSpec  # [users], "temperatures"
    cores: CoreRangeSet | None = None
    target: TensorSpec | None = None  # The caller's tensor "target" that receives the result, if there is one


def plan_sampling(call: SamplingArguments, spec: DeviceSpec) -> Plan:
    """Plan the index of one score of each user; raises DeviceError for a refused call."""
    scores = call.scores
    users = side(scores.shape, 2)
    made = call.target or TensorSpec((1, 1, 1, users), UINT32, Layout.ROW_MAJOR, scores.memory_config)
    for text in _refusals(call, users):
        raise DeviceError(text)
    require_cores(call.cores, spec, "sampling")
    within = call.cores
    cores = (
        first_cores(users, spec.grid.cols, spec.grid.rows)
        if within is None
        else cores_from(within.cores()[0], users, within)
    )
    op = SampleScores(users=users, cores=cores)

    def write(builder: PlanBuilder, *tensors: PlanTensor) -> PlanTensor:
        builder.leave_out_values(UNDRAWN)
        output = PlanTensor("output", made) if call.target is None else None
        buffers = sampling_buffers(op, scores.shape[-1])
        return builder.run("SamplingDeviceOperation", op, tensors, output, buffers, dataflow=True)

    tensors = {
        "input": scores, "indices": call.indices, "counts": call.counts, "shares": call.shares,
        "temperatures": call.temperatures, "target": call.target,
    }  # fmt: skip
    return plan_of(tensors, spec, write)


def _refusals(call: SamplingArguments, users: int) -> Iterator[str]:
    """The refusals of the device operation, in its order."""
    scores, indices = call.scores, call.indices
    inputs = "sampling: give scores [1, 1, users, scores] of bfloat16 in TILE_LAYOUT, and indices in rows"
    rows = (("k", call.counts, INDICES), ("p", call.shares, SHARES), ("temp", call.temperatures, SHARES))
    if scores.memory_config.is_sharded():
        yield f"Only INTERLEAVED memory layout is supported for inputs!\n{inputs}"
    if scores.data_format != BFLOAT16:
        yield f"Only BFLOAT16 is supported for inputs!\n{inputs}"
    if scores.layout is not Layout.TILE:
        yield f"Only TILE_LAYOUT is supported for inputs!\n{inputs}"
    if indices.memory_config.is_sharded():
        yield f"Only INTERLEAVED memory layout is supported for inputs!\n{inputs}"
    if indices.data_format not in INDICES:
        yield f"Only UINT32 & INT32 dtypes are supported for input indices!\n{inputs}"
    if indices.layout is not Layout.ROW_MAJOR:
        yield f"Only ROW_MAJOR is supported for input indices!\n{inputs}"
    if indices.shape != scores.shape:
        yield f"Input values and indices must have the same shape!\n{inputs}"
    yield from _shape_refusals(call, users, inputs)
    for name, tensor, formats in rows:
        if tensor.data_format not in formats:
            names = " & ".join(each.name.upper() for each in formats)
            yield f"Only {names} dtypes are supported for {name}!\n{name}: typecast it"
    for name, tensor, _ in rows:
        if tensor.layout is not Layout.ROW_MAJOR:
            yield f"Only ROW_MAJOR layout is supported for {name}!\n{name}: use to_layout"
    for name, tensor, _ in rows:
        if tensor.shape != (users,):
            yield f"{name} must have shape [{users}] (one per user)!\n{name}: give one number for each user"


def _shape_refusals(call: SamplingArguments, users: int, inputs: str) -> Iterator[str]:
    """The refusals of shapes of scores and results, and of cores."""
    shape = call.scores.shape
    if len(shape) != RANK:
        yield f"Sampling input_values must be rank-4; got rank {len(shape)}\n{inputs}"
    if shape[:2] != (1, 1):
        yield f"Sampling requires input dims 0 and 1 (N, C) to be 1; got {list(shape)}!\n{inputs}"
    if not 1 <= users <= MOST_USERS:
        yield f"Sampling currently supports between 1 and 32 users (one core per user); got {users}!\n{inputs}"
    columns = shape[-1]
    if not columns or columns % TILE:
        yield f"Input inner dim ({columns}) must be non-zero and divisible by 32, pad if needed!\n{inputs}"
    tiles = columns // TILE
    if tiles & (tiles - 1):
        yield (
            f"Input inner dim ({columns}) must yield a power-of-2 number of tiles (Wt = W/32 = {tiles}); pad W up to "
            f"the next power-of-2 multiple of 32 (e.g. with -inf values and dummy indices) if needed!\n{inputs}"
        )
    if call.cores is not None and call.cores.num_cores() < users:
        yield (
            f"Subcore grid must supply at least num_users ({users}) cores, but found {call.cores.num_cores()}!\n"
            "sub_core_grids: give a core for each user"
        )
    if call.target is not None:
        yield from _target_refusals(call.target, users)


def _target_refusals(target: TensorSpec, users: int) -> Iterator[str]:
    """The refusals of a tensor that receives the result."""
    advice = f"output_tensor: give [1, 1, 1, {users}] of UINT32"
    if target.data_format not in INDICES:
        yield f"Only UINT32 & INT32 dtypes are supported for outputs!\n{advice}"
    if target.memory_config.is_sharded():
        yield f"Only INTERLEAVED memory layout is supported for outputs!\n{advice}"
    if target.shape != (1, 1, 1, users):
        shown = ",".join(map(str, target.shape))
        first = f"Sampling preallocated output logical shape must be [1,1,1,{users}] (input dim 2), got [{shown}]"
        yield f"{first}\n{advice}"
