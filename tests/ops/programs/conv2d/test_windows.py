"""Which outputs are windows over an image."""

import numpy as np
import pytest

from device.matrix_unit import fast as window_runs
from device.numbers.formats import BFLOAT16
from ops.programs.conv2d.blocks import KBlock
from ops.programs.conv2d.fused import suits
from ops.programs.conv2d.gather import Image, strips
from ops.programs.conv2d.operands import windows_of
from ops.window import PaddedAxis, output_phases


def found(channels, *, kernel_rows=1, of_input=None, taps=3, spacing=1):
    """The only strip of rows of six pixels under three rows of taps, each block of so many of these rows."""
    rows, columns = (
        PaddedAxis(input_length=6, before=1, after=1, kernel=length, dilation=1, stride=1) for length in (3, taps)
    )
    if spacing > 1:
        columns = PaddedAxis(input_length=6, before=1, after=1, kernel=taps, dilation=spacing, stride=1)
    blocks = tuple(
        KBlock(kernel_rows=range(row, row + kernel_rows), first_channel=0, channels=channels,
               weight_row=row * taps * channels, weight_stride=channels, weight_channels=channels)
        for row in range(0, 3, kernel_rows)
    )  # fmt: skip
    (strip,) = strips(blocks, output_phases(rows)[0], columns, (1, 1))
    depth = sum(len(block.columns) for block in strip.blocks)
    return windows_of(strip, [np.arange(depth)], of_input or channels)


def test_blocks_of_one_kernel_row_meet_pixels_side_by_side():
    windows = found(32)
    assert windows.taps == 3
    assert [tuple(block) for block in windows.blocks] == [(row, 0, 0, 32) for row in range(3)]
    assert windows.rows.tolist() == [list(range(288))]


def test_one_tap_is_a_window_of_one_pixel():
    windows = found(16, taps=1)
    assert windows.taps == 1
    assert [tuple(block) for block in windows.blocks] == [(row, 0, 0, 16) for row in range(3)]


def test_windows_of_one_tap_suit_pairs_only(monkeypatch):
    """BLAS multiplies those that are gathered as fast."""
    pixels, weights = np.zeros((1, 3, 8, 16), BFLOAT16.storage), np.zeros((48, 32), BFLOAT16.storage)
    for multiplies in (False, True):
        monkeypatch.setattr(window_runs, "multiplies_pairs", lambda multiplies=multiplies: multiplies)
        assert suits(found(16), Image(pixels, 1, 1), weights)
        assert suits(found(16, taps=1), Image(pixels, 1, 1), weights) is multiplies
        assert not suits(found(16, taps=1), Image(pixels.astype(np.float32), 1, 1), weights)
        assert not suits(found(16, taps=1), Image(pixels[..., :15], 1, 1), weights)


def test_channels_that_the_input_has_not_are_left_out():
    """Of 16 channels three and one of zeros, under each of three taps, and nothing of what fills 48 columns up."""
    windows = found(16, of_input=3)
    assert [block.channels for block in windows.blocks] == [4, 4, 4]
    assert windows.rows[0, :12].tolist() == [0, 1, 2, 3, 16, 17, 18, 19, 32, 33, 34, 35]
    assert windows.rows[0, 12] == 48


def test_sums_that_are_split_have_all_their_terms():
    """480 products are summed in halves: without the last channels the halves would be others."""
    assert [block.channels for block in found(160, of_input=150).blocks] == [160] * 3
    assert found(148).blocks[0].channels == 148
    assert found(152) is None  # 456 products in 464 columns


@pytest.mark.parametrize("change", [{"kernel_rows": 3}, {"spacing": 2}], ids=str)
def test_others_are_gathered(change):
    assert found(16, **change) is None
