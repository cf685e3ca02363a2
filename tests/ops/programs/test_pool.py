"""Pools: what they compute, their buffers, what they take."""

from dataclasses import replace

import numpy as np
import pytest

from device.cores import first_cores
from device.matrix_unit.arithmetic import EXACT, FAST
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, UINT16
from device.time.stages import Stage
from ops.builder import PlanTensor
from ops.op_models import load_spec
from ops.programs.pool import Pool, PoolSizes, pool_buffers
from ops.window import PaddedAxis, PaddedInput
from tests.build import busy, op_cycles, op_values

CORES = first_cores(4, 8, 8)


def sizes(taps=4, channels=40, out_shard=(9, 64), tiled=False):
    data_format = BFLOAT8_B if tiled else BFLOAT16
    return PoolSizes(taps=taps, channels=channels, out_shard=out_shard, data_format=data_format, tiled=tiled)


@pytest.mark.parametrize(
    ("taps", "channels", "window_bytes"),
    [
        (4, 40, 2048),  # two tiles across, four rows: 256 elements, a tile's worth at least
        (16, 256, 8192),  # 8 tiles across, 16 rows
        (17, 64, 4096),  # whole tiles of 32 rows
        (9, 512, 6144),  # 16 tiles across are reduced 8 at a time: 9 rows of 256, rounded up to tiles
    ],
)
def test_windows_are_whole_tiles(taps, channels, window_bytes):
    assert sizes(taps, channels).window_bytes == window_bytes


def test_all_that_is_no_view_of_an_input():
    """Scalars (two tiles), the least number (one), four windows, and 9 x 64 results of 2 bytes."""
    assert sizes().l1_bytes == 3 * 2048 + 4 * 2048 + 1152


def test_buffers_in_order_of_allocation():
    lists = [PlanTensor("lists", TensorSpec((4, 19), UINT16, Layout.ROW_MAJOR))]
    buffers = pool_buffers(
        sizes(out_shard=(32, 64), tiled=True), halo="halo", halo_bytes=800, lists=lists, outputs=["output"], cores=CORES
    )
    assert [(buffer.name, buffer.size_bytes, buffer.view_of) for buffer in buffers] == [
        ("scalar", 4096, None),
        ("least", 2048, None),
        ("sticks", 800, "halo"),
        ("reader_indices", 20, "lists"),  # half a list, in words of 4 bytes
        ("windows_0", 4096, None),
        ("windows_1", 4096, None),
        ("untilized", 4096, None),
        ("output", 2176, "output"),
    ]


SPEC = load_spec("wormhole_n150").replace(
    data_movement_processors=2,
    noc_link_share=1.0,
    compute_phase_cycles=16,
    compute_unpack_bytes_per_cycle=64,
    compute_unpack_tile_cycles=10,
    compute_pack_bytes_per_cycle=64,
    compute_costs_window_tile_cycles=20,
    compute_costs_window_row_cycles=2,
    compute_costs_subblock_cycles=10,
    noc_interface_cycles=100,
    transfer_costs_stateful_issue_cycles=20,
    movement_costs_start_cycles=500,
)
REDUCED = 20 + 4 * 2  # a tile of channels of one window with four taps; its products take 16 cycles meanwhile


def pool(taps=(2, 2), channels=64, spacing=1, **changes):
    """Nine outputs on a core."""
    rows, columns = (
        PaddedAxis(input_length=16, before=0, after=0, kernel=count, dilation=spacing, stride=1) for count in taps
    )
    usual = {"channel_cores": 1, "core_outputs": 9, "in_format": BFLOAT16, "data_format": BFLOAT16, "tiled": False}
    return Pool(frame=PaddedInput(batch=1, rows=rows, columns=columns), channels=channels, **(usual | changes))


def timed(op, spec=SPEC):
    return op_cycles(op, "1x1x64x64 height/32x64/2", spec=spec)


@pytest.mark.parametrize(("processors", "read", "windows"), [(2, 202, (5, 4)), (1, 404, (9, 0))])
def test_readers_take_turns(processors, read, windows):
    """16 taps apart are 16 bursts of 20 cycles, the last of them answered: two readers do a window in half of that."""
    result = timed(pool((4, 4), spacing=2), SPEC.replace(data_movement_processors=processors))
    assert result.cycles == 500 + (15 * 20 + 100 + 4) + 10 + 2 * (20 + 16 * 2) + 2 + 8 * read
    gathered = (busy(result).get(stage, 0) for stage in (Stage.READER, Stage.SECOND_READER))
    assert tuple(gathered) == tuple(404 * count for count in windows)


@pytest.mark.parametrize(
    ("changes", "stage", "cycles"),
    [
        # 65 channels on two cores: 33 of each, two tiles; sticks of 66 bytes
        ({"channels": 65, "channel_cores": 2}, Stage.MATH, 9 * (10 + 2 * REDUCED)),
        ({"channels": 64, "channel_cores": 2}, Stage.MATH, 9 * (10 + REDUCED)),
        # sticks of 512 bytes: two in 32 cycles; those of 9 tiles, 576 bytes in 18, alone in the 20 of a transfer
        ({"channels": 256}, Stage.READER, 5 * (32 + 100 + 32)),
        ({"channels": 288}, Stage.READER, 5 * (3 * 20 + 100 + 18)),
        # of each tile of 1088 bytes, a window fills one row of 32
        ({"tiled": True, "data_format": BFLOAT8_B}, Stage.PACK, 9 * (2 + 2 * 1088 / 64 / 32)),
    ],
)
def test_stages_by_hand(changes, stage, cycles):
    assert busy(timed(pool(**changes)))[stage] == pytest.approx(cycles)


def axis(length, taps, step, before=0, spacing=1):
    return PaddedAxis(input_length=length, before=before, after=before, kernel=taps, dilation=spacing, stride=step)


def op(rows, columns, channels=1, **changes):
    pool_op = pool(channels=channels, core_outputs=1, **changes)
    return replace(pool_op, frame=PaddedInput(batch=1, rows=rows, columns=columns))


def test_rows_and_columns_that_fill_shards_are_no_pixels():
    """Two images of 2 x 1 pixels of one channel, in sticks of three numbers, and a stick that fills a shard."""
    pool_op = op(axis(2, 2, 1), axis(1, 1, 1))
    pool_op = replace(pool_op, frame=replace(pool_op.frame, batch=2))
    sticks = np.float32([[1, 9, 9], [2, 9, 9], [4, 9, 9], [3, 9, 9], [8, 8, 8]]).reshape(1, 1, 5, 3)
    assert op_values(pool_op, sticks).tolist() == [[[[2], [4]]]]


def test_channels_of_a_block_float_share_an_exponent():
    """Beside 64, seven bits leave 1 of 1.25; of 17 channels the last has neighbors of its own."""
    pool_op = replace(op(axis(1, 1, 1), axis(1, 1, 1), channels=17), data_format=BFLOAT8_B, tiled=True)
    sticks = np.float32([64, *[1.25] * 16]).reshape(1, 1, 1, 17)
    assert op_values(pool_op, sticks).ravel().tolist() == [64, *[1] * 15, 1.25]


@pytest.mark.parametrize("data_format", [BFLOAT16, BFLOAT8_B])
@pytest.mark.parametrize("arithmetic", [EXACT, FAST], ids=["exact", "fast"])
def test_bands_change_nothing(monkeypatch, data_format, arithmetic):
    """Two images of 13 x 6 pixels with rows of windows that overlap, begin in the padding, and leave a row over."""
    pool_op = op(axis(13, 3, 2, before=1), axis(6, 2, 2, before=1, spacing=2), channels=3)
    pool_op = replace(pool_op, frame=replace(pool_op.frame, batch=2), data_format=data_format)
    sticks = np.random.default_rng(1).standard_normal((1, 1, 2 * 13 * 6, 3), dtype=np.float32).astype(BFLOAT16.storage)
    whole = op_values(pool_op, sticks, arithmetic=arithmetic)
    assert whole.shape == (1, 1, 2 * pool_op.frame.rows.outputs * pool_op.frame.columns.outputs, 3)
    for numbers in (1, 100):
        monkeypatch.setattr("device.host.threads.PART_ELEMENTS", numbers)
        assert op_values(pool_op, sticks, arithmetic=arithmetic).tobytes() == whole.tobytes()
