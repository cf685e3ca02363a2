"""How viewers spell."""

import pytest

from device.cores import first_cores
from device.memory.memory_config import DRAM_MEMORY_CONFIG, BufferType, MemoryConfig, ShardSpec, TensorMemoryLayout
from ttsim.report.export.spelling import memory_config_text, operation_name, place_text, viewer_ranges


def test_shards_are_told_with_their_halo():
    shards = ShardSpec(first_cores(16, 8, 8), (32, 64))
    config = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, shards)
    assert memory_config_text(config) == (
        "MemoryConfig(memory_layout=TensorMemoryLayout::HEIGHT_SHARDED,buffer_type=BufferType::L1,shard_spec=ShardSpec("
        "grid={[(x=0,y=0) - (x=7,y=1)]},shape={32, 64},orientation=ShardOrientation::ROW_MAJOR,halo=0),"
        "nd_shard_spec=std::nullopt,created_with_nd_shard_spec=0)"
    )
    assert "shard_spec=std::nullopt" in memory_config_text(DRAM_MEMORY_CONFIG)
    assert (place_text(config), place_text(DRAM_MEMORY_CONFIG)) == ("L1_HEIGHT_SHARDED", "DRAM_INTERLEAVED")


def test_cores_of_a_capture_get_named_coordinates():
    assert viewer_ranges("{[0-0 - 7-7], [0-8 - 3-8]}") == "{[(x=0,y=0) - (x=7,y=7)], [(x=0,y=8) - (x=3,y=8)]}"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("UntilizeCodegenDeviceOperation", "UntilizeDeviceOperation"),
        ("HaloDeviceOperation", "HaloDeviceOperation"),
        ("a\nb", "a\\nb"),
    ],
)
def test_generated_kernels_are_told_by_what_they_stand_in_for(name, told):
    assert operation_name(name) == told
