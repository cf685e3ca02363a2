"""The full frame of a convolution: the input with its zeros around and in between, and who is what in it.

A *stick* is the channels of one pixel. The frame is flattened: stick ``(image * rows.length + row) * columns.length +
column``. Sticks that hold input are *data*, all others are *padding*. Every question here has a closed form, so
nothing in this module is as long as the frame, but for `frame_sources`, which lists it.
"""

from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from device.numbers.integers import Integers
from ops.frame.axis import FrameAxis

Places = TypeVar("Places", int, Integers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The full frame."""

    batch: int
    rows: FrameAxis
    columns: FrameAxis
    # Sticks outside the image hold its nearest stick instead of zeros; the zeros between inputs stay. Only
    # `frame_sources` knows: everywhere else such a stick counts as padding.
    replicate: bool = False

    @property
    def sticks(self) -> int:
        """Sticks of all images."""
        return self.batch * self.rows.length * self.columns.length

    @property
    def outputs(self) -> int:
        """Outputs of all images."""
        return self.batch * self.rows.outputs * self.columns.outputs

    @property
    def cuts_inputs(self) -> bool:
        """Whether padding cuts inputs off, which renumbers the sticks of those that stay."""
        return any(axis.data < axis.input_length for axis in (self.rows, self.columns))

    @property
    def data_shape(self) -> tuple[int, int]:
        """Rows and columns of an image that hold data; (0, 0) when either axis has none."""
        rows, columns = self.rows.data, self.columns.data
        return (rows, columns) if rows and columns else (0, 0)

    @property
    def data(self) -> int:
        """Data sticks of all images."""
        rows, columns = self.data_shape
        return self.batch * rows * columns

    @property
    def reach(self) -> int:
        """Distance from the first to the last stick of a window."""
        return self.rows.reach * self.columns.length + self.columns.reach


def window_starts(frame: Frame, outputs: Places) -> Places:
    """The stick in the upper left corner of the window of each output, flattened over image, row, column, or of one."""
    rows, columns = frame.rows, frame.columns
    line = outputs // columns.outputs
    to_line = rows.step * columns.length - columns.outputs * columns.step  # beyond what its outputs step over
    starts = outputs * columns.step + line * to_line
    if frame.batch > 1:
        starts += line // rows.outputs * ((rows.length - rows.outputs * rows.step) * columns.length)
    return starts


def data_before(frame: Frame, sticks: Integers) -> Integers:
    """Data sticks below each of ``sticks``: for a data stick, its number among the data."""
    data_rows, data_columns = frame.data_shape
    if not data_columns:
        return np.zeros_like(sticks)
    line, column = np.divmod(sticks, frame.columns.length)
    image, row = np.divmod(line, frame.rows.length) if frame.batch > 1 else (0, line)
    above = frame.rows.data_before(row)
    in_data_row = frame.rows.data_before(row + 1) - above
    return (image * data_rows + above) * data_columns + in_data_row * frame.columns.data_before(column)


def data_sticks(frame: Frame, numbers: Integers) -> Integers:
    """The stick of each data number, of a frame that cuts no inputs off; a number behind the last one counts images on.

    It undoes `data_before`.
    """
    rows, columns = frame.rows, frame.columns
    line, column = np.divmod(numbers, columns.input_length)
    image, row = np.divmod(line, rows.input_length)
    in_row = columns.before + column * columns.insertion
    sticks: Integers = (image * rows.length + rows.before + row * rows.insertion) * columns.length + in_row
    return sticks


class Breaks(NamedTuple):
    """Where padding follows a data stick: within a row, at the end of a row, at the end of an image."""

    in_row: bool
    at_row_end: bool
    at_image_end: bool


def data_breaks(frame: Frame) -> Breaks:
    """Between which data sticks of the frame there is padding."""
    rows, columns = frame.rows, frame.columns
    data_rows, data_columns = frame.data_shape
    row_wraps = columns.before == 0 and (data_columns - 1) * columns.insertion + 1 == columns.length
    image_wraps = rows.before == 0 and (data_rows - 1) * rows.insertion + 1 == rows.length
    return Breaks(
        in_row=columns.insertion > 1,
        at_row_end=not (row_wraps and rows.insertion == 1),
        at_image_end=not (row_wraps and image_wraps),
    )


def count_breaks(frame: Frame, numbers: Integers) -> Integers:
    """How many of the data sticks below each of ``numbers`` are followed by padding.

    Args:
        numbers: Data numbers (of `data_before`).
    """
    data_rows, data_columns = frame.data_shape
    if not data_columns:
        return np.zeros_like(numbers)
    row, image = data_columns, data_rows * data_columns
    breaks = data_breaks(frame)
    weights: dict[int, int] = {}  # of the multiples of every distance; most of them cancel
    for broken, inner, outer in (
        (breaks.in_row, 1, row),
        (breaks.at_row_end, row, image),
        (breaks.at_image_end, image, 0),
    ):
        if broken:
            weights[inner] = weights.get(inner, 0) + 1
            weights[outer] = weights.get(outer, 0) - 1
    counts = [weight * (numbers // distance) for distance, weight in weights.items() if distance and weight]
    count: Integers = sum(counts[1:], counts[0]) if counts else np.zeros_like(numbers)
    return count


def frame_sources(frame: Frame, start: int, stop: int) -> Integers:
    """For the sticks ``start`` to ``stop`` (not included): the number of the input stick each holds, -1 for padding.

    The real library numbers the data it meets one after the other. That is the flattened input, unless ``after`` is
    negative: then inputs are missing from the frame and all that follow are taken from the wrong place.
    """
    sticks = np.arange(start, stop, dtype=np.int64)
    if frame.replicate:
        sticks = _nearest_inside(frame, sticks)
    below = data_before(frame, sticks)
    return np.where(data_before(frame, sticks + 1) > below, below, -1)


def _nearest_inside(frame: Frame, sticks: Integers) -> Integers:
    """The stick nearest to each of ``sticks`` that lies between the first and the last input of both axes."""
    line, column = np.divmod(sticks, frame.columns.length)
    image, row = np.divmod(line, frame.rows.length)
    inside_row, inside_column = (
        np.clip(place, axis.before, axis.before + (axis.input_length - 1) * axis.insertion)
        for axis, place in ((frame.rows, row), (frame.columns, column))
    )
    nearest: Integers = (image * frame.rows.length + inside_row) * frame.columns.length + inside_column
    return nearest
