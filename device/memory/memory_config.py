"""Where a tensor lives: memory, dealing of pages to banks, shards on cores; with the texts of the real library."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from device.cores import CoreRangeSet
from device.errors import ArgumentError, ArgumentTypeError


class Layout(Enum):
    """Order of elements within a page."""

    ROW_MAJOR = 0
    TILE = 1


class BufferType(Enum):
    """Which memory a buffer lives in; the numbers are those of graph captures."""

    DRAM = 0
    L1 = 1
    L1_SMALL = 3
    TRACE = 4


class TensorMemoryLayout(Enum):
    """How pages are dealt to banks; the numbers are those of tt-metal."""

    INTERLEAVED = 0
    HEIGHT_SHARDED = 2
    WIDTH_SHARDED = 3
    BLOCK_SHARDED = 4
    ND_SHARDED = 5


class ShardOrientation(Enum):
    """Whether shards are dealt along rows or along columns of the core grid."""

    ROW_MAJOR = 0
    COL_MAJOR = 1


@dataclass(frozen=True, slots=True, init=False)
class ShardSpec:
    """Which cores hold a sharded tensor, and how much of it each.

    Attributes:
        grid: The cores, in the order shards are dealt.
        shape: Rows and columns of a shard, in elements.
        orientation: Direction of dealing.
    """

    grid: CoreRangeSet
    shape: tuple[int, int]
    orientation: ShardOrientation

    def __init__(
        self, grid: CoreRangeSet, shape: Sequence[int], orientation: ShardOrientation = ShardOrientation.ROW_MAJOR
    ) -> None:
        """Takes any sequence of two positive integers as shape; raises ArgumentError or ArgumentTypeError otherwise."""
        if not isinstance(grid, CoreRangeSet):
            raise ArgumentTypeError(f"ShardSpec: grid must be a CoreRangeSet, not {grid!r}")
        if not isinstance(orientation, ShardOrientation):
            raise ArgumentTypeError(f"ShardSpec: orientation must be a ShardOrientation, not {orientation!r}")
        if len(shape) != 2 or min(shape) < 1:
            raise ArgumentError(f"ShardSpec: shape must be two positive integers (rows, columns), not {list(shape)}")
        object.__setattr__(self, "grid", grid)
        object.__setattr__(self, "shape", (int(shape[0]), int(shape[1])))
        object.__setattr__(self, "orientation", orientation)

    def num_cores(self) -> int:
        """Cores of the grid."""
        return self.grid.num_cores()

    def __str__(self) -> str:
        """As the real library prints it, including the brace that it leaves out."""
        return (
            f"ShardSpec{{grid=[{_ranges_as_json(self.grid, closing='')}], shape={list(self.shape)}, "
            f"orientation=ShardOrientation::{self.orientation.name}}}"
        )

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class MemoryConfig:
    """Where a tensor is to live.

    Attributes:
        memory_layout: How pages are dealt to banks.
        buffer_type: Which memory.
        shard_spec: Cores and shard shape; None for interleaved tensors, or to let an operation choose.
        of_tensor: Whether this is what a tensor reports; only such a config prints the shard distribution.
    """

    memory_layout: TensorMemoryLayout = TensorMemoryLayout.INTERLEAVED
    buffer_type: BufferType = BufferType.DRAM
    shard_spec: ShardSpec | None = None
    of_tensor: bool = field(default=False, compare=False, kw_only=True)

    def __post_init__(self) -> None:
        """Refuses arguments of other types."""
        if not isinstance(self.memory_layout, TensorMemoryLayout):
            raise ArgumentTypeError(
                f"MemoryConfig: memory_layout must be a TensorMemoryLayout, not {self.memory_layout!r}"
            )
        if not isinstance(self.buffer_type, BufferType):
            raise ArgumentTypeError(f"MemoryConfig: buffer_type must be a BufferType, not {self.buffer_type!r}")
        if self.shard_spec is not None and not isinstance(self.shard_spec, ShardSpec):
            raise ArgumentTypeError(f"MemoryConfig: shard_spec must be a ShardSpec, not {self.shard_spec!r}")

    def is_sharded(self) -> bool:
        """Whether pages are dealt shard by shard."""
        return self.memory_layout is not TensorMemoryLayout.INTERLEAVED

    def reported(self) -> "MemoryConfig":
        """The same config as a tensor that has it reports it."""
        return replace(self, of_tensor=True)

    def __str__(self) -> str:
        """As the real library prints it."""
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
        f'{{"start":{{"x":{one.start.x},"y":{one.start.y}}},"end":{{"x":{one.end.x},"y":{one.end.y}}}{closing}'
        for one in cores.ranges
    )


DRAM_MEMORY_CONFIG = MemoryConfig()
L1_MEMORY_CONFIG = MemoryConfig(buffer_type=BufferType.L1)
L1_HEIGHT_SHARDED_MEMORY_CONFIG = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1)
L1_WIDTH_SHARDED_MEMORY_CONFIG = MemoryConfig(TensorMemoryLayout.WIDTH_SHARDED, BufferType.L1)
L1_BLOCK_SHARDED_MEMORY_CONFIG = MemoryConfig(TensorMemoryLayout.BLOCK_SHARDED, BufferType.L1)
