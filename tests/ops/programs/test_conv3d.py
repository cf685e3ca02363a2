"""Convolutions of volumes: what they compute, tiles of a block, buffers."""

from dataclasses import replace

import numpy as np
import pytest

from device.cores import first_cores
from device.matrix_unit.arithmetic import EXACT, FAST
from device.numbers.formats import BFLOAT16, FLOAT32
from ops.programs.conv3d import Conv3d, conv3d_buffers
from tests.build import op_values

OP = Conv3d(
    shape=(1, 2, 3, 3, 32), out_sides=(1, 2, 3), out_channels=1, kernel=(2, 2, 1), stride=(1, 1, 1),
    padding=(0, 0, 0), dilation=(1, 1, 1), replicate=False, in_block=16, out_block=32, out_positions=(1, 2, 3),
    in_format=BFLOAT16, data_format=BFLOAT16, bias=False, fidelity_phases=4, fp32_dest=True,
    cores=first_cores(4, 8, 8),
)  # fmt: skip


@pytest.mark.parametrize("arithmetic", [EXACT, FAST], ids=["exact", "fast"])
def test_sums_of_two_blocks_of_channels(arithmetic):
    """Each of 4 taps x 32 channels is 1; the weights of the first block are 1, and those of the second 2."""
    weights = np.repeat(np.float32([1, 2]), 4 * 16)[:, None].astype(BFLOAT16.storage)
    ones = np.ones(OP.shape, BFLOAT16.storage)
    result = op_values(OP, ones, weights, arithmetic=arithmetic)
    assert result.tolist() == np.full((1, 1, 2, 3, 1), 4 * 16 * 3).tolist()


def test_zeros_or_the_outermost_numbers_lie_around():
    op = replace(OP, kernel=(1, 1, 2), padding=(0, 0, 1), out_sides=(2, 3, 4))
    weights, ones = np.ones((64, 1), BFLOAT16.storage), np.ones(OP.shape, BFLOAT16.storage)
    assert op_values(op, ones, weights)[0, 0, 0, :, 0].tolist() == [32, 64, 64, 32]
    assert op_values(replace(op, replicate=True), ones, weights)[0, 0, 0, :, 0].tolist() == [64] * 4


def test_buffers_in_order_of_allocation():
    """Six patches of 64 elements; 2 tiles deep; float32 sums are added; 2 x 3 x 3 positions of 16 channels."""
    assert OP.tiles == (1, 2, 1)
    assert OP.partials_format == FLOAT32
    sizes = [(buffer.name, buffer.size_bytes) for buffer in conv3d_buffers(replace(OP, bias=True), 18)]
    assert sizes == [
        ("patches", 6 * 64 * 2), ("tiles", 2 * 2048), ("weights", 2 * 2048), ("sums", 4096), ("rows", 2048),
        ("added", 4096), ("answers", 2048), ("bias", 2048), ("positions", 18 * 32),
    ]  # fmt: skip


def test_sums_of_float32_in_a_wide_dst_are_held_once_more():
    """Recorded: behind the answers, as large as the additions."""
    sizes = [buffer.size_bytes for buffer in conv3d_buffers(replace(OP, in_format=FLOAT32, bias=True), 0)]
    assert sizes[5:] == [4096, 4096, 4096, 4096]
    assert len(conv3d_buffers(replace(OP, in_format=FLOAT32, bias=True, fp32_dest=False), 0)) == 8


@pytest.mark.parametrize(
    ("patches", "channels", "fp32_dest", "rows"),
    [
        (48, 32, False, 2),
        (128, 128, False, 2),
        (96, 96, False, 1),
        (96, 64, True, 1),
        (256, 32, True, 4),
        (64, 160, False, 1),
    ],
)
def test_rows_that_are_tilized_at_a_time_divide_all(patches, channels, fp32_dest, rows):
    op = replace(OP, out_positions=(1, 1, patches), out_block=channels, out_channels=channels, fp32_dest=fp32_dest)
    assert op.subblock_rows[0] == rows
