"""A convolution laid out: every row and channel is dealt, to as many cores as do not stay empty, in whole blocks."""

import pytest
from hypothesis import given, strategies as st

from device.errors import DeviceError
from device.memory.memory_config import ShardOrientation, TensorMemoryLayout
from device.spec.device_spec import load_spec
from device.spec.parts import GridSpec, TransferRate
from ops.programs.conv2d.op import weight_rows
from ops.programs.conv2d.partition import (
    BLOCK,
    HEIGHT,
    WIDTH,
    ConvOptions,
    act_block_height,
    channel_alignment,
    choose_cores,
    subblock,
    transfer_rate,
)
from tests.ops.programs.conv2d.convolutions import SPEC, column, conv_problem, doubled, partitioned
from tests.shards import box

P150 = load_spec("blackhole_p150")
ROW_MAJOR, COL_MAJOR = ShardOrientation
counts = st.integers(1, 3000)


@given(st.data())
def test_rows_and_channels_are_dealt(data):
    """Every row and channel belongs to one core, no core is idle, and shards hold whole blocks of whole tiles."""
    scheme, kernel = data.draw(st.sampled_from([HEIGHT, BLOCK, WIDTH])), (data.draw(counts) % 5 + 1, 3)
    problem = conv_problem(
        column(data.draw(counts), kernel), (data.draw(counts), data.draw(counts)), row_major=data.draw(st.booleans())
    )
    matmul, height = data.draw(st.booleans()), data.draw(st.integers(0, 8))
    alignment = 32 if scheme is WIDTH else data.draw(st.sampled_from([8, 16, 32]))
    layout = partitioned(
        problem, scheme, P150, alignment=alignment, matmul=matmul, act_block_h_override=32 * height,
        transpose_shards=data.draw(st.booleans()),
    )  # fmt: skip
    config, out, shards, blocks = layout.config, layout.out_config, layout.shards, layout.blocks
    nhw, in_cores, out_cores = config.nhw_cores, config.channel_cores, out.channel_cores
    for side in (config, out):
        assert (side.scheme, side.nhw_cores, side.orientation) == (scheme, nhw, config.orientation)
        assert side.cores.num_cores() == side.nhw_cores * side.channel_cores
    assert (shards.in_channels, shards.out_channels) == (shards.in_width * in_cores, shards.out_width * out_cores)
    for total, cores, share, unit in (
        (problem.in_channels, in_cores, shards.in_width, alignment),
        (problem.out_channels, out_cores, shards.out_width, 32),
        (problem.out_rows, nhw, shards.out_rows, 1 if scheme is WIDTH else 32),
    ):
        assert total <= cores * share < total + cores * unit
        assert share % unit == 0
        assert matmul or (cores - 1) * share < total
    if scheme is not WIDTH:
        assert shards.out_row_tiles % blocks.act_h_tiles == 0
    assert height == 0 or blocks.act_h_tiles <= height
    assert shards.out_col_tiles % blocks.subblock_w_tiles == blocks.act_h_tiles % blocks.subblock_h_tiles == 0
    columns = blocks.k_blocks * blocks.act_w_tiles * 32
    assert columns == weight_rows(layout, kernel)
    assert 0 <= columns - shards.in_channels * kernel[0] * kernel[1] < 32 * blocks.k_blocks


@pytest.mark.parametrize(
    ("scheme", "facts", "expected"),
    [
        (TensorMemoryLayout.INTERLEAVED, {}, 32),
        (TensorMemoryLayout.INTERLEAVED, {"row_major": True}, 8),
        (TensorMemoryLayout.INTERLEAVED, {"sliced": True}, 8),
        (TensorMemoryLayout.INTERLEAVED, {"row_major": True, "matmul": True}, 32),
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


@pytest.mark.parametrize(
    ("scheme", "changes", "nhw", "channels", "cores"),
    [
        # 1024 rows are 32 tiles, 256 channels 8 tiles; the grid has 13 columns and 10 rows.
        (HEIGHT, {}, 32, 1, "{[0-0 - 12-1], [0-2 - 5-2]}"),
        (WIDTH, {}, 1, 8, "{[0-0 - 7-0]}"),
        # Rows go down the grid and channels across it; COL_MAJOR the other way round, with the other limits.
        (BLOCK, {}, 8, 11, "{[0-0 - 10-7]}"),
        (BLOCK, {"transpose_shards": True}, 11, 8, "{[0-0 - 10-7]}"),
        # A matmul deals whole tiles of both channels.
        (BLOCK, {"matmul": True}, 8, 8, "{[0-0 - 7-7]}"),
        (BLOCK, {"matmul": True, "outs": 96}, 8, 1, "{[0-0 - 0-7]}"),
        (WIDTH, {"matmul": True, "ins": 224}, 1, 7, "{[0-0 - 6-0]}"),
        # Higher blocks leave fewer cores.
        (HEIGHT, {"act_block_h_override": 96}, 11, 1, "{[0-0 - 10-0]}"),
        (BLOCK, {"act_block_h_override": 160}, 7, 11, "{[0-0 - 10-6]}"),
        (BLOCK, {"core_grid": box(2, 3)}, 3, 2, "{[0-0 - 1-2]}"),
        (BLOCK, {"core_grid": box(2, 3), "transpose_shards": True}, 2, 3, "{[0-0 - 1-2]}"),
        (HEIGHT, {"core_grid": box(2, 3), "transpose_shards": True}, 6, 1, "{[0-0 - 1-2]}"),
    ],
)
def test_cores_of_the_input(scheme, changes, nhw, channels, cores):
    options = {"alignment": 32 if changes.get("matmul") else 8, "matmul": False, "ins": 256, "outs": 256} | changes
    problem = conv_problem(column(1024), (options.pop("ins"), options.pop("outs")))
    how = {name: options.pop(name) for name in ("alignment", "matmul")}
    config = choose_cores(problem, ConvOptions(**options), P150, scheme, **how)
    assert (config.nhw_cores, config.channel_cores, str(config.cores)) == (nhw, channels, cores)
    down = scheme is BLOCK and options.get("transpose_shards")
    assert config.orientation is (COL_MAJOR if down else ROW_MAJOR)


@pytest.mark.parametrize(("down", "channels"), [(False, 13), (True, 7)])
def test_cores_of_the_output(down, channels):
    """13 tiles of output channels on a grid of 13 columns and 10 rows; the caller may give a grid for BLOCK."""
    problem = conv_problem(column(320), (64, 416))
    layout = partitioned(problem, BLOCK, P150, alignment=32, transpose_shards=down)
    assert layout.out_config.channel_cores == channels
    grid = GridSpec(cols=10, rows=4) if down else GridSpec(cols=4, rows=10)
    given = partitioned(problem, BLOCK, P150, alignment=32, transpose_shards=down, output_grid=grid)
    assert given.out_config.channel_cores == 4
    with pytest.raises(DeviceError, match=r"^NHW cores must match .*\n.*it has 9 cores .* lies on 10;"):
        partitioned(problem, BLOCK, P150, transpose_shards=down, output_grid=GridSpec(cols=9, rows=9))
    with pytest.raises(DeviceError, match=r"^Output sharding config override is only supported for BLOCK_SHARDED"):
        partitioned(problem, HEIGHT, P150, output_grid=grid)


def test_blocks_by_hand():
    """Wide blocks take rows of tiles, full-width ones rectangles, (2, 4) before (4, 2) before (1, 8).

    A block is as high as the whole share, or as its largest divisor that the override allows; a part tile of a WIDTH
    share does not count.
    """
    assert [subblock(8, w, 8) for w in (1, 2, 3, 4, 8, 14)] == [(8, 1), (4, 2), (2, 3), (2, 4), (1, 8), (1, 7)]
    assert [subblock(8, w, 4) for w in (1, 2, 3, 4, 8)] == [(4, 1), (2, 2), (1, 3), (1, 4), (1, 4)]
    assert [subblock(*block, 8) for block in ((7, 11), (2, 2), (3, 2), (6, 3), (4, 4))] == [
        (1, 1), (2, 2), (3, 2), (2, 3), (2, 4)]  # fmt: skip
    for tiles in range(1, 9):
        assert (subblock(tiles, 1, 8), subblock(1, tiles, 8)) == ((tiles, 1), (1, tiles))
    assert [act_block_height(256, rows) for rows in (0, 32, 64, 96, 256, 512)] == [8, 1, 2, 2, 8, 8]
    assert [act_block_height(224, 128), act_block_height(65, 64), act_block_height(65, 0)] == [1, 2, 3]
    large = conv_problem(doubled(64, 64))
    blocks = [partitioned(large, HEIGHT, fp32_dest=wide).blocks for wide in (False, True)]
    assert [(b.subblock_h_tiles, b.subblock_w_tiles) for b in blocks] == [(4, 2), (2, 2)]
    # 8 channels under 3 kernel columns are 24 columns of one tile.
    assert partitioned(conv_problem(column(64, (3, 3)), (8, 32)), HEIGHT).blocks.act_w_tiles == 1


def test_k_blocks_narrower_than_a_tile_are_refused():
    problem = conv_problem(column(32, (1, 2)), (32, 32))
    assert partitioned(problem, WIDTH, act_block_w_div=2).blocks.act_w_tiles == 1
    with pytest.raises(DeviceError, match=r"^The width of tensor a needs to match the height of tensor b\nact_block_w"):
        partitioned(problem, WIDTH, act_block_w_div=3)


def test_a_block_must_be_higher_than_a_row_of_the_image():
    """Two tiles of rows on a core, rows of the image of one tile, and of more than one."""
    wide = {HEIGHT: (16, 8), BLOCK: (24, 40)}
    for scheme, (width, height) in wide.items():
        partitioned(conv_problem(doubled(height * 16, width)), scheme, activation_reuse=True)
    message = r"act block h \(2\) to be bigger than output image width in tiles \(2\) for"
    with pytest.raises(DeviceError, match=message):
        partitioned(conv_problem(doubled(40, 20)), HEIGHT, activation_reuse=True, act_block_h_override=64)


def splits(scheme=HEIGHT, *, height=2, outs=1, dilation=1, matmul=False, forced=None, spec=SPEC, **formats):
    """Whether two readers share blocks of so many tile rows under 3 taps of 32 channels."""
    rows = {HEIGHT: 64, BLOCK: 8, WIDTH: 1}[scheme] * 32 * height
    problem = conv_problem(column(rows, (1, 3), dilation), (32, 32 * outs), **formats)
    return partitioned(problem, scheme, spec, alignment=32, matmul=matmul, force_split_reader=forced).split_reader


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        *(({"scheme": WIDTH, "forced": forced}, False) for forced in (None, True, False)),
        *(({"scheme": scheme, "height": 1, "forced": True}, False) for scheme in (HEIGHT, BLOCK)),
        ({"scheme": BLOCK}, True),
        ({"scheme": BLOCK, "forced": False}, False),
        ({"scheme": BLOCK, "matmul": True, "forced": True}, False),
        ({"forced": True}, True),
        ({"height": 8, "forced": False}, False),
    ],
)
def test_what_can_be_split_and_who_says_so(changes, expected):
    assert splits(**changes) is expected


@pytest.mark.parametrize("clock", [1.0, 3.0])
@pytest.mark.parametrize("height", [2, 3, 8])
def test_height_splits_when_the_readers_rates_say_so(height, clock):
    """Activations in bursts of a kernel row; 61 cycles to tilize a tile (rates of Wormhole, bfloat16)."""
    local = 0.868 + (27.84 - 0.868) * (192 - 16) / (1024 - 16)
    act, tilized, decided = clock * 2 * height * 32 * 32 * 3 / local, 61 * 3 * height, []
    for outs in range(1, 40):
        size = outs * 3 * 2048
        multicast = 0.318 + (25.345 - 0.318) * (min(size, 65536) - 16) / (65536 - 16)
        weights = clock * size * (1 / 28.411 + 1 / multicast)
        decided.append(act / 2 + max(weights, tilized) < max(act + tilized, weights))
    spec = SPEC.replace(reader_clock_ghz=clock)
    assert [splits(height=height, outs=outs, spec=spec) for outs in range(1, 40)] == decided
    assert len(set(decided)) == (2 if height == 8 else 1)


def test_rates_are_linear_between_the_floor_and_the_peak():
    rate = TransferRate(floor_bytes_per_ns=1.0, peak_bytes_per_ns=13.0, peak_at_bytes=64)
    assert [transfer_rate(rate, size) for size in (1, 16, 32, 48, 64, 1000)] == [1.0, 1.0, 5.0, 9.0, 13.0, 13.0]
