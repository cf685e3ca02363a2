"""Layout and memory of a tensor: tiles and faces, memory configs, shard specs.

Their text forms are those of the real library.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from operator import index as integer
from typing import Any, Final

import numpy as np

from device.cores import CoreCoord, CoreRange, CoreRangeSet, PlainEnum
from device.errors import ArgumentError, ArgumentTypeError, DeviceError, shown
from device.numbers.formats import Array, div_up, round_up
from device.spec.device_spec import DeviceSpec

TILE: Final = 32
FACE: Final = 16


def pad_to_tiles(matrix: Array) -> Array:
    """[..., R, C] padded with zeros to whole tiles; the array itself if it needs no padding."""
    rows, cols = matrix.shape[-2:]
    padded = (round_up(rows, TILE), round_up(cols, TILE))
    if padded == (rows, cols):
        return matrix
    out = np.zeros((*matrix.shape[:-2], *padded), matrix.dtype)
    out[..., :rows, :cols] = matrix
    return out


def tilize(matrix: Array) -> Array:
    """Splits [..., R, C] into tiles [..., tile_rows, tile_cols, 1024] in face order; zeros pad incomplete tiles.

    Faces come in the order (0, 0), (0, 1), (1, 0), (1, 1), each row by row.
    """
    padded = pad_to_tiles(matrix)
    tile_rows, tile_cols = padded.shape[-2] // TILE, padded.shape[-1] // TILE
    lead = padded.shape[:-2]
    faces = padded.reshape(*lead, tile_rows, 2, FACE, tile_cols, 2, FACE)
    axes = [len(lead) + axis for axis in (0, 3, 1, 4, 2, 5)]
    return faces.transpose(*range(len(lead)), *axes).reshape(*lead, tile_rows, tile_cols, TILE * TILE)


def untilize(tiles: Array, rows: int | None = None, cols: int | None = None) -> Array:
    """The matrix [..., rows, cols] of tiles [..., tile_rows, tile_cols, 1024] in face order, contiguous unless cut.

    ``rows`` and ``cols`` are the numbers to keep; None keeps all.
    """
    lead = tiles.shape[:-3]
    tile_rows, tile_cols = tiles.shape[-3:-1]
    faces = tiles.reshape(*lead, tile_rows, tile_cols, 2, 2, FACE, FACE)
    axes = [len(lead) + axis for axis in (0, 2, 4, 1, 3, 5)]
    matrix = faces.transpose(*range(len(lead)), *axes).reshape(*lead, tile_rows * TILE, tile_cols * TILE)
    return matrix[..., :rows, :cols]


class Layout(PlainEnum):
    """Order of elements within a page: whole rows, or tiles of 32 x 32 elements.

    Examples:
        >>> ttnn.Layout.TILE is ttnn.TILE_LAYOUT
        True
    """

    ROW_MAJOR = 0
    TILE = 1


class BufferType(PlainEnum):
    """The memory of a buffer; member values are those of graph captures.

    Examples:
        >>> ttnn.L1_MEMORY_CONFIG.buffer_type
        BufferType.L1
    """

    DRAM = 0
    L1 = 1
    L1_SMALL = 3
    TRACE = 4


class TensorMemoryLayout(PlainEnum):
    """How pages are distributed over banks; member values are tt-metal's.

    Examples:
        >>> ttnn.L1_BLOCK_SHARDED_MEMORY_CONFIG.memory_layout
        TensorMemoryLayout.BLOCK_SHARDED
    """

    INTERLEAVED = 0
    HEIGHT_SHARDED = 2
    WIDTH_SHARDED = 3
    BLOCK_SHARDED = 4
    ND_SHARDED = 5


class ShardOrientation(PlainEnum):
    """Whether shards are assigned along rows or along columns of the core grid.

    Examples:
        >>> ttnn.ShardOrientation.COL_MAJOR.value
        1
    """

    ROW_MAJOR = 0
    COL_MAJOR = 1


class ShardSpec:
    """The cores of a sharded tensor, and the part of the tensor that each core holds.

    As in ttnn, attributes can be assigned, and each read of ``shape`` returns a new list. The shard spec of a tensor is
    sealed, which means immutable.

    Attributes:
        grid: The cores, in the order in which shards are assigned.
        shape: Rows and columns of a shard, in elements.
        orientation: Whether shards are assigned along rows or columns of cores.

    Examples:
        >>> cores = ttnn.num_cores_to_corerangeset(4, ttnn.CoreCoord(8, 8), row_wise=True)
        >>> shards = ttnn.ShardSpec(cores, (32, 64))
        >>> shards.shape[1] = 128  # changes a copy
        >>> shards.num_cores(), shards.shape
        (4, [32, 64])
    """

    __slots__ = ("_grid", "_orientation", "_shape", "is_sealed")

    def __init__(
        self, grid: CoreRangeSet, shape: Sequence[int], orientation: ShardOrientation = ShardOrientation.ROW_MAJOR
    ) -> None:
        """The shape must be a sequence of two positive integers; raises ArgumentError or ArgumentTypeError."""
        self.is_sealed = False
        self.grid, self.shape, self.orientation = grid, shape, orientation

    @property
    def grid(self) -> CoreRangeSet:
        """The cores."""
        return self._grid

    @grid.setter
    def grid(self, grid: CoreRangeSet) -> None:
        self._require_own()
        if not isinstance(grid, CoreRangeSet):
            raise ArgumentTypeError(f"ShardSpec: grid must be a CoreRangeSet, not {shown(grid)}")
        self._grid = grid

    @property
    def shape(self) -> list[int]:
        """Rows and columns of a shard."""
        return list(self._shape)

    @shape.setter
    def shape(self, shape: Sequence[int]) -> None:
        self._require_own()
        try:
            rows, columns = map(integer, shape)
        except (TypeError, ValueError):
            rows = columns = -1
        if rows < 1 or columns < 1:
            rule = f"ShardSpec: shape must be two positive integers (rows, columns), not {shown(shape)}"
            if rows >= 0 and columns >= 0:
                raise ArgumentError(
                    f"Shard shape must be greater than 0 in each sharded dim, got [{rows}, {columns}]\n{rule}"
                )
            raise ArgumentError(rule)
        self._shape = (rows, columns)

    @property
    def orientation(self) -> ShardOrientation:
        """The order of the cores."""
        return self._orientation

    @orientation.setter
    def orientation(self, orientation: ShardOrientation) -> None:
        self._require_own()
        if not isinstance(orientation, ShardOrientation):
            raise ArgumentTypeError(f"ShardSpec: orientation must be a ShardOrientation, not {shown(orientation)}")
        self._orientation = orientation

    def _require_own(self) -> None:
        if self.is_sealed:
            raise ArgumentError(
                "ShardSpec: a tensor's shards do not change; change those of tensor.memory_config(), which is a copy"
            )

    def changed(self, **fields: Any) -> "ShardSpec":
        """A mutable shard spec with other fields."""
        kept: dict[str, Any] = {"grid": self._grid, "shape": self._shape, "orientation": self._orientation}
        return ShardSpec(**kept | fields)

    def sealed(self) -> "ShardSpec":
        """The same shard spec, immutable."""
        return self if self.is_sealed else self._copied(is_sealed=True)

    def _copied(self, *, is_sealed: bool) -> "ShardSpec":
        """A copy of the shard spec, without checking its fields again."""
        same = object.__new__(ShardSpec)
        same._grid, same._shape, same._orientation, same.is_sealed = *self.fields, is_sealed
        return same

    def __eq__(self, other: object) -> bool:
        """Whether the other has the same cores, shape and orientation."""
        return isinstance(other, ShardSpec) and self.fields == other.fields

    def __hash__(self) -> int:
        """Of the fields."""
        return hash(self.fields)

    @property
    def fields(self) -> tuple[CoreRangeSet, tuple[int, int], ShardOrientation]:
        """Cores, shape and orientation."""
        return self._grid, self._shape, self._orientation

    def num_cores(self) -> int:
        """Cores of the grid."""
        return self.grid.num_cores()

    def __str__(self) -> str:
        """The text of the real library, including its missing brace."""
        return (
            f"ShardSpec{{grid=[{_ranges_as_json(self.grid, closing='')}], shape={list(self.shape)}, "
            f"orientation=ShardOrientation::{self.orientation.name}}}"
        )

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class MemoryConfig:
    """The memory of a tensor.

    Attributes:
        memory_layout: How pages are distributed over banks.
        buffer_type: The memory: DRAM, L1 or L1_SMALL.
        shard_spec: Cores and shard shape; None for interleaved tensors, or if the operation chooses.
        of_tensor: Whether a tensor returned this config; only such a config prints the distribution of shards.

    Examples:
        >>> config = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.INTERLEAVED, ttnn.BufferType.L1)
        >>> config == ttnn.L1_MEMORY_CONFIG, config.is_sharded()
        (True, False)
        >>> ttnn.MemoryConfig.from_json(config.to_json()) == config
        True
    """

    memory_layout: TensorMemoryLayout = TensorMemoryLayout.INTERLEAVED
    buffer_type: BufferType = BufferType.DRAM
    shard_spec: ShardSpec | None = None
    of_tensor: bool = field(default=False, compare=False, kw_only=True)

    def __post_init__(self) -> None:
        """Raises ArgumentTypeError for arguments of other types."""
        if not isinstance(self.memory_layout, TensorMemoryLayout):
            raise ArgumentTypeError(
                f"MemoryConfig: memory_layout must be a TensorMemoryLayout, not {shown(self.memory_layout)}"
            )
        if not isinstance(self.buffer_type, BufferType):
            raise ArgumentTypeError(f"MemoryConfig: buffer_type must be a BufferType, not {shown(self.buffer_type)}")
        if self.shard_spec is not None and not isinstance(self.shard_spec, ShardSpec):
            raise ArgumentTypeError(f"MemoryConfig: shard_spec must be a ShardSpec, not {shown(self.shard_spec)}")
        if self.shard_spec is not None and not self.shard_spec.is_sealed:  # a copy, as in ttnn
            object.__setattr__(self, "shard_spec", self.shard_spec._copied(is_sealed=False))

    def is_sharded(self) -> bool:
        """Whether pages are distributed by shards."""
        return self.memory_layout is not TensorMemoryLayout.INTERLEAVED

    @property
    def interleaved(self) -> bool:
        """Whether pages are distributed round-robin over all banks."""
        return not self.is_sharded()

    def to_json(self) -> str:
        """The JSON text of the real library, with its order of keys."""
        shards = self.shard_spec
        dealt = (
            {"grid": shards.grid.to_list(), "orientation": shards.orientation.value, "shape": list(shards.shape)}
            if shards is not None
            else None
        )
        fields: dict[str, object] = {
            "buffer_type": self.buffer_type.value,
            "created_with_nd_shard_spec": False,
            "memory_layout": self.memory_layout.value,
            "per_core_allocation": False,
        }
        return json.dumps(fields if dealt is None else fields | {"shard_spec": dealt}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "MemoryConfig":
        """The inverse of `to_json`; raises ArgumentError for other texts."""
        try:
            read = json.loads(text)
            dealt = read.get("shard_spec")
            shards = (
                None
                if dealt is None
                else ShardSpec(
                    CoreRangeSet.of_list(dealt["grid"]), dealt["shape"], ShardOrientation(dealt["orientation"])
                )
            )
            return cls(TensorMemoryLayout(read["memory_layout"]), BufferType(read["buffer_type"]), shards)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            reason = f"{error} is missing" if isinstance(error, KeyError) else error
            raise ArgumentError(f"MemoryConfig.from_json: no text of to_json: {shown(text)}: {reason}") from None

    def reported(self) -> "MemoryConfig":
        """The config as a tensor returns it, with its own copy of the shard spec."""
        shards = self.shard_spec
        return replace(self, of_tensor=True, shard_spec=None if shards is None else shards.changed())

    def sealed(self) -> "MemoryConfig":
        """The same config with an immutable shard spec."""
        shards = self.shard_spec
        if shards is None or shards.is_sealed:
            return self
        return MemoryConfig(self.memory_layout, self.buffer_type, shards.sealed(), of_tensor=self.of_tensor)

    def __str__(self) -> str:
        """The text of the real library."""
        shards = "std::nullopt" if self.shard_spec is None else str(self.shard_spec)
        return (
            f"MemoryConfig(memory_layout=TensorMemoryLayout::{self.memory_layout.name},"
            f"buffer_type=BufferType::{self.buffer_type.name},shard_spec={shards},"
            f"nd_shard_spec={self._distribution()},"
            "created_with_nd_shard_spec=0,per_core_allocation=0,range_lockstep_allocation=0)"
        )

    __repr__ = __str__

    def _distribution(self) -> str:
        """The general form of the shard spec, which the real library derives for tensors."""
        if self.shard_spec is None or not self.of_tensor:
            return "std::nullopt"
        blocks = self.memory_layout is TensorMemoryLayout.BLOCK_SHARDED
        strategy = "GRID_2D" if blocks else "ROUND_ROBIN_1D"
        spec = self.shard_spec
        return (
            f'{{"shard_shape":{list(spec.shape)},"grid":[{_ranges_as_json(spec.grid, closing="}")}],'
            f'"orientation":"ShardOrientation::{spec.orientation.name}",'
            f'"shard_distribution_strategy":"ShardDistributionStrategy::{strategy}"}}'
        )


def _ranges_as_json(cores: CoreRangeSet, *, closing: str) -> str:
    """Ranges as JSON objects joined by commas; ``closing`` ends each."""
    return ", ".join(
        f'{{"start":{{"x":{core_range.start.x},"y":{core_range.start.y}}},"end":{{"x":{core_range.end.x},"y":{core_range.end.y}}}{closing}'
        for core_range in cores.ranges
    )


DRAM_MEMORY_CONFIG = MemoryConfig()
L1_MEMORY_CONFIG = MemoryConfig(buffer_type=BufferType.L1)
L1_HEIGHT_SHARDED_MEMORY_CONFIG = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1)
L1_WIDTH_SHARDED_MEMORY_CONFIG = MemoryConfig(TensorMemoryLayout.WIDTH_SHARDED, BufferType.L1)
L1_BLOCK_SHARDED_MEMORY_CONFIG = MemoryConfig(TensorMemoryLayout.BLOCK_SHARDED, BufferType.L1)


def check_shards(rows: int, cols: int, layout: Layout, memory_layout: TensorMemoryLayout, shards: ShardSpec) -> None:
    """Raises DeviceError, with the real library's first line, for shards that cannot hold a padded matrix.

    The shards of an interleaved memory config, which some calls make, hold nothing.
    """
    if memory_layout is TensorMemoryLayout.INTERLEAVED:
        return
    shard_rows, shard_cols = shards.shape
    high, wide, cores = div_up(rows, shard_rows), div_up(cols, shard_cols), shards.num_cores()
    problem = (layout is Layout.TILE and ragged_tiles(shards)) or None
    if problem is None and memory_layout is TensorMemoryLayout.HEIGHT_SHARDED:
        if shard_cols != cols:
            problem = f"Shard width {shard_cols} must match physical width {cols} for height sharded"
        elif high > cores:
            problem = f"Number of shards along height {high} must not exceed number of cores {cores}"
    elif problem is None and memory_layout is TensorMemoryLayout.WIDTH_SHARDED:
        if shard_rows != rows:
            problem = f"Shard height {shard_rows} must match physical height {rows} for width sharded"
        elif wide > cores:
            problem = f"Number of shards along width {wide} must not exceed number of cores {cores}"
    elif problem is None and memory_layout is TensorMemoryLayout.BLOCK_SHARDED:
        problem = _block_problem(high, wide, shards)
    if problem is not None:
        raise DeviceError(
            f"{problem}\nmemory_config: the tensor is a matrix of {rows}x{cols} elements when padded; "
            f"shards of {shard_rows}x{shard_cols} on {cores} cores {shards.grid} do not hold it"
        )


def ragged_tiles(shards: ShardSpec) -> str | None:
    """The real library's error text for shards that are not whole tiles; None if they are."""
    return ragged(*shards.shape)


def ragged(rows: int, cols: int) -> str | None:
    """The real library's error text for sides of shards that are not whole tiles; None if they are."""
    if rows % TILE == cols % TILE == 0:
        return None
    return f"Physical shard shape ({rows}, {cols}) must be tile {{{TILE}, {TILE}}} sized!"


def _block_problem(high: int, wide: int, shards: ShardSpec) -> str | None:
    """The error of ``high`` x ``wide`` block shards on their grid, if any."""
    if len(shards.grid.ranges) != 1:
        return "Shard grid must be one full rectangular grid for block sharded!"
    grid = shards.grid.bounding_box()
    row_major = shards.orientation is ShardOrientation.ROW_MAJOR
    major = "row" if row_major else "column"
    for count, along, is_rows in ((high, "height", row_major), (wide, "width", not row_major)):
        limit, name = (grid.rows, "rows") if is_rows else (grid.cols, "columns")
        if count > limit:
            return (
                f"Number of shards along {along} {count} must not exceed number of {name} {limit} "
                f"for {major} major orientation!"
            )
    return None


def check_cores(config: MemoryConfig, shards: ShardSpec, count: tuple[int, int], spec: DeviceSpec) -> None:
    """Raises DeviceError, with the real library's first line, for shards on missing cores or DRAM banks.

    All cores of the grid are checked, even without a shard; for a BLOCK grid only the cores up to the last shard.
    ``count`` is the number of shards along the rows and along the columns of the tensor.
    """
    in_dram = config.buffer_type is BufferType.DRAM
    cols, rows = (spec.dram.banks, 1) if in_dram else (spec.grid.cols, spec.grid.rows)
    by_rows = shards.orientation is ShardOrientation.ROW_MAJOR
    grid = shards.grid
    if grid.empty():
        return
    box = grid.bounding_box()
    if box.end.x < cols and box.end.y < rows:
        return
    if config.memory_layout is TensorMemoryLayout.BLOCK_SHARDED:
        high, wide = count if by_rows else count[::-1]
        last = CoreCoord(box.start.x + max(wide, 1) - 1, box.start.y + max(high, 1) - 1)
        if last.x < cols and last.y < rows:
            return
        grid = CoreRangeSet(CoreRange(box.start, last))
    first = next(core for core in grid.cores(by_rows) if core.x >= cols or core.y >= rows)
    if in_dram and first.y:
        raise DeviceError(
            f"Invalid DRAM shard grid: shard core ({first.x}, {first.y}) is not on row 0. DRAM banks are 1D (bank_id "
            "== logical x-coordinate), so every shard core must have y == 0.\nshard_spec.grid: give cores of row 0"
        )
    raise DeviceError(no_bank(first, cols * rows, "DRAM" if in_dram else "L1") + f"{cols}x{rows}")


def no_bank(core: CoreCoord, banks: int, memory: str) -> str:
    """The real library's error text for a shard on a core without a bank, and the beginning of our sentence."""
    return (
        f"Invalid shard grid: shard core ({core.x}, {core.y}) has no {memory} bank on this device, which has {banks} "
        "of them. Derive the shard grid from the device (dram_grid_size() for DRAM, compute_with_storage_grid_size() "
        "for L1) rather than assuming a fixed size -- a harvested device exposes fewer banks than an unharvested one "
        "of the same type. An L1 shard core outside the compute grid is legal only while it is claimed via "
        "ServiceCoreManager."
        f"\nshard_spec.grid: core ({core.x}, {core.y}) is not among the device's "
    )
