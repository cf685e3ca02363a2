"""The plan of ttnn.argmax. Rules: ttnn 0.81.1, compared with its plans."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from device.cores import CoreRangeSet
from device.errors import DeviceError
from device.memory.layouts import TensorSpec, require_shard_spec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, Layout, MemoryConfig
from device.numbers.formats import BFLOAT16, FLOAT32, INT32, UINT16, UINT32
from device.plan import CircularBuffer, Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.planners.one_axis import OneAxisArguments
from ops.planners.shape.to_layout import in_other_layout
from ops.programs.buffer_shapes import page_cores, require_cores
from ops.programs.data_movement.conversions import tilized_by
from ops.programs.reduction.argmax import (
    ArgMax,
    ArgMaxProgram,
    image_buffers,
    image_cores,
    row_buffers,
    row_shares,
    sharing_cores,
    tile_buffers,
)

TILE_FORMATS = (BFLOAT16, FLOAT32)
ROW_FORMATS = (BFLOAT16, FLOAT32, INT32, UINT32, UINT16)
MOST_RANGES = 2  # of cores that share rows


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgMaxArguments(OneAxisArguments):
    """A call."""

    target: TensorSpec | None = None  # The caller's tensor "target" that the places are written into, if there is one
    cores: CoreRangeSet | None = None  # That share rows or images; None for all
    both: bool | None = None  # Both data movement processors of a core read rows; None where rows share a page

    def beyond(self, rank: int) -> str:
        """As in `OneAxisArguments`."""
        if not rank:
            return (
                f"argmax: Dimension out of range for scalar tensor (expected 0 or -1, but got {self.dim})\n"
                "dim: leave it out"
            )
        return (
            f"argmax: Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {self.dim})\n"
            "dim: give one of the tensor's axes"
        )


def is_of_images(source: TensorSpec, call: ArgMaxArguments) -> bool:
    """Whether tiles are compared along a leading axis, by a program that cannot write into a caller's tensor."""
    taken = source.layout is Layout.TILE or source.data_format in TILE_FORMATS
    return taken and call.dim is not None and call.axes(source)[0] < len(source.shape) - 2


def plan_argmax(source: TensorSpec, call: ArgMaxArguments, spec: DeviceSpec) -> Plan:
    """Plan the indices of the largest elements of the tensor "input"; raises DeviceError for a refused call.

    The tensor has at least one axis. Programs other than that of images (`is_of_images`) may write into "target".
    """
    rank = len(source.shape)
    axes = call.axes(source)
    axis = None if call.dim is None else axes[0]
    by_rows = source.layout is Layout.ROW_MAJOR and axis in (None, rank - 1)
    kept = tuple(1 if index == axis or axis is None else side for index, side in enumerate(source.shape))
    shape = kept if call.keeps else () if axis is None else kept[:axis] + kept[axis + 1 :]
    place = source.memory_config if call.place is None else call.place
    if call.target is not None:
        target = call.target.memory_config
        place = DRAM_MEMORY_CONFIG if target.is_sharded() else target  # a sharded one is refused below
    require_shard_spec(place, in_rows=True)
    made = TensorSpec(shape or (1,), UINT32, Layout.ROW_MAJOR, place)  # which the library looks at first
    outputs = shape[-1] if shape and axis is not None else 1
    for text in (
        *_refusals(source, call),
        *_target_refusals(call.target, shape),
        *_axis_refusals(source, call),
        *_share_refusals(call, outputs, spec, by_rows=by_rows),
    ):
        raise DeviceError(text)
    rows = made.changed(shape=shape, padded_shape=None if shape else (1,))

    def write(builder: PlanBuilder, tensor: PlanTensor, *target: PlanTensor) -> PlanTensor:
        if by_rows:
            both = outputs > 1 and call.both is not False
            shares = row_shares(source, spec, both=both, within=call.cores)
            op = ArgMax(program=ArgMaxProgram.ROWS, axis=axis, cores=sharing_cores(shares))
            made = PlanTensor("output", rows.changed(shape=kept) if outputs == 1 else rows)
            buffers = row_buffers(source, outputs, shares, both=both)
            _search(builder, op, [tensor, *target], made, buffers)
            return target[0] if target else PlanTensor("output", rows)
        read, along = _tiles(builder, tensor), axis or 0
        if along < rank - 2:
            result = _of_images(builder, read, along, kept, place, call.cores)
        else:
            result = _of_tiles(builder, read, along, rows, target)
        builder.free_own(read, keep=[result])
        return target[0] if target else PlanTensor(result.name, rows)

    return plan_of({"input": source, "target": call.target}, spec, write, attempts=True)


def _search(
    builder: PlanBuilder,
    op: ArgMax,
    reads: Sequence[PlanTensor],
    made: PlanTensor,
    buffers: tuple[CircularBuffer, ...],
) -> PlanTensor:
    """A program that makes a tensor, or that writes into the second of two."""
    output = made if len(reads) == 1 else None
    return builder.run("ArgMaxDeviceOperation", op, reads, output, buffers, dataflow=True)


def _refusals(source: TensorSpec, call: ArgMaxArguments) -> Iterator[str]:
    named, way_out = f"DataType::{source.data_format.name.upper()}", "argmax: typecast the tensor"
    if source.memory_config.is_sharded():
        yield _sharded("inputs", source.memory_config)
    if source.layout is Layout.TILE:
        if source.data_format not in TILE_FORMATS:
            yield f"Only BFLOAT16, FLOAT32 are supported for inputs with TILE layout, got {named}\n{way_out}"
    elif source.data_format not in ROW_FORMATS:
        yield (
            "Only BFLOAT16, FLOAT32, INT32, UINT32, and UINT16 are supported for inputs with ROW_MAJOR layout, got "
            f"{named}\n{way_out}"
        )
    if call.place is not None and call.place.is_sharded():
        yield _sharded("outputs", call.place)


def _sharded(what: str, place: MemoryConfig) -> str:
    return (
        f"Only INTERLEAVED memory layout is supported for {what}, got TensorMemoryLayout::{place.memory_layout.name}\n"
        "argmax: use interleaved memory"
    )


def _axis_refusals(source: TensorSpec, call: ArgMaxArguments) -> Iterator[str]:
    """The errors of the axis."""
    rank, dim = len(source.shape), call.dim
    if source.layout is Layout.TILE:
        if dim is None:
            yield "For inputs with TILE layout, dim parameter must be specified!\nargmax: name an axis"
    elif dim is not None and source.data_format not in TILE_FORMATS and dim % rank != rank - 1:
        yield (
            f"ROW_MAJOR: only argmax on the last dim is supported. Got dim={dim} (normalized={dim % rank}), expected "
            f"{rank - 1}\nargmax: typecast the tensor"
        )


def _share_refusals(call: ArgMaxArguments, outputs: int, spec: DeviceSpec, *, by_rows: bool) -> Iterator[str]:
    """The errors of the cores that share rows, and of their processors."""
    way_out = "argmax: leave enable_secondary_dm out"
    if call.both and not by_rows:
        yield f"enable_secondary_dm applies only to ROW_MAJOR argmax over the last dim (or dim=None)\n{way_out}"
    if by_rows and call.cores is not None:
        count, whole = len(call.cores.ranges), page_cores(spec.grid.cores, spec.grid)
        if count > MOST_RANGES:
            yield (
                f"Multicore argmax only supports up to {MOST_RANGES} core grid ranges, but got {count} ranges\n"
                "sub_core_grids: give fewer"
            )
        if not whole.contains(call.cores):
            yield (
                f"Argmax Multicore argmax sub_core_grids {call.cores} must be contained in device compute grid {whole}"
                "\nsub_core_grids: name cores of the device"
            )
    if call.both and outputs == 1:
        yield (
            "enable_secondary_dm needs at least two output rows; reduce_all, keepdim=True and rank < 2 leave one\n"
            f"{way_out}"
        )


def _target_refusals(target: TensorSpec | None, shape: Sequence[int]) -> Iterator[str]:
    """The errors of the caller's tensor for a result of a shape."""
    if target is None:
        return
    way_out = "output_tensor: give an interleaved uint32 tensor of the result's shape in ROW_MAJOR layout"
    if target.data_format != UINT32:
        yield f"Only UINT32 is supported for outputs, got DataType::{target.data_format.name.upper()}\n{way_out}"
    if target.memory_config.is_sharded():
        yield (
            "Only INTERLEAVED memory layout is supported for outputs, got TensorMemoryLayout::"
            f"{target.memory_config.memory_layout.name}\n{way_out}"
        )
    if target.layout is not Layout.ROW_MAJOR:
        yield f"Output tensor must have ROW_MAJOR layout, got Layout::{target.layout.name}\n{way_out}"
    if target.volume != prod(shape) or (1, *target.shape)[-1] != (1, *shape)[-1]:
        yield (
            "Preallocated output tensor is not page-compatible with the reduction result! Got : Shape("
            f"{list(target.shape)}), expected: Shape({list(shape)}) (or any shape with the same volume and last "
            f"dimension)\n{way_out}"
        )


def _tiles(builder: PlanBuilder, source: PlanTensor) -> PlanTensor:
    spec = source.spec
    if spec.layout is Layout.TILE:
        return source
    padded = TensorSpec(spec.shape, spec.data_format, Layout.TILE).padded_shape
    whole = padded == spec.shape
    return tilized_by(builder, source, "tiles", place=spec.memory_config, padded_shape=padded, whole=whole)


def _of_images(
    builder: PlanBuilder,
    source: PlanTensor,
    axis: int,
    kept: tuple[int, ...],
    place: MemoryConfig,
    within: CoreRangeSet | None,
) -> PlanTensor:
    """Places along a leading axis, in tiles that become rows."""
    require_cores(within, builder.device_spec, "argmax")
    cores = image_cores(source.spec, axis, builder.device_spec, within)
    op = ArgMax(program=ArgMaxProgram.IMAGES, axis=axis, cores=cores)
    made = PlanTensor("places", TensorSpec(kept, UINT32, Layout.TILE, place))
    builder.run("ArgMaxNCDeviceOperation", op, [source], made, image_buffers(source.spec, cores))
    rows = in_other_layout(builder, made, Layout.ROW_MAJOR, "output")
    builder.free(made)
    return rows


def _of_tiles(
    builder: PlanBuilder, source: PlanTensor, axis: int, rows: TensorSpec, target: Sequence[PlanTensor]
) -> PlanTensor:
    """Indices along rows or columns, found by one core."""
    cores = page_cores(1, builder.device_spec.grid)
    op = ArgMax(program=ArgMaxProgram.TILES, axis=axis, cores=cores)
    made = PlanTensor("output", rows.changed(shape=rows.shape or (1,)))
    buffers = tile_buffers(source.spec, made.spec, cores)
    return _search(builder, op, [source, *target], made, buffers)
