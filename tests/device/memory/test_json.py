import pytest

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.memory.memory_config import (
    L1_MEMORY_CONFIG,
    BufferType,
    MemoryConfig,
    ShardSpec,
    TensorMemoryLayout,
)

PLAIN = '{"buffer_type":1,"created_with_nd_shard_spec":false,"memory_layout":0,"per_core_allocation":false}'
GRID = '[{"end":{"x":3,"y":1},"start":{"x":0,"y":0}}]'


def test_texts_are_those_of_the_real_library() -> None:
    cores = CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(3, 1))])
    config = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, ShardSpec(cores, (32, 64)))
    assert L1_MEMORY_CONFIG.to_json() == PLAIN
    assert cores.to_json() == GRID
    assert f'"shard_spec":{{"grid":{GRID},"orientation":0,"shape":[32,64]}}}}' in config.to_json()
    assert MemoryConfig.from_json(config.to_json()) == config
    assert (L1_MEMORY_CONFIG.interleaved, config.interleaved, cores.size()) == (True, False, 1)
    with pytest.raises(ValueError, match="no text of to_json"):
        MemoryConfig.from_json("[]")
