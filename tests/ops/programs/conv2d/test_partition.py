"""Which cores take part: every row and every channel is dealt, to as many cores as do not stay empty."""

import pytest
from hypothesis import given, strategies as st

from device.memory.memory_config import ShardOrientation, TensorMemoryLayout
from device.numbers.formats import div_up, round_up
from device.spec.device_spec import load_spec
from ops.programs.conv2d.parallel_config import (
    BLOCK,
    HEIGHT,
    WIDTH,
    channel_alignment,
    input_parallel_config,
    largest_divisor,
    most_cores,
    output_parallel_config,
)

GRIDS = {name: load_spec(name).grid for name in ("wormhole_n150", "blackhole_p150")}
INTERLEAVED = TensorMemoryLayout.INTERLEAVED

counts = st.integers(1, 3000)


def nobody_idle(tiles, cores, multiple):
    """Whether the last of `cores` equal shares, whole multiples of tiles, still begins with something to do."""
    share = round_up(div_up(tiles, cores), multiple)
    return cores == 1 or (cores - 1) * share < tiles


@given(tiles=counts, limit=st.integers(1, 130), multiple=st.integers(1, 8))
def test_most_cores_of_which_none_is_idle(tiles, limit, multiple):
    chosen = most_cores(tiles, limit, multiple)
    assert 1 <= chosen <= limit
    assert nobody_idle(tiles, chosen, multiple)
    assert not any(nobody_idle(tiles, more, multiple) for more in range(chosen + 1, limit + 1))


def test_most_cores_by_hand():
    """65 tiles on 64 cores would be 2 each, and 31 cores idle; on 33 cores the last has one tile."""
    assert (most_cores(64, 64), most_cores(65, 64), most_cores(65, 64, 2)) == (64, 33, 33)
    assert most_cores(64, 130) == 64
    assert most_cores(9, 8, 4) == 3


@given(limit=st.integers(1, 130), first=counts, second=counts)
def test_largest_divisor(limit, first, second):
    chosen = largest_divisor(limit, first, second)
    assert chosen == max(d for d in range(1, limit + 1) if first % d == second % d == 0)


@pytest.mark.parametrize(
    ("scheme", "facts", "expected"),
    [
        (INTERLEAVED, {}, 32),
        (INTERLEAVED, {"row_major": True}, 8),
        (INTERLEAVED, {"sliced": True}, 8),
        (INTERLEAVED, {"row_major": True, "matmul": True}, 32),
        (HEIGHT, {"row_major": True, "shard_width": 64}, 32),
        (BLOCK, {"row_major": True, "shard_width": 48}, 16),
        (BLOCK, {"row_major": True, "shard_width": 8}, 8),
        (BLOCK, {"row_major": True, "shard_width": 12}, 32),
        (BLOCK, {"shard_width": 8}, 32),
        (WIDTH, {"row_major": True, "shard_width": 8}, 32),
        (WIDTH, {"sliced": True}, 32),
    ],
)
def test_channel_alignment(scheme, facts, expected):
    defaults = {"row_major": False, "sliced": False, "matmul": False, "shard_width": None}
    assert channel_alignment(scheme, **defaults | facts) == expected


@st.composite
def problems(draw):
    """A grid, and the arguments of `input_parallel_config` but for the grid."""
    grid = draw(st.sampled_from(list(GRIDS.values())))
    orientations = st.sampled_from(list(ShardOrientation))
    return grid, {
        "scheme": draw(st.sampled_from([HEIGHT, BLOCK, WIDTH])),
        "rows": draw(st.integers(1, 40000)),
        "in_channels": draw(counts),
        "out_channels": draw(counts),
        "alignment": draw(st.sampled_from([8, 16, 32])),
        "act_block_h_tiles": draw(st.integers(1, 8)),
        "orientation": draw(orientations),
        "matmul": draw(st.booleans()),
    }


def dealt(total, cores, unit):
    """Positions that each of `cores` gets when each takes the same number of whole units, in order."""
    share = round_up(total, cores * unit) // cores
    return [range(min(total, core * share), min(total, (core + 1) * share)) for core in range(cores)]


@given(problems())
def test_every_row_and_channel_belongs_to_exactly_one_core_and_none_is_idle(problem):
    grid, facts = problem
    config = input_parallel_config(grid=grid, **facts)
    assert config.scheme is facts["scheme"]
    assert config.cores.num_cores() == config.nhw_cores * config.channel_cores
    box = config.cores.bounding_box()
    assert (box.start.x, box.start.y) == (0, 0)
    assert box.end.x < grid.cols
    assert box.end.y < grid.rows
    rows = dealt(facts["rows"], config.nhw_cores, 32 * facts["act_block_h_tiles"])
    assert [row for share in rows for row in share] == list(range(facts["rows"]))
    assert all(rows)
    unit = 32 if config.scheme is WIDTH else facts["alignment"]
    channels = dealt(facts["in_channels"], config.channel_cores, unit)
    assert sum(map(len, channels)) == facts["in_channels"]
    assert facts["matmul"] or all(channels)


@given(problems())
def test_output_keeps_the_rows_and_deals_its_own_channels(problem):
    grid, facts = problem
    config = input_parallel_config(grid=grid, **facts)
    out = output_parallel_config(config, grid, out_channels=facts["out_channels"], matmul=facts["matmul"])
    assert (out.scheme, out.nhw_cores, out.orientation) == (config.scheme, config.nhw_cores, config.orientation)
    assert out.cores.num_cores() == out.nhw_cores * out.channel_cores
    assert out.cores.bounding_box().end.x < grid.cols
    assert out.cores.bounding_box().end.y < grid.rows
    if facts["matmul"] or config.scheme is HEIGHT:
        assert out == config
    else:
        assert all(dealt(facts["out_channels"], out.channel_cores, 32))


def chosen(scheme, **changes):
    facts = {
        "rows": 1024, "in_channels": 256, "out_channels": 256, "alignment": 8, "act_block_h_tiles": 1,
        "orientation": ShardOrientation.ROW_MAJOR, "matmul": False,
    }  # fmt: skip
    config = input_parallel_config(scheme, GRIDS["blackhole_p150"], **facts | changes)
    return config.nhw_cores, config.channel_cores, str(config.cores)


def test_cores_are_filled_row_by_row():
    """1024 rows are 32 tiles, 256 channels 8 tiles; the grid has 13 columns and 10 rows."""
    assert chosen(HEIGHT) == (32, 1, "{[0-0 - 12-1], [0-2 - 5-2]}")
    assert chosen(WIDTH) == (1, 8, "{[0-0 - 7-0]}")


def test_block_grid_turns_with_the_orientation():
    """Rows go down the grid and channels across it; COL_MAJOR the other way round, with the other limits."""
    assert chosen(BLOCK) == (8, 11, "{[0-0 - 10-7]}")
    assert chosen(BLOCK, orientation=ShardOrientation.COL_MAJOR) == (11, 8, "{[0-0 - 10-7]}")


def test_output_channels_follow_the_orientation():
    """13 tiles of output channels on a grid of 13 columns and 10 rows."""
    grid = GRIDS["blackhole_p150"]
    for orientation, cores in ((ShardOrientation.ROW_MAJOR, 13), (ShardOrientation.COL_MAJOR, 7)):
        config = input_parallel_config(
            BLOCK, grid, rows=320, in_channels=64, out_channels=416, alignment=32, act_block_h_tiles=1,
            orientation=orientation, matmul=False,
        )  # fmt: skip
        assert output_parallel_config(config, grid, out_channels=416, matmul=False).channel_cores == cores


def test_matmul_deals_whole_tiles_of_both_channels():
    assert chosen(BLOCK, matmul=True, alignment=32) == (8, 8, "{[0-0 - 7-7]}")
    assert chosen(BLOCK, matmul=True, alignment=32, out_channels=96) == (8, 1, "{[0-0 - 0-7]}")
    assert chosen(WIDTH, matmul=True, in_channels=224)[1] == 7


def test_block_height_override_leaves_fewer_cores():
    assert chosen(HEIGHT, act_block_h_tiles=3)[0] == 11
    assert chosen(BLOCK, act_block_h_tiles=5)[0] == 7
