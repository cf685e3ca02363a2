import pytest

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    BufferType,
    Layout,
    MemoryConfig,
    ShardOrientation,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import BFLOAT16
from device.spec.device_spec import load_spec

WORMHOLE = load_spec("wormhole_n150")
HEIGHT, BLOCK = TensorMemoryLayout.HEIGHT_SHARDED, TensorMemoryLayout.BLOCK_SHARDED
ROW, COL = ShardOrientation.ROW_MAJOR, ShardOrientation.COL_MAJOR


def tensor(layout, cols, rows, orientation=ROW, memory=BufferType.L1):
    grid = CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(cols - 1, rows - 1))])
    config = MemoryConfig(layout, memory, ShardSpec(grid, (32, 32), orientation))
    return TensorSpec((1, 1, 160, 32), BFLOAT16, Layout.TILE, config)


@pytest.mark.parametrize(
    ("given", "core", "memory", "banks"),
    [
        (tensor(HEIGHT, 13, 1), "(8, 0)", "L1", 64),
        (tensor(HEIGHT, 4, 10), "(0, 8)", "L1", 64),
        (tensor(HEIGHT, 10, 10, COL), "(0, 8)", "L1", 64),
        (tensor(HEIGHT, 13, 1, memory=BufferType.DRAM), "(12, 0)", "DRAM", 12),
    ],
)
def test_every_core_of_the_grid_must_be_there(given, core, memory, banks):
    with pytest.raises(DeviceError) as caught:
        given.buffer(WORMHOLE)
    first, ours = str(caught.value).splitlines()
    assert first.startswith(
        f"Invalid shard grid: shard core {core} has no {memory} bank on this device, which has {banks} of them. Derive"
    )
    assert first.endswith("legal only while it is claimed via ServiceCoreManager.")
    assert core in ours


def test_block_shards_count_up_to_the_last():
    assert tensor(BLOCK, 9, 5).buffer(WORMHOLE).num_cores == 5
