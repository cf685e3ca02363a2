"""Cells of an axis: every tap leads from the inputs of one residue to the outputs of one, equally far in all cells."""

import numpy as np
import pytest

from ops.programs.patch_matmul.shifted_layer import Cells, Run, Shift, axis_shifts, positions_of, runs_of
from ops.window import PaddedAxis
from tests.ops.programs.patch_matmul.padded_axes import strided, transposed


def test_a_transposed_axis_by_hand():
    """Four taps, two outputs a cell, one zero of padding: outputs 2 q - 1 and 2 q meet inputs q - 1 and q."""
    axis = axis_shifts(transposed(5, 4, 2, 1))
    assert axis.targets == Cells(-1, 2, 10)
    assert axis.sources == Cells(-1, 1, 5)
    assert (axis.cells, axis.reach) == (6, 1)
    assert sorted((one.target, one.cells) for one in axis.taps) == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_a_strided_axis_by_hand():
    axis = axis_shifts(strided(10, 4, 2, 1))
    assert axis.sources == Cells(-1, 2, 10)
    assert axis.targets == Cells(0, 1, 5)
    assert axis.taps == (Shift(0, 0, 0, 0), Shift(1, 1, 0, 0), Shift(2, 0, 0, 1), Shift(3, 1, 0, 1))


@pytest.mark.parametrize("axis", [
    transposed(7, 3, 2, 1),
    transposed(6, 3, 3, 0, 3),  # two outputs of three meet nothing
    transposed(9, 5, 3, 2, 2),
    transposed(9, 2, 3, 0),
    strided(13, 4, 2, 1),
    strided(14, 3, 2, 0, 2),
    strided(9, 3, 1, 1),
    PaddedAxis(input_length=9, before=-1, after=3, input_dilation=4, stride=6, kernel=5),
    PaddedAxis(input_length=9, before=4, after=1, kernel=3, dilation=-2),
], ids=str)  # fmt: skip
def test_taps_meet_the_inputs_of_the_definition(axis):
    shifts = axis_shifts(axis)
    lies = np.add.outer(np.arange(axis.outputs) * axis.stride + axis.start, np.arange(axis.kernel) * axis.dilation)
    inputs, between = np.divmod(lies, axis.input_dilation)
    wanted = {
        (output, tap, int(inputs[output, tap]))
        for output, tap in np.ndindex(*lies.shape)
        if not between[output, tap] and 0 <= inputs[output, tap] < axis.input_length
    }
    found = {
        (output, one.tap, place)
        for one in shifts.taps
        for cell in range(shifts.cells)
        for output in [shifts.targets.low + cell * shifts.targets.size + one.target]
        for place in [shifts.sources.low + (cell + one.cells) * shifts.sources.size + one.source]
        if 0 <= output < axis.outputs and 0 <= place < axis.input_length
    }
    assert found == wanted
    assert shifts.reach == max(one.cells for one in shifts.taps)


def test_an_axis_that_meets_nothing_has_none():
    assert axis_shifts(PaddedAxis(input_length=3, before=2, after=0, kernel=0)) is None


def test_runs_hold_every_position_once():
    cells = Cells(-3, 2, 8)  # cells of -3 and -2, -1 and 0, 1 and 2, ...
    assert runs_of(cells, 0, 6) == [Run(0, 2, 1, 4), Run(1, 1, 0, 4)]
    assert runs_of(cells, 3, 2) == [Run(0, 0, 3, 2), Run(1, 0, 4, 2)]
    assert runs_of(cells, 0, 1) == []
    assert positions_of(cells, 0, 6) == [Run(0, 3, 0, 8)]
    assert positions_of(cells, 3, 2) == [Run(0, 0, 3, 4)]
