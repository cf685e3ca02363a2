"""Height and width of outputs, with a sign and without."""

from dataclasses import replace

from ops.planners.conv.arguments import output_lengths, plans_without_outputs, wraps
from ops.planners.conv.conv2d import CONV2D
from tests.ops.planners.conv.good_call import L1_FULL, call, sized_call


def test_outputs_of_a_transposed_convolution() -> None:
    assert output_lengths(call()) == (16, 16)
    assert output_lengths(call(padding=(0, 1, 2, 3), dilation=(2, 1))) == (19, 13)


def test_outputs_without_a_sign() -> None:
    """A kernel of 5 on 4 columns: -1 + 1 of them with stride 1, and a fourth of 2**32 with stride 4."""
    none = sized_call((6, 4), (32, 32), (5, 5), rules=CONV2D)
    assert output_lengths(none) == output_lengths(none, unsigned=True) == (2, 0)
    assert not wraps(none)
    strided = sized_call((6, 4), (32, 32), (5, 5), rules=CONV2D, stride=(3, 4))
    assert output_lengths(strided) == (1, 0)
    assert output_lengths(strided, unsigned=True) == (1, 2**30)
    assert wraps(strided)


def test_outputs_of_too_much_padding_wrap() -> None:
    padded = sized_call((33, 5), (16, 32), (4, 15), stride=(7, 3), padding=(0, 0, 14, 14))
    assert output_lengths(padded) == (228, -1)
    assert output_lengths(padded, unsigned=True) == (228, 2**32 - 1)
    assert plans_without_outputs(padded)
    assert not plans_without_outputs(replace(padded, slice_config=L1_FULL))
