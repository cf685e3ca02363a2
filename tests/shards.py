"""Places of shards in L1, on the first cores of a device: the words in which many tests need them."""

from device.cores import CoreCoord, CoreRange, CoreRangeSet, first_cores
from device.memory.memory_config import BufferType, MemoryConfig, ShardOrientation, ShardSpec, TensorMemoryLayout

HEIGHT = TensorMemoryLayout.HEIGHT_SHARDED
WIDTH = TensorMemoryLayout.WIDTH_SHARDED
BLOCK = TensorMemoryLayout.BLOCK_SHARDED


def box(columns: int, rows: int = 1) -> CoreRangeSet:
    """So many cores across and down, from the first one on."""
    return CoreRangeSet(CoreRange(CoreCoord(0, 0), CoreCoord(columns - 1, rows - 1)))


def in_box(
    scheme: TensorMemoryLayout,
    shape: tuple[int, int],
    columns: int,
    rows: int = 1,
    orientation: ShardOrientation = ShardOrientation.ROW_MAJOR,
) -> MemoryConfig:
    """Shards of a shape on the cores of a box."""
    return MemoryConfig(scheme, BufferType.L1, ShardSpec(box(columns, rows), shape, orientation))


def on_cores(scheme: TensorMemoryLayout, shape: tuple[int, int], cores: int) -> MemoryConfig:
    """Shards of a shape on so many cores, row by row of an 8x8 grid."""
    return MemoryConfig(scheme, BufferType.L1, ShardSpec(first_cores(cores, 8, 8), shape))


def high(shape: tuple[int, int], cores: int) -> MemoryConfig:
    """HEIGHT shards on so many cores."""
    return on_cores(HEIGHT, shape, cores)


def wide(shape: tuple[int, int], cores: int) -> MemoryConfig:
    """WIDTH shards on so many cores."""
    return on_cores(WIDTH, shape, cores)
