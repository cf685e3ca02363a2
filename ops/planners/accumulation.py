"""Plans of cumsum, cumprod, intimg and fast_reduce_nc. Rules: ttnn 0.81.1, compared with its plans.

A sum of bfloat16 along rows or columns works within tiles; otherwise the axis is first put in front of all others.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from device.cores import CoreRangeSet, core_rectangle
from device.errors import ArgumentError, DeviceError, NotSimulatedError
from device.memory.layouts import TensorSpec, no_such_axis, require_shard_spec
from device.memory.memory_config import TILE, Layout, MemoryConfig
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, DataFormat
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.planners.shape.permute import RANK, permuted_by, seen
from ops.planners.shape.reshape import reshaped_by
from ops.programs.buffer_shapes import require_among, require_cores
from ops.programs.data_movement.conversions import cloned, typecast_by
from ops.programs.reduction.accumulate import Accumulate, accumulate_buffers, accumulating_cores
from ops.programs.reduction.integral import (
    COLUMNS,
    ROWS,
    IntegralImage,
    channels_summed,
    integral_buffers,
)
from ops.programs.reduction.nc import AddImages, nc_buffers

ADDED_FORMATS = (BFLOAT16, BFLOAT8_B, FLOAT32)
ADDED_TEXT = "only supports specific data types. [BFLOAT16, BFLOAT8_B, FLOAT32]"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccumulateArguments:
    """A call of cumsum or cumprod."""

    name: str
    axis: int  # As the caller counts it
    multiplies: bool
    backwards: bool = False
    compensates: bool = True
    data_format: DataFormat | None = None
    place: MemoryConfig | None = None
    out_shape: tuple[int, ...] | None = None  # Of the tensor that gets the result's buffer, if there is one


def plan_accumulation(source: TensorSpec, call: AccumulateArguments, spec: DeviceSpec) -> Plan:
    """Plan the tensor "input" summed or multiplied up; raises DeviceError if the library refuses the call."""
    rank = len(source.shape)
    if call.out_shape not in (None, source.shape):
        raise DeviceError(
            f"Shape mismatch: input tensor shape Shape({list(source.shape)}) does not match output tensor shape "
            f"Shape({list(call.out_shape or ())}).\nout: give a tensor of the same shape, or leave it out"
        )
    if not source.volume or not rank:  # copied, for any axis and data type
        return plan_of(source, spec, partial(cloned, place=call.place or source.memory_config, name="output"))
    if not -rank <= call.axis < rank:
        raise DeviceError(
            f"The requested accumulation axis is {call.axis}, while the input tensor has rank "
            f"{len(source.padded_shape)}.\n{call.name}: give one of its axes"
        )

    def write(builder: PlanBuilder, tensor: PlanTensor) -> PlanTensor:
        read = tensor
        if call.data_format not in (None, source.data_format):
            read = typecast_by(builder, tensor, call.data_format or BFLOAT16, "cast")
        return _accumulated(builder, read, call, call.axis % rank)

    return plan_of(source, spec, write, attempts=True)


def _accumulated(builder: PlanBuilder, source: PlanTensor, call: AccumulateArguments, axis: int) -> PlanTensor:
    """The scan along an axis: within tiles, along leading axes, or along the axis put in front."""
    spec, rank = source.spec, len(source.spec.shape)
    where = spec.memory_config if call.place is None else call.place
    in_tiles = spec.layout is Layout.TILE and spec.data_format == BFLOAT16
    within = axis >= rank - 2 and in_tiles and not call.multiplies and not call.backwards
    if within or axis < rank - 3:
        result = _run(builder, source, call, axis, where, "output")
        builder.free_own(source)
        return result
    more = max(0, RANK - rank)
    order = list(range(rank + more))
    order[0], order[axis + more] = order[axis + more], order[0]
    four = reshaped_by(builder, source, (*[1] * more, *spec.shape), None, None, "four")
    turned = permuted_by(builder, four, tuple(order), four.spec.memory_config, "turned")
    builder.free_own(source, keep=[turned])
    totals = _run(builder, turned, call, 0, where, "totals")
    builder.free_own(turned)
    result = permuted_by(builder, totals, tuple(order), None, "output")
    builder.free_own(totals, keep=[result])
    return seen(result, spec.shape)


def _run(
    builder: PlanBuilder, source: PlanTensor, call: AccumulateArguments, axis: int, place: MemoryConfig, name: str
) -> PlanTensor:
    spec = source.spec
    if place.is_sharded():  # the result's shards come first
        require_shard_spec(place, in_rows=spec.layout is Layout.ROW_MAJOR)
        spec.changed(memory_config=place, padded_shape=None)
    if spec.memory_config.is_sharded():
        raise DeviceError(
            "ttnn accumulation operations (cumprod, cumsum) do not support sharded input tensors.\n"
            f"{call.name}: move the tensor to interleaved memory"
        )
    if spec.layout is not Layout.TILE:
        raise DeviceError(
            f"The provided input tensor has a non-tile layout: ROW_MAJOR.\n{call.name}: bring it into TILE_LAYOUT"
        )
    target = PlanTensor(name, spec.changed(memory_config=place, padded_shape=spec.padded_shape))
    cores = accumulating_cores(spec, axis, builder.device_spec)
    require_among(target.spec, cores, builder.device_spec.grid, program="Accumulation", owner=call.name)
    op = Accumulate(
        axis=axis,
        multiplies=call.multiplies,
        backwards=call.backwards,
        compensates=spec.data_format == FLOAT32 and call.compensates and not call.multiplies,
        data_format=spec.data_format,
    )
    buffers = accumulate_buffers(op, spec, builder.device_spec)
    return builder.run("AccumulationDeviceOperation", op, [source], target, buffers, dataflow=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagesArguments:
    """A call of fast_reduce_nc."""

    axes: tuple[int, ...]
    place: MemoryConfig
    fp32_dest: bool = False
    cores: CoreRangeSet | None = None


def plan_added_images(
    source: TensorSpec, call: ImagesArguments, spec: DeviceSpec, *, target: TensorSpec | None = None
) -> Plan:
    """Plan the sum of the tensor "input" along leading axes, the last of these first.

    The last program writes into the caller's tensor "target", if given.
    """
    for text in _refusals(source, call, target):
        raise DeviceError(text)

    def write(builder: PlanBuilder, tensor: PlanTensor, into: PlanTensor | None = None) -> PlanTensor:
        current, last = tensor, len(call.axes) - 1
        for number, axis in enumerate(sorted(call.axes, reverse=True)):
            before, padded = current, current.spec.padded_shape
            shape = tuple(1 if index == axis else side for index, side in enumerate(padded))
            result = TensorSpec(shape, source.data_format, Layout.TILE, call.place)
            if into is not None and number == last:
                if into.spec.padded_shape != shape:
                    builder.leave_out_values(
                        f"fast_reduce_nc: output of {list(into.spec.shape)} does not hold {list(shape)}; give one of "
                        "that shape"
                    )
                result = into.spec
            op = AddImages(
                axis=axis,
                padded_shape=padded,
                source_format=source.data_format,
                data_format=result.data_format,
                fp32_dest=call.fp32_dest,
                allowed=call.cores,
            )
            require_added_cores(call.cores, spec, "fast_reduce_nc")
            buffers, output = nc_buffers(op, before.spec, result, spec), PlanTensor(f"images.{number}", result)
            current = builder.run("FastReduceNCDeviceOperation", op, [before], output, buffers, dataflow=True)
            builder.free_own(before)
        return current if into is None else builder.written_into(current, into)

    return plan_of({"input": source, "target": target}, spec, write)


def _refusals(source: TensorSpec, call: ImagesArguments, target: TensorSpec | None) -> Iterator[str]:
    """The refusals of the programs, one for each axis, in order; the last program writes the caller's tensor."""
    owner = "fast_reduce_nc"
    if not call.axes:
        yield f"fast_reduce_nc dims should not be empty\n{owner}: name the axes"
    axes = sorted(call.axes, reverse=True)
    for number, axis in enumerate(axes):
        into = target if number == len(axes) - 1 else None
        if into is None:
            yield from _result_refusals(source, call, axis)
        if source.layout is not Layout.TILE:
            yield f"FastReduceNC input only supports TILE layout.\n{owner}: bring the tensor into TILE_LAYOUT"
        if source.data_format not in ADDED_FORMATS:
            yield f"FastReduceNC input {ADDED_TEXT}\n{owner}: typecast the tensor"
        if into is not None:
            yield from _target_refusals(source, into)
        rank = len(source.shape)
        if rank < 3:
            yield f"FastReduceNC input rank must be greater than 2, but has {rank}\n{owner}: reshape the tensor"
        if not 0 <= axis <= rank - 3:
            yield (
                f"FastReduceNC reduces only outer dims: dim must be between 0 and {rank - 3}, but has {axis}\n"
                f"{owner}: use ttnn.sum"
            )


def _result_refusals(source: TensorSpec, call: ImagesArguments, axis: int) -> Iterator[str]:
    """The library's refusals of a sum whose result it must allocate, before its program."""
    rank, owner = len(source.shape), "fast_reduce_nc"
    if not -max(rank, RANK) <= axis < rank:
        yield f"{no_such_axis(rank, axis)}\n{owner}: dims: no such axis"
    if call.place.is_sharded() and call.place.shard_spec is None:
        yield f"bad optional access\n{owner}: give memory_config a ShardSpec"
    sides = tuple(1 if number == axis else side for number, side in enumerate(source.padded_shape))
    TensorSpec(sides, source.data_format, Layout.TILE, call.place)


def _target_refusals(source: TensorSpec, target: TensorSpec) -> Iterator[str]:
    """A program's refusals of a tensor that receives the sum."""
    if target.layout is not Layout.TILE:
        yield "FastReduceNC output only supports TILE layout.\noutput: give one in TILE_LAYOUT"
    if target.data_format not in ADDED_FORMATS:
        yield f"FastReduceNC output {ADDED_TEXT}\noutput: give one like the input"
    if len(target.shape) != len(source.shape):
        yield (
            f"FastReduceNC preallocated output rank {len(target.shape)} must match input rank {len(source.shape)}\n"
            "output: give one like the sum"
        )


def require_added_cores(cores: CoreRangeSet | None, spec: DeviceSpec, owner: str) -> None:
    """Raises DeviceError for no cores to add images on, and for cores outside the device."""
    device = core_rectangle(spec.grid.cols, spec.grid.rows)
    if cores is not None and not device.contains(cores):
        raise DeviceError(
            f"FastReduceNC sub_core_grids {cores} must be contained in device compute grid {device}\n"
            f"{owner}: name cores of the device"
        )
    require_cores(cores, spec, owner)


def plan_integral_image(source: TensorSpec, spec: DeviceSpec) -> Plan:
    """Plan the sums of the tensor "input" [1, W, H, C] over W and H; raises DeviceError where the library refuses."""
    result = source.changed(layout=Layout.TILE)  # refuses shards of no tiles before the input
    for text in _integral_refusals(source):
        raise DeviceError(text)
    if spec.grid.cols < COLUMNS or spec.grid.rows < ROWS:
        raise NotSimulatedError(
            f"intimg: its program takes {COLUMNS} x {ROWS} cores, and the device has {spec.grid.cols} x "
            f"{spec.grid.rows}"
        )

    def write(builder: PlanBuilder, tensor: PlanTensor) -> PlanTensor:
        target = PlanTensor("output", result)
        op = IntegralImage(data_format=source.data_format)
        buffers = integral_buffers(source)
        return builder.run("IntImgDeviceOperation", op, [tensor], target, buffers, dataflow=True)

    return plan_of(source, spec, write)


def _integral_refusals(source: TensorSpec) -> Iterator[str]:
    shape, form = source.shape, source.data_format
    if len(shape) != 4:
        yield f"intimg supports only 4D tensors, the input tensor has {len(shape)} instead\nintimg: reshape the tensor"
    if shape[0] != 1:
        yield f"intimg supports only one batch, found {shape[0]} instead\nintimg: give one image after the other"
    if source.layout is not Layout.TILE:
        yield (
            "only tile layout is supported, Layout::ROW_MAJOR was provided instead\n"
            "intimg: bring the tensor into TILE_LAYOUT"
        )
    if form not in (BFLOAT16, FLOAT32):
        yield (
            f"only bf16 and fp32 dtypes are supported, DataType::{form.name.upper()} was provided instead\n"
            "intimg: typecast the tensor"
        )


def require_all_channels(source: TensorSpec) -> None:
    """Raises ArgumentError for channels that the real program sums only partly, or whose sums it misplaces."""
    if not channels_summed(source):
        most = COLUMNS * ROWS * TILE
        raise ArgumentError(
            f"intimg: the real library sums {most - TILE + 1} to {most} channels, a tile on each of {COLUMNS * ROWS} "
            f"cores, and writes other numbers for {source.shape[-1]}; pad or split the channels"
        )
