"""Runs of rows: together they are a phase, and each knows its place."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ops.frame.axis import FrameAxis, output_phases
from ops.programs.conv2d.gather import runs


def axis(length, insertion, kernel):
    return FrameAxis(input_length=length, before=kernel - 1, after=kernel - 1, insertion=insertion, taps=kernel)


axes = st.builds(axis, st.integers(1, 9), st.integers(1, 3), st.integers(1, 4))


@given(st.integers(1, 3), axes, axes, st.integers(1, 200))
def test_runs_of_all_phases_hold_every_output_once(batch, rows, columns, outputs):
    visits = np.zeros((batch, rows.outputs, columns.outputs, 1), int)
    for down in output_phases(rows):
        for across in output_phases(columns):
            for run in runs(batch, down, across, outputs):
                place = run.place(visits)
                assert place.shape == (run.count, across.axis.outputs, 1)
                assert run.outputs == run.count * across.axis.outputs
                assert run.outputs <= outputs or run.count == 1
                place += 1
    assert (visits == 1).all()


def test_runs_are_as_long_as_they_may_be():
    (down,), (across,) = output_phases(axis(10, 1, 1)), output_phases(axis(4, 1, 1))
    assert [(run.first, run.count) for run in runs(1, down, across, 13)] == [(0, 3), (3, 3), (6, 3), (9, 1)]
    assert [run.count for run in runs(1, down, across, 1)] == [1] * 10
