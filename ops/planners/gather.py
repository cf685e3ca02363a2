"""Plans of ttnn.gather. Rules: ttnn 0.81.1 (data_movement/gather), compared with its plans."""

from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Final

from device.cores import CoreRangeSet
from device.errors import ArgumentError, DeviceError, NotSimulatedError
from device.memory.layouts import TensorSpec, no_such_axis
from device.memory.memory_config import (
    L1_MEMORY_CONFIG,
    TILE,
    Layout,
    MemoryConfig,
    ShardOrientation,
    TensorMemoryLayout,
)
from device.numbers.formats import UINT16, UINT32, round_up
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.planners.ordered import four_axes, swapped
from ops.planners.shape.pad import fill_padding
from ops.planners.shape.permute import RANK, seen, transposed_by
from ops.planners.shape.slice import cut_by
from ops.planners.shape.to_layout import in_other_layout
from ops.planners.to_config import placed
from ops.programs.buffer_shapes import require_cores
from ops.programs.data_movement.gather import gather_buffers, gather_of, is_generated
from ops.programs.data_movement.permute import even_shards, with_shards
from ops.programs.data_movement.placement import viewed

LEAST_FLOAT: Final = 2.0**-126  # fills the padding of the source
FORMATS: Final = (UINT32, UINT16)


@dataclass(frozen=True, slots=True, kw_only=True)
class GatherArguments:
    """A call."""

    source: TensorSpec
    indices: TensorSpec
    dim: int  # As the caller counts it
    place: MemoryConfig | None = None
    cores: CoreRangeSet | None = None  # That may be used; None for all
    target: TensorSpec | None = None  # The caller's tensor "target" for the result, if there is one
    sparse: bool = False  # Whether gradients are to be sparse, which the programs refuse


def plan_gather(call: GatherArguments, spec: DeviceSpec, *, l1_bytes: int, by_code: bool = True) -> Plan:
    """Plan the elements of "input" along an axis at the positions "index"; raises DeviceError for refused calls.

    The program writes into "target", if given and no axis is transposed; otherwise into a transposed copy of it.
    Generated code gathers only ``by_code``.
    """
    source, indices, rank = call.source, call.indices, len(call.source.shape)
    require_cores(call.cores, spec, "gather")
    if rank != len(indices.shape):
        raise DeviceError(
            f"Input and index tensor must have the same number of dimensions. Got input dim: {rank} and index dim: "
            f"{len(indices.shape)}\nindex: reshape it"
        )
    if _is_cut_by_columns(source) or _is_cut_by_columns(indices, source):
        return plan_of(
            {"input": source, "index": indices, "target": call.target},
            spec,
            partial(_by_way_of_tiles, call, l1_bytes=l1_bytes),
            attempts=True,
        )
    if not -rank <= call.dim < rank:
        raise DeviceError(f"gather: dim {call.dim} is out of range for tensor rank {rank}\ndim: there is no such axis")
    _require_axes(source, indices)
    builder = PlanBuilder(spec, {"input": source, "index": indices, "target": call.target})
    places = _in_front(builder, builder.tensor("index"), call, "places")
    if places.spec.layout is Layout.TILE:
        fill_padding(builder, places, 0.0, "places.filled", seen=False)
    rows = _in_front(builder, builder.tensor("input"), call, "rows")
    box = _box(builder, rows, places.spec)
    filled = box
    if box.spec.layout is Layout.TILE:
        filled = fill_padding(builder, box, LEAST_FLOAT, "box.filled", seen=False)
    builder.free_own(box, rows, keep=[filled, builder.tensor("input")])
    held = None
    if call.target is not None:
        turned = held = _held(builder, builder.tensor("target"), call)
        if held.spec.layout is Layout.TILE:
            held = fill_padding(builder, turned, LEAST_FLOAT, "held.filled", seen=False)
        builder.free_own(turned, keep=[held])
    result = _gathered(builder, filled, places, call, rows.spec.shape, l1_bytes, held, by_code=by_code)
    if rank == 1 and source.layout is Layout.TILE:
        raise DeviceError("Can't convert shape rank\ninput, index: reshape both tensors to rank 2")
    before, shape = result, swapped(indices.shape, call.dim)
    seen_as = viewed(result.spec, shape, spec) if rank == 1 or rank > RANK else result.spec.changed(shape=shape)
    result = PlanTensor(result.name, seen_as)
    if call.dim % rank != rank - 1:
        result = transposed_by(builder, result, (call.dim % rank, rank - 1), indices.memory_config, "output")
        builder.free_own(before, keep=[result])
    builder.free_own(filled, keep=[builder.tensor("input")])
    builder.free_own(places, keep=[builder.tensor("index")])
    return builder.finish({"output": result})


def _require_axes(source: TensorSpec, indices: TensorSpec) -> None:
    """Raises for vectors of one element, which the library does not see under four axes."""
    if source.shape == (1,) != indices.shape:
        raise DeviceError(
            "Input and index tensor must have the same number of dimensions. Got input dim: 1 and index dim: 4\n"
            "input: reshape both tensors to rank 2"
        )
    if indices.shape == (1,) != source.shape:
        raise DeviceError(f"{no_such_axis(len(indices.padded_shape))}\nindex: reshape both tensors to rank 2")
    if source.shape == (1,):
        raise NotSimulatedError("gather: vectors of one element are not simulated; reshape both tensors to rank 2")


def _by_way_of_tiles(
    call: GatherArguments,
    builder: PlanBuilder,
    source: PlanTensor,
    indices: PlanTensor,
    target: PlanTensor | None = None,
    *,
    l1_bytes: int,
) -> PlanTensor:
    """Rows of no whole tiles in WIDTH or BLOCK shards, gathered as interleaved tiles in L1; a target stays as it is."""
    tiles, spec = [], builder.device_spec
    for name, rows in (("input", source), ("index", indices)):
        apart = placed(builder, rows, L1_MEMORY_CONFIG, f"{name}.interleaved")
        tiles.append(in_other_layout(builder, apart, Layout.TILE, f"{name}.tiles"))
        builder.free_own(apart, keep=[tiles[-1]])
    inner = replace(call, source=tiles[0].spec, indices=tiles[1].spec, place=L1_MEMORY_CONFIG, target=None)
    plan = plan_gather(inner, spec, l1_bytes=l1_bytes, by_code=False)
    found = builder.call(plan, {"input": tiles[0], "index": tiles[1]}, "tiles.")["output"]
    rows = in_other_layout(builder, found, Layout.ROW_MAJOR, "output.rows")
    place = call.source.memory_config if call.place is None else call.place
    if place.is_sharded() and place.shard_spec is None:
        shards = call.indices.memory_config.shard_spec or call.source.memory_config.shard_spec
        orientation = ShardOrientation.ROW_MAJOR if shards is None else shards.orientation
        even = even_shards(rows.spec.padded_shape, place.memory_layout, orientation, spec.grid)
        place = replace(place, shard_spec=even)
    result = placed(builder, rows, place, "output")
    builder.free_own(rows, found, *reversed(tiles), keep=[result])
    return result


def _in_front(builder: PlanBuilder, tensor: PlanTensor, call: GatherArguments, name: str) -> PlanTensor:
    """The tensor with four axes and the gathered axis last; above rank 4, leading axes are sliced to the indices'."""
    rank = len(tensor.spec.shape)
    axis, turned = call.dim % rank, tensor
    if axis != rank - 1:
        turned = transposed_by(builder, tensor, (axis, rank - 1), tensor.spec.memory_config, name)
    shape = turned.spec.shape
    if rank > RANK and tensor.name == "input":
        wanted = swapped(call.indices.shape, call.dim)
        for index, (most, side) in enumerate(zip(wanted[:-3], shape[:-3], strict=True)):
            if most > side:
                named = rank - 1 if index == axis != rank - 1 else index
                raise DeviceError(
                    f"gather: index tensor size {most} on dimension {named} exceeds the input tensor size {side}; "
                    f"only dimension {axis} may be larger\nindex: it is larger than the tensor"
                )
        cut = cut_by(builder, turned, (*wanted[:-3], *shape[-3:]), f"{name}.cut")
        builder.free_own(turned, keep=[cut, tensor])
        turned = cut
    four = four_axes(turned.spec.shape)
    return (
        seen(turned, four)
        if rank <= RANK
        else PlanTensor(turned.name, turned.spec.changed(shape=four, padded_shape=None))
    )


def _held(builder: PlanBuilder, target: PlanTensor, call: GatherArguments) -> PlanTensor:
    """The caller's tensor for the result with the axis at the end, by its own rank, and with four axes."""
    rank, own, turned = len(call.source.shape), len(target.spec.shape), target
    if call.dim % rank != rank - 1:
        axis = min(call.dim % rank, own - 1)
        if axis != own - 1:
            turned = transposed_by(builder, target, (axis, own - 1), target.spec.memory_config, "held")
    if rank <= RANK < own:
        raise DeviceError("Tensor rank is greater than 4\nout: give one of the shape of the index")
    shape = four_axes(turned.spec.shape)
    return seen(turned, shape) if own <= RANK else PlanTensor(turned.name, turned.spec.changed(shape=shape))


def _box(builder: PlanBuilder, rows: PlanTensor, places: TensorSpec) -> PlanTensor:
    """The tensor cut to the rows of the indices, whole tiles of them."""
    *images, count, _ = places.shape
    wanted = *images, round_up(count, TILE) if places.layout is Layout.TILE else count
    for side, most in zip(wanted, rows.spec.padded_shape[:-1], strict=True):
        if side > most:
            raise DeviceError(
                f"Ends {side} must be less than or equal to the shape of the tensor {most}\n"
                "index: it is larger than the tensor"
            )
    return cut_by(builder, rows, (*wanted, rows.spec.shape[-1]), "box", place=rows.spec.memory_config)


def _gathered(
    builder: PlanBuilder,
    box: PlanTensor,
    places: PlanTensor,
    call: GatherArguments,
    rows: tuple[int, ...],
    l1_bytes: int,
    held: PlanTensor | None,
    *,
    by_code: bool,
) -> PlanTensor:
    """The results of the program, for a tensor that had a shape before it was cut; in a tensor that is held for it."""
    spec, source, indices = builder.device_spec, box.spec, places.spec
    place = call.source.memory_config if call.place is None else call.place
    if held is None:
        place = with_shards(indices, indices.shape, place, spec)
        result = TensorSpec(indices.shape, source.data_format, source.layout, place)
    else:
        result = held.spec
    generated = by_code and is_generated(source, indices, result) and not place.is_sharded()
    _check(source, indices, result, generated=generated, sparse=call.sparse)
    if (result.data_format, result.layout) != (source.data_format, source.layout):
        builder.leave_out_values(
            f"gather: elements of {source.data_format} in {source.layout.name} layout are written into out of "
            f"{result.data_format} in {result.layout.name} layout as they are; give one like the input"
        )
    cut = tuple(map(min, rows, source.shape))  # without the padding that the box has
    shapes = cut, indices.shape
    op = gather_of(source, indices, shapes, generated=generated, l1_bytes=l1_bytes, spec=spec, within=call.cores)
    name = "GatherCodegenDeviceOperation" if generated else "GatherDeviceOperation"
    buffers = gather_buffers(op, source, indices, result.data_format, spec)
    made = builder.run(name, op, [box, places], PlanTensor("gathered", result), buffers)
    return made if held is None else builder.written_into(made, held)


def _check(source: TensorSpec, indices: TensorSpec, result: TensorSpec, *, generated: bool, sparse: bool) -> None:
    """Raises DeviceError like the programs, with checks in the same order."""
    place = result.memory_config
    words, own = ("gather_codegen: index", "gather_codegen: output") if generated else ("Index", "Output")
    other_shape = (
        f"{own} tensor shape must be the same as index tensor shape. Got output tensor shape: "
        f"Shape({list(result.shape)}) and index tensor shape: Shape({list(indices.shape)})\n"
        "out: give one of the shape of the index"
    )
    if not generated and result.shape != indices.shape:
        raise DeviceError(other_shape)
    form = (
        f"{words} tensor must be of type UINT32 or UINT16. Got: DataType::{indices.data_format.name.upper()}\n"
        "index: typecast it"
    )
    fits = indices.data_format in FORMATS
    if not generated and not fits:
        raise DeviceError(form)
    for axis, (side, most) in enumerate(zip(indices.shape[:-1], source.shape[:-1], strict=True)):
        if side > most:
            raise DeviceError(
                f"{words} tensor shape dimension {axis} must be less than or equal to input tensor shape dimension "
                f"{axis}. Got index tensor shape: Shape({list(indices.shape)}) and input tensor shape: "
                f"Shape({list(source.shape)})\nindex: it is larger than the tensor"
            )
    if not fits:
        raise DeviceError(form)
    if result.shape != indices.shape:
        raise DeviceError(other_shape)
    if source.layout is not indices.layout:
        raise DeviceError(
            f"Input tensor and index tensor must have the same layout. Got input layout: Layout::{source.layout.name} "
            f"and index layout: Layout::{indices.layout.name}\nindex: use ttnn.to_layout"
        )
    if sparse:
        text = (
            "gather_codegen: sparse gradient is not supported."
            if generated
            else "Sparse gradient is not supported yet."
        )
        raise DeviceError(f"{text}\nsparse_grad: leave it out")
    if place.is_sharded() and place.shard_spec is None:
        raise NotSimulatedError("gather: a sharded memory_config without a shard_spec is not simulated; give one")
    if source.layout is result.layout is Layout.TILE and (shards := place.shard_spec) is not None:
        high, wide = shards.shape
        if high % TILE or wide % TILE:
            raise DeviceError(
                f"TILE sharded gather requires tile-aligned output shard shape; got ({high}, {wide})\n"
                "memory_config: give shards of whole tiles"
            )


def _is_cut_by_columns(tensor: TensorSpec, source: TensorSpec | None = None) -> bool:
    schemes = TensorMemoryLayout.BLOCK_SHARDED, TensorMemoryLayout.WIDTH_SHARDED
    rows = (source or tensor).layout is Layout.ROW_MAJOR
    return rows and tensor.memory_config.memory_layout in schemes and tensor.shape[-1] % TILE != 0


def require_rows(call: GatherArguments) -> None:
    """Raises ArgumentError for indices without matching rows of the tensor, for which the library reads padding."""
    own, other = (swapped(tensor.shape, call.dim)[:-1] for tensor in (call.source, call.indices))
    if prod(other) and any(side > most for side, most in zip(other, own, strict=True)):
        raise ArgumentError(
            f"gather: the index of shape {list(call.indices.shape)} has more rows than the tensor of shape "
            f"{list(call.source.shape)}, for which the real library reads padding; cut the index"
        )
