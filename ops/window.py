"""A convolution's window over an input with inserted zeros and padding: axes, the padded input, output phases."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from math import gcd
from typing import Final, TypeVar

import numpy as np

from device.cores import CoreRangeSet
from device.numbers.formats import Integers, div_up

CACHE_SIZE: Final = 256  # axes that are cached: a call asks for its own, and those of its slices, many times


class NoWindowError(ValueError):
    """No window fits a frame, as where a slice has no outputs of its own."""


def count_windows(length: int, reach: int, stride: int) -> int:
    """Number of windows of ``reach`` + 1 positions, ``stride`` apart, in a length; zero or less if none fits."""
    return (length - reach - 1) // stride + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PaddedAxis:
    """One axis of a frame: inputs, the zeros between and around them, and the windows over them."""

    input_length: int
    # Zeros ahead of the first input. Negative, windows begin behind the first input (padding by more than the window of
    # a transposed convolution); the real library takes the whole frame for padding then: see `data`.
    before: int
    after: int  # Zeros after the last input; a negative number removes inputs
    input_dilation: int = 1  # Distance between neighboring inputs; the positions in between are zeros
    trailing: int = 0  # Zeros after `after`, the output padding of a transposed convolution
    kernel: int  # Window positions; none in an output phase that meets no input
    # Distance from one tap to the next: negative if taps run backwards; with 0 all taps meet the same input
    dilation: int = 1
    stride: int = 1  # Distance between neighboring windows; 1 for a transposed convolution
    output_offset: int = 0  # Position of the first output in the result
    output_stride: int = 1  # From one output to the next there
    length: int = field(init=False, repr=False, compare=False)  # Positions in the frame
    # Distance from the first to the last position of a window
    reach: int = field(init=False, repr=False, compare=False)
    outputs: int = field(init=False, repr=False, compare=False)  # Windows that fit, which is the output length
    # Positions that hold input for the real library: none with a negative ``before``, which its halo wraps
    data: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Derives the lengths, which are read often; refuses an axis in which no window fits."""
        if min(self.input_length, self.input_dilation, self.stride, self.output_stride) < 1 or self.kernel < 0:
            raise ValueError(
                "PaddedAxis: lengths, dilations and strides must be at least 1, and kernel at least 0, not "
                f"{(self.input_length, self.input_dilation, self.stride, self.output_stride)} and {self.kernel}"
            )
        before, input_dilation = self.before, self.input_dilation
        length = (self.input_length - 1) * input_dilation + 1 + before + self.after + self.trailing
        reach = abs(self.dilation) * (self.kernel - 1) if self.kernel else 0
        if length <= reach:
            raise NoWindowError(
                f"PaddedAxis: a window that spans {reach + 1} positions does not fit a frame of {length}; "
                "use less padding, a smaller kernel or a larger input"
            )
        object.__setattr__(self, "length", length)
        object.__setattr__(self, "reach", reach)
        object.__setattr__(self, "outputs", count_windows(length, reach, self.stride))
        data = 0 if before < 0 else min(max(div_up(length - before, input_dilation), 0), self.input_length)
        object.__setattr__(self, "data", data)

    @property
    def start(self) -> int:
        """The position of the first tap of the first window, counted from the first input."""
        return -self.before if self.dilation >= 0 else self.reach - self.before

    @property
    def last(self) -> int:
        """The last position that any window reaches, counted from the first input."""
        return (self.outputs - 1) * self.stride + self.reach - self.before

    @property
    def places(self) -> slice:
        """The positions of the outputs in the result."""
        return slice(
            self.output_offset, self.output_offset + (self.outputs - 1) * self.output_stride + 1, self.output_stride
        )

    def data_before(self, positions: Integers) -> Integers:
        """Data positions below each of ``positions`` of the frame."""
        below = (positions + (self.input_dilation - 1 - self.before)) // self.input_dilation
        return np.minimum(np.maximum(below, 0), self.data)


@lru_cache(CACHE_SIZE)
def transposed_axis(
    *, input_length: int, kernel: int, stride: int, padding: tuple[int, int], output_padding: int, dilation: int
) -> PaddedAxis:
    """The axis of a transposed convolution, run as a convolution of stride 1 with a mirrored kernel.

    ``padding`` is (before, after), as the user gave it.
    """
    reach = dilation * (kernel - 1)
    return PaddedAxis(
        input_length=input_length,
        before=reach - padding[0],
        after=reach - padding[1],
        input_dilation=stride,
        trailing=output_padding,
        kernel=kernel,
        dilation=dilation,
    )


@lru_cache(CACHE_SIZE)
def convolution_axis(
    *, input_length: int, kernel: int, stride: int, padding: tuple[int, int], dilation: int
) -> PaddedAxis:
    """The axis of an ordinary convolution; ``padding`` is (before, after)."""
    return PaddedAxis(
        input_length=input_length, before=padding[0], after=padding[1], kernel=kernel, dilation=dilation, stride=stride
    )


def axis_of_windows(
    *,
    input_length: int,
    outputs: int,
    kernel: int,
    start: int,
    dilation: int = 1,
    stride: int = 1,
    input_dilation: int = 1,
    output_offset: int = 0,
    output_stride: int = 1,
) -> PaddedAxis:
    """The axis whose frame begins and ends with its windows; the first window begins at ``start``.

    ``output_offset`` is the position of the first output in the result.
    """
    reach = dilation * (kernel - 1) if kernel else 0
    before = -min(start, start + reach)
    return PaddedAxis(
        input_length=input_length,
        before=before,
        after=(outputs - 1) * stride + abs(reach) - before - (input_length - 1) * input_dilation,
        input_dilation=input_dilation,
        kernel=kernel,
        dilation=dilation,
        stride=stride,
        output_offset=output_offset,
        output_stride=output_stride,
    )


def margins(axes: Iterable[PaddedAxis]) -> tuple[int, int]:
    """Padding zeros (not inserted zeros) that windows of axes with the same inputs reach before and after them."""
    with_taps = [axis for axis in axes if axis.kernel]
    before = max((axis.before for axis in with_taps), default=0)
    after = max((axis.last - (axis.input_length - 1) for axis in with_taps), default=0)
    return max(0, before), max(0, after)


@dataclass(frozen=True, slots=True)
class OutputPhase:
    """Outputs that meet inputs under the same taps, and nothing but zeros under all others."""

    axis: PaddedAxis  # Those outputs and taps, without zeros in between
    taps: range  # Which taps of the whole axis they are, in ascending order

    @property
    def starts(self) -> tuple[int, ...]:
        """The input that each tap meets under the first output; outside the inputs there are zeros."""
        start, spacing = self.axis.start, self.axis.dilation
        return tuple(start + tap * spacing for tap in range(self.axis.kernel))


@lru_cache(CACHE_SIZE)
def output_phases(axis: PaddedAxis, *, whole: bool = False) -> tuple[OutputPhase, ...]:
    """The output phases of an axis; together they hold every output once. Outputs without taps are zero.

    ``whole`` keeps taps that reach only padding under all of their outputs, as in a narrow slice.
    """
    distance = axis.input_dilation // gcd(axis.input_dilation, axis.stride)  # of outputs under the same taps
    return tuple(_phase(axis, first, distance, whole=whole) for first in range(min(distance, axis.outputs)))


def _phase(axis: PaddedAxis, first: int, distance: int, *, whole: bool) -> OutputPhase:
    """The outputs from ``first`` on, ``distance`` apart: so far that the same taps meet inputs again."""
    begin, outputs = first * axis.stride + axis.start, div_up(axis.outputs - first, distance)
    stride = axis.stride * distance // axis.input_dilation
    met = []
    for tap in range(axis.kernel):
        start, between = divmod(begin + tap * axis.dilation, axis.input_dilation)
        if not between and (whole or (start < axis.input_length and start + (outputs - 1) * stride >= 0)):
            met.append(tap)
    taps = _evenly(met) if met else range(0)
    dense = axis_of_windows(
        input_length=axis.input_length,
        outputs=outputs,
        kernel=len(taps),
        start=(begin + taps.start * axis.dilation) // axis.input_dilation,
        dilation=taps.step * axis.dilation // axis.input_dilation,
        stride=stride,
        output_offset=axis.output_offset + first * axis.output_stride,
        output_stride=distance * axis.output_stride,
    )
    return OutputPhase(dense, taps)


def phase_margins(axis: PaddedAxis) -> tuple[int, int, bool]:
    """The `margins` of an axis for all its phases, and whether every output has at most one tap."""
    phases = [phase.axis for phase in output_phases(axis)]
    return *margins(phases), all(phase.kernel < 2 for phase in phases)


def count_met_taps(axis: PaddedAxis) -> int:
    """Taps of all outputs together, without taps that meet no input under any output of their output phase.

    The taps of a phase span its inputs, but a stride may step over all of them, where an image is smaller.
    """
    phases = [(phase.axis, phase.starts) for phase in output_phases(axis)]
    return sum(
        dense.outputs * sum(max(start, start % dense.stride) < dense.input_length for start in starts)
        for dense, starts in phases
    )


def tap_classes(axis: PaddedAxis) -> tuple[range, ...]:
    """Taps that meet inputs together, in the order of their first taps, for all whole output phases."""
    classes: dict[int, list[int]] = {}
    for tap in range(axis.kernel):
        classes.setdefault(tap * axis.dilation % axis.input_dilation, []).append(tap)
    return tuple(_evenly(taps) for taps in classes.values())


def _evenly(taps: list[int]) -> range:
    """A nonempty list of taps that meet inputs together as a range: their distances are equal."""
    return range(taps[0], taps[-1] + 1, taps[1] - taps[0] if len(taps) > 1 else 1)


def index_of(taps: range) -> slice:
    """The slice that selects some taps from an array."""
    stop = taps[-1] + taps.step if taps else taps.start
    return slice(taps.start, None if stop < 0 else stop, taps.step)


Places = TypeVar("Places", int, Integers)


@dataclass(frozen=True, slots=True, kw_only=True)
class PaddedInput:
    """The frame: a batch of images with the zeros between and around their inputs."""

    batch: int
    rows: PaddedAxis
    columns: PaddedAxis
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
        """Whether padding cuts inputs off, which renumbers the remaining sticks."""
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


def window_starts(frame: PaddedInput, outputs: Places) -> Places:
    """The stick in the upper left corner of each output's window; outputs are flattened over image, row, column."""
    rows, columns = frame.rows, frame.columns
    line = outputs // columns.outputs
    to_line = rows.stride * columns.length - columns.outputs * columns.stride  # beyond what its outputs step over
    starts = outputs * columns.stride + line * to_line
    if frame.batch > 1:
        starts += line // rows.outputs * ((rows.length - rows.outputs * rows.stride) * columns.length)
    return starts


def data_before(frame: PaddedInput, sticks: Integers) -> Integers:
    """Data sticks below each of ``sticks``: for a data stick, its number among the data."""
    data_rows, data_columns = frame.data_shape
    if not data_columns:
        return np.zeros_like(sticks)
    line, column = np.divmod(sticks, frame.columns.length)
    image, row = np.divmod(line, frame.rows.length) if frame.batch > 1 else (0, line)
    above = frame.rows.data_before(row)
    in_data_row = frame.rows.data_before(row + 1) - above
    return (image * data_rows + above) * data_columns + in_data_row * frame.columns.data_before(column)


def data_sticks(frame: PaddedInput, numbers: Integers) -> Integers:
    """The stick of each data number, the inverse of `data_before`, for a frame that cuts no inputs off."""
    rows, columns = frame.rows, frame.columns
    line, column = np.divmod(numbers, columns.input_length)
    image, row = np.divmod(line, rows.input_length) if frame.batch > 1 else (0, line)
    first = rows.before * columns.length + columns.before
    in_image: Integers = row * (rows.input_dilation * columns.length) + column * columns.input_dilation + first
    return in_image + image * (rows.length * columns.length) if frame.batch > 1 else in_image


def data_breaks(frame: PaddedInput) -> tuple[bool, bool, bool]:
    """Whether padding follows a data stick within a row, at the end of a row, at the end of an image."""
    rows_fill, columns_fill = (
        axis.before == 0 and (data - 1) * axis.input_dilation + 1 == axis.length
        for axis, data in zip((frame.rows, frame.columns), frame.data_shape, strict=True)
    )
    at_row_end = not (columns_fill and frame.rows.input_dilation == 1)
    return frame.columns.input_dilation > 1, at_row_end, not (columns_fill and rows_fill)


def count_breaks(frame: PaddedInput, numbers: Integers) -> Integers:
    """The number of data sticks followed by padding, below each of ``numbers``."""
    data_rows, data_columns = frame.data_shape
    if not data_columns:
        return np.zeros_like(numbers)
    in_row, at_row_end, at_image_end = data_breaks(frame)
    breaks = numbers if in_row else np.zeros_like(numbers)
    if at_row_end != in_row:
        breaks = breaks + numbers // data_columns * (at_row_end - in_row)
    if at_image_end != at_row_end:
        breaks = breaks + numbers // (data_rows * data_columns) * (at_image_end - at_row_end)
    return breaks


def frame_sources(frame: PaddedInput, start: int, stop: int) -> Integers:
    """The number of the input stick in each stick from ``start`` to ``stop`` (exclusive); -1 for padding.

    The real library numbers the data sticks of the frame in order. This order is the flattened input, unless ``after``
    is negative: then inputs are missing from the frame, and the library reads all following inputs from the wrong
    address.
    """
    sticks = np.arange(start, stop, dtype=np.int64)
    if frame.replicate:  # the nearest stick between the first and the last input of both axes
        line, column = np.divmod(sticks, frame.columns.length)
        image, row = np.divmod(line, frame.rows.length)
        row, column = (
            np.clip(place, axis.before, axis.before + (axis.input_length - 1) * axis.input_dilation)
            for axis, place in ((frame.rows, row), (frame.columns, column))
        )
        sticks = (image * frame.rows.length + row) * frame.columns.length + column
    below = data_before(frame, sticks)
    return np.where(data_before(frame, sticks + 1) > below, below, -1)


def dense_frame(frame: PaddedInput) -> PaddedInput:
    """The image of a frame with the padding that its output phases reach; a window is a stick."""
    rows, columns = (
        PaddedAxis(input_length=axis.input_length, before=before, after=after, kernel=1)
        for axis in (frame.rows, frame.columns)
        for before, after in (margins(phase.axis for phase in output_phases(axis, whole=True)),)
    )
    return PaddedInput(batch=frame.batch, rows=rows, columns=columns)


def dense_bounds(frame: PaddedInput, *, output_rows: int, cores: int) -> tuple[Integers, Integers]:
    """First stick of the `dense_frame`, and last stick + 1, that the outputs of every core read, in all phases.

    Ranges grow as needed so that neither end decreases from a core to the next, and have at least one stick. Cores
    after the last output get its range.
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


def _read(axis: PaddedAxis, dense: PaddedAxis) -> tuple[Integers, Integers]:
    """[outputs] first dense position read by an output or a later one, and last one read by it or an earlier one."""
    first, last = np.full(axis.outputs, dense.length - 1), np.zeros(axis.outputs, np.int64)
    for phase in output_phases(axis, whole=True):
        if (own := phase.axis).kernel:
            first[own.places] = dense.before - own.before + np.arange(own.outputs) * own.stride
            last[own.places] = first[own.places] + own.reach
    return np.minimum.accumulate(first[::-1])[::-1], np.maximum.accumulate(last)


def phase_outputs(frame: PaddedInput, phase: PaddedInput, *, output_rows: int, cores: int) -> tuple[Integers, Integers]:
    """First and last + 1 output of a phase on each core, numbered within the phase.

    Each core has ``output_rows`` outputs of all phases; the last cores may have fewer.
    """
    edges = np.minimum(np.arange(cores + 1, dtype=np.int64) * output_rows, frame.outputs)
    line, column = np.divmod(edges, frame.columns.outputs)
    image, row = np.divmod(line, frame.rows.outputs)
    rows_before = _before(phase.rows, row)
    in_row = _before(phase.rows, row + 1) - rows_before
    lines = image * phase.rows.outputs + rows_before
    numbers = lines * phase.columns.outputs + in_row * _before(phase.columns, column)
    return numbers[:-1], numbers[1:]


def _before(axis: PaddedAxis, places: Integers) -> Integers:
    """The number of a phase's outputs before each of some positions."""
    below: Integers = (places - axis.output_offset + (axis.output_stride - 1)) // axis.output_stride
    return np.clip(below, 0, axis.outputs)


def sliding_window_text(frame: PaddedInput, cores: CoreRangeSet, *, nhw_cores: int, channel_cores: int) -> str:
    """The text of a frame as a SlidingWindowConfig.

    A frame with zeros between or after its inputs is written as a transposed convolution, whose padding is the reach of
    its window beyond the leading zeros; any other frame is written as a convolution.
    """
    axes = (frame.rows, frame.columns)
    transposed = any(axis.input_dilation > 1 or axis.trailing for axis in axes)

    def pair(name: str) -> str:
        """An attribute of both axes."""
        return f"({','.join(str(abs(getattr(axis, name))) for axis in axes)})"

    zeros = [(axis.reach - axis.before, axis.reach - axis.after) for axis in axes]
    fields = {
        "batch_size": frame.batch,
        "input_hw": pair("input_length"),
        "window_hw": pair("kernel"),
        "stride_hw": pair("input_dilation" if transposed else "stride"),
        "padding": tuple(zeros if transposed else [(axis.before, axis.after) for axis in axes]),
        "output_padding": (frame.rows.trailing, frame.columns.trailing),
        "dilation_hw": pair("dilation"),
        "num_cores_nhw": nhw_cores,
        "num_cores_c": channel_cores,
        "core_range_set_": ranges_text(cores),
        "is_transpose": str(transposed).lower(),
    }
    return f"SlidingWindowConfig({', '.join(f'{name}={value}' for name, value in fields.items())})"


def ranges_text(cores: CoreRangeSet) -> str:
    """Cores as profiler and viewers spell them: {[(x=0,y=0) - (x=7,y=7)]}."""
    ranges = (
        f"[(x={core_range.start.x},y={core_range.start.y}) - (x={core_range.end.x},y={core_range.end.y})]"
        for core_range in cores.ranges
    )
    return f"{{{', '.join(ranges)}}}"
