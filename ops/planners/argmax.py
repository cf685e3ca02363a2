"""The plan of ttnn.argmax. Rules: ttnn 0.81.1, compared with its plans."""

from collections.abc import Iterator
from dataclasses import dataclass

from device.errors import DeviceError, NotSimulatedError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout, MemoryConfig
from device.numbers.formats import BFLOAT16, FLOAT32, INT32, UINT16, UINT32
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.planners.one_axis import OneAxisArguments
from ops.planners.shape.to_layout import in_other_layout
from ops.programs.buffer_shapes import page_cores
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgMaxArguments(OneAxisArguments):
    """A call."""

    def beyond(self, rank: int) -> str:
        """As in `OneAxisArguments`."""
        return (
            f"argmax: Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {self.dim})\n"
            "dim: give one of the tensor's axes"
        )


def plan_argmax(source: TensorSpec, call: ArgMaxArguments, spec: DeviceSpec) -> Plan:
    """Plan the places of the largest elements of the tensor "input"; raises DeviceError for a call it refuses."""
    rank = len(source.shape)
    axes = call.axes(source)
    if not rank:
        raise NotSimulatedError("argmax: tensors without axes are not simulated")
    axis = None if call.dim is None else axes[0]
    by_rows = source.layout is Layout.ROW_MAJOR and axis in (None, rank - 1)
    kept = tuple(1 if index == axis or axis is None else side for index, side in enumerate(source.shape))
    shape = kept if call.keeps else () if axis is None else kept[:axis] + kept[axis + 1 :]
    place = source.memory_config if call.place is None else call.place
    if not shape and place.is_sharded():
        raise DeviceError("Shard shape must be 1D for 1D tensor!\nargmax: use interleaved memory, or keepdim=True")
    rows = TensorSpec(shape, UINT32, Layout.ROW_MAJOR, place, None if shape else (1,))
    for text in _refusals(source, call):
        raise DeviceError(text)

    def write(builder: PlanBuilder, tensor: PlanTensor) -> PlanTensor:
        if by_rows:
            outputs = shape[-1] if shape and axis is not None else 1
            cores = sharing_cores(row_shares(source, outputs, spec))
            op = ArgMax(program=ArgMaxProgram.ROWS, axis=axis, cores=cores)
            made = PlanTensor("output", rows.changed(shape=kept) if outputs == 1 else rows)
            buffers = row_buffers(source, outputs, spec)
            builder.run("ArgMaxDeviceOperation", op, [tensor], made, buffers, dataflow=True)
            return PlanTensor("output", rows)
        read, along = _tiles(builder, tensor), axis or 0
        if along < rank - 2:
            result = _of_images(builder, read, along, kept, place)
        else:
            result = _of_tiles(builder, read, along, rows)
        builder.free_own(read, keep=[result])
        return PlanTensor(result.name, rows)

    return plan_of(source, spec, write, attempts=True)


def _refusals(source: TensorSpec, call: ArgMaxArguments) -> Iterator[str]:
    rank, dim, named = len(source.shape), call.dim, f"DataType::{source.data_format.name.upper()}"
    way_out = "argmax: typecast the tensor"
    for place, what in ((source.memory_config, "inputs"), (call.place, "outputs")):
        if place is not None and place.is_sharded():
            yield (
                f"Only INTERLEAVED memory layout is supported for {what}, got TensorMemoryLayout::"
                f"{place.memory_layout.name}\nargmax: use interleaved memory"
            )
    if source.layout is Layout.TILE:
        if source.data_format not in TILE_FORMATS:
            yield f"Only BFLOAT16, FLOAT32 are supported for inputs with TILE layout, got {named}\n{way_out}"
        if dim is None:
            yield "For inputs with TILE layout, dim parameter must be specified!\nargmax: name an axis"
        return
    if source.data_format not in ROW_FORMATS:
        yield (
            "Only BFLOAT16, FLOAT32, INT32, UINT32, and UINT16 are supported for inputs with ROW_MAJOR layout, got "
            f"{named}\n{way_out}"
        )
    if dim is not None and source.data_format not in TILE_FORMATS and dim % rank != rank - 1:
        yield (
            f"ROW_MAJOR: only argmax on the last dim is supported. Got dim={dim} (normalized={dim % rank}), expected "
            f"{rank - 1}\n{way_out}"
        )


def _tiles(builder: PlanBuilder, source: PlanTensor) -> PlanTensor:
    spec = source.spec
    if spec.layout is Layout.TILE:
        return source
    padded = TensorSpec(spec.shape, spec.data_format, Layout.TILE).padded_shape
    whole = padded == spec.shape
    return tilized_by(builder, source, "tiles", place=spec.memory_config, padded_shape=padded, whole=whole)


def _of_images(
    builder: PlanBuilder, source: PlanTensor, axis: int, kept: tuple[int, ...], place: MemoryConfig
) -> PlanTensor:
    """Places along a leading axis, in tiles that become rows."""
    cores = image_cores(source.spec, axis, builder.device_spec)
    op = ArgMax(program=ArgMaxProgram.IMAGES, axis=axis, cores=cores)
    made = PlanTensor("places", TensorSpec(kept, UINT32, Layout.TILE, place))
    builder.run("ArgMaxNCDeviceOperation", op, [source], made, image_buffers(source.spec, cores))
    rows = in_other_layout(builder, made, Layout.ROW_MAJOR, "output")
    builder.free(made)
    return rows


def _of_tiles(builder: PlanBuilder, source: PlanTensor, axis: int, rows: TensorSpec) -> PlanTensor:
    """Places along rows or columns, found by one core."""
    cores = page_cores(1, builder.device_spec.grid)
    op = ArgMax(program=ArgMaxProgram.TILES, axis=axis, cores=cores)
    made = PlanTensor("output", rows.changed(shape=rows.shape or (1,)))
    buffers = tile_buffers(source.spec, made.spec, cores)
    return builder.run("ArgMaxDeviceOperation", op, [source], made, buffers, dataflow=True)
