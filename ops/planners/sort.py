"""The plan of ttnn.sort of tiles. Rules: ttnn 0.81.1, compared with its plans.

The axis is put last and back, and rows are padded to a power of two of columns.
"""

from dataclasses import dataclass
from math import inf
from typing import Final

from device.errors import DeviceError, NotSimulatedError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout, MemoryConfig
from device.numbers.formats import BFLOAT16, FLOAT32, UINT16
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.planners.ordered import four_axes, put_back
from ops.planners.shape.pad import fill_padding, padded_by
from ops.planners.shape.permute import RANK, seen, transposed_by
from ops.programs.reduction.sort import Sort, places_format, sort_buffers

FORMATS: Final = (BFLOAT16, FLOAT32, UINT16)
LEAST_COLUMNS: Final = 64
MOST_COLUMNS: Final = 2048  # of rows that one core sorts
LARGEST: Final = {UINT16: 65535.0}  # of integers, which stands for infinity


@dataclass(frozen=True, slots=True, kw_only=True)
class SortArguments:
    """A call."""

    dim: int = -1  # As the caller counts it
    descending: bool = False
    place: MemoryConfig | None = None


def plan_sort(source: TensorSpec, call: SortArguments, spec: DeviceSpec) -> Plan:
    """Plan the results "values" and "indices" of the tensor "input"; raises DeviceError for a call it refuses."""
    rank = len(source.shape)
    place = source.memory_config if call.place is None else call.place
    _check(source, call, place)
    axis = call.dim % rank
    builder = PlanBuilder(spec, {"input": source})
    turned = tensor = builder.tensor("input")
    is_last = axis == rank - 1
    if not is_last:
        turned = transposed_by(builder, tensor, (axis, rank - 1), source.memory_config, "turned")
    shape = turned.spec.shape
    largest = LARGEST.get(source.data_format, inf)
    filler = (0.0 if source.data_format in LARGEST else -inf) if call.descending else largest
    four = fill_padding(builder, seen(turned, four_axes(shape)), filler, "filled", seen=False)
    columns = _columns(four.spec.padded_shape[-1])
    more = columns - shape[-1] if columns != four.spec.padded_shape[-1] else 0
    read = padded_by(builder, four, (*[(0, 0)] * (RANK - 1), (0, more)), filler, "padded")
    builder.free_own(turned, keep=[read])
    _require_format(source)
    if columns > MOST_COLUMNS:
        raise NotSimulatedError(
            f"sort: rows of {shape[-1]} elements, which cores share, are not simulated; sort at most {MOST_COLUMNS}"
        )
    sides = (*four_axes(shape)[:-1], shape[-1] + more)
    op = Sort(
        shape=shape,
        columns=sides[-1],
        descending=call.descending,
        index_format=places_format(source.data_format),
    )
    made = PlanTensor("sorted", TensorSpec(sides, source.data_format, Layout.TILE, place))
    places = PlanTensor("places", TensorSpec(sides, op.index_format, Layout.TILE, place))
    buffers = sort_buffers(read.spec, spec)
    builder.run("SortDeviceOperation", op, [read], made, buffers, more_outputs=[places], dataflow=True)
    results = put_back(builder, (made, places), shape, axis, source.memory_config)
    builder.free_own(read)
    return builder.finish(results)


def _columns(columns: int) -> int:
    """The power of two to which rows of so many columns are padded."""
    return max(LEAST_COLUMNS, 1 << (columns - 1).bit_length())


def _check(source: TensorSpec, call: SortArguments, place: MemoryConfig) -> None:
    rank = len(source.shape)
    if not -rank <= call.dim < rank:
        raise DeviceError(
            f"Sort dim {call.dim} is out of range for rank-{rank} tensor\ndim: the tensor has no axis {call.dim}"
        )
    for missing, what in (
        (not source.volume, "tensors without elements are not simulated"),
        (source.layout is not Layout.TILE, "ROW_MAJOR tensors are not simulated; bring the tensor into TILE_LAYOUT"),
        (source.memory_config.is_sharded() or place.is_sharded(), "shards are not simulated; use interleaved memory"),
        (source.shape[call.dim] == 1, "an axis of length 1 is not simulated; there is nothing to sort"),
    ):
        if missing:
            _require_format(source)
            raise NotSimulatedError(f"sort: {what}")


def _require_format(source: TensorSpec) -> None:
    if source.data_format not in FORMATS:
        raise DeviceError(
            "Input tensor data type must be BFLOAT16, UINT16, or FLOAT32, got DataType::"
            f"{source.data_format.name.upper()}\nsort: typecast the tensor"
        )
