"""Averages: what counts under a window, scalars, lists of them."""

import numpy as np
import pytest

from device.matrix_unit.arithmetic import EXACT
from ops.programs.averages import Averaging, averages, scalar_of
from ops.window import PaddedAxis, PaddedInput


def frame(length, kernel, stride, before=0, after=0, batch=1):
    """Images with equal axes."""
    axis = PaddedAxis(input_length=length, before=before, after=after, kernel=kernel, stride=stride)
    return PaddedInput(batch=batch, rows=axis, columns=axis)


@pytest.mark.parametrize(
    ("averaging", "row"),
    [
        (Averaging(), [9, 9, 9]),  # windows from -1, 1 and 3 on, of 3 taps
        (Averaging(padding_counts=False), [4, 6, 4]),  # the first and the last have 2 taps in the image
        (Averaging(divisor=7), [7, 7, 7]),
        (Averaging(ceiling=(1, 1)), [9, 9, 6]),  # the last tap only fills up
        (Averaging(padding_counts=False, divisor=5), [5, 5, 5]),
    ],
)
def test_numbers_that_count(averaging, row):
    counts = averaging.counts(frame(5, 3, 2, 1, 1))
    assert counts.tolist()[0] == row
    assert averaging.is_uniform(frame(5, 3, 2, 1, 1)) == (len(set(counts.ravel().tolist())) == 1)


def test_scalars_are_cut_to_bfloat16():
    """1/9 is 0.00011100011100..., of which eight digits stay from the first 1 on."""
    assert scalar_of(9) == 0b11100011 / 2**11
    assert scalar_of(4) == 0.25
    assert scalar_of(0) == np.inf


@pytest.mark.parametrize(
    ("output_rows", "cores", "runs"),
    [
        (9, 1, 9),  # 4 6 4, 6 9 6, 4 6 4: each differs from the one before
        (3, 3, 3),
        (4, 3, 4),
        (18, 1, 17),  # the second image begins with the 4 that the first ends with
    ],
)
def test_lists_have_an_entry_for_each_run(output_rows, cores, runs):
    image = frame(5, 3, 2, 1, 1, batch=2 if output_rows == 18 else 1)
    assert Averaging(padding_counts=False).list_words(image, output_rows=output_rows, cores=cores) == 3 * runs


def test_chunks_are_summed_in_dst():
    """40 ones and a scalar of 1/40 cut off: 0.02490234375 a time."""
    image = frame(40, 40, 1)
    image = PaddedInput(batch=1, rows=PaddedAxis(input_length=1, before=0, after=0, kernel=1), columns=image.columns)
    whole = Averaging(fp32_dest=True)
    result = averages(
        np.ones((1, 40, 2), np.float32), image, whole.counts(image), whole, EXACT, chunk=32, minus_one_quirk=False
    )
    assert result.tolist() == [[[40 * scalar_of(40)] * 2]]
