import pytest

import ttsim
from ttsim import CoreCoord, CoreGrid, CoreRange, CoreRangeSet, ShardOrientation, ShardStrategy


@pytest.mark.parametrize(
    ("strategy", "orientation", "shard"),
    [
        (ShardStrategy.HEIGHT, None, [32, 64]),
        (ShardStrategy.WIDTH, None, [256, 8]),
        (ShardStrategy.BLOCK, None, [128, 16]),
        (ShardStrategy.BLOCK, ShardOrientation.COL_MAJOR, [64, 32]),
    ],
)
def test_even_shards(strategy: ShardStrategy, orientation: ShardOrientation | None, shard: list[int]) -> None:
    config = ttsim.create_sharded_memory_config((1, 1, 256, 64), CoreGrid(y=2, x=4), strategy, orientation)
    assert config.shard_spec is not None
    assert config.shard_spec.shape == shard
    assert str(config.shard_spec.grid) == "{[0-0 - 3-1]}"
    assert config.buffer_type is ttsim.BufferType.L1


def test_the_shape_of_a_shard_goes_with_any_cores() -> None:
    cores = CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(3, 0)), CoreRange(CoreCoord(0, 1), CoreCoord(1, 1))])
    config = ttsim.create_sharded_memory_config(
        (32, 64), cores, ShardStrategy.WIDTH, use_height_and_width_as_shard_shape=True
    )
    assert config.shard_spec is not None
    assert config.shard_spec.shape == [32, 64]
    assert config.shard_spec.grid == cores


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"shape": (1, 1, 250, 64)}, "Invalid sharding core_grid"),
        ({"strategy": "height"}, "Invalid sharding strategy"),
        ({"core_grid": CoreRangeSet([])}, "height and width must be shard shape with CoreRangeSet"),
        ({"shape": "256"}, "Invalid input shape"),
        ({"shape": (256,)}, "Invalid input shape"),
        ({"shape": ("a", 64)}, "Invalid input shape"),
        ({"core_grid": 8}, "Invalid core_grid type"),
    ],
)
def test_refusals_begin_with_the_words_of_the_real_library(changed, text) -> None:  # type: ignore[no-untyped-def]
    good = {"shape": (256, 64), "core_grid": CoreGrid(y=2, x=4), "strategy": ShardStrategy.HEIGHT}
    with pytest.raises(RuntimeError, match=f"^{text}\n"):
        ttsim.create_sharded_memory_config(**good | changed)


def test_first_cores_of_a_grid() -> None:
    grid = CoreCoord(8, 8)
    assert str(ttsim.num_cores_to_corerangeset(10, grid, True)) == "{[0-0 - 7-0], [0-1 - 1-1]}"
    assert str(ttsim.num_cores_to_corerangeset(10, grid)) == "{[0-0 - 0-7], [1-0 - 1-1]}"
    assert str(ttsim.num_cores_to_corerangeset(16, grid, row_wise=True)) == "{[0-0 - 7-1]}"
    for count in (0, 65):
        with pytest.raises(ValueError, match=f"does not have {count} cores"):
            ttsim.num_cores_to_corerangeset(count, grid)
