"""Plans that repeat a tensor along its axes. Rules: ttnn 0.81.1 (data_movement/repeat) and recorded plans."""

from collections.abc import Iterator
from dataclasses import replace
from math import prod
from operator import mul

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    L1_MEMORY_CONFIG,
    BufferType,
    Layout,
    MemoryConfig,
    TensorMemoryLayout,
)
from device.numbers.formats import BFLOAT4_B, BFLOAT16, FLOAT32, INT32, UINT8
from device.plan import Operation, Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import FreeL1, PlanBuilder, PlanTensor, plan_of
from ops.planners.copies import written_or_copied
from ops.planners.shape.permute import seen
from ops.planners.shape.to_layout import in_other_layout
from ops.planners.to_config import placed, untilized_rows
from ops.programs.buffer_shapes import in_dram, is_uneven, shard_counts
from ops.programs.data_movement.conversions import copied, filled
from ops.programs.data_movement.copy import Conversion
from ops.programs.data_movement.permute import with_shards
from ops.programs.data_movement.placement import blocks_in_dram, refuse_other_width, viewed
from ops.programs.data_movement.repeat import (
    RepeatTensor,
    generated_buffers,
    lies_in_parts,
    older_buffers,
    repeated_place,
    row_page_bytes,
    stays_on_cores,
)

RANK = 4  # of tensors that generated code repeats
GENERATED_FORMATS = (BFLOAT16, FLOAT32, INT32)  # whose elements it repeats
BY_COLUMNS = (TensorMemoryLayout.WIDTH_SHARDED, TensorMemoryLayout.BLOCK_SHARDED)
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
    rank = max(len(counts), len(source.spec.shape))
    times = (1,) * (rank - len(counts)) + counts
    shape = (1,) * (rank - len(source.spec.shape)) + source.spec.shape
    result = tuple(side * count for side, count in zip(shape, times, strict=True))
    if len(shape) > len(source.spec.shape) and source.spec.layout is Layout.ROW_MAJOR:
        viewed(source.spec, shape, builder.device_spec)  # refuses padding in shards
    if all(count == 1 for count in times):
        where = source.spec.memory_config if place is None else place
        if source.spec.layout is Layout.TILE and where.is_sharded() and where.shard_spec is None:
            tiles = TensorSpec(source.spec.shape, source.spec.data_format, Layout.TILE).padded_shape
            where = with_shards(source.spec, tiles, where, builder.device_spec)
        return seen(placed(builder, source, where, "output"), result)
    if not shape:
        raise DeviceError("repeat does not support rank 0 tensors\ninput_tensor: reshape it to one axis")
    repeated = _Repeat(builder, source.spec, times, result).written(seen(source, shape), place)
    spec = repeated.spec
    padded = (*result[:-1], spec.padded_shape[-1]) if spec.layout is Layout.ROW_MAJOR else None
    return PlanTensor(repeated.name, spec.changed(shape=result, padded_shape=padded))


class _Repeat:
    """A tensor that is repeated along at least one axis."""

    def __init__(
        self, builder: PlanBuilder, source: TensorSpec, times: tuple[int, ...], result: tuple[int, ...]
    ) -> None:
        self.builder, self.counts, self.result, self.source = builder, times, result, source
        self.use(_joined(source, times) if 2 <= len(times) <= RANK else times)

    def use(self, times: tuple[int, ...]) -> None:
        """Repeats by these counts."""
        self.times, self.axes = times, [axis for axis, count in enumerate(times) if count > 1]

    def written(self, tensor: PlanTensor, place: MemoryConfig | None) -> PlanTensor:
        """The result, by programs on the tensor itself, or on its interleaved rows, which lose their padding."""
        spec, ragged = tensor.spec, tensor.spec.layout is Layout.TILE and self.ends_within_tiles(tensor.spec)
        generated, sharded = 2 <= len(self.times) <= RANK, tensor.spec.memory_config.is_sharded()
        if generated and not self.has_room(spec, place, ragged=ragged):
            generated = False
            self.use(self.counts)
        own = sharded and not ragged and self.on_own_cores(spec)
        self.require_rows(spec, place, own=own and _cuts_rows(spec))
        by_generated = generated and not ragged and not _cuts_rows(spec)
        direct = own if not by_generated else _fills_shards(spec)
        direct_place = own or (by_generated and not self.widens_parts(spec) and not in_dram(spec))
        where = self.where(spec, place, direct=direct_place, ragged=ragged)
        if not (sharded or where.is_sharded()) or direct:
            return self.interleaved(tensor, where, "output", ragged=ragged, generated=generated)
        to_dram = generated and not (spec.data_format.is_block and ragged)
        apart = DRAM_MEMORY_CONFIG if to_dram else L1_MEMORY_CONFIG
        gathered = placed(self.builder, tensor, apart, "gathered") if sharded else tensor
        if generated and not ragged:
            return self.by_programs(gathered, where, "output", generated=True)
        name = "joined" if where.is_sharded() else "output"
        between = MemoryConfig(buffer_type=where.buffer_type)
        result = self.interleaved(gathered, between, name, ragged=ragged, generated=generated)
        if not where.is_sharded():
            return result
        dealt = placed(self.builder, result, where, "output")
        self.builder.free_own(result)
        return dealt

    def has_room(self, spec: TensorSpec, place: MemoryConfig | None, *, ragged: bool) -> bool:
        """Whether generated code has room for rows: two pages in an empty L1, and one page in the free L1.

        The library counts the results of all programs in L1 as allocated together; future results are subtracted from
        the free L1.
        """
        if spec.layout is Layout.TILE and (not ragged or spec.data_format.is_block):
            return True
        device, where = self.spec, spec.memory_config if place is None else place
        taken, pending = _l1_bytes(spec, device), 0
        row = spec.changed(layout=Layout.ROW_MAJOR, memory_config=_interleaved(spec.memory_config))
        if ragged:
            taken, pending = (number + _l1_bytes(row, device) for number in (taken, pending))
        window, free = device.l1.usable_bytes, self.builder.free_l1.before_bytes
        for number, axis in enumerate(reversed(self.axes)):
            last, shape = number == len(self.axes) - 1, list(row.shape)
            shape[axis] *= self.times[axis]
            memory = where if last else row.memory_config
            after = row.changed(shape=tuple(shape), memory_config=_interleaved(memory))
            taken, pending = (number + _l1_bytes(after, device) for number in (taken, pending))
            page_bytes = row_page_bytes(row, after, device)
            if 2 * page_bytes > window - taken or page_bytes > free - pending:
                return False
            row = after
        return True

    def on_own_cores(self, spec: TensorSpec) -> bool:
        """Whether each core repeats its own shard, along one axis."""
        return (
            not in_dram(spec)
            and len(self.axes) == 1
            and stays_on_cores(spec, self.counts)
            and not self.widens_parts(spec)
        )

    def widens_parts(self, spec: TensorSpec) -> bool:
        """Whether rows become longer in shards that may cut them."""
        in_rows = spec.layout is Layout.ROW_MAJOR and spec.memory_config.memory_layout in BY_COLUMNS
        return in_rows and self.axes[-1] == len(self.times) - 1

    def require_rows(self, spec: TensorSpec, place: MemoryConfig | None, *, own: bool) -> None:
        """Raises DeviceError where rows with padding in shards would be seen under another shape."""
        axis, shape = self.axes[-1], spec.shape
        if not own or spec.padded_shape[-1] == shape[-1]:
            return
        seen_as = prod(shape[:axis]), shape[axis], prod(shape[axis + 1 : -1]), shape[-1]
        if shape != seen_as:
            refuse_other_width(self.source.padded_shape, seen_as, spec.shards)
        grown = seen_as[0], seen_as[1] * self.times[axis], seen_as[2]
        if (place is None or place.is_sharded()) and grown != self.result[:-1]:
            refuse_other_width((*grown, spec.padded_shape[-1]), self.result, spec.shards)

    def interleaved(
        self, tensor: PlanTensor, where: MemoryConfig, name: str, *, ragged: bool, generated: bool
    ) -> PlanTensor:
        """The tensor repeated in its layout; by way of its rows where they have padding."""
        spec = tensor.spec
        if not ragged:
            return self.by_programs(tensor, where, name, generated=generated)
        if spec.data_format == BFLOAT4_B:
            raise DeviceError(
                "Only TILE layout is supported for BFLOAT8_B dtype!\n"
                "input_tensor: a bfloat4_b tensor whose padding is repeated has no rows; typecast it to bfloat16"
            )
        if generated:
            rows = untilized_rows(self.builder, tensor, None, "rows")
        else:
            rows = in_other_layout(self.builder, tensor, Layout.ROW_MAJOR, "rows")
        self.builder.free_own(tensor)
        grown = self.by_programs(rows, where, "repeated", generated=generated and not spec.data_format.is_block)
        whole = PlanTensor(grown.name, grown.spec.changed(shape=self.result))
        result = in_other_layout(self.builder, whole, Layout.TILE, name, data_format=spec.data_format)
        self.builder.free_own(grown)
        return result

    def ends_within_tiles(self, spec: TensorSpec) -> bool:
        """Whether one of the last two axes is repeated, and one of them has padding; programs repeat rows then."""
        if len(spec.shape) > RANK or len(spec.shape) < 2:
            return spec.shape[-2:] != spec.padded_shape[-2:]
        inner = any(count > 1 for count in self.times[-2:])
        return inner and spec.shape[-2:] != spec.padded_shape[-2:]

    def where(self, spec: TensorSpec, place: MemoryConfig | None, *, direct: bool, ragged: bool) -> MemoryConfig:
        """The memory of the result; only programs that read shards directly keep them on their cores.

        Shards that do not hold the result are refused first, but where rows have to become tiles before.
        """
        if place is not None:
            refused = blocks_in_dram(place) if len(self.counts) <= RANK else None
            if refused is not None:
                raise DeviceError(refused)
            padded = TensorSpec(self.result, spec.data_format, spec.layout).padded_shape
            where = with_shards(spec, padded, place, self.spec)
            if not ragged:
                spec.changed(shape=self.result, memory_config=where)
            return where
        if not spec.memory_config.is_sharded():
            return spec.memory_config
        return repeated_place(spec, self.counts, self.result, self.spec, direct=direct)

    @property
    def spec(self) -> DeviceSpec:
        """The device."""
        return self.builder.device_spec

    def by_programs(self, tensor: PlanTensor, where: MemoryConfig, name: str, *, generated: bool) -> PlanTensor:
        """A program for each axis; all but the last write interleaved: to the tensor's memory, or the result's."""
        current, in_rows = tensor, tensor.spec.layout is Layout.ROW_MAJOR
        axes = self.axes[::-1] if in_rows or not generated else self.axes
        for number, axis in enumerate(axes):
            last = number == len(axes) - 1
            shape = list(current.spec.shape)
            op = RepeatTensor(shape=tuple(shape), axis=axis, count=self.times[axis])
            shape[axis] *= self.times[axis]
            memory = (tensor.spec.memory_config if generated else where).buffer_type
            target = where if last else MemoryConfig(buffer_type=memory)
            result = current.spec.changed(shape=tuple(shape), memory_config=target)
            unfit = not current.spec.memory_config.is_sharded() and not _fills_shards(result)
            if is_uneven(result) or unfit or (_cuts_rows(result) and not _cuts_rows(current.spec)):
                # by way of interleaved memory
                apart = result.changed(memory_config=MemoryConfig(buffer_type=where.buffer_type))
                between = PlanTensor(f"{name}.interleaved", apart)
                self.run(op, current, between, generated=generated)
                self.builder.free_own(current)
                current = copied(self.builder, Conversion.INTERLEAVED_TO_SHARDED, between, result, name)
                self.builder.free(between)
                continue
            written = PlanTensor(name if last else f"{name}.{axis}", result)
            self.run(op, current, written, generated=generated)
            self.builder.free_own(current)
            current = written
        return current

    def run(self, op: RepeatTensor, read: PlanTensor, written: PlanTensor, *, generated: bool) -> None:
        """One program."""
        if generated and not lies_in_parts(op, read.spec, written.spec):
            left = self.builder.free_l1.beside(written.spec, self.spec)[1]
            buffers = generated_buffers(op, read.spec, written.spec, self.spec, left)
            name = GENERATED
        else:
            buffers, name = older_buffers(op, read.spec, written.spec, self.spec), OLDER
        older = name == OLDER
        refused = OLDER_FORMATS if older and read.spec.data_format == UINT8 else None
        self.builder.run(name, op, [read], written, buffers, dataflow=older, refused=refused)


def _joined(source: TensorSpec, times: tuple[int, ...]) -> tuple[int, ...]:
    """The counts of the programs: the count of a side of 1 moves to the next axis, with the same result.

    Whole tiles move counts only between leading axes. Block floats that are repeated as rows keep all counts, because
    an older program repeats them.
    """
    shape, counts = source.shape, list(times)
    sides, tiled = (*(1,) * (len(times) - len(shape)), *shape), source.layout is Layout.TILE
    ragged = tiled and shape[-2:] != source.padded_shape[-2:] and any(count > 1 for count in times[-2:])
    if ragged and source.data_format.is_block:
        return times
    for axis in range(len(counts) - (3 if tiled and not ragged else 2)):
        if sides[axis] == 1 and counts[axis + 1] > 1:
            counts[axis + 1] *= counts[axis]
            counts[axis] = 1
    return tuple(counts)


def _interleaved(place: MemoryConfig) -> MemoryConfig:
    """The interleaved memory of the same buffer type."""
    return MemoryConfig(buffer_type=place.buffer_type)


def _l1_bytes(tensor: TensorSpec, spec: DeviceSpec) -> int:
    """Bytes of an L1 bank that a tensor takes."""
    return tensor.buffer(spec).bank_bytes if tensor.memory_config.buffer_type is BufferType.L1 else 0


def _cuts_rows(tensor: TensorSpec) -> bool:
    """Whether shards have only parts of rows."""
    in_rows = tensor.layout is Layout.ROW_MAJOR and tensor.memory_config.memory_layout in BY_COLUMNS
    return in_rows and tensor.shards.shape[1] < tensor.shape[-1]


def _fills_shards(tensor: TensorSpec) -> bool:
    """Whether a tensor fills its shards, and blocks all of their cores; True for an interleaved tensor."""
    if not tensor.memory_config.is_sharded():
        return True
    scheme, shape = tensor.memory_config.memory_layout, tensor.shards.shape
    rows, columns = tensor.matrix[0], tensor.matrix[1] if tensor.layout is Layout.TILE else tensor.shape[-1]
    counts = shard_counts(scheme, tensor.shards)
    if scheme is TensorMemoryLayout.BLOCK_SHARDED and (counts[0] * shape[0], counts[1] * shape[1]) != (rows, columns):
        return False
    return rows % shape[0] == 0 and columns % shape[1] == 0
