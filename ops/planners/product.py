"""The plan of ttnn.prod. Rules: ttnn 0.81.1, compared with its plans.

One program multiplies the images along the first two of four axes, where other axes are put first; another multiplies
all elements.
"""

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

FORMATS: Final = (BFLOAT16, FLOAT32, BFLOAT8_B)
ROOM_TILES: Final = 32  # that the program for all elements writes, its result in the first of them


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductArguments(OneAxisArguments):
    """A call."""

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
        whole = tensor
        if source.layout is Layout.TILE:
            whole = fill_padding(builder, tensor, 1.0, "filled", seen=False)
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
    if source.data_format.is_block:
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
    spec = read.spec
    shape = tuple(1 if number == axis else side for number, side in enumerate(spec.shape))
    if place.is_sharded() and place.shard_spec is None:
        raise DeviceError(no_shards(place, in_rows=False))
    target = PlanTensor("product", TensorSpec(shape, spec.data_format, Layout.TILE, place))
    if spec.data_format not in FORMATS:
        raise DeviceError(
            "Error - unsupported data type for prod, expected BFLOAT16, FLOAT32 or BFLOAT8_B but got "
            f"DataType::{spec.data_format.name.upper()}.\nprod: typecast the tensor"
        )
    op = Product(shape=spec.shape, axis=axis, data_format=spec.data_format)
    cores = op.cores(spec, builder.device_spec)
    require_among(target.spec, cores, builder.device_spec.grid, program="Prod_nc", owner="prod")
    buffers = product_buffers(op, spec, builder.device_spec)
    made = builder.run("ProdNcDeviceOperation", op, [read], target, buffers, dataflow=True)
    if read.name != turned.name:
        builder.free_own(read)
    return made
