"""Cutting a call into slices of its output that fit L1 one at a time: reference, section 2.6.

A slice is a call of its own: a window of the input, with paddings that give exactly the slice's outputs.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache

from device.errors import DeviceError, OutOfMemoryError
from device.memory_config import BufferType, Layout, MemoryConfig, ShardSpec, TensorMemoryLayout
from device.rounding import div_up, round_up
from device.spec import DeviceSpec
from device.tiles import TILE
from ops.conv2d.auto_shard import choose_scheme, estimated_buffers, estimated_halo_bytes
from ops.conv2d.circular_buffers import local_bytes
from ops.conv2d.layout import (
    ConvOptions,
    ConvProblem,
    choose_cores,
    estimated_blocks,
    lay_out,
    scheme_alignment,
)
from ops.conv2d.partition import BLOCK, WIDTH, ParallelConfig, channel_alignment
from ops.conv_transpose2d.arguments import ConvArguments, ConvTranspose2dArguments, SliceConfig, SliceType
from ops.conv_transpose2d.lowering import frame_of, lower
from ops.halo.frame import Frame

WIDE_IMAGE = 200  # tiled outputs of narrower images are cut along the height
TALL_RATIO = 3  # row-major outputs of images taller than this times their width too


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


def _sliced_length(frame: Frame, slice_type: SliceType) -> int:
    return frame.rows.outputs if slice_type is SliceType.DRAM_HEIGHT else frame.columns.outputs


def most_slices(a: ConvArguments, slice_type: SliceType) -> int:
    """The most slices a call can be cut into."""
    return div_up(_sliced_length(frame_of(a), slice_type), _rounding(a, slice_type))


def output_slices(a: ConvArguments, config: SliceConfig) -> Iterator[OutputSlice]:
    """The slices of a call, in order; those without outputs are left out."""
    frame, rounding = frame_of(a), _rounding(a, config.slice_type)
    length = _sliced_length(frame, config.slice_type)
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


def input_cores(a: ConvArguments, part: OutputSlice, spec: DeviceSpec) -> ParallelConfig:
    """Cores among which the input window of a slice is dealt."""
    return _input_cores(a, part, *lower(slice_call(a, part)), spec)


def _input_cores(
    a: ConvArguments, part: OutputSlice, problem: ConvProblem, options: ConvOptions, spec: DeviceSpec
) -> ParallelConfig:
    scheme = a.conv_config.shard_layout or choose_scheme(problem, options, spec, matmul=False)
    if options.act_block_h_override or options.core_grid is not None:
        options = replace(options, act_block_h_override=0, core_grid=None)
    nominal = _over(problem, _with_nominal_rows(problem.frame, part))
    return choose_cores(nominal, options, spec, scheme, alignment=_window_alignment(a, part, scheme))


def _window_alignment(a: ConvArguments, part: OutputSlice, scheme: TensorMemoryLayout) -> int:
    """Channels a shard of the window is a multiple of; conv2d takes a window of the whole image for no slice."""
    whole = (part.down.length, part.across.length) == (a.input_height, a.input_width)
    sliced = not whole or isinstance(a, ConvTranspose2dArguments)
    row_major = sliced or a.input.spec.layout is Layout.ROW_MAJOR
    return channel_alignment(scheme, row_major=row_major, sliced=sliced, matmul=False, shard_width=None)


def input_memory(a: ConvArguments, part: OutputSlice, config: ParallelConfig) -> MemoryConfig:
    """Where the input window of a slice is put in L1."""
    rows = a.batch_size * part.down.length * part.across.length
    unit = 1 if config.scheme is WIDTH and a.input.spec.layout is Layout.ROW_MAJOR else TILE
    shard_rows = round_up(rows, config.nhw_cores * unit) // config.nhw_cores
    alignment = _window_alignment(a, part, config.scheme)
    width = round_up(a.in_channels, config.channel_cores * alignment) // config.channel_cores
    return MemoryConfig(config.scheme, BufferType.L1, ShardSpec(config.cores, (shard_rows, width), config.orientation))


def slice_l1_bytes(a: ConvArguments, part: OutputSlice, spec: DeviceSpec, *, slices: int) -> int:
    """L1 that one slice takes, as the real library estimates it when it looks for a number of slices."""
    problem, options = lower(slice_call(a, part))
    config = _input_cores(a, part, problem, options, spec)
    shards = input_memory(a, part, config).shard_spec
    if shards is None:
        raise AssertionError("the window of a slice is always sharded")
    in_bytes = shards.shape[0] * shards.shape[1] * (problem.act_format.element_bytes or 0)
    if isinstance(a, ConvTranspose2dArguments):
        row_major = a.conv_config.output_layout is Layout.ROW_MAJOR
        alignment = channel_alignment(
            config.scheme, row_major=row_major, sliced=slices > 1, matmul=False, shard_width=None
        )
        counted = _over(problem, _without_filling(problem.frame, part))
        layout = lay_out(counted, options, spec, config, alignment=TILE, reader_alignment=alignment)
        blocks = layout.blocks.k_blocks * (layout.out_config.channel_cores if config.scheme is BLOCK else 1)
    else:
        alignment, counted = scheme_alignment(problem, config.scheme), problem
        layout = lay_out(counted, options, spec, config, alignment=alignment)
        blocks = estimated_blocks(counted, layout, alignment)
        in_bytes = in_bytes // 2 if problem.in_format.is_block else in_bytes
    buffers = estimated_buffers(counted, options, layout, accumulation_blocks=blocks)
    halo_bytes = estimated_halo_bytes(problem, config.nhw_cores, shards.shape[1])
    output_bytes = next(b.size_bytes for b in buffers if b.name == "out")
    return max(halo_bytes + output_bytes + local_bytes(buffers), in_bytes + halo_bytes)


def _over(problem: ConvProblem, frame: Frame) -> ConvProblem:
    """The problem over another frame."""
    return problem if frame is problem.frame else replace(problem, frame=frame)


def _without_filling(frame: Frame, part: OutputSlice) -> Frame:
    """The frame without the columns that only fill the slice's last tile."""
    filling = frame.columns.outputs - (part.columns[1] - part.columns[0])
    if not filling:
        return frame
    columns = replace(frame.columns, trailing=frame.columns.trailing - filling)
    return replace(frame, columns=columns)


def _with_nominal_rows(frame: Frame, part: OutputSlice) -> Frame:
    """The frame with as many output rows as the slice stands for, where its own call computes more or fewer."""
    missing = (part.rows[1] - part.rows[0]) - frame.rows.outputs
    if not missing:
        return frame
    return replace(frame, rows=replace(frame.rows, trailing=frame.rows.trailing + missing))


def guess_slice_type(a: ConvArguments) -> SliceType:
    """Along which axis a call is cut if the caller does not say."""
    if a.conv_config.output_layout is Layout.ROW_MAJOR:
        tall = a.input_height > TALL_RATIO * a.input_width
    else:
        tall = a.input_width < WIDE_IMAGE or a.input_height > a.input_width
    return SliceType.DRAM_HEIGHT if tall else SliceType.DRAM_WIDTH


def choose_slices(a: ConvArguments, spec: DeviceSpec, *, free_l1_bytes: int) -> SliceConfig:
    """The smallest number of slices that fit the free L1, along the given axis or the better guess, then the other.

    Raises:
        OutOfMemoryError: No number of slices fits, with the real library's text.
    """
    if a.slice_config is not None:
        kinds = [a.slice_config.slice_type]
    else:
        guess = guess_slice_type(a)
        kinds = [guess, SliceType.DRAM_WIDTH if guess is SliceType.DRAM_HEIGHT else SliceType.DRAM_HEIGHT]
    need = cache(lambda part, several: slice_l1_bytes(a, part, spec, slices=1 + several))  # most slices are alike
    for kind in kinds:
        for count in range(1, most_slices(a, kind) + 1):
            config = SliceConfig(slice_type=kind, num_slices=count)
            if _fits(a, config, need, free_l1_bytes):
                return config
    axis = "height" if kinds[-1] is SliceType.DRAM_HEIGHT else "width"
    raise OutOfMemoryError(
        "DRAM Auto slice could not find valid slice configuration. "
        f"Tried up to {most_slices(a, kinds[-1])} slices for {axis}-slicing "
        f"on output dimension {_sliced_length(frame_of(a), kinds[-1])}. Available L1: {free_l1_bytes} bytes. "
        "Operation requires more memory than available even with maximum slicing.\n"
        "conv_config: a smaller act_block_h_override, weights_dtype=bfloat8_b, no double buffering or another "
        "shard_layout take less; other live L1 tensors may be released first"
    )


def _fits(a: ConvArguments, config: SliceConfig, need: Callable[[OutputSlice, bool], int], free_l1_bytes: int) -> bool:
    """Whether every slice fits; one without outputs of its own, where the real search can crash, does not.

    Args:
        a: The call.
        config: The slices.
        need: L1 of one of them, given whether there are several.
        free_l1_bytes: What they have.

    Raises:
        DeviceError: The blocks of a slice are refused. Only given blocks can be: without any, the first slice that does
            not fit ends the search.
    """
    several = config.num_slices > 1
    needs: Iterable[int] = (need(part.at_origin, several) for part in output_slices(a, config) if not part.is_empty)
    try:
        if a.conv_config.act_block_h_override:
            needs = list(needs)
        return all(need_bytes <= free_l1_bytes for need_bytes in needs)
    except ValueError:
        return False


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
