"""Plans that repeat a tensor along its axes. Rules: ttnn 0.81.1 (data_movement/repeat) and recorded plans."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from operator import mul

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    L1_MEMORY_CONFIG,
    TILE,
    BufferType,
    Layout,
    MemoryConfig,
    ShardOrientation,
    TensorMemoryLayout,
)
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, INT32, UINT8
from device.plan import Operation, Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import FreeL1, PlanBuilder, PlanTensor, plan_of
from ops.planners.copies import written_or_copied
from ops.planners.shape.to_layout import in_other_layout
from ops.planners.to_config import dealt, placed, untilized_rows
from ops.programs.buffer_shapes import in_dram
from ops.programs.data_movement.conversions import filled
from ops.programs.data_movement.copy import Conversion
from ops.programs.data_movement.movement import format_of_rows
from ops.programs.data_movement.placement import viewed
from ops.programs.data_movement.repeat import (
    RepeatTensor,
    chosen_place,
    generated_buffers,
    grown_shards,
    older_buffers,
    pages_are_whole,
    row_page_bytes,
    stays_on_cores,
)

RANK = 4  # of tensors that generated code repeats
GENERATED_FORMATS = (BFLOAT16, FLOAT32, INT32)  # whose elements it repeats
HOT_CORES = 8  # of a row of cores whose shards all cores read too slowly
GENERATED, OLDER = "RepeatCodegenDeviceOperation", "RepeatDeviceOperation"
OLDER_FORMATS = (
    "Can only work with UINT16, BFLOAT16, UINT32, INT32, FLOAT32 data types\ninput_tensor: typecast uint8 first"
)


def plan_repeat(
    source: TensorSpec,
    counts: tuple[int, ...],
    spec: DeviceSpec,
    *,
    place: MemoryConfig | None = None,
    free_l1: FreeL1 | None = None,
    target: TensorSpec | None = None,
) -> Plan:
    """Plan repeats of the tensor "input" along each axis by ``counts``; missing counts and leading axes are 1.

    The caller's tensor "target" gets the result. Raises DeviceError for a target of another shape, format or memory.
    """
    where = place if target is None else target.memory_config
    if target is not None:
        for text in _target_refusals(source, counts, place, target):
            raise DeviceError(f"{text}\noptional_output_tensor: give one like the result")

    def write(builder: PlanBuilder, tensor: PlanTensor, into: PlanTensor | None = None) -> PlanTensor:
        result = _repeated(builder, tensor, counts, where)
        return result if into is None else _in_target(builder, result, into)

    return plan_of({"input": source, "target": target}, spec, write, attempts=True, free_l1=free_l1)


def _in_target(builder: PlanBuilder, result: PlanTensor, target: PlanTensor) -> PlanTensor:
    """The caller's tensor with a result, which is copied onto itself where a program saw it under another shape.

    Generated programs see four axes, older ones rows; shards of other axes, or with padding, are not seen otherwise.
    """
    form, maker = target.spec, builder.maker(result)
    programs = [OLDER, GENERATED]
    seen_otherwise = maker == OLDER and form.layout is Layout.ROW_MAJOR
    if maker == GENERATED:
        joined = builder.tensor(result.name).spec.shape != form.shape
        seen_otherwise = len(form.shape) < RANK or joined
        if form.memory_config.is_sharded() and (joined or (seen_otherwise and form.padded_shape != form.shape)):
            programs.remove(GENERATED)
    if any(isinstance(step, Operation) and step.name == OLDER for step in builder.steps):
        programs.append(f"{Conversion.INTERLEAVED_TO_SHARDED.value}DeviceOperation")
    made = written_or_copied(builder, result, target, programs)
    return filled(builder, target, target) if seen_otherwise and maker in programs else made


def _target_refusals(
    source: TensorSpec, counts: tuple[int, ...], place: MemoryConfig | None, target: TensorSpec
) -> Iterator[str]:
    """The library's refusals of a tensor that receives the result, in its order."""
    rank = max(len(counts), len(source.shape))
    sides, times = ((1,) * (rank - len(numbers)) + numbers for numbers in (source.shape, counts))
    if place not in (None, target.memory_config):
        current = target.memory_config
        alike = place is not None and replace(place, shard_spec=None) == replace(current.sealed(), shard_spec=None)
        what = " shard_spec must match optional_output_tensor"
        yield f"repeat: memory_config{what if alike else ' must match optional_output_tensor memory config'}"
    for what, own, other in (
        ("dtype", source.data_format, target.data_format),
        ("layout", source.layout, target.layout),
        ("shape", tuple(map(mul, sides, times)), target.shape),
    ):
        if own != other:
            yield f"repeat optional output {what} mismatch"


def repeats_elements(
    source: TensorSpec, axis: int, place: MemoryConfig | None, spec: DeviceSpec, free_l1: FreeL1
) -> bool:
    """Whether generated code repeats each element of an axis: whole pages of interleaved tensors, two in a free L1."""
    places = (source.memory_config, source.memory_config if place is None else place)
    tiled = source.layout is Layout.TILE
    fits = 2 <= len(source.shape) <= RANK and axis < len(source.shape) - (2 if tiled else 1)
    fits = fits and source.data_format in GENERATED_FORMATS and not any(where.is_sharded() for where in places)
    if not fits or tiled:
        return fits
    page_bytes = row_page_bytes(source, source.changed(memory_config=places[1]), spec)
    return source.shape[-1] > 1 and 2 * page_bytes <= free_l1.before_bytes


def plan_repeat_interleave(
    source: TensorSpec, axis: int, count: int, spec: DeviceSpec, *, free_l1: FreeL1, place: MemoryConfig | None = None
) -> Plan:
    """Plan the tensor "input" with each element of an axis repeated, as generated code does it."""
    shape = tuple(side * count if number == axis else side for number, side in enumerate(source.shape))
    result = source.changed(shape=shape, memory_config=place)
    op = RepeatTensor(shape=source.shape, axis=axis, count=count, each=True)
    buffers = generated_buffers(op, source, result, spec, free_l1.beside(result, spec)[1])

    def write(builder: PlanBuilder, tensor: PlanTensor) -> PlanTensor:
        name = "RepeatInterleaveCodegenDeviceOperation"
        return builder.run(name, op, [tensor], PlanTensor("output", result), buffers)

    return plan_of(source, spec, write)


def _repeated(
    builder: PlanBuilder, source: PlanTensor, counts: tuple[int, ...], place: MemoryConfig | None
) -> PlanTensor:
    """The tensor along all axes."""
    spec, rank = builder.device_spec, max(len(counts), len(source.spec.shape))
    times = (1,) * (rank - len(counts)) + counts
    shape = (1,) * (rank - len(source.spec.shape)) + source.spec.shape
    tensor = source if shape == source.spec.shape else PlanTensor(source.name, viewed(source.spec, shape, spec))
    where = replace(source.spec.memory_config, shard_spec=None) if place is None else place
    if all(count == 1 for count in times):
        return placed(builder, tensor, _place_of_one(tensor.spec, source.spec.memory_config, where, spec), "output")
    if not shape:
        raise DeviceError("repeat does not support rank 0 tensors\ninput_tensor: reshape it to one axis")
    by_code = _ByCode.of(tensor.spec, times, _resolved(tensor.spec, times, where, spec))
    if not by_code.is_demoted and by_code.is_supported(builder):
        return by_code.written(builder, tensor)
    return _by_older_program(builder, tensor, times, where)


def _place_of_one(tensor: TensorSpec, current: MemoryConfig, place: MemoryConfig, spec: DeviceSpec) -> MemoryConfig:
    """Where a tensor goes that is repeated once: in a scheme without shards, where it was, or into chosen ones."""
    if not place.is_sharded() or place.shard_spec is not None:
        return place
    if (current.memory_layout, current.buffer_type) == (place.memory_layout, place.buffer_type):
        return current
    return chosen_place(place, tensor, tensor.padded_shape, _orientation(tensor), spec)


def _orientation(tensor: TensorSpec) -> ShardOrientation:
    shards = tensor.memory_config.shard_spec
    return ShardOrientation.ROW_MAJOR if shards is None else shards.orientation


def _resolved(tensor: TensorSpec, times: tuple[int, ...], place: MemoryConfig, spec: DeviceSpec) -> MemoryConfig:
    """The memory that generated code aims at: shards that are not given follow the tensor's, or are chosen."""
    if not place.is_sharded() or place.shard_spec is not None:
        return place
    axes, rank = [axis for axis, count in enumerate(times) if count != 1], len(times)
    if len(axes) == 1 and stays_on_cores(tensor, axes[0], place):
        return replace(place, shard_spec=grown_shards(tensor.shards, axes[0], rank, times[axes[0]]))
    result = TensorSpec(tuple(map(mul, tensor.shape, times)), tensor.data_format, tensor.layout)
    return chosen_place(place, tensor, result.padded_shape, _orientation(tensor), spec)


@dataclass(frozen=True, slots=True)
class _ByCode:
    """Generated programs, each along an axis, that repeat a tensor of at most four axes; tiles with padding as rows."""

    tensor: TensorSpec
    counts: tuple[int, ...]  # of all axes
    place: MemoryConfig
    times: tuple[int, ...]  # of the programs
    axes: tuple[int, ...]  # of the programs, in order
    gathers: bool  # the tensor into interleaved DRAM first
    by_rows: bool
    last: MemoryConfig  # that the last program writes

    @classmethod
    def of(cls, tensor: TensorSpec, counts: tuple[int, ...], place: MemoryConfig) -> "_ByCode":
        """The programs of a tensor: of tiles from the first axis on, of rows from the last."""
        shape, current, rank = tensor.shape, tensor.memory_config, len(counts)
        tiled = tensor.layout is Layout.TILE
        ragged = tiled and rank > 1 and any(side % TILE for side in shape[-2:])
        by_rows = ragged and any(count > 1 for count in counts[-2:])
        whole = pages_are_whole(shape, tensor.layout, current)
        times = list(counts)
        for axis in range(rank - (3 if tiled and not by_rows else 2)):  # sides of 1 leave their count to the next axis
            if shape[axis] == 1 and times[axis] > 1 and times[axis + 1] > 1:
                times[axis + 1] *= times[axis]
                times[axis] = 1
        axes = [axis for axis, count in enumerate(times) if count > 1]
        direct = not by_rows and pages_are_whole(tuple(map(mul, shape, counts)), tensor.layout, place)
        return cls(
            tensor=tensor,
            counts=counts,
            place=place,
            times=tuple(times),
            axes=tuple(axes if tiled and not by_rows else axes[::-1]),
            gathers=current.is_sharded() and (by_rows or not whole),
            by_rows=by_rows,
            last=place if direct else _interleaved(place),
        )

    @property
    def between(self) -> MemoryConfig:
        """The memory of all but the last program's results."""
        return DRAM_MEMORY_CONFIG if self.gathers else _interleaved(self.tensor.memory_config)

    @property
    def is_demoted(self) -> bool:
        """Whether cores that repeat their own shards are faster than generated code, as the library measured it."""
        tensor, place, rank = self.tensor, self.place, len(self.counts)
        current, in_rows = tensor.memory_config, tensor.layout is Layout.ROW_MAJOR
        if current.shard_spec is None:
            return False
        repeated = [axis for axis, count in enumerate(self.counts) if count != 1]
        if in_rows and not pages_are_whole(tensor.shape, tensor.layout, current):
            return len(repeated) == 1 and stays_on_cores(tensor, repeated[0], place)
        if current.memory_layout is not TensorMemoryLayout.HEIGHT_SHARDED or in_dram(tensor):
            return False
        box = current.shard_spec.grid.bounding_box()
        to_height = place.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED
        if in_rows and to_height and repeated == [rank - 1] and rank > 1 and box.cols > box.rows:
            return True
        if rank < 3 or (in_rows and place != L1_MEMORY_CONFIG) or self.gathers or self.by_rows or not self.axes:
            return False
        return self.axes[0] + 2 < rank and box.rows == 1 and box.cols >= HOT_CORES

    def is_supported(self, builder: PlanBuilder) -> bool:
        """Whether there is generated code, with room for rows: two pages in an empty L1, and one page in the free L1.

        The library counts the results of all programs in L1 as allocated together; future results are subtracted from
        the free L1.
        """
        tensor, spec = self.tensor, builder.device_spec
        if not 2 <= len(self.counts) <= RANK or (self.place.is_sharded() and self.place.shard_spec is None):
            return False
        if tensor.layout is Layout.TILE and not self.by_rows:
            return True
        if tensor.data_format == BFLOAT8_B:
            return False
        taken, pending, row = _l1_bytes(tensor, spec), 0, tensor
        if self.gathers:
            row = tensor.changed(memory_config=DRAM_MEMORY_CONFIG)
        if self.by_rows:
            row = TensorSpec(tensor.shape, format_of_rows(tensor.data_format), Layout.ROW_MAJOR, self.between)
            taken, pending = (number + _l1_bytes(row, spec) for number in (taken, pending))
        window, free = spec.l1.usable_bytes, builder.free_l1.before_bytes
        for number, axis in enumerate(self.axes):
            shape = list(row.shape)
            shape[axis] *= self.times[axis]
            ends = number == len(self.axes) - 1
            after = row.changed(shape=tuple(shape), memory_config=self.last if ends else self.between)
            taken, pending = (number + _l1_bytes(after, spec) for number in (taken, pending))
            page_bytes = row_page_bytes(row, after, spec)
            if 2 * page_bytes > window - taken or page_bytes > free - pending:
                return False
            row = after
        return True

    def written(self, builder: PlanBuilder, tensor: PlanTensor) -> PlanTensor:
        """The result of all programs in its memory."""
        current, moves = tensor, self.last != self.place
        if self.gathers:
            current = placed(builder, tensor, DRAM_MEMORY_CONFIG, "gathered")
        if self.by_rows:
            current = _replaced(builder, current, untilized_rows(builder, current, None, "rows"))
        for axis in self.axes:
            ends = axis == self.axes[-1]
            name = "output" if ends and not (moves or self.by_rows) else f"repeated.{axis}"
            memory = self.last if ends else self.between
            current = _replaced(builder, current, self._program(builder, current, axis, memory, name))
        shape = tuple(map(mul, self.tensor.shape, self.counts))
        if current.spec.shape != shape:
            current = PlanTensor(current.name, viewed(current.spec, shape, builder.device_spec))
        if self.by_rows:
            name, data_format = "tiles" if moves else "output", self.tensor.data_format
            tiles = in_other_layout(builder, current, Layout.TILE, name, data_format=data_format)
            current = _replaced(builder, current, tiles)
        return _replaced(builder, current, placed(builder, current, self.place, "output")) if moves else current

    def _program(
        self, builder: PlanBuilder, read: PlanTensor, axis: int, memory: MemoryConfig, name: str
    ) -> PlanTensor:
        op, spec = RepeatTensor(shape=read.spec.shape, axis=axis, count=self.times[axis]), builder.device_spec
        written = PlanTensor(name, read.spec.changed(shape=_grown(op), memory_config=memory))
        left = builder.free_l1.beside(written.spec, spec)[1]
        return builder.run(GENERATED, op, [read], written, generated_buffers(op, read.spec, written.spec, spec, left))


def _by_older_program(
    builder: PlanBuilder, tensor: PlanTensor, times: tuple[int, ...], place: MemoryConfig
) -> PlanTensor:
    """The tensor repeated by an older program along each axis: in its shards, or interleaved and dealt afterwards.

    Tiles with padding are repeated as rows.
    """
    source, rank = tensor.spec, len(times)
    axes = [axis for axis, count in enumerate(times) if count != 1]
    own = len(axes) == 1 and stays_on_cores(source, axes[0], place)
    current, where = tensor, place if own else _interleaved(place) if place.is_sharded() else place
    if own and where.is_sharded() and where.shard_spec is None:
        where = replace(where, shard_spec=grown_shards(source.shards, axes[0], rank, times[axes[0]]))
    if not own and source.memory_config.is_sharded():
        current = placed(builder, tensor, L1_MEMORY_CONFIG, "gathered")
    ragged = source.layout is Layout.TILE and (rank < 2 or any(side % TILE for side in source.shape[-2:]))
    if ragged:
        current = _replaced(builder, current, in_other_layout(builder, current, Layout.ROW_MAJOR, "rows"))
    deals = not own and place.is_sharded()
    for axis in reversed(axes):
        name = "output" if axis == axes[0] and not (ragged or deals) else f"repeated.{axis}"
        current = _replaced(builder, current, _older_program(builder, current, axis, times[axis], where, name))
    if ragged:
        name, data_format = "tiles" if deals else "output", source.data_format
        tiles = in_other_layout(builder, current, Layout.TILE, name, data_format=data_format)
        current = _replaced(builder, current, tiles)
    if not deals:
        return current
    if place.shard_spec is None:
        place = chosen_place(place, current.spec, current.spec.padded_shape, _orientation(source), builder.device_spec)
    return _replaced(builder, current, dealt(builder, current, place, "output")) if place.is_sharded() else current


def _older_program(
    builder: PlanBuilder, read: PlanTensor, axis: int, count: int, memory: MemoryConfig, name: str
) -> PlanTensor:
    """One program; it sees rows under another shape, which rows with padding in shards do not have."""
    source, spec = read.spec, builder.device_spec
    op = RepeatTensor(shape=source.shape, axis=axis, count=count)
    shape, in_rows = source.shape, source.layout is Layout.ROW_MAJOR
    seen_as: tuple[int, ...] = (prod(shape[:axis]), shape[axis], prod(shape[axis + 1 : -1]), shape[-1])
    if axis == len(shape) - 1:
        seen_as = (prod(shape[:-1]), shape[-1])
    if in_rows and shape != seen_as:
        viewed(source, seen_as, spec)  # refuses padding in shards
    written = PlanTensor(name, source.changed(shape=_grown(op), memory_config=memory))
    buffers = older_buffers(op, source, written.spec, spec)
    refused = OLDER_FORMATS if source.data_format == UINT8 else None
    builder.run(OLDER, op, [read], written, buffers, dataflow=True, refused=refused)
    grown = _grown(RepeatTensor(shape=seen_as, axis=1, count=count))
    if in_rows and written.spec.shape != grown:
        viewed(written.spec.changed(shape=grown), written.spec.shape, spec)
    return written


def _grown(op: RepeatTensor) -> tuple[int, ...]:
    """The shape of a program's result."""
    return (*op.shape[: op.axis], op.shape[op.axis] * op.count, *op.shape[op.axis + 1 :])


def _replaced(builder: PlanBuilder, old: PlanTensor, new: PlanTensor) -> PlanTensor:
    """A tensor that takes the place of another, which is freed if it is the plan's own."""
    builder.free_own(old, keep=[new])
    return new


def _interleaved(place: MemoryConfig) -> MemoryConfig:
    """The interleaved memory of the same buffer type."""
    return MemoryConfig(buffer_type=place.buffer_type)


def _l1_bytes(tensor: TensorSpec, spec: DeviceSpec) -> int:
    """Bytes of an L1 bank that a tensor takes."""
    return tensor.buffer(spec).bank_bytes if tensor.memory_config.buffer_type is BufferType.L1 else 0
