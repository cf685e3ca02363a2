"""The plan of ttnn.sort. Rules: ttnn 0.81.1, compared with its plans.

Shards are gathered in DRAM, the axis is put last and back, and rows are padded to a power of two of columns.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import gcd, inf, prod
from typing import Final

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, TILE, Layout, MemoryConfig
from device.numbers.formats import BFLOAT16, FLOAT32, UINT16, UINT32, round_up
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.planners.ordered import ROLES, TARGETS, four_axes, put_back, swapped
from ops.planners.shape.pad import fill_padding, padded_by
from ops.planners.shape.permute import RANK, seen, transposed_by
from ops.planners.shape.slice import cut_by
from ops.planners.shape.to_layout import in_other_layout
from ops.planners.to_config import placed
from ops.programs.data_movement.placement import viewed
from ops.programs.reduction.sort import Sort, places_format, program_of, sort_buffers

FORMATS: Final = (BFLOAT16, FLOAT32, UINT16)
LEAST_COLUMNS: Final = 64
LARGEST: Final = {UINT16: 65535.0}  # of integers, used as infinity


@dataclass(frozen=True, slots=True, kw_only=True)
class SortArguments:
    """A call."""

    dim: int = -1  # As the caller counts it
    descending: bool = False
    place: MemoryConfig | None = None
    targets: tuple[TensorSpec, TensorSpec] | None = None  # The caller's tensors `TARGETS` for the results


def plan_sort(source: TensorSpec, call: SortArguments, spec: DeviceSpec) -> Plan:
    """Plan the results "values" and "indices" of the tensor "input"; raises DeviceError for a call it refuses.

    The program writes into the caller's targets if there are any.
    """
    axis, targets = call.dim % len(source.shape), call.targets or ()
    into = bool(targets) and all(target.layout is source.layout for target in targets)
    place = targets[0].memory_config if targets else call.place or source.memory_config
    where = DRAM_MEMORY_CONFIG if place.is_sharded() else place
    builder = PlanBuilder(spec, {"input": source, **dict(zip(TARGETS, targets or (None, None), strict=True))})
    tensor = builder.tensor("input")
    plain = placed(builder, tensor, DRAM_MEMORY_CONFIG, "plain") if source.memory_config.is_sharded() else tensor
    read = _prepared(builder, plain, call, axis, "input")
    held = [_prepared(builder, builder.tensor(name), call, axis, name) for name in TARGETS] if into else []
    _check(read.spec)
    shape = swapped(source.shape, axis)
    made = _sorted(builder, read, shape, call, where, held)
    cut_place = None if made[0].spec.shape == four_axes(shape) else where
    results = put_back(builder, made, shape, axis, source.memory_config, cut_place=cut_place, kept=held)
    results = _moved(builder, results, place, targets)
    builder.free_own(*held, keep=[*results.values()])
    builder.free_own(read, keep=[plain])
    builder.free_own(plain)
    return builder.finish(results)


def _moved(
    builder: PlanBuilder, results: Mapping[str, PlanTensor], place: MemoryConfig, targets: tuple[TensorSpec, ...]
) -> dict[str, PlanTensor]:
    """The results in the layouts of targets, and resharded if the values' memory has shards.

    The indices come to the place of their target last, if that is another
    one than the values'.
    """
    moved, forms = dict(results), dict(zip(ROLES, targets, strict=True)) if targets else {}
    for role, form in forms.items():
        moved[role] = in_other_layout(builder, moved[role], form.layout, f"{role}.turned")
    for role, result in moved.items() if place.is_sharded() else ():
        moved[role] = placed(builder, result, place, f"{role}.moved")
        builder.free_own(result, keep=[*results.values(), moved[role]])
    if targets and (last := targets[1].memory_config) != place:
        before, role = moved[ROLES[1]], ROLES[1]
        moved[role] = placed(builder, before, last, f"{role}.placed")
        builder.free_own(before, keep=[*results.values(), moved[role]])
    builder.free_own(*results.values(), keep=[*moved.values()])
    return moved


def has_order(source: TensorSpec, call: SortArguments) -> bool:
    """Whether the tensor is copied: of no elements, or along an axis of length 1.

    Raises DeviceError for an axis that the tensor lacks, and for targets of other forms than the results.
    """
    rank = len(source.shape)
    if not (-rank <= call.dim < rank or (not rank and call.dim in (0, -1))):
        raise DeviceError(
            f"Sort dim {call.dim} is out of range for rank-{rank} tensor\ndim: the tensor has no axis {call.dim}"
        )
    if call.targets is not None:
        _check_targets(source, call.targets)
    return not rank or not source.volume or source.shape[call.dim] == 1


def _check_targets(source: TensorSpec, targets: tuple[TensorSpec, TensorSpec]) -> None:
    """Raises DeviceError for targets of other forms than the results."""
    said, (values, indices) = "Preallocated sort", targets
    names = [f"DataType::{tensor.data_format.name.upper()}" for tensor in (source, *targets)]
    for role, target in zip(ROLES, targets, strict=True):
        if target.shape != source.shape:
            raise DeviceError(
                f"{said} output tensors must match the input shape Shape({list(source.shape)}), got {role} shape "
                f"Shape({list(target.shape)})\nout: give two tensors of the shape of the input"
            )
    if values.data_format != source.data_format:
        raise DeviceError(
            f"{said} values tensor dtype must match the input dtype {names[0]}, got {names[1]}\nout: typecast it"
        )
    if indices.data_format not in (UINT16, UINT32):
        raise DeviceError(
            f"{said} indices tensor dtype must be UINT16 or UINT32, got {names[2]}\nout: give one of uint16 or uint32"
        )
    if indices.data_format == UINT16 and source.data_format in (FLOAT32, UINT16):
        raise DeviceError(
            f"{said} indices tensor dtype must be UINT32 when input dtype is FLOAT32 or UINT16, got {names[2]}\n"
            "out: give one of uint32"
        )


def _prepared(builder: PlanBuilder, tensor: PlanTensor, call: SortArguments, axis: int, name: str) -> PlanTensor:
    """A tensor, or a target of its form, as the program reads or writes it: with the axis at the end, and padded."""
    last, turned = len(tensor.spec.shape) - 1, tensor
    if axis != last:
        turned = transposed_by(builder, tensor, (axis, last), tensor.spec.memory_config, f"{name}.turned")
    read = _padded(builder, turned, call, name)
    builder.free_own(turned, keep=[read, tensor])
    return read


def _padded(builder: PlanBuilder, turned: PlanTensor, call: SortArguments, name: str) -> PlanTensor:
    """The tensor with four axes: whole tiles, or a multiple of 32 rows in all, with a power of two of columns."""
    integers = turned.spec.data_format in LARGEST
    largest = LARGEST.get(turned.spec.data_format, inf)
    filler = (0.0 if integers else -inf) if call.descending else largest
    shape = four_axes(turned.spec.shape)
    if len(turned.spec.shape) <= RANK:
        four = seen(turned, shape)
    else:
        four = PlanTensor(turned.name, viewed(turned.spec, shape, builder.device_spec))
    if four.spec.layout is Layout.TILE:
        full = fill_padding(builder, four, filler, f"{name}.filled", seen=False)
    else:
        *images, rows, _ = four.spec.shape
        more = round_up(rows, TILE // gcd(prod(images), TILE)) - rows
        full = padded_by(builder, four, (*[(0, 0)] * (RANK - 2), (0, more), (0, 0)), filler, f"{name}.rows")
    wide = full.spec.padded_shape[-1] if full.spec.layout is Layout.TILE else full.spec.shape[-1]
    columns = _columns(wide)
    more = columns - full.spec.shape[-1] if columns != wide else 0
    read = padded_by(builder, full, (*[(0, 0)] * (RANK - 1), (0, more)), filler, f"{name}.padded")
    builder.free_own(full, keep=[read, turned])
    return read


def _sorted(
    builder: PlanBuilder,
    read: PlanTensor,
    shape: tuple[int, ...],
    call: SortArguments,
    place: MemoryConfig,
    held: Sequence[PlanTensor],
) -> list[PlanTensor]:
    """Sorted elements and their indices, with four axes and the columns of the tensor, but possibly more rows.

    Tensors that are held for them get them.
    """
    source, sides = read.spec, read.spec.shape
    is_tiles = source.layout is Layout.TILE
    places = places_format(source.data_format, source.padded_shape[-1])
    op = Sort(
        shape=shape if is_tiles else (*sides[:-1], shape[-1]),
        columns=sides[-1],
        descending=call.descending,
        index_format=held[1].spec.data_format if held else places,
        program=program_of(source, builder.device_spec),
    )
    formats = source.data_format, op.index_format
    specs = [tensor.spec for tensor in held] or [TensorSpec(sides, form, source.layout, place) for form in formats]
    results = [PlanTensor(name, form) for name, form in zip(("sorted", "places"), specs, strict=True)]
    buffers = sort_buffers(op, source, builder.device_spec)
    builder.run("SortDeviceOperation", op, [read], results[0], buffers, more_outputs=results[1:], dataflow=True)
    if held:
        results = [builder.written_into(*pair) for pair in zip(results, held, strict=True)]
    for box in () if is_tiles else ((*sides[:-1], shape[-1]), four_axes(shape)):
        results = [_cut(builder, result, box, place, held) for result in results]
    return results


def _cut(
    builder: PlanBuilder, result: PlanTensor, shape: tuple[int, ...], place: MemoryConfig, kept: Sequence[PlanTensor]
) -> PlanTensor:
    where = None if result.spec.shape == shape else place
    box = cut_by(builder, result, shape, f"{result.name}.cut", place=where)
    builder.free_own(result, keep=[box, *kept])
    return box


def _columns(columns: int) -> int:
    """The power of two to which rows are padded; 64 for a single tile."""
    power = 1 << (columns - 1).bit_length()
    return 2 * TILE if power == TILE else power


def _check(source: TensorSpec) -> None:
    """Raises DeviceError for rows that the program does not sort."""
    if source.data_format not in FORMATS:
        raise DeviceError(
            "Input tensor data type must be BFLOAT16, UINT16, or FLOAT32, got DataType::"
            f"{source.data_format.name.upper()}\nsort: typecast the tensor"
        )
    columns = source.shape[-1] if source.layout is Layout.ROW_MAJOR else source.padded_shape[-1]
    if columns < LEAST_COLUMNS:
        raise DeviceError(
            f"Input shape inner dim {columns} must be a power of two >= {LEAST_COLUMNS}. Use ttnn.sort, which pads the "
            "sort dimension with +/-infinity to the next power of two.\n"
            f"sort: rows of at most {TILE // 2} elements are sorted in TILE_LAYOUT alone"
        )
