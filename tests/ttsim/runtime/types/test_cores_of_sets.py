"""Cores of sets and shards that cover a tensor: all expected values are those of ttnn 0.81.1."""

import pytest

import ttsim as ttnn

CORES = ttnn.CoreRangeSet(
    [
        ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(3, 1)),
        ttnn.CoreRange(ttnn.CoreCoord(1, 3), ttnn.CoreCoord(2, 4)),
    ]
)


def test_cores_are_counted_range_by_range():
    columns = "[0-0, 0-1, 1-0, 1-1, 2-0, 2-1, 3-0, 3-1, 1-3, 1-4, 2-3, 2-4]"
    assert str(ttnn.corerange_to_cores(CORES)) == str(ttnn.corerange_to_cores(CORES, 100)) == columns
    assert str(ttnn.corerange_to_cores(CORES, 5, True)) == "[0-0, 1-0, 2-0, 3-0, 0-1]"


@pytest.mark.parametrize(
    ("start", "count", "row_wise", "found"),
    [
        ((1, 0), 6, True, "{[1-0 - 3-0], [0-1 - 2-1]}"),
        ((1, 0), 6, False, "{[1-0 - 3-1]}"),
        ((1, 0), 5, False, "{[1-0 - 2-1], [3-0 - 3-0]}"),
        ((2, 1), 4, True, "{[2-1 - 3-1], [1-3 - 2-3]}"),
        ((0, 0), 10, True, "{[0-0 - 3-1], [1-3 - 2-3]}"),
        ((0, 0), 20, True, "Target number of cores 20 is greater than total available cores 12"),
        ((2, 3), 4, True, "Failed to assign all 4 requested cores"),
        ((7, 7), 2, True, "Start core must be inside sub_core_grids"),
        ((0, 0), 0, True, "Target number of cores must be greater than 0"),
    ],
)
def test_cores_of_a_set_from_one_on(start, count, row_wise, found):
    def call():
        return ttnn.num_cores_to_corerangeset_in_subcoregrids(ttnn.CoreCoord(*start), count, CORES, row_wise)

    if found.startswith("{"):
        assert str(call()) == found
    else:
        with pytest.raises(ttnn.DeviceError, match=f"^{found}"):
            call()


def test_ranges_stay_in_the_order_of_the_set():
    """Shards are dealt out in this order."""
    cores = ttnn.CoreRangeSet(CORES.ranges[::-1])
    found = ttnn.num_cores_to_corerangeset_in_subcoregrids(ttnn.CoreCoord(2, 3), 6, cores, row_wise=True)
    assert str(found) == "{[2-3 - 2-3], [1-4 - 2-4], [0-0 - 2-0]}"


def test_equal_lines_of_ranges_side_by_side_are_joined():
    cores = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, y), ttnn.CoreCoord(3, y)) for y in (0, 1, 3)])
    found = ttnn.num_cores_to_corerangeset_in_subcoregrids(ttnn.CoreCoord(0, 0), 12, cores, row_wise=True)
    assert str(found) == "{[0-0 - 3-1], [0-3 - 3-3]}"


HEIGHT, WIDTH, BLOCK = ttnn.ShardStrategy.HEIGHT, ttnn.ShardStrategy.WIDTH, ttnn.ShardStrategy.BLOCK
ROWS, COLUMNS = ttnn.ShardOrientation.ROW_MAJOR, ttnn.ShardOrientation.COL_MAJOR


@pytest.mark.parametrize(
    ("shape", "strategy", "orientation", "options", "shard"),
    [
        ((1, 1, 100, 64), HEIGHT, ROWS, {}, [17, 64]),
        ((1, 1, 100, 64), WIDTH, ROWS, {}, [100, 11]),
        ((1, 1, 100, 64), BLOCK, ROWS, {}, [50, 22]),
        ((1, 1, 100, 64), BLOCK, COLUMNS, {}, [34, 32]),
        ((1, 1, 100, 96), BLOCK, ROWS, {"tile_layout": True}, [64, 32]),
        ((32, 64), HEIGHT, COLUMNS, {"use_height_and_width_as_shard_shape": True}, [64, 32]),
    ],
)
def test_shards_cover_a_tensor_on_two_rows_of_three_cores(shape, strategy, orientation, options, shard):
    config = ttnn.create_sharded_memory_config_(shape, ttnn.CoreGrid(y=2, x=3), strategy, orientation, **options)
    assert config.shard_spec.shape == shard


def test_what_covers_no_tensor_is_refused():
    for arguments, text in (
        (((32,), ttnn.CoreGrid(y=1, x=1), HEIGHT, ROWS), "Invalid input shape"),
        (((32, 32), 3, HEIGHT, ROWS), "Invalid core_grid type"),
        (((32, 32), CORES, "HEIGHT", ROWS), "Invalid type of sharding strategy"),
        (((32, 32), CORES, HEIGHT, None), "Invalid type of shard orientation"),
        (((32, 32), CORES, BLOCK, ROWS), "Invalid CoreRangeSet for block sharding strategy"),
        (((100, 64), ttnn.CoreGrid(y=2, x=3), WIDTH, ROWS, False, True), "Incorrect tensor shape"),
    ):
        with pytest.raises(ttnn.ArgumentError, match=f"^{text}"):
            ttnn.create_sharded_memory_config_(*arguments)
    assert (ttnn.core.roundup(33, 32), ttnn.core.divup(64, 32)) == (64, 2)
