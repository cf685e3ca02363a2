"""Plans that cut a box out of a tensor. Rules: ttnn 0.81.1 (data_movement/slice), compared with recorded plans."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from operator import gt

from device.cores import CoreRangeSet
from device.errors import DeviceError, NotSimulatedError
from device.memory.layouts import TensorSpec, aligned_page_bytes, layout_text, require_shard_spec
from device.memory.memory_config import (
    L1_MEMORY_CONFIG,
    TILE,
    Layout,
    MemoryConfig,
    ShardOrientation,
    TensorMemoryLayout,
)
from device.numbers.formats import BFLOAT8_B, div_up, round_up
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.planners.shape.to_layout import in_other_layout
from ops.planners.to_config import placed, plan_to_memory_config
from ops.programs.buffer_shapes import (
    borrowing_refusal,
    in_dram,
    page_alignment_bytes,
    require_cores,
    row_bytes,
    shard_row_bytes,
)
from ops.programs.data_movement.conversions import rows_of, unpadding_refusal
from ops.programs.data_movement.permute import adjusted, even_shards
from ops.programs.data_movement.placement import viewed
from ops.programs.data_movement.slice import Cut, cuts_shards, row_buffer_bytes, slice_buffers

ROW_BUFFERS = 2  # rows of the widest box that L1 must hold


def plan_slice(
    source: TensorSpec,
    begins: Sequence[int],
    ends: Sequence[int],
    steps: Sequence[int] | None,
    spec: DeviceSpec,
    *,
    place: MemoryConfig | None = None,
    cores: CoreRangeSet | None = None,
    target: TensorSpec | None = None,
) -> Plan:
    """Plan a box of the tensor "input": the tensor itself, or a copy of it, if the box holds all of it.

    A ``place`` of None is the tensor's own memory, in smaller shards; ``cores`` are the cores that may work, None for
    all. The caller's tensor "target" gets the box in its own memory, for any ``place``.
    """
    op = replace(_checked(source, begins, ends, steps), cores=cores)

    def write(builder: PlanBuilder, tensor: PlanTensor, into: PlanTensor | None = None) -> PlanTensor:
        if any(map(gt, op.ends, op.shape)) and 0 not in op.result_shape:
            builder.leave_out_values(
                f"slice: the box ends at {list(op.ends)}, in the padding of {list(op.shape)}, whose numbers ttsim does "
                "not simulate; end within the tensor"
            )
        if into is None:
            return _cut(builder, tensor, op, "output", place)
        return _cut_into(builder, tensor, op, into)

    return plan_of({"input": source, "target": target}, spec, write, attempts=True)


def _cut_into(builder: PlanBuilder, source: PlanTensor, op: Cut, target: PlanTensor) -> PlanTensor:
    """The caller's tensor with the box, which the library copies into it even where the program wrote it there."""
    place, spec = target.spec.memory_config, builder.device_spec
    if 0 in op.result_shape:
        return _cut(builder, source, op, "output", place)
    if op.is_whole:
        whole = plan_to_memory_config(source.spec, place, spec, target=target.spec)
        return builder.call(whole, {"input": source, "target": target}, "whole.")["output"]
    box = _cut(builder, source, op, "box", place, target)
    wanted = None if box.spec.data_format == target.spec.data_format else target.spec.data_format
    copy = plan_to_memory_config(box.spec, place, spec, data_format=wanted, target=target.spec)
    result = builder.call(copy, {"input": box, "target": target}, "copy.")["output"]
    builder.free_own(box)
    builder.free_adopted()
    return result


def _checked(source: TensorSpec, begins: Sequence[int], ends: Sequence[int], steps: Sequence[int] | None) -> Cut:
    """The box, with indices from the first."""
    shape = source.shape
    taken = [1] * len(ends) if steps is None else list(steps)
    if len(shape) != len(begins):
        raise DeviceError(
            f"Input rank {len(shape)} and begins {len(begins)} must have the same size\n"
            "slice_start: give an index for each axis"
        )
    if len(begins) != len(ends):
        raise DeviceError(
            f"Start {len(begins)} and end {len(ends)} must have the same size\nslice_end: give an index for each axis"
        )
    if len(taken) != len(begins):
        raise DeviceError(
            f"Step {len(taken)} must have the same size as start {len(begins)} and end\n"
            "slice_step: give a step for each axis"
        )
    first = tuple(at + side if at < 0 else at for at, side in zip(begins, shape, strict=True))
    last = tuple(at + side if at < 0 else at for at, side in zip(ends, shape, strict=True))
    op = Cut(shape=shape, begins=first, ends=last, steps=tuple(taken))
    if op.has_steps and source.data_format == BFLOAT8_B:
        raise DeviceError(
            "Strided slice is not supported for BFLOAT8 tensors\ninput_tensor: make it bfloat16, with typecast"
        )
    if _makes_rows(source, op) and source.data_format.is_block and not op.is_whole:
        rows_of(source, source.shape, L1_MEMORY_CONFIG)  # refuses other block floats before the box is looked at
    for axis, step in enumerate(op.steps):
        if step < 1:
            raise DeviceError(f"Step({axis}) = {step} should be positive\nslice_step: no axis is read backwards")
    for begin, end in zip(op.begins, op.ends, strict=True):
        if end < begin:
            raise DeviceError(
                f"End {end} must be greater than or equal to start {begin}\nslice_end: it lies behind the start"
            )
    stays = source.layout is Layout.TILE and not _makes_rows(source, op)  # and shows its padding
    sides, unit = (source.padded_shape, TILE) if stays else (op.shape, 1)
    for axis, (begin, end, side) in enumerate(zip(op.begins, op.ends, sides, strict=True)):
        behind = round_up(end, unit) if axis >= len(sides) - 2 else end
        if begin >= side and begin != end:
            raise DeviceError(
                f"Slice start[{axis}] ({begin}) must be less than input tensor shape[{axis}] ({side})\n"
                "slice_start: begin within the tensor"
            )
        if behind > side:
            raise DeviceError(
                f"Ends {behind} must be less than or equal to the shape of the tensor {side}\n"
                "slice_end: end within the tensor, before its padding"
            )
    return op


def _cut(
    builder: PlanBuilder,
    source: PlanTensor,
    op: Cut,
    name: str,
    place: MemoryConfig | None,
    into: PlanTensor | None = None,
) -> PlanTensor:
    """The box as a tensor, in the layout of the source; intermediate tensors are freed, the last first.

    A program that makes the box directly writes it ``into`` the caller's tensor if given; then intermediate tensors
    live until the call returns.
    """
    spec, source_spec = builder.device_spec, source.spec
    where = source_spec.memory_config if place is None else place
    as_rows = source_spec.layout is Layout.ROW_MAJOR or _makes_rows(source_spec, op)
    if 0 in op.result_shape:
        return _nothing(builder, source, op, name, where, as_rows=as_rows)
    if op.is_whole:
        return placed(builder, source, _chosen_shards(where, source_spec, source_spec, spec), name)
    target = _smaller_shards(where, op, whole_tiles=not as_rows) if place is None else where
    if (gathered := _by_way_of_interleaved(builder, source, op, name, target, into)) is not None:
        return gathered
    if target.is_sharded() and target.shard_spec is None:
        target = _fitted_shards(target, source_spec, op, spec)
        if _makes_rows(source_spec, op):
            require_shard_spec(where, in_rows=False)
    if len(op.shape) == 1 and source_spec.layout is Layout.ROW_MAJOR and place is None and where.is_sharded():
        by_height = where.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED
        aligned = row_bytes(source_spec, op.begins[0]) % spec.l1.alignment_bytes == 0
        if not (in_dram(source_spec) and by_height and aligned):  # which the program refuses to borrow
            whole = round_up(op.result_shape[0], source_spec.shards.shape[1])
            viewed(source_spec.changed(shape=(whole,)), op.result_shape, spec)  # refuses padding in shards
    read = in_other_layout(builder, source, Layout.ROW_MAJOR, f"{name}.rows", place=where) if as_rows else source
    again = source_spec.layout is not read.spec.layout
    cut = PlanTensor(f"{name}.box" if again else name, read.spec.changed(shape=op.result_shape, memory_config=target))
    refused = _row_refusal(op, read.spec, cut.spec, spec)
    if refused is not None:
        cut_off = read.name != source.name and source_spec.shape != source_spec.padded_shape
        raise DeviceError((unpadding_refusal(source_spec, read.spec, where) if cut_off else None) or refused)
    seen = _seen(cut.spec, spec, tilized=again) if as_rows else cut.spec
    reshards = not again and seen.memory_config != target
    cut = PlanTensor(f"{name}.box" if reshards else cut.name, cut.spec)
    direct = None if again or reshards or into is None or into.spec.layout is not read.spec.layout else into
    if direct is not None:
        _require_form(direct.spec, cut.spec)
    buffers = slice_buffers(op, read, cut, spec)
    require_cores(op.cores, spec, "slice", used=buffers[0].cores)
    box = builder.run("SliceDeviceOperation", op, [read], cut, buffers, dataflow=True)
    if direct is not None:
        box = builder.written_into(box, direct)
    if reshards:
        result = placed(builder, PlanTensor(box.name, seen), target, name)
    else:
        result = in_other_layout(builder, box, source_spec.layout, name)
    _release(builder, [box, read], keep=[result, source], later=into is not None)
    return result


def _release(builder: PlanBuilder, used: Sequence[PlanTensor], *, keep: Sequence[PlanTensor], later: bool) -> None:
    """Releases intermediate tensors that the plan owns, in order: at once, or when the call returns."""
    if not later:
        builder.free_own(*used, keep=keep)
        return
    kept = {tensor.name for tensor in keep}
    for tensor in used:
        if tensor.name not in kept:
            builder.adopt(tensor)


def _require_form(target: TensorSpec, box: TensorSpec) -> None:
    """Raises DeviceError for a target into which the program does not write a box."""
    way_out, said = "output_tensor: give one like the result", "The preallocated output tensor needs a"
    if target.padded_shape != box.padded_shape:
        shapes = list(box.padded_shape), list(target.padded_shape)
        raise DeviceError(f"{said} padded shape of Shape({shapes[0]}), however it is Shape({shapes[1]})\n{way_out}")
    if target.layout is Layout.ROW_MAJOR and target.shape != box.shape:
        shapes = list(box.shape), list(target.shape)
        raise DeviceError(f"{said} logical shape of Shape({shapes[0]}), however it is Shape({shapes[1]})\n{way_out}")
    if target.data_format != box.data_format:
        raise DeviceError(f"{said} layout of {layout_text(box)}, however it is {layout_text(target)}\n{way_out}")


def _makes_rows(source: TensorSpec, op: Cut) -> bool:
    """Whether tiles become rows before they are cut."""
    within_tiles = any(begin % TILE for begin in op.begins[-2:])
    return source.layout is Layout.TILE and (op.has_steps or len(op.shape) == 1 or within_tiles)


def _nothing(
    builder: PlanBuilder, source: PlanTensor, op: Cut, name: str, place: MemoryConfig, *, as_rows: bool
) -> PlanTensor:
    """An empty box, which no operation cuts; the library makes rows of a tensor's tiles before it sees that."""
    if as_rows and 0 not in source.spec.shape:
        rows = in_other_layout(builder, source, Layout.ROW_MAJOR, f"{name}.rows", place=place)
        builder.free_own(rows, keep=[source])
    return builder.allocate(name, source.spec.changed(shape=op.result_shape, memory_config=place))


def _chosen_shards(place: MemoryConfig, tensor: TensorSpec, source: TensorSpec, spec: DeviceSpec) -> MemoryConfig:
    """A memory for a tensor, whose shards the library chooses if it has none: the tensor's own, or even ones."""
    if not place.is_sharded() or place.shard_spec is not None:
        return place
    own, shards = tensor.memory_config, source.memory_config.shard_spec
    if own.memory_layout is place.memory_layout and own.shard_spec is not None:
        return replace(place, shard_spec=own.shard_spec)
    orientation = ShardOrientation.ROW_MAJOR if shards is None else shards.orientation
    return replace(place, shard_spec=even_shards(tensor.padded_shape, place.memory_layout, orientation, spec.grid))


def _fitted_shards(place: MemoryConfig, source: TensorSpec, op: Cut, spec: DeviceSpec) -> MemoryConfig:
    """The source's scheme with its shards, adjusted to the box; even ones if they can not be."""
    padded = TensorSpec(op.result_shape, source.data_format, source.layout).padded_shape
    fitted = adjusted(source.shards, source.shape, padded, source.layout)
    even = even_shards(padded, place.memory_layout, source.shards.orientation, spec.grid)
    return replace(place, shard_spec=fitted or even)


def cut_by(
    builder: PlanBuilder, source: PlanTensor, shape: tuple[int, ...], name: str, *, place: MemoryConfig | None = None
) -> PlanTensor:
    """The first elements of each axis, in a smaller shape; the tensor itself if it has that shape."""
    op = Cut(shape=source.spec.shape, begins=(0,) * len(shape), ends=shape, steps=(1,) * len(shape))
    return _cut(builder, source, op, name, place)


def _seen(box: TensorSpec, spec: DeviceSpec, *, tilized: bool) -> TensorSpec:
    """Rows with padding in shards as the library sees them, in shards of other sides; DeviceError if it can not."""
    view = viewed(box, box.shape, spec)
    shards = view.memory_config.shard_spec
    width = 0 if shards is None else shards.shape[1]
    page, alignment = row_bytes(box, width), spec.l1.alignment_bytes
    if tilized and box.padded_shape[-1] != box.shape[-1] and page % alignment:
        raise DeviceError(
            f"Input row-major shard width {width} gives page size {page} bytes, which must be aligned to {alignment} "
            "bytes\nmemory_config: give interleaved memory, and deal the result to shards afterwards"
        )
    return view


def _smaller_shards(where: MemoryConfig, op: Cut, *, whole_tiles: bool) -> MemoryConfig:
    """A sharded memory for the box, on the same cores."""
    shards = where.shard_spec
    if shards is None or len(op.shape) == 1:
        return where
    sides, unit = list(op.result_shape), TILE if whole_tiles else 1
    sides[-2:] = [round_up(side, unit) for side in sides[-2:]]
    rows, columns, cores = prod(sides[:-1]), sides[-1], shards.num_cores()
    high = cores if where.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED else 1
    wide = cores if where.memory_layout is TensorMemoryLayout.WIDTH_SHARDED else 1
    if where.memory_layout is TensorMemoryLayout.BLOCK_SHARDED:
        box = shards.grid.bounding_box()
        high, wide = box.rows, box.cols
        if cores != high * wide:
            raise DeviceError(
                f"BLOCK_SHARDED grid must be a full rectangle; got {cores} cores for {high}x{wide} "
                "bounding box\nmemory_config: say where the result goes"
            )
    # Rows and columns that are not shared are whole already
    shard_shape = (round_up(div_up(rows, high), unit), round_up(div_up(columns, wide), unit))
    return replace(where, shard_spec=shards.changed(shape=shard_shape))


def _by_way_of_interleaved(
    builder: PlanBuilder, source: PlanTensor, op: Cut, name: str, target: MemoryConfig, into: PlanTensor | None
) -> PlanTensor | None:
    """The box by way of interleaved L1, if the program cannot read or write the shards; otherwise None.

    It cannot for some shards of rows, and for another scheme than the source's without shards. A box ``into`` a
    caller's tensor stays interleaved.
    """
    source_spec, spec = source.spec, builder.device_spec
    in_rows, current = source_spec.layout is Layout.ROW_MAJOR, source_spec.memory_config
    gathers = in_rows and current.is_sharded() and _reads_interleaved(source_spec, op, target, spec)
    ragged = op.shape[-1] % TILE != 0 or _ends_between(target, source_spec, spec)
    deals = in_rows and _by_columns(target) and ragged
    chooses = target.is_sharded() and target.shard_spec is None and target.memory_layout is not current.memory_layout
    if not (gathers or deals or chooses):
        return None
    read = placed(builder, source, L1_MEMORY_CONFIG, f"{name}.gathered") if gathers else source
    box = _cut(builder, read, op, f"{name}.cut" if target != L1_MEMORY_CONFIG else name, L1_MEMORY_CONFIG)
    result = box
    if into is None:
        result = placed(builder, box, _chosen_shards(target, box.spec, source_spec, spec), name)
    _release(builder, [box, read], keep=[result, source], later=into is not None)
    return result


def _reads_interleaved(source: TensorSpec, op: Cut, target: MemoryConfig, spec: DeviceSpec) -> bool:
    """Whether shards of rows are gathered before they are read."""
    if _by_columns(source.memory_config):
        ends_between = _ends_between(source.memory_config, source, spec)
        return op.shape[-1] % TILE != 0 or op.begins[-1] != 0 or ends_between
    by_height = target.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED and target.shard_spec is not None
    stays = by_height and not op.has_steps
    return len(op.shape) > 1 and any(side % TILE for side in op.shape[-2:]) and not stays


def _by_columns(place: MemoryConfig) -> bool:
    return place.memory_layout in (TensorMemoryLayout.BLOCK_SHARDED, TensorMemoryLayout.WIDTH_SHARDED)


def _ends_between(place: MemoryConfig, tensor: TensorSpec, spec: DeviceSpec) -> bool:
    """Whether a row of a shard ends between aligned addresses."""
    return place.shard_spec is not None and shard_row_bytes(tensor, place) % page_alignment_bytes(place, spec) != 0


def _row_refusal(op: Cut, source: TensorSpec, result: TensorSpec, spec: DeviceSpec) -> str | None:
    """Why the library does not copy rows, if it does not: columns of shards end between aligned addresses.

    Raises ArgumentError if L1 does not hold two rows, so that the program cuts rows into pieces.
    """
    if source.layout is Layout.TILE or op.has_steps:
        return None
    if cuts_shards(op, source, result, spec):
        ends = PlanTensor("input_tensor", source), PlanTensor("memory_config", result)
        return borrowing_refusal([("sharded_in", "input", ends[0]), ("sharded_out", "output", ends[1])])
    for role, tensor in (("input", source), ("output", result)):
        shards, place = tensor.memory_config.shard_spec, tensor.memory_config
        if shards is None or not _by_columns(place) or not _ends_between(place, tensor, spec):
            continue
        page_bytes = row_bytes(tensor, shards.shape[1])
        apart_bytes = aligned_page_bytes(page_bytes, place.buffer_type, spec)
        alignment_bytes = page_alignment_bytes(place, spec)
        return (
            f"ttnn::slice: {role} per-shard page size {page_bytes} B disagrees with the accessor's aligned page size "
            f"{apart_bytes} B ({page_bytes} B is not a multiple of the {alignment_bytes} B buffer alignment). Reach "
            "this op through ttnn::slice, which reshards such tensors, rather than building the program factory "
            "directly.\nmemory_config: give an interleaved one, and deal the result to shards afterwards"
        )
    needed = ROW_BUFFERS * row_buffer_bytes(op, source, result, spec)
    if needed > spec.l1.usable_bytes:
        raise NotSimulatedError(
            f"slice: two rows of the result take {needed:,} bytes, more than a core's L1; rows that are cut into "
            "pieces are not simulated; cut along another axis first"
        )
    return None
