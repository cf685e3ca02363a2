"""Output phases of a frame with inserted zeros, as cores compute them that hold a run of its outputs each.

The *dense frame* is the image with the padding that the phases' windows reach, and nothing inserted. Outputs of one
phase are numbered by themselves, by image, row and column, so that those of a core are a run again.
"""

import numpy as np

from device.numbers.integers import Integers
from ops.frame.axis import FrameAxis, margins, output_phases
from ops.frame.frame import Frame


def dense_frame(frame: Frame) -> Frame:
    """The image of a frame with the padding that its output phases reach; a window is a stick."""
    return Frame(batch=frame.batch, rows=_dense_axis(frame.rows), columns=_dense_axis(frame.columns))


def _dense_axis(axis: FrameAxis) -> FrameAxis:
    before, after = margins(phase.axis for phase in output_phases(axis, whole=True))
    return FrameAxis(input_length=axis.input_length, before=before, after=after, taps=1)


def dense_bounds(frame: Frame, *, output_rows: int, cores: int) -> tuple[Integers, Integers]:
    """First stick of the `dense_frame`, and last stick + 1, that the outputs of every core read, all their phases.

    Ranges grow where it takes that for neither end to fall from a core to the next, and hold one stick at least.

    Args:
        frame: The frame with inserted zeros.
        output_rows: Outputs of one core; the last cores may have fewer.
        cores: Cores among which the outputs are split; those behind the last output get its range.
    """
    dense, (height, width) = dense_frame(frame), (frame.rows.outputs, frame.columns.outputs)
    (top, bottom), (left, right) = _read(frame.rows, dense.rows), _read(frame.columns, dense.columns)
    first = np.arange(cores, dtype=np.int64) * output_rows
    last = np.minimum(first + (output_rows - 1), frame.outputs - 1)
    first = np.minimum(first, last)

    def stick(line: Integers, column: Integers, rows: Integers, columns: Integers) -> Integers:
        image, row = np.divmod(line, height)
        number: Integers = (image * dense.rows.length + rows[row]) * dense.columns.length + columns[column]
        return number

    (line, column), (last_line, last_column) = np.divmod(first, width), np.divmod(last, width)
    # Rows follow each other faster than the image's do, so that a second row may begin further left on the same.
    second = np.minimum(line + 1, last_line)
    starts = np.minimum(stick(line, column, top, left), stick(second, np.where(second > line, 0, column), top, left))
    before = np.maximum(last_line - 1, line)
    stops = np.maximum(
        stick(last_line, last_column, bottom, right),
        stick(before, np.where(before < last_line, width - 1, last_column), bottom, right),
    )
    starts = np.minimum.accumulate(starts[::-1])[::-1]
    return starts, np.maximum(np.maximum.accumulate(stops), starts) + 1


def _read(axis: FrameAxis, dense: FrameAxis) -> tuple[Integers, Integers]:
    """[outputs] first and last dense position that each output or one behind it, or ahead of it, reads."""
    first, last = np.full(axis.outputs, dense.length - 1), np.zeros(axis.outputs, np.int64)
    for phase in output_phases(axis, whole=True):
        one = phase.axis
        if one.taps:
            first[one.places] = dense.before - one.before + np.arange(one.outputs) * one.step
            last[one.places] = first[one.places] + one.reach
    return np.minimum.accumulate(first[::-1])[::-1], np.maximum.accumulate(last)


def phase_outputs(frame: Frame, phase: Frame, *, output_rows: int, cores: int) -> tuple[Integers, Integers]:
    """First output of a phase that each core computes, and last + 1, by the phase's own numbers.

    Args:
        frame: The frame with inserted zeros.
        phase: The axes of the phase, which say where its outputs lie.
        output_rows: Outputs of one core, of all phases; the last cores may have fewer.
        cores: Cores among which the outputs are split.
    """
    edges = np.minimum(np.arange(cores + 1, dtype=np.int64) * output_rows, frame.outputs)
    line, column = np.divmod(edges, frame.columns.outputs)
    image, row = np.divmod(line, frame.rows.outputs)
    rows_before = _before(phase.rows, row)
    in_row = _before(phase.rows, row + 1) - rows_before
    lines = image * phase.rows.outputs + rows_before
    numbers = lines * phase.columns.outputs + in_row * _before(phase.columns, column)
    return numbers[:-1], numbers[1:]


def _before(axis: FrameAxis, places: Integers) -> Integers:
    """Outputs of a phase that lie below each of some places."""
    below: Integers = (places - axis.first + (axis.distance - 1)) // axis.distance
    return np.clip(below, 0, axis.outputs)
