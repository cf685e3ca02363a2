"""Plans of sum, mean, max and min. Rules: ttnn 0.81.1 (reduction/generic), compared with its plans.

One program reduces the last axis, the last but one, or both. Other axes are first swapped with the last but one, or
added image by image (`AddImages`).
"""

from dataclasses import dataclass
from math import inf, prod
from typing import Final

from device.cores import CoreRangeSet, core_rectangle
from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, BufferType, Layout, MemoryConfig, ShardSpec, TensorMemoryLayout as Scheme
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, INT32, UINT32, DataFormat, div_up, round_up
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from device.spec.parts import GridSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.planners.accumulation import require_added_cores
from ops.planners.shape.pad import fill_padding
from ops.planners.shape.permute import transposed_by
from ops.planners.shape.reshape import reshaped_by
from ops.planners.shape.slice import cut_by
from ops.planners.to_config import check_rows
from ops.programs.buffer_shapes import shard_counts
from ops.programs.data_movement.conversions import cloned, rows_of, tilized_by, unpadded_by, untilized_by
from ops.programs.data_movement.placement import is_dram_blocks
from ops.programs.eltwise.op import Activate
from ops.programs.eltwise.shards import unary_buffers
from ops.programs.reduction.buffers import Work, has_room, negated_room, reduce_buffers
from ops.programs.reduction.nc import AddImages, nc_buffers
from ops.programs.reduction.reduce import INTEGERS, Reduce, Reduction, tile_sides

FORMATS: Final = (BFLOAT16, FLOAT32, BFLOAT8_B, INT32, UINT32)
ROW_FORMATS: Final = (BFLOAT16, FLOAT32)  # of rows that are reduced without being tiles
ADDED_FORMATS: Final = (BFLOAT16, BFLOAT8_B)  # of images that are added
OPPOSITE: Final = {Reduction.MAX: Reduction.MIN, Reduction.MIN: Reduction.MAX}
PADDING: Final = {Reduction.SUM: 0.0, Reduction.MAX: -inf, Reduction.MIN: inf}
LEAST_SPLIT_TILES: Final = {Layout.TILE: 20, Layout.ROW_MAJOR: 16}  # of a column that several cores share


@dataclass(frozen=True, slots=True, kw_only=True)
class ReduceArguments:
    """A call of sum, mean, max or min."""

    name: str
    reduction: Reduction
    axes: tuple[int, ...]  # Sorted, from the first; of a tensor without axes none
    keeps: bool = False  # Reduced axes stay with length 1
    mean: bool = False  # The sum is divided by the number of elements
    scalar: float = 1.0  # Every result is multiplied by it
    place: MemoryConfig | None = None
    layout: Layout | None = None  # Of the result; None for what the programs give
    fidelity_phases: int = 4
    fp32_dest: bool = True
    dst_full_sync: bool = False
    fast: bool = False  # float32 passes the matrix unit
    cores: CoreRangeSet | None = None  # That may be used; None for all

    @property
    def searched(self) -> Reduction:
        """The reduction of the elements before the scalar: the opposite extreme if the scalar is negative."""
        return OPPOSITE.get(self.reduction, self.reduction) if self.scalar < 0 else self.reduction

    @property
    def chunk(self) -> int:
        """Tiles that Dst holds at once."""
        return (16 if self.dst_full_sync else 8) // (2 if self.fp32_dest else 1)


def axes_of_reduction(dims: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """Sorted axes from the first; all of them for none. Raises DeviceError for an axis that the tensor lacks.

    The axis of a tensor without axes, 0 or -1, is 0.
    """
    if not dims:
        return tuple(range(rank))
    axes = [dim + (rank or dim == -1) if dim < 0 else dim for dim in dims]
    for number, axis in enumerate(axes):
        if not (0 <= axis < rank or rank == axis == 0):
            raise DeviceError(
                f"Unsupported dim {axis} at index {number}. After possible adjustment, needs to be at least 0 and less "
                f"than rank {rank}, or exactly 0 for a rank 0 tensor.\ndim: the tensor has {rank} axes"
            )
    axes.sort()
    for number in range(1, len(axes)):
        if axes[number] == axes[number - 1]:
            raise DeviceError(
                f"reduce dim list contains a duplicate axis after sorting (indices {number - 1} and {number}, value "
                f"{axes[number]})\ndim: name each axis once"
            )
    return tuple(axes)


def plan_reduction(source: TensorSpec, call: ReduceArguments, spec: DeviceSpec) -> Plan:
    """Plan a reduction of the tensor "input"; raises DeviceError if the library refuses the call."""
    require_reducible(source.data_format, call)
    return plan_of(source, spec, lambda builder, tensor: _Reducer(builder, tensor, call).planned(), attempts=True)


def reduced_by(builder: PlanBuilder, source: PlanTensor, call: ReduceArguments) -> PlanTensor:
    """A tensor within another plan, reduced with kept axes and without a fill of its padding, which is not read."""
    reducer = _Reducer(builder, source, call)
    return reducer._reduced(source, call.axes, call.scalar, wide=False)


def require_reducible(data_format: DataFormat, call: ReduceArguments) -> None:
    """Raises DeviceError for a format that the library refuses before it looks at the axes."""
    if call.mean and data_format in INTEGERS:
        named = data_format.name.upper()
        raise DeviceError(
            f"ttnn.mean does not support integer inputs - got DataType::{named}.\ninput_tensor: typecast it to floats"
        )
    if call.reduction is Reduction.MIN and call.fast and data_format == FLOAT32:
        raise DeviceError(
            "ttnn.min does not support fast_and_approximate_mode=True on Float32 input: the FPU has no min, so SFPU "
            "path is both more accurate and faster.\nfast_and_approximate_mode: leave it out"
        )


class _Reducer:
    """Writes one call."""

    def __init__(self, builder: PlanBuilder, source: PlanTensor, call: ReduceArguments) -> None:
        self.builder, self.source, self.call = builder, source, call
        self.place = source.spec.memory_config if call.place is None else call.place
        self.layout = call.layout  # Of what a program writes
        self.number = 0

    def name(self, what: str) -> str:
        """A name for the next tensor."""
        self.number += 1
        return f"{what}.{self.number}"

    def planned(self) -> PlanTensor:
        """The result."""
        call, builder, source = self.call, self.builder, self.source
        spec, rank = source.spec, len(source.spec.shape)
        if not rank:
            return self._copied_number()
        axes = call.axes
        scalar = call.scalar / prod(spec.shape[axis] for axis in axes) if call.mean else call.scalar
        shape = self._final_shape(spec.shape)
        held: list[PlanTensor] = []
        current = source
        if spec.layout is Layout.TILE:
            current = fill_padding(builder, source, PADDING[call.reduction], self.name("filled"), seen=False)
            held.append(current)
        leading = tuple(axis for axis in axes if axis < rank - 2)
        sums = call.reduction is Reduction.SUM
        wide = sums and len(axes) > 1 and len(axes) < rank
        if sums and not call.mean and scalar == 1.0 and leading and spec.data_format in ADDED_FORMATS:
            current, axes = self._added(current, leading, wide=wide), axes[len(leading) :]
            builder.free_own(*reversed(held), keep=[current, source])
            held = [current]
            if not axes:
                return self._shaped(current, shape, [])
            wide = wide and len(axes) > 1
        result = self._reduced(current, axes, scalar, wide=wide)
        result = self._shaped(result, shape, [])
        builder.free_own(*reversed(held), keep=[result, source])
        return result

    def _copied_number(self) -> PlanTensor:
        """The copy of a tensor without axes; the scalar is ignored."""
        number, builder = self.source, self.builder
        if number.spec.layout is Layout.TILE:
            number = fill_padding(builder, number, PADDING[self.call.reduction], self.name("filled"), seen=False)
        result = self._shaped(cloned(builder, number, self.place, self.name("copied")), (), [])
        builder.free_own(number, keep=[result, self.source])
        return result

    def _final_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        gone = set(self.call.axes)
        if self.call.keeps:
            return tuple(1 if axis in gone else side for axis, side in enumerate(shape))
        return tuple(side for axis, side in enumerate(shape) if axis not in gone)

    def _shaped(self, result: PlanTensor, shape: tuple[int, ...], held: list[PlanTensor]) -> PlanTensor:
        """The result under its final shape and in its layout."""
        builder, spec = self.builder, result.spec
        if len(shape) == 1 and spec.layout is Layout.TILE:  # programs reduce tensors of four axes
            ones = (1,) * (4 - len(spec.shape))
            spec = spec.changed(shape=(*ones, *spec.shape), padded_shape=(*ones, *spec.padded_shape))
        final = reshaped_by(builder, PlanTensor(result.name, spec), shape, None, None, self.name("shaped"))
        builder.free_own(result, keep=[final, self.source])
        builder.free_own(*reversed(held), keep=[final, self.source])
        if not final.spec.shape:
            final = self._number(final)
        if self.call.layout is Layout.ROW_MAJOR and final.spec.data_format.is_block:
            raise DeviceError(
                f"output_layout=ROW_MAJOR is not supported for a DataType::{final.spec.data_format.name.upper()} "
                "result: block-float formats only exist in TILE layout, so honoring the request would silently widen "
                "the dtype to BFLOAT16. Reduce to TILE and typecast explicitly if a row-major result is needed.\n"
                f"{self.call.name}: typecast the result"
            )
        if self.call.layout in (None, final.spec.layout):
            return final
        rows = self._in_rows(final)
        builder.free_own(final, keep=[rows])
        return rows

    def _number(self, tensor: PlanTensor) -> PlanTensor:
        """A tensor of one element without axes; in rows, the element counts as padding."""
        spec = tensor.spec
        padded = None if spec.layout is Layout.TILE else spec.padded_shape or (1,)
        return PlanTensor(tensor.name, spec.changed(shape=(), padded_shape=padded))

    def _in_rows(self, tiles: PlanTensor) -> PlanTensor:
        spec = tiles.spec
        if self.call.layout is Layout.TILE and not spec.shape:
            row = PlanTensor(tiles.name, spec.changed(shape=(1,), padded_shape=None))
            return self._number(self._tiles(row, spec.memory_config))
        if not spec.shape:  # a single number is a row of one
            tiles = PlanTensor(tiles.name, spec.changed(shape=(1,), padded_shape=spec.padded_shape))
            return self._number(unpadded_by(self.builder, tiles, (1,), spec.memory_config, self.name("rows")))
        if self.call.layout is Layout.TILE:
            return self._tiles(tiles, spec.memory_config)
        if spec.shape != spec.padded_shape:
            return unpadded_by(self.builder, tiles, spec.shape, spec.memory_config, self.name("rows"))
        return untilized_by(self.builder, tiles, rows_of(spec, spec.shape, spec.memory_config), self.name("rows"))

    def _added(self, source: PlanTensor, leading: tuple[int, ...], *, wide: bool) -> PlanTensor:
        """Images added along axes before the last two, the last of these first."""
        builder, call, current = self.builder, self.call, source
        own = []
        if source.spec.layout is Layout.ROW_MAJOR:
            current = self._tiles(source, self.place)
            own.append(current)
        logical = list(source.spec.shape)
        for axis in reversed(leading):
            logical[axis] = 1
            final = axis == leading[0] and set(call.axes) == set(leading)
            data_format = (
                FLOAT32 if wide and source.spec.data_format == BFLOAT16 and not final else source.spec.data_format
            )
            before, padded = current, current.spec.padded_shape
            shape = tuple(1 if number == axis else side for number, side in enumerate(padded))
            target = PlanTensor(self.name("images"), TensorSpec(shape, data_format, Layout.TILE, self.place))
            op = AddImages(
                axis=axis,
                padded_shape=padded,
                source_format=before.spec.data_format,
                data_format=data_format,
                fp32_dest=call.fp32_dest,
                allowed=call.cores,
            )
            require_added_cores(call.cores, builder.device_spec, call.name)
            buffers = nc_buffers(op, before.spec, target.spec, builder.device_spec)
            current = builder.run("FastReduceNCDeviceOperation", op, [before], target, buffers, dataflow=True)
            if before.name != source.name and before not in own:
                builder.free_own(before)
        box = cut_by(builder, current, tuple(logical), self.name("box"))
        builder.free_own(current, keep=[box, source])
        builder.free_own(*own, keep=[box, source])
        return box

    def _reduced(self, source: PlanTensor, axes: tuple[int, ...], scalar: float, *, wide: bool) -> PlanTensor:
        """The reduced last axes, by one program, or axis by axis from the last."""
        rank = len(source.spec.shape)
        last = rank - 1
        if axes in ((last,), (last - 1,), (last - 1, last)):
            return self._by_program(source, tuple(axis - rank for axis in axes), scalar, self._format(wide=False))
        current = source
        self.layout = None  # the last result is brought into the wanted layout
        for number, axis in enumerate(reversed(axes)):
            data_format = self._format(wide=wide and number < len(axes) - 1)
            turns = axis < rank - 2
            read = self._turned(current, axis) if turns else current
            if read.name != current.name:
                self._free(current, source)
            factor = scalar if number == 0 else 1.0
            made = self._by_program(read, (-2,) if turns else (axis - rank,), factor, data_format)
            self._free(read, source)
            current = made
            if turns:
                back = self._turned(current, axis)
                if back.name != current.name:
                    self._free(current, source)
                current = back
        return current

    def _free(self, tensor: PlanTensor, source: PlanTensor) -> None:
        if tensor.name not in (source.name, self.source.name):
            self.builder.free_own(tensor)

    def _format(self, *, wide: bool) -> DataFormat:
        data_format = self.source.spec.data_format
        return FLOAT32 if wide and data_format == BFLOAT16 else data_format

    def _turned(self, source: PlanTensor, axis: int) -> PlanTensor:
        rank = len(source.spec.shape)
        return transposed_by(self.builder, source, (axis, rank - 2), self.place, self.name("turned"))

    def _by_program(
        self, source: PlanTensor, axes: tuple[int, ...], scalar: float, data_format: DataFormat
    ) -> PlanTensor:
        """One program, or two where rows and columns are reduced in turn; rows become tiles unless they are read."""
        call, read = self.call, source
        if source.spec.layout is Layout.ROW_MAJOR and not self._reads_rows(source.spec, axes):
            check_rows(source.spec, self.builder.device_spec)
            negates = call.searched is Reduction.MIN and not self._by_vector_unit(source.spec.data_format)
            read = self._tiles(source, self.place if negates else source.spec.memory_config)
        single = prod(source.spec.padded_shape) // TILE**2 <= 1 and not self._by_vector_unit(read.spec.data_format)
        if len(axes) == 2 and not single:
            promotes = call.reduction is Reduction.SUM and not call.mean and call.fp32_dest
            between_format = FLOAT32 if promotes and data_format == BFLOAT16 else data_format
            factors = (1.0, scalar) if call.searched is call.reduction else (scalar, 1.0)
            between = self._run(read, (-1,), factors[0], between_format)
            result = self._run(between, (-2,), factors[1], data_format)
            self.builder.free_own(between)
        else:
            split = self._split(read, scalar, data_format) if axes == (-2,) else None
            result = split or self._run(read, axes, scalar, data_format)
        if read.name != source.name:
            self.builder.free_own(read)
        return result

    def _by_vector_unit(self, data_format: DataFormat) -> bool:
        accurate = data_format == FLOAT32 and self.call.fp32_dest and not self.call.fast
        least = data_format == BFLOAT16 and self.call.searched is Reduction.MIN
        negated = data_format == UINT32 and self.call.searched is Reduction.MIN
        return accurate or least or (not data_format.is_float and not negated)

    def _reads_rows(self, spec: TensorSpec, axes: tuple[int, ...]) -> bool:
        interleaved = not spec.memory_config.is_sharded() and not self.place.is_sharded()
        sums = self.call.reduction is Reduction.SUM and spec.data_format in ROW_FORMATS
        stays = axes == (-2,) or self.layout is not Layout.TILE
        return interleaved and sums and len(axes) == 1 and stays

    def _tiles(self, source: PlanTensor, place: MemoryConfig) -> PlanTensor:
        return tiles_of_rows(self.builder, source, self.name("tiles"), place, self.call.cores)

    def _split(self, source: PlanTensor, scalar: float, data_format: DataFormat) -> PlanTensor | None:
        """Partial results of a long axis on more cores, and their reduction; None if one program does it."""
        call, spec, grid = self.call, source.spec, self.builder.device_spec.grid
        images, high, wide = tile_sides(spec)
        cores = grid.cores if call.cores is None else call.cores.num_cores()
        slices = min(high, cores // (images * wide))
        negated = call.searched is Reduction.MIN and not self._by_vector_unit(spec.data_format)
        sharded = spec.memory_config.is_sharded() or self.place.is_sharded()
        if slices < 2 or high < LEAST_SPLIT_TILES[spec.layout] or negated or sharded or not spec.data_format.is_float:
            return None
        partial_format = FLOAT32 if call.reduction is Reduction.SUM else spec.data_format
        if partial_format.is_block:  # partial results are rows
            return None
        partials = self._run(source, (-2,), scalar, partial_format, slices=slices)
        layout = Layout.TILE if data_format.is_block else self.layout or spec.layout
        result = self._run(partials, (-2,), 1.0, data_format, layout=layout)
        self.builder.free_own(partials)
        return result

    def _run(
        self,
        source: PlanTensor,
        axes: tuple[int, ...],
        scalar: float,
        data_format: DataFormat,
        *,
        slices: int = 1,
        layout: Layout | None = None,
        reduction: Reduction | None = None,
    ) -> PlanTensor:
        """One program, between programs that negate where it has no room to do so."""
        call, spec, builder = self.call, source.spec, self.builder
        reduction = reduction or call.searched
        target_layout = layout or spec.layout
        if axes == (-2,) and self.layout is Layout.TILE:
            target_layout = Layout.TILE
        if slices > 1:
            target_layout = Layout.ROW_MAJOR
        target = PlanTensor(self.name("reduced"), self._target(spec, axes, data_format, target_layout, slices))
        if spec.data_format not in FORMATS:
            raise DeviceError(
                "Only FLOAT32, BFLOAT16, BFLOAT8_B, and UINT32 are supported for generic reduction (INT32 is supported "
                f"for MAX/MIN/SUM) - got DataType::{spec.data_format.name.upper()}.\n{call.name}: typecast the tensor"
            )
        require_no_dram_blocks("reduce", call.name, spec.memory_config, self.place)
        shards = spec.memory_config.shard_spec if spec.memory_config.buffer_type is BufferType.L1 else None
        _require_program_cores(call.cores, builder.device_spec.grid, call.name)
        if call.cores is not None and shards is not None and not call.cores.contains(shards.grid):
            raise DeviceError(
                f"Input shard grid {shards.grid} must be contained in program core grid {call.cores}\n"
                "sub_core_grids: name the cores of the shards, too"
            )
        work = Work.of(spec, target.spec, axes, slices, call.cores, builder.device_spec.grid)
        negates = reduction is Reduction.MIN and not self._by_vector_unit(spec.data_format)
        room = negated_room(spec, target.spec, work) if negates and axes == (-2,) else None
        if room is not None and not has_room(room, spec, builder.device_spec):
            opposite = self._negated(source)
            largest = self._run(opposite, axes, scalar, data_format, layout=layout, reduction=Reduction.MAX)
            result = self._negated(largest)
            builder.free(largest, opposite)
            return result
        accurate = call.fp32_dest and not call.fast
        op = Reduce(
            reduction=reduction,
            shape=spec.shape,
            axes=axes,
            scalar=scalar,
            source_format=spec.data_format,
            data_format=data_format,
            fidelity_phases=call.fidelity_phases,
            fp32_dest=call.fp32_dest,
            accurate=accurate,
            slices=slices,
            cores=work.cores,
            core_tiles=work.core_tiles,
            core_outputs=work.core_outputs,
            from_shards=work.on_shards,
        )
        buffers = reduce_buffers(op, source, target, work, call.chunk, builder.device_spec)
        return builder.run("ReduceDeviceOperation", op, [source], target, buffers, dataflow=True, room=room)

    def _negated(self, tensor: PlanTensor) -> PlanTensor:
        if tensor.spec.data_format == UINT32:
            raise DeviceError(
                "Unary: UnaryOpType::NEG does not support integer input dtype DataType::UINT32\n"
                f"{self.call.name}: the columns do not fit into L1; typecast the tensor to int32"
            )
        op = Activate(name="neg", parameters=(), data_format=tensor.spec.data_format)
        negated = PlanTensor(self.name("negated"), tensor.spec.changed(memory_config=self.place))
        buffers = unary_buffers(tensor, negated, self.builder.device_spec, op.name)
        return self.builder.run("UnaryDeviceOperation", op, [tensor], negated, buffers, dataflow=True)

    def _target(
        self, spec: TensorSpec, axes: tuple[int, ...], data_format: DataFormat, layout: Layout, slices: int
    ) -> TensorSpec:
        rank = len(spec.shape)
        gone = {axis % rank: slices if axis == -2 else 1 for axis in axes if -axis <= rank}
        shape = tuple(gone.get(axis, side) for axis, side in enumerate(spec.shape))
        return TensorSpec(shape, data_format, layout, sharded_place(spec, shape, self.place))


def tiles_of_rows(
    builder: PlanBuilder, source: PlanTensor, name: str, place: MemoryConfig, cores: CoreRangeSet | None
) -> PlanTensor:
    """Tiles of a tensor in rows, which the programs read, made on some cores or all; a vector is seen as a row."""
    spec = source.spec
    if len(spec.shape) == 1:
        spec = spec.changed(shape=(1, *spec.shape), padded_shape=None)
    padded = TensorSpec(spec.shape, spec.data_format, Layout.TILE).padded_shape
    rows = PlanTensor(source.name, spec)
    return tilized_by(builder, rows, name, place=place, padded_shape=padded, whole=False, cores=cores)


def _require_program_cores(cores: CoreRangeSet | None, grid: GridSpec, function: str) -> None:
    """Raises DeviceError for no cores, and for cores outside the device."""
    way_out = f"{function}: name cores of the device in sub_core_grids, or leave it out"
    if cores is not None and cores.empty():
        raise DeviceError(f"Program core grid must not be empty\n{way_out}")
    device = core_rectangle(grid.cols, grid.rows)
    if cores is not None and not device.contains(cores):
        raise DeviceError(f"Program core grid {cores} must be contained in device grid {device}\n{way_out}")


def require_no_dram_blocks(program: str, function: str, source: MemoryConfig, place: MemoryConfig) -> None:
    """Raises DeviceError for BLOCK shards in DRAM that a program would read or write."""
    if any(map(is_dram_blocks, (source, place))):
        raise DeviceError(
            f"{program}: DRAM block sharding is not supported, got input layout {_shown_place(source)}, output layout "
            f"{_shown_place(place)}\n{function}: keep BLOCK shards in L1, or the tensors in DRAM interleaved"
        )


def _shown_place(place: MemoryConfig) -> str:
    return f"TensorMemoryLayout::{place.memory_layout.name} on BufferType::{place.buffer_type.name}"


def sharded_place(source: TensorSpec, shape: tuple[int, ...], place: MemoryConfig) -> MemoryConfig:
    """The memory of a reduced tensor: even shards of whole tiles on the cores of ``place``, or of the source.

    A single HEIGHT shard is called a WIDTH shard.
    """
    shards, scheme = place.shard_spec or source.memory_config.shard_spec, place.memory_layout
    if not place.is_sharded():
        return place
    if place.shard_spec is None and shards is not None and source.memory_config.buffer_type is not place.buffer_type:
        raise DeviceError(
            f"Sharded memory layout TensorMemoryLayout::{scheme.name} on an output with buffer type "
            f"BufferType::{place.buffer_type.name} requires an explicit shard_spec (cannot fall back to the input "
            f"tensor's BufferType::{source.memory_config.buffer_type.name} shard grid)\n"
            "memory_config: give it a ShardSpec"
        )
    if shards is None:
        raise DeviceError(
            f"Sharded memory layout TensorMemoryLayout::{scheme.name} requires either nd_shard_spec or shard_spec to "
            "be set on the output memory config or the input tensor\nmemory_config: give it a ShardSpec"
        )
    padded = TensorSpec(shape, BFLOAT16, Layout.TILE).padded_shape
    down, across = shard_counts(scheme, shards)
    rows, columns = (
        round_up(div_up(length, parts), TILE) for length, parts in ((prod(padded[:-1]), down), (padded[-1], across))
    )
    if scheme is Scheme.HEIGHT_SHARDED and rows == prod(padded[:-1]):
        scheme = Scheme.WIDTH_SHARDED
    return MemoryConfig(scheme, place.buffer_type, ShardSpec(shards.grid, (rows, columns), shards.orientation))
