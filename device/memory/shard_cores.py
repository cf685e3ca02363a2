"""Which banks the shards of a tensor ask for, and whether a device has them."""

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.errors import DeviceError
from device.memory.memory_config import BufferType, MemoryConfig, ShardOrientation, ShardSpec, TensorMemoryLayout
from device.spec.device_spec import DeviceSpec


def check_cores(config: MemoryConfig, shards: ShardSpec, count: tuple[int, int], spec: DeviceSpec) -> None:
    """Refuses shards on cores (or DRAM banks) that a device has not.

    Every core of a grid counts, whether it has a shard or not; of a BLOCK grid only those up to the last shard.

    Args:
        count: How many there are, along the rows and along the columns of the tensor.

    Raises:
        DeviceError: Its first line is that of the real library.
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
    raise DeviceError(no_bank(first, cols * rows, "DRAM" if in_dram else "L1") + f"{cols}x{rows}")


def no_bank(core: CoreCoord, banks: int, memory: str) -> str:
    """The real library's words for a shard on a core without a bank, and the beginning of ours."""
    return (
        f"Invalid shard grid: shard core ({core.x}, {core.y}) has no {memory} bank on this device, which has {banks} "
        "of them. Derive the shard grid from the device (dram_grid_size() for DRAM, compute_with_storage_grid_size() "
        "for L1) rather than assuming a fixed size -- a harvested device exposes fewer banks than an unharvested one "
        "of the same type. An L1 shard core outside the compute grid is legal only while it is claimed via "
        "ServiceCoreManager."
        f"\nshard_spec.grid: core ({core.x}, {core.y}) is not among the device's "
    )
