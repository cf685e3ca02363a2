"""The plan of ttnn.topk along the last axis. Rules: ttnn 0.81.1, compared with its plans."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, prod

from device.errors import DeviceError, NotSimulatedError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, BufferType, Layout, MemoryConfig
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, UINT16, UINT32, round_up
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.planners.shape.pad import fill_padding, padded_by
from ops.planners.shape.permute import RANK, seen
from ops.planners.shape.slice import cut_by
from ops.programs.reduction.topk import TopK, topk_buffers

FORMATS = (BFLOAT16, BFLOAT8_B, FLOAT32)
MOST = 64  # elements, beyond which some devices take other programs
LEAST_COLUMNS = 64  # of rows that are sorted; shorter rows are padded
SHARED_COLUMNS = 1024  # from which several cores share a row


@dataclass(frozen=True, slots=True, kw_only=True)
class TopKArguments:
    """A call."""

    count: int
    dim: int = -1  # As the caller counts it
    largest: bool = True
    place: MemoryConfig | None = None


def plan_topk(source: TensorSpec, call: TopKArguments, spec: DeviceSpec) -> Plan:
    """Plan the results "values" and "indices" of the tensor "input"; raises DeviceError for a call it refuses."""
    for text in _refusals(source, call):
        raise DeviceError(text)
    _require_simulated(source, call)
    rank = len(source.shape)
    builder = PlanBuilder(spec, {"input": source})
    tensor = builder.tensor("input")
    filler = -inf if call.largest else inf
    short = max(0, LEAST_COLUMNS - source.shape[-1])
    four = seen(tensor, _four_axes(source.shape)) if short else tensor
    around = (*[(0, 0)] * (len(four.spec.shape) - 1), (0, short))
    padded = padded_by(builder, four, around, filler, "padded")
    read = fill_padding(builder, padded, filler, "filled", seen=False)
    count = call.count if rank == RANK else round_up(call.count, TILE)
    place = source.memory_config if call.place is None else call.place
    op = TopK(
        shape=source.shape,
        count=count,
        largest=call.largest,
        index_format=UINT32 if source.data_format == FLOAT32 else UINT16,
    )
    shape = (*source.shape[:-1], count)
    made = PlanTensor("best", TensorSpec(shape, source.data_format, Layout.TILE, place))
    places = PlanTensor("places", TensorSpec(shape, op.index_format, Layout.TILE, place))
    buffers = topk_buffers(op, read.spec, spec)
    builder.run("TopKDeviceOperation", op, [read], made, buffers, more_outputs=[places], dataflow=True)
    results = {}
    wanted = (*source.shape[:-1], call.count)
    for role, result in (("values", made), ("indices", places)):
        four = PlanTensor(result.name, result.spec.changed(shape=_four_axes(shape)))
        box = cut_by(builder, four, _four_axes(wanted), role)
        builder.free_own(result, keep=[box])
        results[role] = PlanTensor(box.name, box.spec.changed(shape=wanted))
    builder.free_own(read)
    return builder.finish(results)


def _four_axes(shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape as the library cuts it: with axes of 1 in front, or with the first axes put together."""
    more = max(0, len(shape) - RANK + 1)
    return (*[1] * (RANK - len(shape)), *([prod(shape[:more])] if more > 1 else shape[:more]), *shape[more:])


def _refusals(source: TensorSpec, call: TopKArguments) -> Iterator[str]:
    rank = len(source.shape)
    if not -rank <= call.dim < rank:
        yield (
            f"Dimension for topk is out of range (expected to be in range of [{-rank}, {rank - 1}])\n"
            f"dim: the tensor has no axis {call.dim}"
        )
    if (size := source.shape[call.dim]) < call.count:
        yield f"K cannot be larger than the dimension size! K={call.count}, dimension size={size}\ntopk: ask for fewer"
    if source.layout is not Layout.TILE:
        yield "The input must be in tiled format\ntopk: bring the tensor into TILE_LAYOUT"
    if source.data_format not in FORMATS:
        yield (
            "Input tensor must be BFLOAT16, BFLOAT8_B, or FLOAT32, got: DataType::"
            f"{source.data_format.name.upper()}\ntopk: typecast the tensor"
        )


def _require_simulated(source: TensorSpec, call: TopKArguments) -> None:
    """Raises for calls that take other programs, or others in front of this one."""
    places = [source.memory_config] + ([] if call.place is None else [call.place])
    columns = source.padded_shape[-1]
    ragged = source.data_format.is_block and (source.shape != source.padded_shape or columns < LEAST_COLUMNS)
    in_l1 = source.memory_config.buffer_type is BufferType.L1
    by_one_core = columns <= TILE and (in_l1 or prod(source.shape[:-2]) > 1)
    for missing, what in (
        (call.dim not in (-1, len(source.shape) - 1), "an axis before the last is not simulated; transpose the tensor"),
        (any(place.is_sharded() for place in places), "shards are not simulated; use interleaved memory"),
        (
            columns >= SHARED_COLUMNS,
            f"{SHARED_COLUMNS} columns or more, which cores share, are not simulated; cut them",
        ),
        (by_one_core, f"{TILE} columns or fewer, in L1 or of several images, are not simulated; pad them"),
        (ragged, "block floats that do not fill 2 tiles are not simulated; make them bfloat16"),
        (not 1 <= call.count <= MOST, f"k={call.count} is not simulated; ask for 1 to {MOST}"),
    ):
        if missing:
            raise NotSimulatedError(f"topk: {what}")
