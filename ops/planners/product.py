"""The plan of ttnn.prod. Rules: ttnn 0.81.1, compared with its plans.

One program multiplies the images along the first two of four axes, where other axes are put first; another multiplies
all elements.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Final

from device.errors import DeviceError
from device.memory.layouts import TensorSpec, no_shards
from device.memory.memory_config import TILE, Layout, MemoryConfig
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, round_up
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.planners.one_axis import OneAxisArguments
from ops.planners.shape.pad import fill_padding
from ops.planners.shape.permute import RANK, permuted_by, seen
from ops.planners.shape.reshape import reshaped_by
from ops.planners.to_config import check_rows
from ops.programs.buffer_shapes import require_among
from ops.programs.data_movement.conversions import cloned, tilized_by, typecast_by
from ops.programs.reduction.product import Product, product_buffers

ALONG: Final = (0, 1)  # axes that the program of images multiplies along
FORMATS: Final = (BFLOAT16, FLOAT32, BFLOAT8_B)
ROOM_TILES: Final = 32  # that the program for all elements writes, its result in the first of them


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductArguments(OneAxisArguments):
    """A call."""

    wide: bool = False  # The product of block floats stays in float32

    def beyond(self, rank: int) -> str:
        """As in `OneAxisArguments`."""
        return (
            f"Dimension for prod is out of range (expected to be in range of [{-(rank or 1)}, {(rank or 1) - 1}])\n"
            f"dim: the tensor has no axis {self.dim}"
        )


def plan_product(source: TensorSpec, call: ProductArguments, spec: DeviceSpec) -> Plan:
    """Plan the product of the tensor "input" along an axis; raises DeviceError if the library refuses the call."""
    rank = len(source.shape)
    place = source.memory_config if call.place is None else call.place
    alone = call.dim is None or rank == 1

    def write(builder: PlanBuilder, tensor: PlanTensor) -> PlanTensor:
        whole = _filled(builder, tensor)
        axes = call.axes(source)  # the library looks at the axis of padded numbers
        if not rank:
            result = cloned(builder, whole, place, "output")
            builder.free_own(whole, keep=[result, tensor])
            return result
        if not alone and source.data_format.is_block and source.data_format != BFLOAT8_B:
            raise DeviceError(
                f"ttnn.prod with a dim argument does not support {source.data_format.name}\nprod: typecast the tensor"
            )
        if alone:
            return _of_all(builder, whole, call, place)
        result = _of_axis(builder, whole, axes[0], call, place)
        builder.free_own(whole, keep=[result])
        return result

    return plan_of(source, spec, write, attempts=True)


def _filled(builder: PlanBuilder, tensor: PlanTensor) -> PlanTensor:
    """The tensor with ones in the padding of its tiles."""
    return fill_padding(builder, tensor, 1.0, "filled", seen=False) if tensor.spec.layout is Layout.TILE else tensor


def _tiles(builder: PlanBuilder, tensor: PlanTensor) -> PlanTensor:
    spec = tensor.spec
    if spec.layout is Layout.TILE:
        return tensor
    check_rows(spec, builder.device_spec)
    padded = TensorSpec(spec.shape, spec.data_format, Layout.TILE).padded_shape
    return tilized_by(builder, tensor, "tiles", place=spec.memory_config, padded_shape=padded, whole=False)


def _of_all(builder: PlanBuilder, whole: PlanTensor, call: ProductArguments, place: MemoryConfig) -> PlanTensor:
    """The product of all elements; of block floats in float32."""
    source = whole.spec
    if source.layout is Layout.ROW_MAJOR and len(source.shape) == 1:
        source.changed(layout=Layout.TILE, padded_shape=None)  # shards of tiles are looked at first
        sides = [round_up(source.shape[0], TILE)]
        raise DeviceError(
            f"To be tilizable output tensor shape Shape({sides}) must be divisible by tile size (32, 32)\n"
            "input_tensor: reshape it to rank 2"
        )
    read = _tiles(builder, whole)
    result_format = FLOAT32 if source.data_format.is_block else source.data_format
    room_shape, refused = (TILE, ROOM_TILES * TILE), None
    if read.spec.memory_config.is_sharded():
        named = read.spec.memory_config.memory_layout.name
        refused = f"Memory layout must be INTERLEAVED, got: TensorMemoryLayout::{named}\nprod: use interleaved memory"
    elif not source.data_format.is_float:
        refused = (
            "Error - unsupported data type for prod, expected BFLOAT16, FLOAT32, BFLOAT8_B or BFLOAT4_B but got "
            f"DataType::{source.data_format.name.upper()}.\nprod: typecast the tensor"
        )
    shape = (1,) * len(source.shape)
    op = Product(shape=source.shape, axis=None, data_format=result_format)
    room = builder.allocate("room", TensorSpec(room_shape, result_format, Layout.TILE, place))
    buffers = () if refused else product_buffers(op, read.spec, builder.device_spec)
    builder.run("ProdAllDeviceOperation", op, [read, room], buffers=buffers, dataflow=True, refused=refused)
    # The host reads the room, and writes the one number back
    made = result = builder.upload("product", TensorSpec(shape, result_format, Layout.TILE, place), room.name)
    builder.free(room)
    builder.free_own(read)
    if source.data_format.is_block and not call.wide:
        result = typecast_by(builder, made, source.data_format, "output")
        builder.free(made)
    return result if call.keeps else PlanTensor(result.name, result.spec.changed(shape=(), padded_shape=None))


def _of_axis(
    builder: PlanBuilder, whole: PlanTensor, axis: int, call: ProductArguments, place: MemoryConfig
) -> PlanTensor:
    """The product along an axis, which is put first, or before the last two of more than four axes, and back."""
    source = whole.spec
    rank = len(source.shape)
    final = tuple(1 if number == axis else side for number, side in enumerate(source.shape))
    shape = final if call.keeps else final[:axis] + final[axis + 1 :]
    more = max(0, RANK - rank)
    four = seen(whole, (*[1] * more, *source.shape))
    place_of_axis = axis + more
    if rank > RANK:
        third = rank - 3
        order = list(range(rank))
        order[third], order[axis] = order[axis], order[third]
        turned = permuted_by(builder, four, tuple(order), place, "turned") if axis != third else four
        flat = (prod(turned.spec.shape[:third]), *turned.spec.shape[third:])
        made = _run(builder, seen(turned, flat), 1, place)
        back = reshaped_by(builder, made, tuple(final[number] for number in order), None, None, "many")
        result = permuted_by(builder, back, tuple(order), place, "back") if axis != third else back
        builder.free_own(made, keep=[result])
    elif place_of_axis < 2:
        turned, result = four, _run(builder, four, place_of_axis, place)
    else:
        others = tuple(number for number in range(RANK) if number != place_of_axis)
        turned = permuted_by(builder, four, (place_of_axis, *others), place, "turned")
        made = _run(builder, turned, 0, place)
        result = permuted_by(builder, made, (1, 2, 0, 3), place, "back")
        if place_of_axis == RANK - 1:
            last = permuted_by(builder, result, (0, 1, 3, 2), place, "last")
            builder.free_own(made, result, keep=[last])
            result = last
        else:
            builder.free_own(made, keep=[result])
    kept = seen(result, final) if len(result.spec.shape) != rank else result
    shaped = reshaped_by(builder, kept, shape, None, None, "shaped")
    builder.free_own(result, keep=[shaped])
    builder.free_own(turned, keep=[shaped, whole])
    return shaped


def _run(builder: PlanBuilder, turned: PlanTensor, axis: int, place: MemoryConfig) -> PlanTensor:
    read = _tiles(builder, turned)
    made = _along(builder, read, axis, _room(read.spec, axis, place, "product"))
    if read.name != turned.name:
        builder.free_own(read)
    return made


def _room(source: TensorSpec, axis: int, place: MemoryConfig, name: str) -> PlanTensor:
    """A new tensor for the product along an axis."""
    if place.is_sharded() and place.shard_spec is None:
        raise DeviceError(no_shards(place, in_rows=False))
    shape, padded = (
        tuple(1 if number == axis else side for number, side in enumerate(sides))
        for sides in (source.shape, source.padded_shape)
    )
    padded = TensorSpec(padded, source.data_format, Layout.TILE).padded_shape
    return PlanTensor(name, TensorSpec(shape, source.data_format, Layout.TILE, place, padded))


def _along(builder: PlanBuilder, read: PlanTensor, axis: int, target: PlanTensor, *, given: bool = False) -> PlanTensor:
    """The product along the first or second of four axes, in a new tensor, or in one that the caller has ``given``."""
    for text in _refusals(read.spec, axis, target.spec):
        raise DeviceError(text)
    spec, device_spec = read.spec, builder.device_spec
    op = Product(shape=spec.shape, axis=axis, data_format=spec.data_format)
    cores = op.cores(spec, device_spec)
    require_among(target.spec, cores, device_spec.grid, program="Prod_nc", owner="prod")
    buffers = product_buffers(op, spec, device_spec)
    reads, output = ([read, target], None) if given else ([read], target)
    return builder.run("ProdNcDeviceOperation", op, reads, output, buffers, dataflow=True)


def _refusals(source: TensorSpec, axis: int, target: TensorSpec) -> Iterator[str]:
    """The refusals of the program along an axis, in its order."""
    if not 0 <= axis < RANK:
        yield "dim should be 0 - 3\ndims: count the first two of four axes from the first"
    if len(source.padded_shape) != RANK:
        yield f"rank should be 4, got rank: {len(source.padded_shape)}\ninput_tensor: reshape it to four axes"
    for number, (side, wanted) in enumerate(zip(source.padded_shape, target.padded_shape, strict=False)):
        if (left := 1 if number == axis and axis in ALONG else side) != wanted:
            yield (
                f"Input and output shapes must match at dimension {number}, got input: {left} vs output: {wanted}\n"
                "output_tensor: give one of the result's shape and padding"
            )
    if source.data_format not in FORMATS:
        yield (
            "Error - unsupported data type for prod, expected BFLOAT16, FLOAT32 or BFLOAT8_B but got "
            f"DataType::{source.data_format.name.upper()}.\nprod: typecast the tensor"
        )
    if target.data_format != source.data_format:
        named = [f"DataType::{tensor.data_format.name.upper()}" for tensor in (source, target)]
        yield (
            f"Error - prod requires input and output dtypes to match, got input: {named[0]} vs output: {named[1]}.\n"
            "output_tensor: give one of the input's data type"
        )
    for name, tensor in (("input", source), ("output ND", target)):
        sides = () if tensor.memory_config.shard_spec is None else tensor.memory_config.shard_spec.shape
        for axis_name, length in zip(("height", "width"), sides, strict=False):
            if length % TILE:
                yield (
                    f"Prod_nc {name} shard {axis_name}={length} must be tile-{axis_name}-aligned ({TILE})\n"
                    "prod: bring the tensors into TILE_LAYOUT"
                )
    if axis not in ALONG:
        yield f"Dimension ({axis}) must be either 0 or 1\ndims: permute the tensor"
    high, wide = (length // TILE for length in source.padded_shape[-2:])
    if not high * wide:
        yield (
            f"Height and width in tiles must be non-zero (Ht={high}, Wt={wide})\n"
            "input_tensor: bring it into TILE_LAYOUT"
        )


def plan_product_into(
    source: TensorSpec,
    dims: tuple[int, ...],
    spec: DeviceSpec,
    *,
    target: TensorSpec,
    place: MemoryConfig | None = None,
) -> Plan:
    """Plan the product of the tensor "input" along some of the first two of four axes, in the caller's "target".

    The products along all axes but the lowest are new tensors in the memory ``place``, or else in that of the tensor.
    """
    *others, last = sorted(dims, reverse=True)
    where = source.memory_config if place is None else place

    def write(builder: PlanBuilder, tensor: PlanTensor, into: PlanTensor) -> PlanTensor:
        if Layout.ROW_MAJOR in (source.layout, target.layout):
            builder.leave_out_values(
                "prod: a program of tiles reads or writes rows; bring the tensors into TILE_LAYOUT"
            )
        read = _filled(builder, tensor)
        for number, axis in enumerate(others):
            if axis not in ALONG:
                raise DeviceError(f"Unsupported dim {axis} for prod nc op\ndims: permute the tensor")
            made = _along(builder, read, axis, _room(read.spec, axis, where, f"product.{number}"))
            builder.free_own(read, keep=[tensor])
            read = made
        result = _along(builder, read, last, into, given=True)
        builder.free_own(read, keep=[tensor])
        return result

    return plan_of({"input": source, "target": target}, spec, write)
