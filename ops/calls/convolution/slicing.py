"""Cutting a call into slices of its output that fit L1 one at a time (docs/planning.md, Slices).

A slice is a call of its own: a window of the input, with paddings that give exactly the slice's outputs.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from device.errors import DeviceError
from device.memory.memory_config import Layout
from device.memory.tiles import TILE
from device.numbers.integers import div_up
from ops.calls.convolution.arguments import AxisWindow, ConvArguments, SliceConfig, SliceType
from ops.calls.convolution.problem import frame_of
from ops.frame.frame import Frame


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


def _slice(call: ConvArguments, frame: Frame, rows: tuple[int, int], columns: tuple[int, int]) -> OutputSlice:
    down = call.rules.window(call, 0, rows, frame.rows.outputs)
    across = call.rules.window(call, 1, columns, frame.columns.outputs)
    whole = (down.start, down.stop, across.start, across.stop) == (0, call.input_height, 0, call.input_width)
    if call.conv_config.output_layout is Layout.TILE and not whole:
        across = call.rules.filled(call, across, -(columns[1] - columns[0]) % TILE)
    return OutputSlice(rows, columns, down, across)


def _rounding(call: ConvArguments, slice_type: SliceType) -> int:
    return TILE if call.conv_config.output_layout is Layout.TILE and slice_type is SliceType.DRAM_WIDTH else 1


def sliced_length(frame: Frame, slice_type: SliceType) -> int:
    """Outputs along the axis that is cut."""
    return frame.rows.outputs if slice_type is SliceType.DRAM_HEIGHT else frame.columns.outputs


def most_slices(call: ConvArguments, slice_type: SliceType) -> int:
    """The most slices a call can be cut into."""
    return div_up(sliced_length(frame_of(call), slice_type), _rounding(call, slice_type))


def output_slices(call: ConvArguments, config: SliceConfig) -> Iterator[OutputSlice]:
    """The slices of a call, in order; those without outputs are left out."""
    frame, rounding = frame_of(call), _rounding(call, config.slice_type)
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
        part = _slice(call, frame, rows, columns)
        yield part
        if not part.is_empty:
            start += size


def slice_call(call: ConvArguments, part: OutputSlice) -> ConvArguments:
    """The call that computes one slice."""
    height, width = part.down.length, part.across.length
    padding = (*part.down.padding, *part.across.padding)
    more = (part.down.output_padding, part.across.output_padding)
    return replace(call, input_height=height, input_width=width, padding=padding, output_padding=more)


def check_slice_count(call: ConvArguments, config: SliceConfig) -> None:
    """Refuse more slices than the output has rows, columns or tiles.

    Raises:
        DeviceError: With the real library's text.
    """
    most = most_slices(call, config.slice_type)
    if config.num_slices > most:
        raise DeviceError(
            f"Number of slices ({config.num_slices}) exceeds the maximum allowed ({most}) "
            "for the given output dimension and alignment.\n"
            f"dram_slice_config: at most {most} slices of type {config.slice_type.name} fit this output; "
            "0 finds the number by itself"
        )
