"""Output phases dealt to cores, against the definition: what each output of a core reads, one after the other."""

from itertools import product

import numpy as np
import pytest

from ops.window import (
    PaddedInput,
    dense_bounds,
    dense_frame,
    output_phases,
    phase_outputs,
    tap_classes,
    transposed_axis,
)


def axis(length, kernel, stride, padding=(0, 0), output_padding=0, dilation=1):
    return transposed_axis(
        input_length=length, kernel=kernel, stride=stride, padding=padding, output_padding=output_padding,
        dilation=dilation,
    )  # fmt: skip


FRAMES = {
    "side by side": PaddedInput(batch=2, rows=axis(3, 2, 2), columns=axis(5, 2, 2)),
    "overlapping": PaddedInput(batch=1, rows=axis(4, 3, 2, (1, 1), 1), columns=axis(5, 4, 2, (1, 1))),
    "gaps": PaddedInput(batch=2, rows=axis(3, 1, 3), columns=axis(4, 2, 3)),
    "dilated": PaddedInput(batch=1, rows=axis(5, 3, 2, dilation=3), columns=axis(4, 2, 2, dilation=2)),
    "one axis": PaddedInput(batch=2, rows=axis(4, 3, 1, (1, 1)), columns=axis(5, 3, 2, (2, 0))),
    "mostly padding": PaddedInput(batch=1, rows=axis(1, 5, 2), columns=axis(2, 5, 4, (3, 1))),
}
frames = pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)


def phases_of(frame):
    for down, across in product(*(output_phases(one, whole=True) for one in (frame.rows, frame.columns))):
        yield PaddedInput(batch=frame.batch, rows=down.axis, columns=across.axis)


def read_by(frame, number):
    """Dense sticks that an output reads, and the phase's own number of it."""
    dense = dense_frame(frame)
    line, column = divmod(number, frame.columns.outputs)
    image, row = divmod(line, frame.rows.outputs)
    for phase in phases_of(frame):
        places = [list(range(*one.places.indices(10**6))) for one in (phase.rows, phase.columns)]
        if row in places[0] and column in places[1]:
            m, n = places[0].index(row), places[1].index(column)
            sticks = [
                (image * dense.rows.length + dense.rows.before + m + phase.rows.start + i * phase.rows.dilation)
                * dense.columns.length + dense.columns.before + n + phase.columns.start + j * phase.columns.dilation
                for i in range(phase.rows.kernel) for j in range(phase.columns.kernel)
            ]  # fmt: skip
            return sticks, phase, (image * phase.rows.outputs + m) * phase.columns.outputs + n
    raise AssertionError(f"output {number} is in no phase")


@frames
@pytest.mark.parametrize("output_rows", [1, 7, 32])
def test_what_outputs_read_lies_in_the_range_of_their_core(frame, output_rows):
    cores = -(-frame.outputs // output_rows) + 1
    starts, stops = dense_bounds(frame, output_rows=output_rows, cores=cores)
    assert (np.diff(starts) >= 0).all()
    assert (np.diff(stops) >= 0).all()
    assert (stops > starts).all()
    assert 0 <= starts[0] < stops[-1] <= dense_frame(frame).sticks
    for number in range(frame.outputs):
        sticks, _, _ = read_by(frame, number)
        core = number // output_rows
        assert all(starts[core] <= stick < stops[core] for stick in sticks)


@frames
@pytest.mark.parametrize("output_rows", [1, 7, 32])
def test_the_outputs_of_a_core_are_a_run_of_each_phase(frame, output_rows):
    cores = -(-frame.outputs // output_rows) + 1
    found = {}
    for number in range(frame.outputs):
        _, phase, own = read_by(frame, number)
        found.setdefault((phase, number // output_rows), []).append(own)
    for phase in phases_of(frame):
        begins, ends = phase_outputs(frame, phase, output_rows=output_rows, cores=cores)
        for core in range(cores):
            assert found.get((phase, core), []) == list(range(begins[core], ends[core]))


def test_ranges_of_a_small_case():
    """2 x 2 pixels become 4 x 4 outputs, 6 on a core: the second begins under the second pixel, in the second row."""
    frame = PaddedInput(batch=1, rows=axis(2, 2, 2), columns=axis(2, 2, 2))
    starts, stops = dense_bounds(frame, output_rows=6, cores=3)
    assert starts.tolist() == [0, 1, 2]
    assert stops.tolist() == [2, 4, 4]


def test_only_what_windows_reach_is_padded():
    frame = FRAMES["overlapping"]
    dense = dense_frame(frame)
    assert (dense.rows.before, dense.rows.after) == (0, 1)
    assert (dense.columns.before, dense.columns.after) == (1, 1)


def test_taps_that_meet_inputs_together():
    assert tap_classes(axis(5, 5, 2)) == (range(0, 5, 2), range(1, 4, 2))
    assert tap_classes(axis(5, 3, 2, dilation=2)) == (range(3),)
    assert tap_classes(axis(5, 2, 3)) == (range(1), range(1, 2))
    assert tap_classes(axis(5, 3, 1)) == (range(3),)


def test_whole_phases_keep_taps_that_meet_padding_alone():
    narrow = axis(1, 5, 2)
    assert [phase.taps for phase in output_phases(narrow, whole=True)] == [range(0, 5, 2), range(1, 4, 2)]
    for one in (narrow, axis(7, 4, 3, (2, 1)), axis(2, 3, 2, dilation=3)):
        met = {phase.taps for phase in output_phases(one, whole=True) if phase.taps}
        assert met <= set(tap_classes(one))
