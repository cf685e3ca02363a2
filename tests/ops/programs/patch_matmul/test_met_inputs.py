"""What taps meet, against the definition and by hand."""

import pytest

from ops.programs.patch_matmul.direct import (
    Met,
    MetTogether,
    distances,
    met_by_outputs,
    met_by_taps,
    met_two_at_a_time,
)
from ops.window import axis_of_windows, convolution_axis, transposed_axis

# 3 inputs, 2 apart, kernel 3, 1 cut off: outputs 0 to 4; mirrored tap k of output o meets input (o + k - 1) / 2
TRANSPOSED = transposed_axis(input_length=3, kernel=3, stride=2, padding=(1, 1), output_padding=0, dilation=1)
# 5 inputs, windows 2 apart, kernel 3, a zero on either side: tap k of output o meets 2 o + k - 1
STRIDED = convolution_axis(input_length=5, kernel=3, stride=2, padding=(1, 1), dilation=1)


def test_taps_of_a_transposed_axis_by_hand():
    assert distances(TRANSPOSED) == (2, 1)
    assert met_by_taps(TRANSPOSED, 9) == [Met(0, 1, 0, 2), Met(1, 0, 0, 3), Met(2, 1, 1, 2)]


def test_taps_of_a_strided_axis_by_hand():
    assert distances(STRIDED) == (1, 2)
    assert met_by_taps(STRIDED, 9) == [Met(0, 1, 1, 2), Met(1, 0, 0, 3), Met(2, 0, 1, 2)]


def test_two_taps_at_a_time_by_hand():
    """Every other output of the transposed axis meets two inputs; windows at the ends of the strided one meet two."""
    assert met_two_at_a_time(TRANSPOSED) == [MetTogether(0, 3, 1, 0, -1, 0), MetTogether(1, 2, 0, 0, 2, 1)]
    assert met_two_at_a_time(STRIDED) == [
        MetTogether(0, 1, 1, 0, 2, 1),
        MetTogether(1, 1, 0, 1, 1, 2),
        MetTogether(1, 1, 2, 3, -1, 0),
        MetTogether(2, 1, 0, 3, 1, 4),
    ]


def test_outputs_are_cut_into_pieces():
    assert met_by_taps(TRANSPOSED, 2) == [Met(0, 1, 0, 2), Met(1, 0, 0, 2), Met(1, 4, 2, 1), Met(2, 1, 1, 2)]


def test_a_tap_that_meets_nothing_is_left_out():
    axis = axis_of_windows(input_length=2, outputs=2, kernel=3, start=0, dilation=2)
    assert met_by_taps(axis, 9) == [Met(0, 0, 0, 2)]


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("dilation", [1, 2, 3])
@pytest.mark.parametrize("transposed", [True, False])
def test_everything_that_meets_is_found_once(stride, dilation, transposed):
    if transposed:
        axis = transposed_axis(
            input_length=7, kernel=4, stride=stride, padding=(2, 1), output_padding=0, dilation=dilation
        )
    else:
        axis = convolution_axis(input_length=17, kernel=4, stride=stride, padding=(2, 1), dilation=dilation)
    wanted = []
    for output in range(axis.outputs):
        for tap in range(axis.kernel):
            lies = axis.start + output * axis.stride + tap * axis.dilation
            if lies % axis.input_dilation == 0 and 0 <= lies < axis.input_length * axis.input_dilation:
                wanted.append((output, tap, lies // axis.input_dilation))
    apart, step = distances(axis)
    found = [
        (one.output + n * apart, one.tap, one.source + n * step)
        for one in met_by_taps(axis, 3) for n in range(one.outputs)
    ]  # fmt: skip
    assert sorted(found) == wanted
    together = [
        (one.output + n * apart, tap, source + n * step)
        for one in met_two_at_a_time(axis) for n in range(one.outputs)
        for tap, source in ((one.tap, one.source), (one.other, one.other_source)) if tap >= 0
    ]  # fmt: skip
    assert sorted(together, key=lambda one: one[0]) == wanted  # taps of an output are in order as they are
    assert [tuple(row) for row in met_by_outputs([axis]).tolist()] == wanted


def test_several_axes_are_counted_through():
    """3 outputs and taps of 5 inputs inside: output 1, tap 2 and input 4 with output 2, tap 0 and input 1."""
    rows = met_by_outputs([STRIDED, TRANSPOSED]).tolist()
    assert [1 * 5 + 1, 2 * 3 + 0, 3 * 3 + 0] in rows
    assert len(rows) == 7 * 7
    assert rows == sorted(rows)
