"""The plan of ttnn.concat. Rules: ttnn 0.81.1, compared with recorded plans.

Tensors with padded tiles along the axis are untilized first, and rows of unaligned length are transposed before and
after. Shards are concatenated in place along axes that they contain completely, other shards after they are gathered,
and interleaved tensors page by page.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from device.cores import CoreRangeSet
from device.errors import DeviceError, NotSimulatedError
from device.memory.layouts import TensorSpec, require_shard_spec
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    TILE,
    BufferType,
    Layout,
    MemoryConfig,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import BFLOAT16, FLOAT32, DataFormat, Integers, round_up
from device.plan import CircularBuffer, Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import FreeL1, PlanBuilder, PlanTensor, plan_of
from ops.planners.shape.permute import seen, transposed_by
from ops.planners.shape.to_layout import in_other_layout
from ops.planners.to_config import placed
from ops.programs.buffer_shapes import beyond_shards, core_counts, page_alignment_bytes, require_cores, row_bytes
from ops.programs.data_movement.concat import Concatenate, page_buffers, ragged_buffers, shard_views, turned_buffers
from ops.programs.data_movement.conversions import tilized_by, unpadded_by
from ops.programs.data_movement.placement import viewed

HEIGHT, WIDTH = TensorMemoryLayout.HEIGHT_SHARDED, TensorMemoryLayout.WIDTH_SHARDED
BLOCK = TensorMemoryLayout.BLOCK_SHARDED
LEAST_GROUP = 16  # columns of a group for which tiles are transposed
MIXED = "All tensors must be sharded or all must be interleaved\nconcat: shard all tensors, or none"
MOST_RUNS = 56  # of rows of one tensor that a core's program joins in blocks
STICK_BYTES = 32  # sticks of two tensors are joined in whole multiples of this


def require_one_shape(sources: Sequence[TensorSpec], axis: int, *, alone: bool = False) -> None:
    """Raises DeviceError for tensors that differ in more than their length along ``axis``.

    Their layouts and formats are looked at, too, unless their shapes ``alone`` are of interest.
    """
    first, ragged = sources[0], any(_is_ragged(tensor, axis) for tensor in sources)
    layout = _joined_layout(sources)
    for other in sources[1:]:
        same_rank = len(other.shape) == len(first.shape)
        if not same_rank or any(
            a != b for n, (a, b) in enumerate(zip(first.shape, other.shape, strict=True)) if n != axis
        ):
            raise DeviceError(
                "All dimensions must be the same size except for the dimension along which the contenation is taking "
                f"place.\nconcat: {list(first.shape)} and {list(other.shape)} differ beyond axis {axis}"
            )
        if alone:
            continue
        if other.layout is not first.layout:
            _require_convertible(first, other, ragged=ragged)
        if not ragged:  # rows of ragged tiles are looked at once they are made
            in_rows = layout is Layout.ROW_MAJOR
            _require_one_format(
                *((_row_format(tensor) if in_rows else tensor.data_format) for tensor in (first, other))
            )


def _require_convertible(first: TensorSpec, other: TensorSpec, *, ragged: bool) -> None:
    """Raises an error for tensors of two layouts that cannot be converted to one layout."""
    way_out = "concat: bring them to one layout first"
    if ragged:
        raise DeviceError(f"ttnn.concat: expected all input tensors to be in tile layout\n{way_out}")
    sharded = [tensor.memory_config.is_sharded() for tensor in (first, other)]
    if all(sharded):
        raise NotSimulatedError(f"concat: ttsim does not simulate shards of two layouts; {way_out}")
    if any(sharded):
        raise DeviceError(MIXED)


def _joined_layout(sources: Sequence[TensorSpec]) -> Layout:
    """The layout of interleaved tensors for a concatenation: the first one's, or ROW_MAJOR if others have padding."""
    if len({tensor.layout for tensor in sources}) == 1 or sources[0].layout is Layout.ROW_MAJOR:
        return sources[0].layout
    whole = all(len(tensor.shape) > 1 and not any(side % TILE for side in tensor.shape[-2:]) for tensor in sources)
    return Layout.TILE if whole else Layout.ROW_MAJOR


def _require_one_format(*formats: DataFormat) -> None:
    """Raises DeviceError for tensors of several formats."""
    if len(set(formats)) > 1:
        raise DeviceError("All Tensors should have same dtypes.\nconcat: typecast them first")


def _is_ragged(tensor: TensorSpec, axis: int) -> bool:
    """Whether tiles have padding along an axis; tiles of a vector always pad the rows that a vector lacks."""
    return tensor.layout is Layout.TILE and (len(tensor.shape) == 1 or tensor.shape[axis] != tensor.padded_shape[axis])


def _row_format(tensor: TensorSpec) -> DataFormat:
    """The format of rows of tiles."""
    return BFLOAT16 if tensor.data_format.is_block else tensor.data_format


def joins_in_place(source: TensorSpec, axis: int) -> bool:
    """Whether shards hold an axis whole and can be joined on their cores."""
    scheme, rank = source.memory_config.memory_layout, len(source.shape)
    return (axis == rank - 1 and scheme in (HEIGHT, BLOCK)) or (axis == rank - 2 and scheme in (WIDTH, BLOCK))


def shards_refusal(
    sources: Sequence[TensorSpec], result: TensorSpec, axis: int, groups: int, alignment_bytes: int
) -> str | None:
    """Why the library does not join shards, if it does not; said once the result is allocated."""
    first, rank = sources[0].memory_config, len(result.shape)
    place = first.memory_layout
    grid, result_grid = (
        tensor.memory_config.shard_spec and tensor.memory_config.shard_spec.grid for tensor in (sources[0], result)
    )
    if (refused := next(_unlike_shards(sources), None)) is not None:
        return refused
    if result.memory_config.memory_layout is not place:
        return "Sharded output and inputs must have the same memory layout.\nmemory_config: move the result afterwards"
    if result_grid != grid:
        return "Sharded output and inputs must have the same grid.\nmemory_config: move the result afterwards"
    if result.shards.orientation is not sources[0].shards.orientation:
        return (
            "Sharded output and inputs must have the same shard orientation.\nmemory_config: move the result afterwards"
        )
    if axis < rank - 2:
        return "Only width or height concat on sharded tensors\nmemory_config: ask for interleaved memory"
    if not joins_in_place(sources[0], axis):
        along, whole = ("width", "height") if axis == rank - 1 else ("height", "width")
        return (
            f"Only support {along} concat on {whole}-sharded or block-sharded tensors.\n"
            "memory_config: ask for interleaved memory"
        )
    if groups > 1 and place is not HEIGHT:
        return (
            f"Groups > 1 is only supported on height-sharded tensors (groups={groups} and "
            f"memory_layout=TensorMemoryLayout::{place.name} was provided)\ngroups: leave it out"
        )
    in_rows = result.layout is Layout.ROW_MAJOR
    if axis < rank - 1 and place is BLOCK:
        unaligned = _uneven_rows(sources, alignment_bytes) if in_rows else None
        return unaligned or _transfers_refusal(sources, result)
    if axis < rank - 1:
        return None
    if place is BLOCK:
        return _block_refusal(sources, alignment_bytes) if in_rows else None
    return _pair_refusal(sources, groups) if len(sources) == 2 else None


def _unlike_shards(sources: Sequence[TensorSpec]) -> Iterator[str]:
    """The differences between the memories of several tensors, in the library's order."""
    first, way_out = sources[0].memory_config, "\nconcat: shard all tensors over the same cores"
    for other in (tensor.memory_config for tensor in sources[1:]):
        if other.is_sharded() is not first.is_sharded():
            yield MIXED
        elif first.shard_spec is not None:
            if other.shard_spec is None or other.shard_spec.grid != first.shard_spec.grid:
                yield f"Sharded tensors must have the same grid.{way_out}"
            elif other.memory_layout is not first.memory_layout:
                yield f"Sharded tensors must have the same memory layout.{way_out}"
            elif other.shard_spec.orientation is not first.shard_spec.orientation:
                yield f"Sharded tensors must have the same shard orientation.{way_out}"


def _transfers_refusal(sources: Sequence[TensorSpec], result: TensorSpec) -> str | None:
    """Runs of rows, each of one image in one shard, that are too many for the arguments of a core's program."""
    unit = TILE if result.layout is Layout.TILE else 1
    images, shard_rows = prod(result.padded_shape[:-2]), result.shards.shape[0] // unit
    high, before, ends = sum(tensor.padded_shape[-2] for tensor in sources) // unit, 0, list[Integers]()
    for tensor in sources:  # a run ends with an image, or with a shard
        rows, own = tensor.padded_shape[-2] // unit, tensor.shards.shape[0] // unit
        behind = np.union1d(np.arange(1, images + 1) * rows, np.arange(own, images * rows, own))
        image, row = np.divmod(behind - 1, rows)
        ends.append(image * high + before + row + 1)
        before += rows
    joined = np.sort(np.concatenate(ends))
    firsts = np.arange(0, images * high, shard_rows)
    lasts = np.minimum(firsts + shard_rows, images * high) - 1
    runs = int((np.searchsorted(joined, lasts, "right") - np.searchsorted(joined, firsts, "right")).max()) + 1
    if runs <= MOST_RUNS:
        return None
    down, _ = core_counts(BLOCK, result.shards.grid, result.shards.orientation)
    return (
        f"Block-sharded height concat: {runs} transfers per core, past the {MOST_RUNS} the runtime-arg budget allows "
        f"({MOST_RUNS // 2} per RISC at 9 args each). A core walks only the leading indices its own rows cover -- "
        f"about {images} / {down} grid rows -- at {len(sources)} inputs each, so *more* grid rows lowers this. Add "
        "grid rows, or reduce the leading dims or the input count.\n"
        "concat: move the tensors to interleaved memory first"
    )


def _block_refusal(sources: Sequence[TensorSpec], alignment_bytes: int) -> str | None:
    """The refusal of rows in BLOCK shards that would start or end at addresses that a core cannot write."""
    start, element_bytes = 0, sources[0].data_format.element_bytes or 0
    for number, tensor in enumerate(sources):
        if start * element_bytes % alignment_bytes:
            return (
                f"Width concat: input {number} starts at column {start} ({start * element_bytes} bytes), not "
                f"L1-aligned ({alignment_bytes} bytes). A ragged width puts the boundary inside a shard and the "
                "NOC cannot write at an unaligned offset. Pad each width to a multiple of "
                f"{alignment_bytes // element_bytes} elements, or concat before sharding.\n"
                "concat: move the tensors to interleaved memory first"
            )
        start += tensor.shape[-1]
    return _uneven_rows(sources, alignment_bytes)


def _uneven_rows(sources: Sequence[TensorSpec], alignment_bytes: int) -> str | None:
    """Rows of blocks that end where a core cannot write to."""
    element_bytes = sources[0].data_format.element_bytes or 0
    for number, across in enumerate(tensor.shards.shape[1] for tensor in sources):
        if across * element_bytes % alignment_bytes:
            return (
                f"Input {number} shard row size ({across * element_bytes} bytes = {across} elements x {element_bytes} "
                f"bytes) is not L1-aligned ({alignment_bytes} bytes). Block-sharded RM concat requires aligned row "
                "sizes for correct NOC transfers.\nconcat: move the tensors to interleaved memory first"
            )
    return None


def _pair_refusal(sources: Sequence[TensorSpec], groups: int) -> str | None:
    """The refusal of the two programs that join two tensors of HEIGHT shards; None if one takes them."""
    for number, tensor in enumerate(sources):
        columns, rows = tensor.padded_shape[-1], tensor.shards.shape[0]
        if tensor.layout is Layout.TILE:
            if columns // groups < LEAST_GROUP:
                return (
                    f"Group size must be at least {LEAST_GROUP} for input{number} (was {columns // groups})\n"
                    f"groups: {groups} are too many for {columns} columns"
                )
            continue
        stick_bytes = row_bytes(tensor, columns)
        aligned = round_up(stick_bytes, STICK_BYTES)
        for text in beyond_shards(f"s2s_rm_input_{number}", aligned, rows, f"input_{number}", stick_bytes * rows):
            return f"{text}\nconcat: rows of {stick_bytes} bytes are no multiple of {STICK_BYTES}; give more channels"
    return None


CONCAT = "ConcatDeviceOperation"
MOST_BANDS = 32  # tensors whose rows of tiles one program joins


def plan_concat(
    sources: Sequence[TensorSpec],
    axis: int,
    spec: DeviceSpec,
    *,
    place: MemoryConfig | None = None,
    groups: int = 1,
    cores: CoreRangeSet | None = None,
    free_l1: FreeL1 | None = None,
) -> Plan:
    """Plan a concatenation of the tensors "input_0", "input_1" and so on.

    ``groups`` cuts each of two tensors in HEIGHT shards into parts along the axis; the library does not cut others.
    ``cores`` are those that may be used where pages are joined; None for all.
    """
    require_cores(cores, spec, "concat")
    where = DRAM_MEMORY_CONFIG if place is None else place
    if where.is_sharded() or sources[0].memory_config.is_sharded():
        cores = None  # which the library does not look at
    require_one_shape(sources, axis, alone=cores is not None)

    def write(builder: PlanBuilder, *inputs: PlanTensor) -> PlanTensor:
        return _Concat(builder, axis, where, groups, cores).joined(inputs)

    inputs = {f"input_{number}": tensor for number, tensor in enumerate(sources)}
    return plan_of(inputs, spec, write, attempts=True, free_l1=free_l1)


@dataclass(frozen=True, slots=True)
class _Concat:
    """A concatenation along an axis, with the memory of the result."""

    builder: PlanBuilder
    axis: int
    place: MemoryConfig
    groups: int
    cores: CoreRangeSet | None

    def joined(self, inputs: Sequence[PlanTensor]) -> PlanTensor:
        """The concatenated tensors; tensors with tile padding along the axis are untilized if no program joins them."""
        builder, sources = self.builder, [tensor.spec for tensor in inputs]
        if len(inputs) == 1:
            return placed(builder, inputs[0], self.place, "output")
        if self.cores is not None:
            return self._by_some_cores(inputs)
        if not any(_is_ragged(tensor, self.axis) for tensor in sources):
            layout = _joined_layout(sources)
            alike = [in_other_layout(builder, tensor, layout, f"{tensor.name}.alike") for tensor in inputs]
            result, spent = self._aligned(alike, "output")
            builder.free(*spent)
            builder.free_own(*alike)
            return result
        if self._joins_bands(sources):
            _require_one_format(*(tensor.data_format for tensor in sources))
            return self._paged(inputs, "output", ragged=True)
        rows = [
            unpadded_by(builder, tensor, tensor.spec.shape, tensor.spec.memory_config, f"{tensor.name}.rows")
            for tensor in inputs
        ]
        _require_one_format(*(tensor.spec.data_format for tensor in rows))
        joined, spent = self._aligned(rows, "output.rows", consumed=True)
        result = tilized_by(builder, joined, "output", place=joined.spec.memory_config, whole=False)
        builder.free(joined, *spent)
        return result

    def _by_some_cores(self, inputs: Sequence[PlanTensor]) -> PlanTensor:
        """Interleaved tensors joined by cores that may be used: as they are, whatever their padding."""
        builder, first = self.builder, inputs[0].spec
        if first.layout is Layout.ROW_MAJOR:
            self._require_aligned(inputs)
        layout = _joined_layout([tensor.spec for tensor in inputs])
        alike = [
            in_other_layout(builder, tensor, layout, f"{tensor.name}.alike", cores=self.cores) for tensor in inputs
        ]
        specs = [tensor.spec for tensor in alike]
        _require_one_format(*(tensor.data_format for tensor in specs))
        ragged = any(_is_ragged(tensor, self.axis) for tensor in specs)
        by_bands = ragged and self._joins_bands(specs)
        if ragged and not by_bands:
            builder.leave_out_values(
                "concat: with sub_core_grids the real library joins tiles with their padding along the axis, as if it "
                "were part of them; leave sub_core_grids out"
            )
        result = self._paged(alike, "output", ragged=by_bands)
        builder.free_own(*alike, keep=inputs)
        return result

    def _joins_bands(self, sources: Sequence[TensorSpec]) -> bool:
        """Whether one program joins the rows of padded interleaved tiles; its buffers must fit the free L1."""
        rank, places = len(sources[0].shape), [self.place, *(tensor.memory_config for tensor in sources)]
        if self.groups != 1 or not 2 <= len(sources) <= MOST_BANDS or rank < 2 or self.axis != rank - 1:
            return False
        if sources[0].data_format not in (BFLOAT16, FLOAT32) or any(where.is_sharded() for where in places):
            return False
        result, spec = self._spec(sources), self.builder.device_spec
        needed = sum(buffer.size_bytes for buffer in ragged_buffers(sources, result, spec))
        return needed <= self.builder.free_l1.beside(result, spec)[0]

    def _ends_unaligned(self, inputs: Sequence[PlanTensor], *, padded: bool = False) -> bool:
        """Whether the concatenated rows end at unaligned addresses; a block float counts as one byte.

        Rows include the padding of their shards, vectors only if asked for ``padded`` ones.
        """
        spec = self.builder.device_spec
        if self.axis != len(inputs[0].spec.shape) - 1:
            return False
        for tensor in (source.spec for source in inputs):
            columns = tensor.shape[-1] if len(tensor.shape) == 1 and not padded else tensor.padded_shape[-1]
            alignment_bytes = page_alignment_bytes(tensor.memory_config, spec)
            if columns * (tensor.data_format.element_bytes or 1) % alignment_bytes:
                return True
        return False

    def _require_whole_vectors(self, inputs: Sequence[PlanTensor]) -> None:
        """Raises DeviceError for vectors that only their padding in shards ends at unaligned addresses."""
        if self.axis == 0 and self._ends_unaligned(inputs, padded=True):
            raise DeviceError(
                f"Index is out of bounds for the rank, should be between 0 and 0 however is {(1 << 64) - 1}\n"
                "concat: give vectors that fill their shards, or reshape them to rank 2"
            )

    def _aligned(
        self, inputs: Sequence[PlanTensor], name: str, *, consumed: bool = False
    ) -> tuple[PlanTensor, list[PlanTensor]]:
        """The concatenated tensor, and the tensors to free afterwards, in order.

        The last two axes are swapped before and after if rows would end at unaligned addresses. The plan owns
        ``consumed`` inputs.
        """
        if not self._ends_unaligned(inputs):
            self._require_whole_vectors(inputs)
            return self._in_place(inputs, name), list(inputs) if consumed else []
        builder, last = self.builder, max(self.axis, 1)
        if self.axis == 0:
            for tensor in inputs:
                viewed(tensor.spec, (1, *tensor.spec.shape), builder.device_spec)  # refuses shards of padded vectors
        matrices = [seen(tensor, (1, *tensor.spec.shape)) if self.axis == 0 else tensor for tensor in inputs]
        turned = [
            transposed_by(builder, tensor, (last - 1, last), None, f"{tensor.name}.turned") for tensor in matrices
        ]
        # The transposed tensor of a single element is the input itself
        names, turned_names = {tensor.name for tensor in inputs}, {tensor.name for tensor in turned}
        copies = [tensor for tensor in turned if consumed or tensor.name not in names]
        if consumed:
            builder.free(*(tensor for tensor in inputs if tensor.name not in turned_names))
        joined = replace(self, axis=last - 1)._in_place(turned, f"{name}.turned")
        result = transposed_by(builder, joined, (last - 1, last), self.place, name)
        if self.axis == 0:
            result = seen(result, result.spec.shape[1:])
        return result, [*([joined] if joined.name != result.name else []), *copies]

    def _in_place(self, inputs: Sequence[PlanTensor], name: str) -> PlanTensor:
        """Tensors joined as they are: shards on their cores, or gathered first, and others page by page."""
        first, place, builder = inputs[0].spec, self.place, self.builder
        if not first.memory_config.is_sharded():
            return self._interleaved(inputs, name)
        in_dram = place.is_sharded() and place.buffer_type is BufferType.DRAM
        if in_dram or not all(tensor.in_l1 for tensor in inputs):  # no core joins shards there
            return self._by_page(inputs, name)
        if place.is_sharded() or joins_in_place(first, self.axis):
            return self._of_shards(inputs, name)
        gathered = [placed(builder, tensor, place, f"{tensor.name}.interleaved") for tensor in inputs]
        result = self._interleaved(gathered, name)
        builder.free_own(*gathered, keep=inputs)
        return result

    def _by_page(self, inputs: Sequence[PlanTensor], name: str) -> PlanTensor:
        """Shards joined page by page, rows only where pages are whole rows on both sides; others are gathered first."""
        first, builder = inputs[0].spec, self.builder
        if self.groups > 1:
            raise DeviceError(
                f"Groups > 1 is not supported for DRAM-sharded concat (groups={self.groups} was provided). Move the "
                "inputs and output to L1 sharding, or unshard them first.\ngroups: leave it out"
            )
        cuts_rows = any(place.memory_layout in (BLOCK, WIDTH) for place in (first.memory_config, self.place))
        if first.layout is Layout.TILE or not cuts_rows:
            return self._paged(inputs, name)
        gathered = [placed(builder, tensor, DRAM_MEMORY_CONFIG, f"{tensor.name}.interleaved") for tensor in inputs]
        result = self._interleaved(gathered, name)
        builder.free_own(*gathered, keep=inputs)
        return result

    def _spec(self, sources: Sequence[TensorSpec], place: MemoryConfig | None = None) -> TensorSpec:
        first, shape = sources[0], list(sources[0].shape)
        shape[self.axis] = sum(tensor.shape[self.axis] for tensor in sources)
        return first.changed(shape=shape, memory_config=place or self.place)

    def _of_shards(self, inputs: Sequence[PlanTensor], name: str) -> PlanTensor:
        """Shards joined on their cores; another program distributes an interleaved result."""
        specs, spec, sharded = [tensor.spec for tensor in inputs], self.builder.device_spec, self.place.is_sharded()
        by_columns = self.axis == len(specs[0].shape) - 1
        place = self.place if sharded else _shards_of_result(specs, by_columns)
        joined = PlanTensor(name if sharded else f"{name}.sharded", self._spec(specs, place))
        refused = shards_refusal(specs, joined.spec, self.axis, self.groups, spec.l1.alignment_bytes)
        pair = len(inputs) == 2 and place.memory_layout is HEIGHT and by_columns
        buffers: tuple[CircularBuffer, ...] = ()
        by_page = len(joined.spec.shape) == 1 and place.memory_layout is HEIGHT
        if refused is None and by_page:
            buffers = page_buffers(specs, joined.spec, spec)
        elif refused is None:
            turns = pair and specs[0].layout is Layout.TILE
            buffers = turned_buffers(inputs, joined, spec) if turns else shard_views(inputs, joined, spec, pair=pair)
        groups = self.groups if pair else 1
        self._run(inputs, joined, groups, buffers=buffers, dataflow=pair or by_page, refused=refused)
        if sharded:
            return joined
        result = placed(self.builder, joined, self.place, name)
        self.builder.free(joined)
        return result

    def _interleaved(self, inputs: Sequence[PlanTensor], name: str) -> PlanTensor:
        """Pages joined; rows for columns of shards are distributed afterwards."""
        in_rows = inputs[0].spec.layout is Layout.ROW_MAJOR
        if in_rows:
            self._require_aligned(inputs)
        if not in_rows or self.place.memory_layout not in (BLOCK, WIDTH):
            return self._paged(inputs, name)
        require_shard_spec(self.place, in_rows=True)
        joined = replace(self, place=DRAM_MEMORY_CONFIG)._paged(inputs, f"{name}.interleaved")
        result = placed(self.builder, joined, self.place, name)
        self.builder.free(joined)
        return result

    def _require_aligned(self, inputs: Sequence[PlanTensor]) -> None:
        """Raises DeviceError for concatenated rows that end at unaligned addresses."""
        if self._ends_unaligned(inputs, padded=True):
            raise DeviceError(
                "Current concat implementation requires aligned last dim when concatting on last dim\n"
                "concat: move the tensors to interleaved memory before, or give rows of whole alignments"
            )

    def _paged(self, inputs: Sequence[PlanTensor], name: str, *, ragged: bool = False) -> PlanTensor:
        specs = [tensor.spec for tensor in inputs]
        result = PlanTensor(name, self._spec(specs))
        result.spec.require_on(self.builder.device_spec)
        if (refused := next(_unlike_shards(specs), None)) is not None:
            raise DeviceError(refused)
        buffers = (ragged_buffers if ragged else page_buffers)(
            specs, result.spec, self.builder.device_spec, within=self.cores
        )
        return self._run(inputs, result, buffers=buffers, dataflow=not ragged, cores=self.cores)

    def _run(
        self,
        inputs: Sequence[PlanTensor],
        result: PlanTensor,
        groups: int = 1,
        cores: CoreRangeSet | None = None,
        **how: Any,
    ) -> PlanTensor:
        specs = tuple(tensor.spec for tensor in inputs)
        shapes = tuple(tensor.shape for tensor in specs)
        op = Concatenate(axis=self.axis, shapes=shapes, groups=groups, cores=cores)
        return self.builder.run(CONCAT, op, inputs, result, key=("concat", op, specs, result.spec), **how)


def _shards_of_result(sources: Sequence[TensorSpec], by_columns: bool) -> MemoryConfig:
    """The cores of the first tensor, with all columns (or rows) side by side."""
    if any(tensor.memory_config.shard_spec is None for tensor in sources):
        raise DeviceError("bad optional access\nconcat: shard all tensors, or none")
    first, shards = sources[0].memory_config, sources[0].shards
    rows, columns = zip(*(tensor.shards.shape for tensor in sources), strict=True)
    shape = (rows[0], sum(columns)) if by_columns else (sum(rows), columns[0])
    return MemoryConfig(first.memory_layout, first.buffer_type, ShardSpec(shards.grid, shape, shards.orientation))
