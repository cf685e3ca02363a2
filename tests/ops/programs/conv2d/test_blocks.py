"""Shards, blocks and the walk through K, which must agree with how the weights are prepared."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from device.errors import DeviceError
from device.memory.memory_config import ShardOrientation
from device.numbers.formats import FLOAT32, div_up, round_up
from device.spec.device_spec import load_spec
from ops.programs.conv2d.blocks import (
    SUBBLOCKS,
    Shards,
    act_block_height,
    k_block_order,
    k_block_tiles,
    plan_blocks,
    plan_shards,
    subblock,
    weight_rows,
    weight_rows_of,
    width_refusal,
)
from ops.programs.conv2d.parallel_config import BLOCK, HEIGHT, WIDTH, input_parallel_config, output_parallel_config
from ops.programs.conv2d.weights import WeightsLayout, prepare_weights

GRID = load_spec("wormhole_n150").grid
MANY_CHANNELS = st.integers(1, 2000)
SMALL_GRID = replace(GRID, cols=3, rows=2)


def partition(scheme, grid, *, rows, in_channels, out_channels, alignment):
    config = input_parallel_config(
        scheme,
        grid,
        rows=rows,
        in_channels=in_channels,
        out_channels=out_channels,
        alignment=alignment,
        act_block_h_tiles=1,
        orientation=ShardOrientation.ROW_MAJOR,
        matmul=False,
    )
    return config, output_parallel_config(config, grid, out_channels=out_channels, matmul=False)


@st.composite
def sharded(draw, grid=GRID, channels=MANY_CHANNELS):
    """Cores, sizes and shards of a problem."""
    scheme = draw(st.sampled_from([HEIGHT, BLOCK, WIDTH]))
    sizes = {
        "in_rows": draw(st.integers(1, 3000)),
        "in_channels": draw(channels),
        "out_rows": draw(st.integers(1, 9000)),
        "out_channels": draw(channels),
    }
    alignment = 32 if scheme is WIDTH else draw(st.sampled_from([8, 16, 32]))
    config, out_config = partition(
        scheme,
        grid,
        rows=sizes["out_rows"],
        in_channels=sizes["in_channels"],
        out_channels=sizes["out_channels"],
        alignment=alignment,
    )
    row_major = draw(st.booleans())
    shards = plan_shards(config, out_config, **sizes, alignment=alignment, row_major=row_major)
    return config, out_config, sizes, shards, alignment, row_major


@given(sharded())
def test_shards_cover_everything_in_whole_tiles(drawn):
    config, out_config, sizes, shards, alignment, row_major = drawn
    assert shards.in_rows * config.nhw_cores >= sizes["in_rows"]
    assert shards.out_rows * out_config.nhw_cores >= sizes["out_rows"]
    assert (shards.in_channels, shards.out_channels) == (
        shards.in_width * config.channel_cores,
        shards.out_width * out_config.channel_cores,
    )
    assert 0 <= shards.in_channels - sizes["in_channels"] < config.channel_cores * alignment
    assert 0 <= shards.out_channels - sizes["out_channels"] < out_config.channel_cores * 32
    assert shards.in_width % alignment == shards.out_width % 32 == 0
    if config.scheme is WIDTH:
        assert shards.out_rows == sizes["out_rows"]
        assert shards.in_rows == (sizes["in_rows"] if row_major else round_up(sizes["in_rows"], 32))
    else:
        assert shards.in_rows % 32 == shards.out_rows % 32 == 0
        assert (out_config.nhw_cores - 1) * shards.out_rows < sizes["out_rows"]


@given(height=st.integers(1, 64), width=st.integers(1, 64), dst=st.sampled_from([4, 8]))
def test_subblock_divides_the_block_and_fits_dst(height, width, dst):
    h, w = subblock(height, width, dst)
    assert h * w <= dst
    assert height % h == width % w == 0
    assert h == 1 or w == width
    earlier = SUBBLOCKS[: SUBBLOCKS.index((h, w))]
    assert not any(eh * ew <= dst and height % eh == width % ew == 0 and (eh == 1 or ew == width) for eh, ew in earlier)


def test_subblocks_by_hand():
    """Wide blocks take rows of tiles, full-width ones rectangles, (2, 4) before (4, 2) before (1, 8)."""
    assert [subblock(8, w, 8) for w in (1, 2, 3, 4, 8, 14)] == [(8, 1), (4, 2), (2, 3), (2, 4), (1, 8), (1, 7)]
    assert [subblock(8, w, 4) for w in (1, 2, 3, 4, 8)] == [(4, 1), (2, 2), (1, 3), (1, 4), (1, 4)]
    assert subblock(7, 11, 8) == (1, 1)


def test_block_height():
    """The whole share, or its largest divisor that the override allows; a part tile of a WIDTH share does not count."""
    assert act_block_height(256, 0) == 8
    assert act_block_height(65, 0) == 3
    assert [act_block_height(256, rows) for rows in (32, 64, 96, 256, 512)] == [1, 2, 2, 8, 8]
    assert act_block_height(224, 128) == 1
    assert act_block_height(65, 64) == 2


def planned(config, shards, kernel, **choices):
    defaults = {"act_block_h_override": 0, "act_block_w_div": 1, "full_inner_dim": False, "dst_tiles": 8}
    return plan_blocks(config, shards, kernel=kernel, **defaults | choices)


@given(sharded(), st.tuples(st.integers(1, 5), st.integers(1, 5)), st.integers(0, 10))
def test_blocks_cut_a_share_evenly(drawn, kernel, override):
    config, _, _, shards, _, _ = drawn
    blocks = planned(config, shards, kernel, act_block_h_override=32 * override)
    if config.scheme is not WIDTH:
        assert shards.out_row_tiles % blocks.act_h_tiles == 0
    assert override == 0 or blocks.act_h_tiles <= override
    assert shards.out_col_tiles % blocks.subblock_w_tiles == 0
    assert blocks.act_h_tiles % blocks.subblock_h_tiles == 0
    columns = blocks.k_blocks * blocks.act_w_tiles * 32
    assert columns == weight_rows(config.scheme, blocks, shards, kernel)
    used = shards.in_channels * kernel[0] * kernel[1]
    assert 0 <= columns - used < 32 * blocks.k_blocks


@st.composite
def walks(draw):
    """Cores, shards, blocks, kernel and choices of a small convolution on six cores."""
    config, _, sizes, shards, _, _ = draw(sharded(SMALL_GRID, st.integers(1, 200)))
    kernel = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    choices = {"act_block_w_div": 1, "full_inner_dim": False}
    if config.scheme is WIDTH:
        tiles = shards.in_width // 32
        choices["act_block_w_div"] = draw(st.sampled_from([d for d in range(1, tiles + 1) if tiles % d == 0]))
    if config.scheme is BLOCK and shards.in_width * kernel[1] % 32 == 0:
        choices["full_inner_dim"] = draw(st.booleans())
    return config, sizes["in_channels"], shards, planned(config, shards, kernel, **choices), kernel, choices


def order_of(config, shards, blocks, kernel, choices):
    return k_block_order(config, shards, blocks, kernel, full_inner_dim=choices["full_inner_dim"])


def columns_of(block, kernel):
    """(kernel row, kernel column, channel) of every column of a K block, and the weight row it meets."""
    for tap, (row, column) in enumerate((r, c) for r in block.kernel_rows for c in range(kernel[1])):
        for channel in range(block.channels):
            met = block.weight_row + tap * block.weight_stride + channel
            yield (row, column, block.first_channel + channel), met


@given(walks())
def test_k_blocks_meet_every_weight_once_and_where_it_was_prepared(walk):
    config, in_channels, shards, blocks, kernel, choices = walk
    order = order_of(config, shards, blocks, kernel, choices)
    assert len(order) == blocks.k_blocks
    met = [pair for block in order for pair in columns_of(block, kernel)]
    places = [place for place, _ in met]
    assert len(set(places)) == len(places) == kernel[0] * kernel[1] * shards.in_channels
    layout = WeightsLayout(
        in_channels=in_channels,
        out_channels=1,
        kernel=kernel,
        mirror=False,
        scheme=config.scheme,
        padded_in_channels=shards.in_channels,
        padded_out_channels=32,
        channel_shards=config.channel_cores,
        k_block_rows=blocks.act_w_tiles * 32,
        data_format=FLOAT32,
    )
    raw = np.arange(1, in_channels * kernel[0] * kernel[1] + 1, dtype=np.float32).reshape(in_channels, 1, *kernel)
    matrix = prepare_weights(raw, layout)[:, 0]
    assert len(matrix) == weight_rows(config.scheme, blocks, shards, kernel)
    for (row, column, channel), weight_row in met:
        assert matrix[weight_row] == (raw[channel, 0, row, column] if channel < in_channels else 0)


def example(scheme, in_channels, kernel, **choices):
    config, out_config = partition(scheme, GRID, rows=64, in_channels=in_channels, out_channels=32, alignment=32)
    shards = plan_shards(
        config,
        out_config,
        in_rows=64,
        in_channels=in_channels,
        out_rows=64,
        out_channels=32,
        alignment=32,
        row_major=True,
    )
    choices = {"act_block_w_div": 1, "full_inner_dim": False} | choices
    return config, shards, planned(config, shards, kernel, **choices), choices


def walk_of(scheme, in_channels, kernel, **choices):
    """(first kernel row, kernel rows, first channel, weight row) of every K block."""
    config, shards, blocks, choices = example(scheme, in_channels, kernel, **choices)
    order = order_of(config, shards, blocks, kernel, choices)
    return [(b.kernel_rows.start, len(b.kernel_rows), b.first_channel, b.weight_row) for b in order]


def test_order_of_k_blocks():
    """BLOCK goes through all channel cores before the next kernel row, WIDTH before the next part of a shard."""
    assert walk_of(HEIGHT, 64, (3, 2)) == [(0, 1, 0, 0), (1, 1, 0, 128), (2, 1, 0, 256)]
    assert walk_of(BLOCK, 64, (2, 3)) == [(0, 1, 0, 0), (0, 1, 32, 192), (1, 1, 0, 96), (1, 1, 32, 288)]
    assert walk_of(BLOCK, 64, (2, 3), full_inner_dim=True) == [(0, 2, 0, 0), (0, 2, 32, 192)]
    assert walk_of(WIDTH, 64, (2, 3)) == [(0, 2, 0, 0), (0, 2, 32, 32)]
    walk = walk_of(WIDTH, 4096, (1, 3), act_block_w_div=2)
    assert walk[:2] == [(0, 1, 0, 0), (0, 1, 64, 64)]
    assert walk[64:66] == [(0, 1, 32, 32), (0, 1, 96, 96)]
    assert len(walk) == 128


def test_a_k_block_is_padded_to_tiles():
    """8 channels under 3 kernel columns are 24 columns of one tile."""
    config, out_config = partition(HEIGHT, GRID, rows=64, in_channels=8, out_channels=32, alignment=8)
    shards = plan_shards(
        config, out_config, in_rows=64, in_channels=8, out_rows=64, out_channels=32, alignment=8, row_major=True
    )
    assert planned(config, shards, (3, 3)).act_w_tiles == div_up(24, 32)


def test_parts_that_are_no_whole_tiles_meet_the_wrong_weights():
    """Three tiles of channels on a core, four taps, two parts of 48 channels.

    Of the six tiles of a block the reader fills four, one for each tap; the next part begins one tile further on.
    """
    config, shards, blocks, choices = example(WIDTH, 64 * 96, (2, 2), act_block_w_div=2)
    order = order_of(config, shards, blocks, (2, 2), choices)
    assert (blocks.act_w_tiles, len(order)) == (6, 128)
    part, core = 1, 3
    block = order[part * 64 + core]
    assert (block.first_channel, block.channels) == (3 * 96 + 48, 48)
    first_tile = core * 2 + part
    expected = [32 * first_tile + tap * 64 * 96 + row for tap in range(4) for row in range(32)] + [-1] * 64
    assert weight_rows_of([block], [np.arange(192)], (2, 2)).tolist() == expected


def test_parts_may_be_more_than_asked_for():
    """Nine tiles in five parts are nine of one tile, below the 32 channels of a tap: no weights are read."""
    config, shards, blocks, choices = example(WIDTH, 128, (3, 3), act_block_w_div=5)
    assert (blocks.act_w_tiles, blocks.k_blocks) == (1, 36)
    assert order_of(config, shards, blocks, (3, 3), choices) == ()


@pytest.mark.parametrize(
    ("in_channels", "divisor", "blocks"),
    [(128, 2, 9), (128, 4, 18), (512, 2, 36)],
)
def test_k_blocks_that_can_not_be_dealt_are_refused(in_channels, divisor, blocks):
    """A tile of channels under nine taps is nine tiles, which two parts do not divide; recorded runs."""
    config, shards, planned_blocks, _ = example(WIDTH, in_channels, (3, 3), act_block_w_div=divisor)
    why = width_refusal(config, shards, planned_blocks, (3, 3))
    cores = in_channels // 32
    assert why.startswith(
        f"Number of Act Blocks along the Width {blocks} should be divisible by the number of cores {cores}\n"
    )


def test_k_blocks_that_do_not_divide_a_window_are_refused():
    """32 channels under nine taps are nine tiles, of which a half is four; seen of the real library's conv2d."""
    config, shards, blocks, _ = example(WIDTH, 32, (3, 3), act_block_w_div=2)
    why = width_refusal(config, shards, blocks, (3, 3))
    assert why.startswith("The width of tensor a needs to match the height of tensor b\n")


def test_weights_of_other_rows_than_a_width_program_reads_are_refused():
    config, shards, blocks, _ = example(WIDTH, 32, (3, 3))
    rows = blocks.k_blocks * blocks.act_w_tiles * 32
    assert width_refusal(config, shards, blocks, (3, 3), prepared_rows=rows) is None
    why = width_refusal(config, shards, blocks, (3, 3), prepared_rows=rows + 32)
    assert why.splitlines()[0] == "The width of tensor a needs to match the height of tensor b"


def test_block_heights_that_do_not_divide_a_width_shard_are_refused():
    config, out_config = partition(WIDTH, GRID, rows=100, in_channels=64, out_channels=32, alignment=32)
    shards = plan_shards(
        config, out_config, in_rows=25, in_channels=64, out_rows=100, out_channels=32, alignment=32, row_major=True
    )
    blocks = planned(config, shards, (3, 3), act_block_h_override=96)
    why = width_refusal(config, shards, blocks, (3, 3))
    assert why.startswith("act_matrix_height_ntiles 4 should be divisible by act_block_h_ntiles 3\n")
    assert width_refusal(config, shards, planned(config, shards, (3, 3)), (3, 3)) is None
    height = partition(HEIGHT, GRID, rows=100, in_channels=64, out_channels=32, alignment=32)[0]
    assert width_refusal(height, shards, blocks, (3, 3)) is None


def test_k_blocks_narrower_than_a_tile_are_refused():
    shards = Shards(in_rows=32, in_width=32, out_rows=32, out_width=32, in_channels=32, out_channels=32)
    fields = {"channel_cores": 1, "full_inner_dim": False}
    assert k_block_tiles(WIDTH, shards, (1, 2), act_block_w_div=2, **fields) == 1
    with pytest.raises(DeviceError, match=r"^The width of tensor a needs to match the height of tensor b\nact_block_w"):
        k_block_tiles(WIDTH, shards, (1, 2), act_block_w_div=3, **fields)
