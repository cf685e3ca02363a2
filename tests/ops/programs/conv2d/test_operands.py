"""Which rows of a prepared matrix are multiplied, and how."""

import numpy as np

from ops.programs.conv2d.gather import rows_in_place, weighted_strips
from ops.programs.conv2d.op import KBlock
from ops.window import transposed_axis


def test_strips_of_equal_geometry_are_found_once():
    """A 2x2 kernel of stride 2: each kernel row is a strip, whose two columns stand side by side."""

    def found(length, held=128):
        axis = transposed_axis(input_length=length, kernel=2, stride=2, padding=(0, 0), output_padding=0, dilation=1)
        blocks = tuple(
            KBlock(kernel_rows=range(row, row + 1), first_channel=0, channels=32, weight_row=64 * row,
                   weight_stride=32, weight_channels=32)
            for row in range(2)
        )  # fmt: skip
        return weighted_strips(blocks, axis, axis, (0, 0), held)

    strips = found(5)
    assert found(5) is strips
    assert found(6) is not strips
    assert [(strip.strip.down.axis.output_offset, len(strip.strip.across)) for strip in strips] == [(0, 2), (1, 2)]
    assert [strip.rows for strip in strips] == [(slice(96, 128), slice(64, 96)), (slice(32, 64), slice(0, 32))]
    assert [type(rows) for rows in found(5, 100)[0].rows] == [np.ndarray, slice]


def test_rows_that_follow_each_other_are_a_slice():
    rows = np.array
    assert rows_in_place(rows([2, 3, 4]), 5) == slice(2, 5)
    for others in ([2, 3, 4], [3, 2], [-1, 0], []):
        assert rows_in_place(rows(others, int), 4).tolist() == others
