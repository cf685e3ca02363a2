"""The plan of ttnn.bcast. Rules: tt-metal 0.81.1 (data_movement/bcast), compared with its plans."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from device.cores import CoreCoord
from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, Layout, MemoryConfig, ShardOrientation, TensorMemoryLayout
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.programs.buffer_shapes import in_dram
from ops.programs.eltwise.bcast import Bcast, bcast_buffers

HINT = "input_b: give a row, a column or a number for each matrix, or one for all"
PLACE_HINT = "memory_config: leave it out, or give interleaved memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class BcastArguments:
    """A call on tensors in TILE layout."""

    operation: str  # "add", "subtract" or "multiply"
    axes: str  # "H", "W" or "HW"
    left: TensorSpec  # "input"
    right: TensorSpec  # "input_b"
    place: MemoryConfig | None = None
    target: TensorSpec | None = None  # The caller's tensor "target" that the result is written into, if there is one


def bcast_refusal(left: TensorSpec, right: TensorSpec, axes: str) -> str | None:
    """The error of ttnn for two tensors, before it converts them to TILE layout; None if it accepts them."""
    (rows, columns), (own_rows, own_columns) = ((1, *tensor.padded_shape)[-2:] for tensor in (right, left))
    by_rows = right.layout is Layout.ROW_MAJOR
    short = (1, TILE) if by_rows else (TILE,)
    if axes == "HW":
        sides = ((1, 1), (TILE, TILE)) if by_rows else ((TILE, TILE),)
        return None if (rows, columns) in sides else "Error"
    side, across = ("width", "height") if axes == "W" else ("height", "width")
    kept, other, repeated = (own_rows, rows, columns) if axes == "W" else (own_columns, columns, rows)
    if kept != other:
        return f"Input tensor A {across} ({kept}) must equal input tensor B {across} ({other}) for {side} broadcast"
    if repeated in short:
        return None
    tile = f"TILE_{side.upper()} ({TILE})"
    needed = f"be 1 or {tile} for row major" if by_rows else f"equal {tile} for tile"
    return f"Input tensor B {side} ({repeated}) must {needed} layout"


def plan_bcast(call: BcastArguments, spec: DeviceSpec) -> Plan:
    """Plan the tensor "input" combined with "input_b", which is broadcast."""
    left, target = call.left, call.target
    place = left.memory_config if call.place is None else call.place
    if target is not None:
        place = target.memory_config
    elif place.is_sharded():
        if left.memory_config.shard_spec is None:
            raise DeviceError(f"Shard shape must be greater than 0 in each sharded dim, got [0, 0]\n{PLACE_HINT}")
        place = MemoryConfig(place.memory_layout, place.buffer_type, left.memory_config.shard_spec)
    result = left.changed(memory_config=place) if target is None else target
    for text in _refusals(call, place):
        raise DeviceError(f"{text}\n{HINT}")
    by_shards = call.axes == "H" and left.memory_config.is_sharded()
    refused = _shards_refusal(call, result, spec) if left.memory_config.is_sharded() else None
    op = Bcast(
        operation=call.operation, left_format=left.data_format, right_format=call.right.data_format,
        data_format=result.data_format, fast=True, axes=call.axes,
    )  # fmt: skip

    def write(
        builder: PlanBuilder, first: PlanTensor, second: PlanTensor, into: PlanTensor | None = None
    ) -> PlanTensor:
        if result.layout is not Layout.TILE:
            builder.leave_out_values(
                "bcast: tiles in an output_tensor of rows are not simulated; give one in TILE_LAYOUT"
            )
        if by_shards and refused is None and _mixes_rows(call, spec):
            builder.leave_out_values("bcast: of shards, one row for all matrices and whole rows of cores are simulated")
        output = PlanTensor("output", result)
        buffers, name = bcast_buffers(call.axes, first, second, output, spec), "BcastDeviceOperation"
        made = builder.run(name, op, [first, second], output, buffers, refused=refused, dataflow=True)
        return made if into is None else builder.written_into(made, into)

    return plan_of({"input": left, "input_b": call.right, "target": target}, spec, write)


def _refusals(call: BcastArguments, place: MemoryConfig) -> Iterator[str]:
    """The refusals of the device operation, in its order."""
    left, right, given = call.left, call.right, call.left.memory_config
    if not all(tensor is None or tensor.data_format.is_float for tensor in (left, call.target)):
        yield "Unsupported data format"
    interleaved = not given.is_sharded() and not place.is_sharded()
    if call.axes == "W" and not interleaved:
        yield "Bcast does not currently support input0 sharding, except if dim is W"
    if call.axes == "H" and given.is_sharded() is not place.is_sharded():
        yield (
            "Input and output mem layouts must be the same for bcast H op!"
            if given.is_sharded()
            else "Bcast does not currently support input0 sharding, except if dim is HW"
        )
    if call.axes == "HW":
        if given.memory_layout not in (TensorMemoryLayout.INTERLEAVED, TensorMemoryLayout.HEIGHT_SHARDED):
            yield "HW bcast in0 supports Height Sharding or Interleaving"
        if given.memory_layout is not place.memory_layout:
            yield "Input and output mem layouts must be the same for bcast HW op!"
    if (given.is_sharded() and call.axes == "H") or prod(right.padded_shape[:-2]) == 1:
        return
    if len(left.shape) != len(right.shape):
        yield "Broadcast with batch is currently only supported when input tensor ranks are the same"
    if left.padded_shape[:-2] != right.padded_shape[:-2]:
        yield "Broadcast with batch is currently only supported when bN*bC=1 or N & C match or equivalent"


def _shards_refusal(call: BcastArguments, result: TensorSpec, spec: DeviceSpec) -> str | None:
    """Why the program of a row or a number and shards cannot be built; None where it can."""
    if call.axes != "H":
        return _outside_l1(call.left, result)
    config, shards, across = call.left.memory_config, call.left.shards, spec.grid.cols
    if config.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED:
        return "Unsupported memory layout\ninput: give WIDTH or BLOCK shards"
    if call.target is not None and (own := call.target.shards.grid.num_cores()) != shards.grid.num_cores():
        return (
            f"Output tensor should have same number of cores {own} as input tensor {shards.grid.num_cores()}\n"
            "output_tensor: give the shards of input_a"
        )
    if refusal := _outside_l1(call.left, result):
        return refusal
    count, blocks = shards.grid.num_cores(), config.memory_layout is TensorMemoryLayout.BLOCK_SHARDED
    down = shards.grid.ranges[0].end.y + 1
    for number in range(count):  # the cores that the program counts on
        x, y = divmod(number, down) if blocks else divmod(number, across)[::-1]
        if not shards.grid.contains(CoreCoord(x, y)):
            return (
                f"Kernel 'reader' is setting runtime_arg_values for node {x}-{y}, but the kernel does not run on that "
                "node.\ninput: give shards on cores from the first on, row by row"
            )
    return None


def _outside_l1(left: TensorSpec, result: TensorSpec) -> str | None:
    """Why circular buffers cannot be views of shards; None if all shards are in L1."""
    for buffer, name, tensor in (("in0", "input_a", left), ("out", "output", result)):
        if in_dram(tensor):
            return (
                f"DFB '{buffer}' borrows memory from TensorParameter '{name}', but its TensorSpec is not L1-resident "
                "(L1 is required). Both L1 and L1_SMALL are accepted.\nbcast: move the shards to L1"
            )
    return None


def _mixes_rows(call: BcastArguments, spec: DeviceSpec) -> bool:
    """Whether shards are combined with rows of other matrices, so values are unknown."""
    shards, across = call.left.shards, spec.grid.cols
    count, blocks = shards.grid.num_cores(), call.left.memory_config.memory_layout is TensorMemoryLayout.BLOCK_SHARDED
    in_order = blocks or shards.orientation is ShardOrientation.ROW_MAJOR or count < across or count % across == 0
    return prod(call.right.padded_shape[:-2]) != 1 or not in_order
