"""Plans that pad a tensor with a number. Rules: ttnn 0.81.1 (data_movement/pad, fill_pad), recorded plans."""

from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from math import prod
from typing import Any

from device.cores import CoreRangeSet
from device.errors import ArgumentError, DeviceError
from device.memory.layouts import TensorSpec, require_shard_spec
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    L1_MEMORY_CONFIG,
    TILE,
    BufferType,
    Layout,
    MemoryConfig,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, GROUP, INT32, UINT8, UINT16, UINT32, div_up, round_up
from device.plan import Operation, Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.planners.to_config import dealt, placed, sees_narrower
from ops.programs.buffer_shapes import in_dram, page_alignment_bytes, require_cores, row_bytes, shard_row_bytes
from ops.programs.data_movement.conversions import seen_in_four, typecast_by
from ops.programs.data_movement.pad import (
    FillPad,
    FillTiles,
    PadWith,
    fill_buffers,
    pad_buffers,
    row_room_bytes,
    writes_halves,
)
from ops.programs.data_movement.placement import refuse_other_width, viewed, without_spec

PADDED_FORMATS = (BFLOAT16, FLOAT32, INT32, UINT32, UINT16)  # of rows, and of tiles beside bfloat8_b
KERNEL_RANK = 4  # axes of the program; leading axes are folded into its first

NO_FRONT = "ttnn.pad: on device tile padding does not support front padding"

# From which the one core that pads rows copies the number
_NUMBERS = TensorSpec((1, 1, 1, TILE), BFLOAT16, Layout.ROW_MAJOR, L1_MEMORY_CONFIG)

Around = tuple[tuple[int, int], ...]  # before and after, for each axis


def plan_pad(
    source: TensorSpec,
    padding: Around,
    value: float,
    spec: DeviceSpec,
    *,
    place: MemoryConfig | None = None,
    by_one_core: bool = False,
    cores: CoreRangeSet | None = None,
) -> Plan:
    """Plan padding of the tensor "input", by one, some or all cores; without padding, the tensor itself.

    ``cores`` are the cores that may be used; None for all.
    """
    options: dict[str, Any] = {"place": place, "by_one_core": by_one_core, "cores": cores}
    write = partial(padded_by, padding=padding, value=value, name="output", **options)
    return plan_of(source, spec, write, attempts=True)


def require_right_padding(plan: Plan, source: TensorSpec, padding: Around, value: float) -> None:
    """Raises for padding that the real library fills with another number, or that changes the tensor's own values.

    Source: tt-metal 0.81.1. Programs of rows write the number in bfloat16, twice, for each float32 (recorded: -1.5
    becomes -1.5019455). Tiles of block floats are also filled after the last column, and share exponents with the
    fill value.
    """
    ops = [step.op for step in plan.steps if isinstance(step, Operation)]
    if value and any(isinstance(op, PadWith) and op.in_halves for op in ops):
        raise ArgumentError(
            f"pad: value {value:g} around rows of float32 is written as two numbers of bfloat16 by the real library, "
            "which are another number; pad with 0, give the tensor in TILE_LAYOUT, or in bfloat16"
        )
    columns = source.shape[-1] + sum(padding[-1])
    if value and source.data_format.is_block and columns % GROUP and ops:
        raise ArgumentError(
            f"pad: value {value:g} is also written behind the {columns} columns of the result, which share exponents "
            f"in groups of {GROUP}, so that small {source.data_format} numbers beside it are lost; pad with 0, to a "
            f"multiple of {GROUP} columns, or typecast the tensor to bfloat16 first"
        )


def padded_by(
    builder: PlanBuilder,
    source: PlanTensor,
    padding: Around,
    value: float,
    name: str,
    *,
    place: MemoryConfig | None = None,
    by_one_core: bool = False,
    cores: CoreRangeSet | None = None,
) -> PlanTensor:
    """The padded tensor, with the source's name if it is in the source's buffer.

    Leading axes, which a separate program pads, stay in the source's memory; the result is moved from there.
    """
    if not any(map(any, padding)):
        return source
    if source.spec.layout is Layout.TILE and any(before for before, _ in padding):
        raise DeviceError(f"{NO_FRONT}\npad rows, or behind alone")
    current, write = source, _Pad(builder, value, by_one_core, cores)
    padded = write.tiles if source.spec.layout is Layout.TILE else write.rows
    parts, rank = _parts(padding, source.spec.shape), _seen_rank(padding, source.spec.shape)
    if source.spec.layout is Layout.ROW_MAJOR and len(padding) > KERNEL_RANK:
        _require_view(source.spec, parts[0], builder.device_spec)
    moves = place is not None and rank > KERNEL_RANK and not any(map(any, parts[-1][1 - KERNEL_RANK :]))
    for number, part in enumerate(parts):
        ends = number == len(parts) - 1 and not moves
        more = padded(current, part, name if ends else f"{name}.{number}", place if ends else None)
        builder.free_own(current, keep=[source, more])
        current = more
    _check_seen(current.spec)
    if place is None or not moves:
        return current
    moved = placed(builder, current, place, name)
    builder.free_own(current, keep=[source, moved])
    return moved


def _require_view(source: TensorSpec, part: Around, spec: DeviceSpec) -> None:
    """Raises DeviceError for rows of more than four axes with padding in shards, which a program does not see.

    It sees a leading axis that it pads alone, with the axes behind it before the last two, as the second of four.
    """
    shape, axis = source.shape, next(axis for axis, around in enumerate(part) if any(around))
    if axis > len(shape) - KERNEL_RANK or _seen_rank(part, shape) <= KERNEL_RANK:
        sees_narrower(source, spec)
    else:
        viewed(source, (prod(shape[:axis]), prod(shape[axis:-2]), *shape[-2:]), spec)


def _check_seen(padded: TensorSpec) -> None:
    """Raises DeviceError for padded rows of other than four axes that do not fill their shards."""
    shape, filled = padded.shape, padded.padded_shape
    if padded.layout is Layout.TILE or shape == filled or len(shape) == KERNEL_RANK:
        return
    line = "Attempting to reshape between two shapes with different volumes"
    if len(shape) > KERNEL_RANK:
        line = (
            f"ttnn.pad: restored shape Shape({list(shape)}) does not match the padded output volume of "
            f"Shape({list(seen_in_four(filled))})"
        )
    raise DeviceError(
        f"{line}\npadding: the padded rows do not fill their shards, in which the library does not see them with "
        f"{KERNEL_RANK} axes; reshape the tensor to rank {KERNEL_RANK}"
    )


def _seen_rank(padding: Around, shape: tuple[int, ...]) -> int:
    """The number of axes without the first ones of one element that are not padded, which the library leaves out."""
    ones = takewhile(lambda axis: shape[axis] == 1 and not any(padding[axis]), range(len(shape)))
    return len(shape) - sum(1 for _ in ones)


def _parts(padding: Around, shape: tuple[int, ...]) -> list[Around]:
    """The padding of each program in order: each leading axis separately, then the last three together."""
    if _seen_rank(padding, shape) <= KERNEL_RANK:
        return [padding]
    last = len(padding) - KERNEL_RANK + 1
    none = [(0, 0)] * len(padding)
    alone = [(*none[:axis], padding[axis], *none[axis + 1 :]) for axis in range(last)]
    return [part for part in (*alone, (*none[:last], *padding[last:])) if any(map(any, part))]


def _evenly(shards: ShardSpec, shape: tuple[int, ...]) -> MemoryConfig:
    """HEIGHT shards that share the rows of a tensor on the cores of other shards."""
    rows = div_up(prod(shape[:-1]), shards.num_cores())
    return MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, ShardSpec(shards.grid, (rows, shape[-1])))


def _stored_shape(spec: TensorSpec) -> tuple[int, ...]:
    """The shape that a program pads: of tiles with their padding."""
    return spec.padded_shape if spec.layout is Layout.TILE else spec.shape


@dataclass(frozen=True, slots=True)
class _Pad:
    """Programs that pad tensors with one number."""

    builder: PlanBuilder
    value: float
    by_one_core: bool  # Tiles, and interleaved rows, are added by one core
    cores: CoreRangeSet | None  # That may be used; None for all

    def rows(self, source: PlanTensor, padding: Around, name: str, place: MemoryConfig | None) -> PlanTensor:
        """Pads rows, or tiles without padding, by one program, or two for HEIGHT shards that grow along both axes."""
        spec, current = source.spec, source.spec.memory_config
        shape, where = _stored_shape(spec), current if place is None else place
        result_shape = tuple(side + sum(around) for side, around in zip(shape, padding, strict=True))
        # HEIGHT shards of rows grow in width on the cores of the source, for any requested memory
        by_height = current.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED
        if not by_height or not where.is_sharded() or spec.shape[-1] == result_shape[-1]:
            return self._one_program(source, padding, name, where, result_shape)
        wider = _evenly(spec.shards, (*spec.shape[:-1], result_shape[-1]))
        if prod(shape[:-1]) == prod(result_shape[:-1]):
            return self._one_program(source, padding, name, wider, result_shape)
        wide_shape = (*shape[:-1], result_shape[-1])
        if padding[-1][0]:
            _check_rows(spec, wider, wide_shape, self.builder.device_spec)
            raise DeviceError(
                "Output size cannot fit input with offset\npadding: HEIGHT shards are padded across and then down; do "
                "not pad them in front across and down at once"
            )
        across, down = (*([(0, 0)] * (len(shape) - 1)), padding[-1]), (*padding[:-1], (0, 0))
        by_all = replace(self, cores=None)
        wide = by_all._one_program(source, across, f"{name}.across", wider, wide_shape)
        where = place or _evenly(wide.spec.shards, result_shape)
        result = by_all._one_program(wide, down, name, where, result_shape)
        self.builder.free(wide)
        return result

    def _one_program(
        self, source: PlanTensor, padding: Around, name: str, where: MemoryConfig, shape: tuple[int, ...]
    ) -> PlanTensor:
        """Pads a tensor; columns of shards in DRAM by way of interleaved tensors."""
        builder, current = self.builder, source.spec.memory_config
        by_columns = current.memory_layout in (TensorMemoryLayout.WIDTH_SHARDED, TensorMemoryLayout.BLOCK_SHARDED)
        if not by_columns or not in_dram(source.spec):
            return self._program(source, padding, name, where, shape)
        read = placed(builder, source, DRAM_MEMORY_CONFIG, f"{name}.gathered")
        if not where.is_sharded():
            result = self._program(read, padding, name, where, shape)
            builder.free(read)
            return result
        between = MemoryConfig(buffer_type=where.buffer_type)
        padded = self._program(read, padding, f"{name}.interleaved", between, shape)
        result = (placed if where.buffer_type is BufferType.DRAM else dealt)(builder, padded, where, name)
        builder.free(padded, read)
        return result

    def _program(
        self, source: PlanTensor, padding: Around, name: str, where: MemoryConfig, shape: tuple[int, ...]
    ) -> PlanTensor:
        old, spec = source.spec, self.builder.device_spec
        require_shard_spec(where, in_rows=old.layout is Layout.ROW_MAJOR)
        tensor = PlanTensor(name, old.changed(shape=shape, memory_config=where))  # refuses shards that do not hold it
        if old.data_format not in PADDED_FORMATS and (old.layout, old.data_format) != (Layout.TILE, BFLOAT8_B):
            raise DeviceError(
                f"Cannot pad {'RM' if old.layout is Layout.ROW_MAJOR else 'tilized'} tensor with specified format\n"
                f"input_tensor: typecast {old.data_format} first"
            )
        self._check_cores(old, where)
        _check_rows(old, where, shape, spec)
        alone = self.by_one_core and not (old.layout is Layout.ROW_MAJOR and old.memory_config.is_sharded())
        op = PadWith(
            shape=_stored_shape(old),
            padding=padding,
            value=self.value,
            in_halves=writes_halves(old, tensor.spec),
            by_one_core=alone,
            cores=self.cores,
        )
        buffers = pad_buffers(source, tensor, padding[-1][0], spec, by_one_core=alone, within=self.cores)
        require_cores(self.cores, spec, "pad", unit="main", used=buffers[0].cores)
        if not alone or old.layout is Layout.TILE:
            return self.builder.run("PadDeviceOperation", op, [source], tensor, buffers, dataflow=True)
        if any(before for before, _ in padding) or (self.value and old.data_format != BFLOAT16):
            self.builder.leave_out_values(
                "pad: with use_multicore=False the real library begins with the tensor's own rows, and writes bfloat16 "
                "around them, whatever the padding and the data type are; leave use_multicore out"
            )
        result = self.builder.allocate(name, tensor.spec)
        number = self.builder.allocate(f"{name}.number", _NUMBERS)
        self.builder.run("PadDeviceOperation", op, [source, result], None, buffers, dataflow=True)
        self.builder.free(number)
        return result

    def _check_cores(self, source: TensorSpec, place: MemoryConfig) -> None:
        """Raises DeviceError for limited cores that no program keeps to."""
        if self.cores is None:
            return
        for role, where in (("Input", source.memory_config), ("Output", place)):
            if where.is_sharded():
                raise DeviceError(
                    f"ttnn.pad: {role} memory layout must be interleaved when sub_core_grids argument is provided\n"
                    "sub_core_grids: leave it out"
                )
        if self.by_one_core:
            raise DeviceError(
                "ttnn.pad: sub_core_grids is only supported when use_multicore is true\nleave one of them out"
            )

    def tiles(self, source: PlanTensor, padding: Around, name: str, place: MemoryConfig | None) -> PlanTensor:
        """Pads tiles: the padding within them is filled in place, and whole tiles are appended."""
        builder, spec, data_format = self.builder, source.spec, source.spec.data_format
        where = spec.memory_config if place is None else place
        shape = tuple(side + behind for side, (_, behind) in zip(spec.shape, padding, strict=True))
        new_shape, old_shape = TensorSpec(shape, data_format, Layout.TILE).padded_shape, spec.padded_shape
        full = fill_padding(builder, source, self.value, f"{name}.filled")
        if new_shape != old_shape:
            result = self._whole_tiles(source, full, shape, name, place)
            builder.free_own(full, keep=[source])
        else:
            result = PlanTensor(full.name, TensorSpec(shape, data_format, Layout.TILE, spec.memory_config))
        if spec.memory_config.is_sharded():
            require_shard_spec(where, in_rows=False)
        if result.spec.memory_config.is_sharded() is where.is_sharded() or without_spec(result.spec, where) is not None:
            return result
        moved = placed(builder, result, where, f"{name}.moved")
        builder.free_own(result, keep=[source])
        return moved

    def _whole_tiles(
        self, source: PlanTensor, full: PlanTensor, shape: tuple[int, ...], name: str, place: MemoryConfig | None
    ) -> PlanTensor:
        """Appends tiles to full tiles."""
        builder, spec, data_format = self.builder, source.spec, source.spec.data_format
        new_shape, old_shape = TensorSpec(shape, data_format, Layout.TILE).padded_shape, spec.padded_shape
        if len(shape) == 1:
            shards = spec.memory_config.shard_spec
            if shards is not None and shards.shape[1] != old_shape[-1]:
                refuse_other_width(old_shape, (old_shape[0], new_shape[-1]), shards)
            TensorSpec(shape, data_format, Layout.TILE, spec.memory_config)  # refuses shards of other sizes
            raise DeviceError(
                "MeshBuffer must be large enough to hold the tensor.\ninput_tensor: a vector in tiles is padded up to "
                "the end of its last tile alone; reshape it to rank 2"
            )
        behind = tuple((0, new - old) for new, old in zip(new_shape, old_shape, strict=True))
        if any(more < 0 for _, more in behind):
            raise DeviceError(
                f"Output size cannot fit input with offset\ninput_tensor: its tiles have the shape {list(old_shape)}, "
                f"which is more than the result's {list(new_shape)}; untilize it first"
            )
        if data_format == BFLOAT8_B:
            wide = typecast_by(builder, full, BFLOAT16, f"{name}.bfloat16")
            more = self.rows(wide, behind, f"{name}.padded", place)
            result = typecast_by(builder, more, BFLOAT8_B, name)
            builder.free(more, wide)
        else:
            result = self.rows(full, behind, name, place)
        return PlanTensor(result.name, TensorSpec(shape, data_format, Layout.TILE, result.spec.memory_config))


def _check_rows(source: TensorSpec, where: MemoryConfig, shape: tuple[int, ...], spec: DeviceSpec) -> None:
    """Raises DeviceError for rows of shards that end between aligned addresses, and for rows too long for L1."""
    alignment = spec.l1.alignment_bytes
    if source.layout is Layout.TILE:
        return
    units = page_alignment_bytes(source.memory_config, spec), alignment
    for role, place, unit in zip(("Input", "Output"), (source.memory_config, where), units, strict=True):
        if place.shard_spec is not None and (page_bytes := shard_row_bytes(source, place)) % unit:
            raise DeviceError(
                f"{role} row-major shard width {place.shard_spec.shape[1]} gives page size {page_bytes} bytes, which "
                f"must be aligned to {alignment} bytes\ngive wider shards, or interleaved memory"
            )
    row = round_up(row_bytes(source, shape[-1]), alignment)
    if row > row_room_bytes(spec):
        raise DeviceError(
            f"ttnn.pad: padded row of {row} B does not fit in the per-core L1 budget ({row_room_bytes(spec)} B)\n"
            "input_tensor: give shorter rows"
        )


def plan_fill_padding(source: TensorSpec, value: float, spec: DeviceSpec) -> Plan:
    """Plan filling the padding of the tensor "input" with a number, in place; block floats get a new tensor."""
    return plan_of(source, spec, partial(fill_padding, value=value, name="output", seen=False))


def fill_padding(builder: PlanBuilder, source: PlanTensor, value: float, name: str, *, seen: bool = True) -> PlanTensor:
    """Fills the padding of tiles with a number, in place; block floats are converted there and back.

    ``seen`` makes the padding part of the values.
    """
    source_spec = source.spec
    if not any(side % TILE for side in (1, 1, *source_spec.shape)[-2:]):
        return source
    if source_spec.data_format.is_block:
        wide = typecast_by(builder, source, BFLOAT16, f"{name}.bfloat16")
        fill_padding(builder, wide, value, name, seen=seen)
        narrow = typecast_by(builder, wide, source_spec.data_format, name)
        builder.free(wide)
        return narrow
    if source_spec.layout is not Layout.TILE:
        raise DeviceError("FillPad should only be used for tile layout\ninput_tensor: rows have no padding of tiles")
    if source_spec.data_format == UINT8:
        raise DeviceError(
            f"Unsupported datatype DataType::UINT8\ninput_tensor: typecast {source_spec.data_format} first"
        )
    images = prod(source_spec.shape[:-2])
    if source_spec.memory_config.is_sharded() and not in_dram(source_spec) and images > 1:
        raise DeviceError(
            f"FillPadL1ShardedProgramFactory: N_slices > 1 not yet supported (got {images})\n"
            "input_tensor: move it to interleaved memory"
        )
    shape = (1,) * (len(source_spec.padded_shape) - len(source_spec.shape)) + source_spec.shape  # a vector is one row
    op = FillTiles(shape=shape, padded_shape=source_spec.padded_shape, value=value) if seen else FillPad()
    builder.run(
        "FillPadDeviceOperation", op, [source], buffers=fill_buffers(source_spec, builder.device_spec), dataflow=True
    )
    return source
