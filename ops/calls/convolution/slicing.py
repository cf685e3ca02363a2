"""Cutting a call into slices of its output that fit L1 one at a time (docs/planning.md, Slices).

A slice is a call of its own: a window of the input, with paddings that give exactly the slice's outputs.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from device.errors import DeviceError
from device.memory.memory_config import Layout
from device.memory.tiles import TILE
from device.numbers.integers import div_up
from ops.calls.convolution.arguments import ConvArguments, ConvTranspose2dArguments, SliceConfig, SliceType
from ops.calls.convolution.problem import frame_of
from ops.programs.halo.frame import Frame


@dataclass(frozen=True, slots=True)
class AxisWindow:
    """What a slice takes of the input along one axis, and how it is padded.

    Attributes:
        start: First input position.
        stop: One past the last.
        padding: Padding before and after, as an argument of the slice's own call.
        output_padding: Output padding of the slice's own call; 0 if it is not transposed.
    """

    start: int
    stop: int
    padding: tuple[int, int]
    output_padding: int

    @property
    def length(self) -> int:
        """Input positions."""
        return self.stop - self.start


@dataclass(frozen=True, slots=True)
class OutputSlice:
    """One slice.

    Attributes:
        rows: First row of the output, one past the last.
        columns: First column, one past the last.
        down: The input window's rows.
        across: The input window's columns; its outputs may be more than `columns`, to fill tiles.
    """

    rows: tuple[int, int]
    columns: tuple[int, int]
    down: AxisWindow
    across: AxisWindow

    @property
    def is_empty(self) -> bool:
        """Whether no input is in its window (the real library then leaves this slice and all that follow unwritten)."""
        return self.down.start >= self.down.stop or self.across.start >= self.across.stop

    @property
    def at_origin(self) -> "OutputSlice":
        """The same slice without its place, on which nothing but the copies in and out depends."""
        down, across = self.down, self.across
        return OutputSlice(
            (0, self.rows[1] - self.rows[0]),
            (0, self.columns[1] - self.columns[0]),
            AxisWindow(0, down.length, down.padding, down.output_padding),
            AxisWindow(0, across.length, across.padding, across.output_padding),
        )


def _axis_window(a: ConvArguments, axis: int, bounds: tuple[int, int], out_length: int) -> AxisWindow:
    """The window of output positions `bounds` on one axis, in the real library's own arithmetic."""
    if isinstance(a, ConvTranspose2dArguments):
        return _transposed_window(a, axis, bounds, out_length)
    length, stride = (a.input_height, a.input_width)[axis], a.stride[axis]
    before, after = a.padding[2 * axis : 2 * axis + 2]
    reach = a.dilation[axis] * (a.kernel_size[axis] - 1)
    first, last = bounds
    start, stop = first * stride - before, (last - 1) * stride - before + reach + 1
    pad_before, pad_after = max(0, -start), max(0, stop - length)
    if first == 0:
        start, pad_before = 0, before
    if last == out_length:
        stop, pad_after = length, after
    return AxisWindow(max(0, start), min(length, stop), (pad_before, pad_after), 0)


def _transposed_window(a: ConvTranspose2dArguments, axis: int, bounds: tuple[int, int], out_length: int) -> AxisWindow:
    length, stride = (a.input_height, a.input_width)[axis], a.stride[axis]
    before, after = a.padding[2 * axis : 2 * axis + 2]
    reach = a.dilation[axis] * (a.kernel_size[axis] - 1)
    real_before, real_after = reach - before, reach - after
    first, last = bounds
    start = max(0, div_up(first - real_before, stride))
    skipped = max(0, first - real_before)
    lead = -skipped % stride
    end = last - real_before + reach
    trail = (end - 1) % stride if last < out_length else 0
    stop = min(length, (end - 1) // stride + 1)
    pad_before = max(0, real_before - first, lead)
    pad_after = max(0, end - out_length, trail)
    output_padding = 0
    if first == 0:
        start, pad_before = 0, real_before
    if last == out_length:
        stop, pad_after, output_padding = length, real_after, a.output_padding[axis]
    return AxisWindow(start, stop, (reach - pad_before, reach - pad_after), output_padding)


def _slice(a: ConvArguments, frame: Frame, rows: tuple[int, int], columns: tuple[int, int]) -> OutputSlice:
    down = _axis_window(a, 0, rows, frame.rows.outputs)
    across = _axis_window(a, 1, columns, frame.columns.outputs)
    whole = (down.start, down.stop, across.start, across.stop) == (0, a.input_height, 0, a.input_width)
    if a.conv_config.output_layout is Layout.TILE and not whole:
        across = _filled(a, across, -(columns[1] - columns[0]) % TILE)
    return OutputSlice(rows, columns, down, across)


def _filled(a: ConvArguments, across: AxisWindow, columns: int) -> AxisWindow:
    """The window with more columns of output, which fill its last tile."""
    if isinstance(a, ConvTranspose2dArguments):
        return replace(across, output_padding=across.output_padding + columns)
    before, after = across.padding
    return replace(across, padding=(before, after + columns * a.stride[1]))


def _rounding(a: ConvArguments, slice_type: SliceType) -> int:
    return TILE if a.conv_config.output_layout is Layout.TILE and slice_type is SliceType.DRAM_WIDTH else 1


def sliced_length(frame: Frame, slice_type: SliceType) -> int:
    """Outputs along the axis that is cut."""
    return frame.rows.outputs if slice_type is SliceType.DRAM_HEIGHT else frame.columns.outputs


def most_slices(a: ConvArguments, slice_type: SliceType) -> int:
    """The most slices a call can be cut into."""
    return div_up(sliced_length(frame_of(a), slice_type), _rounding(a, slice_type))


def output_slices(a: ConvArguments, config: SliceConfig) -> Iterator[OutputSlice]:
    """The slices of a call, in order; those without outputs are left out."""
    frame, rounding = frame_of(a), _rounding(a, config.slice_type)
    length = sliced_length(frame, config.slice_type)
    base, rest = divmod(div_up(length, rounding), config.num_slices)
    start = 0
    for index in range(config.num_slices):
        size = rounding * (base + (index < rest))
        bounds = start, min(length, start + size)
        if bounds[0] >= bounds[1]:
            continue
        by_height = config.slice_type is SliceType.DRAM_HEIGHT
        rows = bounds if by_height else (0, frame.rows.outputs)
        columns = (0, frame.columns.outputs) if by_height else bounds
        part = _slice(a, frame, rows, columns)
        yield part
        if not part.is_empty:
            start += size


def slice_call(a: ConvArguments, part: OutputSlice) -> ConvArguments:
    """The call that computes one slice."""
    height, width = part.down.length, part.across.length
    padding = (*part.down.padding, *part.across.padding)
    if not isinstance(a, ConvTranspose2dArguments):
        return replace(a, input_height=height, input_width=width, padding=padding)
    more = (part.down.output_padding, part.across.output_padding)
    return replace(a, input_height=height, input_width=width, padding=padding, output_padding=more)


def check_slice_count(a: ConvArguments, config: SliceConfig) -> None:
    """Refuse more slices than the output has rows, columns or tiles.

    Raises:
        DeviceError: With the real library's text.
    """
    most = most_slices(a, config.slice_type)
    if config.num_slices > most:
        raise DeviceError(
            f"Number of slices ({config.num_slices}) exceeds the maximum allowed ({most}) "
            "for the given output dimension and alignment.\n"
            f"dram_slice_config: at most {most} slices of type {config.slice_type.name} fit this output; "
            "0 finds the number by itself"
        )
