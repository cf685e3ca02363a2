"""Splits a call into slices of its output that fit L1 one at a time (docs/reference/planning.md, Slices).

A slice is a separate call: a window of the input, with paddings that give exactly the slice's outputs. The number of
slices is given, or the smallest number whose slices all fit L1 by the real library's estimate.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from device.errors import ArgumentError, DeviceError, OutOfMemoryError
from device.memory.memory_config import TILE, Layout, MemoryConfig
from device.numbers.formats import div_up, round_up
from device.plan import Decision
from device.spec.device_spec import DeviceSpec
from ops.planners.conv.arguments import ConvCall, SliceConfig, SliceType
from ops.programs.conv2d import partition
from ops.programs.conv2d.op import SchemeChoice, choose_scheme, estimate_layout, estimated_halo_bytes
from ops.window import NoWindowError


class AxisWindow(NamedTuple):
    """The part of the input that a slice reads along one axis, and its padding."""

    start: int  # First input position
    stop: int  # One past the last
    padding: tuple[int, int]  # Padding before and after, as an argument of the slice's own call
    output_padding: int  # Output padding of the slice's own call; 0 if it is not transposed

    @property
    def length(self) -> int:
        """Input positions."""
        return self.stop - self.start

    @property
    def at_origin(self) -> "AxisWindow":
        """The same window at the first input."""
        return self._replace(start=0, stop=self.length)


def _window(call: ConvCall, axis: int, bounds: tuple[int, int], outputs: int) -> AxisWindow:
    """The window of output positions `bounds` on one axis, in the real library's own arithmetic."""
    length, stride = (call.input_height, call.input_width)[axis], call.stride[axis]
    before, after = call.padding[2 * axis : 2 * axis + 2]
    reach = call.dilation[axis] * (call.kernel_size[axis] - 1)
    (first, last), output_padding = bounds, 0
    if call.rules.transposed:  # in terms of the zeros around the input, which padding takes away
        before, after = reach - before, reach - after
        start, end = max(0, div_up(first - before, stride)), last - before + reach
        stop = (end - 1) // stride + 1
        zeros_before = max(0, before - first, -max(0, first - before) % stride)
        zeros_after = max(0, end - outputs, (end - 1) % stride if last < outputs else 0)
        output_padding = call.output_padding[axis] if last == outputs else 0
    else:
        return window_of(length, stride, reach, (before, after), bounds, outputs)
    if first == 0:
        start, zeros_before = 0, before
    if last == outputs:
        stop, zeros_after = length, after
    padding = (reach - zeros_before, reach - zeros_after)
    return AxisWindow(max(0, start), min(length, stop), padding, output_padding)


def window_of(
    length: int, stride: int, reach: int, padding: tuple[int, int], bounds: tuple[int, int], outputs: int
) -> AxisWindow:
    """The window of output positions ``bounds`` on an axis; ``reach`` is from a window's first position to its last."""
    (before, after), (first, last) = padding, bounds
    start, stop = first * stride - before, (last - 1) * stride - before + reach + 1
    zeros_before, zeros_after = max(0, -start), max(0, stop - length)
    if first == 0:
        start, zeros_before = 0, before
    if last == outputs:
        stop, zeros_after = length, after
    return AxisWindow(max(0, start), min(length, stop), (zeros_before, zeros_after), 0)


class OutputSlice(NamedTuple):
    """A slice of the output, with the window of the input that it reads."""

    rows: tuple[int, int]  # First row of the output, one past the last
    columns: tuple[int, int]  # First column, one past the last
    down: AxisWindow  # The input window's rows
    across: AxisWindow  # The input window's columns; its outputs may be more than `columns`, to fill tiles

    @property
    def is_empty(self) -> bool:
        """Whether no input is in its window (the real library then leaves this slice and all that follow unwritten)."""
        return self.down.start >= self.down.stop or self.across.start >= self.across.stop

    def is_whole(self, call: ConvCall) -> bool:
        """Whether the slice reads the whole image."""
        return (self.down.length, self.across.length) == (call.input_height, call.input_width)

    @property
    def at_origin(self) -> "OutputSlice":
        """The same slice without its position, on which only the copies in and out depend."""
        rows, columns = (0, self.rows[1] - self.rows[0]), (0, self.columns[1] - self.columns[0])
        return OutputSlice(rows, columns, self.down.at_origin, self.across.at_origin)


def _filling(call: ConvCall, part: OutputSlice) -> int:
    """Columns of output beyond a slice's own that fill its last tile; none if it reads the whole image."""
    if call.conv_config.output_layout is not Layout.TILE or part.is_whole(call):
        return 0
    return -(part.columns[1] - part.columns[0]) % TILE


def rounding_of(call: ConvCall, slice_type: SliceType) -> int:
    """The number of outputs along the sliced axis that slices hold multiples of."""
    return TILE if call.conv_config.output_layout is Layout.TILE and slice_type is SliceType.DRAM_WIDTH else 1


def sliced_length(call: ConvCall, slice_type: SliceType) -> int:
    """Outputs along the axis that is cut."""
    frame = call.frame()
    return frame.rows.outputs if slice_type is SliceType.DRAM_HEIGHT else frame.columns.outputs


def most_slices(call: ConvCall, slice_type: SliceType) -> int:
    """The largest number of slices of a call."""
    return div_up(sliced_length(call, slice_type), rounding_of(call, slice_type))


def output_slices(call: ConvCall, config: SliceConfig) -> Iterator[OutputSlice]:
    """The slices of a call, in order, without slices that have no outputs."""
    rounding, length = rounding_of(call, config.slice_type), sliced_length(call, config.slice_type)
    return cut_slices(_cutter(call, config.slice_type), length, rounding=rounding, count=config.num_slices)


def cut_slices(
    cut: Callable[[tuple[int, int]], OutputSlice], length: int, *, rounding: int, count: int
) -> Iterator[OutputSlice]:
    """Even slices of ``length`` outputs, in multiples of ``rounding``; a slice without input takes no outputs."""
    base, rest = divmod(div_up(length, rounding), count)
    start = 0
    for index in range(count):
        size = rounding * (base + (index < rest))
        bounds = start, min(length, start + size)
        if bounds[0] >= bounds[1]:
            continue
        part = cut(bounds)
        yield part
        if not part.is_empty:
            start += size


def first_slice(call: ConvCall, config: SliceConfig) -> OutputSlice:
    """The slice that weights are prepared for: the first, as high or as wide as any, and rounded up."""
    size = rounding_of(call, config.slice_type) * div_up(most_slices(call, config.slice_type), config.num_slices)
    return _cutter(call, config.slice_type)((0, size))


def _cutter(call: ConvCall, slice_type: SliceType) -> Callable[[tuple[int, int]], OutputSlice]:
    """The function that cuts the slice of some outputs along the sliced axis; slices share the window of the other."""
    lengths = call.axis(0).outputs, call.axis(1).outputs
    sliced = int(slice_type is SliceType.DRAM_WIDTH)
    uncut = _window(call, 1 - sliced, (0, lengths[1 - sliced]), lengths[1 - sliced])

    def cut(bounds: tuple[int, int]) -> OutputSlice:
        window = _window(call, sliced, bounds, lengths[sliced])
        if sliced:
            part = OutputSlice((0, lengths[0]), bounds, uncut, window)
        else:
            part = OutputSlice(bounds, (0, lengths[1]), window, uncut)
        filling, across = _filling(call, part), part.across
        if filling and call.rules.transposed:
            across = across._replace(output_padding=across.output_padding + filling)
        elif filling:
            before, after = across.padding
            across = across._replace(padding=(before, after + filling * call.stride[1]))
        return part._replace(across=across)

    return cut


def slice_call(call: ConvCall, part: OutputSlice) -> ConvCall:
    """The call that computes one slice; the call itself if there is only one slice."""
    height, width = part.down.length, part.across.length
    padding = (*part.down.padding, *part.across.padding)
    more = (part.down.output_padding, part.across.output_padding)
    if (height, width, padding, more) == (call.input_height, call.input_width, call.padding, call.output_padding):
        return call
    return replace(call, input_height=height, input_width=width, padding=padding, output_padding=more)


def given_slices(call: ConvCall) -> SliceConfig | None:
    """The slices that the caller counted, if there are several and each becomes a call in shards."""
    config = call.slice_config
    several = config is not None and config.num_slices > 1 and not call.in_one_piece
    return config if several and 0 not in call.stride else None


def slices_name(call: ConvCall) -> str:
    """The argument with the slices."""
    return "dram_slice_config" if call.rules.transposed else "slice_config"


def way_out(call: ConvCall) -> str:
    """Advice about wrong slices; a call without given slices cannot leave them out."""
    if call.slice_config is not None and call.slice_config.num_slices:
        return f"give another number of slices, cut along the other axis, or leave {slices_name(call)} out"
    return f"give a {slices_name(call)} with another number of slices, or one that cuts along the other axis"


def too_many(call: ConvCall, slices: SliceConfig) -> bool:
    """Whether a call cannot be cut into this number of slices; its plan reports this first."""
    try:
        return slices.num_slices > most_slices(call, slices.slice_type)
    except NoWindowError:
        return False


def check_slice_count(call: ConvCall, config: SliceConfig) -> None:
    """Raises DeviceError for more slices than the output of a call has rows, columns or tiles."""
    most = most_slices(call, config.slice_type)
    if config.num_slices > most:
        raise DeviceError(
            f"{too_many_line(config.num_slices, most)}\ndram_slice_config: at most {most} slices of type "
            f"{config.slice_type.name} fit this output; 0 finds the number by itself"
        )


def too_many_line(slices: int, most: int) -> str:
    """The first line of the real library's error for too many slices."""
    return (
        f"Number of slices ({slices}) exceeds the maximum allowed ({most}) "
        "for the given output dimension and alignment."
    )


class SliceCores(NamedTuple):
    """The cores that the input window of a slice is distributed to."""

    call: ConvCall  # The slice's own call
    cores: partition.ParallelConfig
    shard: tuple[int, int]  # Rows and channels of the window on a core
    choice: SchemeChoice | None  # Of their scheme, where the library made it
    problem: partition.ConvProblem  # Of the slice's own call, as the options
    options: partition.ConvOptions

    @property
    def memory(self) -> MemoryConfig:
        """The memory of the window in L1."""
        return partition.sharded_memory(self.cores, *self.shard)


def input_cores(call: ConvCall, part: OutputSlice, device_spec: DeviceSpec) -> SliceCores:
    """The cores that the input window of a slice is distributed to; conv2d takes a whole image for no slice."""
    own = slice_call(call, part)
    problem, options = own.lower()
    nominal = _nominal(problem, part, filling=_filling(call, part))
    scheme, choice = call.conv_config.shard_layout, None
    if scheme is None:
        choice = choose_scheme(nominal, options, device_spec, matmul=False)
        scheme = choice.scheme
    free = options
    if options.act_block_h_override or options.core_grid is not None:
        free = replace(options, act_block_h_override=0, core_grid=None)
    in_rows, sliced = (
        call.input.spec.layout is Layout.ROW_MAJOR,
        not part.is_whole(call) or own.rules.whole_window_is_slice,
    )
    alignment = partition.channel_alignment(
        scheme, row_major=sliced or in_rows, sliced=sliced, matmul=False, shard_width=None
    )
    cores = partition.choose_cores(nominal, free, device_spec, scheme, alignment=alignment)
    unit = 1 if scheme is partition.WIDTH and in_rows else TILE
    rows = round_up(problem.in_rows, cores.nhw_cores * unit) // cores.nhw_cores
    width = round_up(call.in_channels, cores.channel_cores * alignment) // cores.channel_cores
    return SliceCores(own, cores, (rows, width), choice, problem, options)


def slice_l1_bytes(call: ConvCall, part: OutputSlice, device_spec: DeviceSpec, *, slices: int) -> int:
    """L1 of one slice, as the real library estimates it in the search for a number of slices."""
    cores = input_cores(call, part, device_spec)
    layout = _estimated_layout(call, part, cores, device_spec, slices=slices)
    problem, config, (rows, width) = cores.problem, cores.cores, cores.shard
    in_bytes, unprepared = rows * width * (problem.act_format.element_bytes or 0), None
    if not call.rules.transposed:
        unprepared = partition.scheme_alignment(problem, config.scheme)
        in_bytes = in_bytes // 2 if problem.in_format.is_block else in_bytes
    halo_bytes = estimated_halo_bytes(problem, config.nhw_cores, width)
    return max(estimate_layout(layout, unprepared, halo_bytes).total_bytes, in_bytes + halo_bytes)


def _estimated_layout(
    call: ConvCall, part: OutputSlice, cores: SliceCores, device_spec: DeviceSpec, *, slices: int
) -> partition.ConvPartition:
    """The partition of a slice whose L1 is estimated; DeviceError for its blocks."""
    problem, options, config = cores.problem, cores.options, cores.cores
    if not call.rules.transposed:
        alignment = partition.scheme_alignment(problem, config.scheme)
        return partition.partition_conv(problem, options, device_spec, config, alignment=alignment)
    options = options if options.output_grid is None else replace(options, output_grid=None)
    row_major = call.conv_config.output_layout is Layout.ROW_MAJOR
    alignment = partition.channel_alignment(config.scheme, row_major=row_major, sliced=slices > 1)
    counted = _nominal(problem, part)
    return partition.partition_conv(counted, options, device_spec, config, alignment=TILE, reader_alignment=alignment)


def _nominal(problem: partition.ConvProblem, part: OutputSlice, *, filling: int = 0) -> partition.ConvProblem:
    """The problem with the slice's nominal number of outputs, if its own call computes more or fewer."""
    rows, columns = problem.frame.rows, problem.frame.columns
    more = (part.rows[1] - part.rows[0] - rows.outputs, part.columns[1] - part.columns[0] + filling - columns.outputs)
    if more == (0, 0):
        return problem
    rows = replace(rows, trailing=rows.trailing + more[0])  # zeros after the axis
    columns = replace(columns, trailing=columns.trailing + more[1])
    return replace(problem, frame=replace(problem.frame, rows=rows, columns=columns))


OTHER_AXIS = {SliceType.DRAM_HEIGHT: SliceType.DRAM_WIDTH, SliceType.DRAM_WIDTH: SliceType.DRAM_HEIGHT}
WIDE_IMAGE = 200  # tiled outputs of narrower images are cut along the height
TALL_RATIO = 3  # row-major outputs of images taller than this times their width too


def guess_slice_type(call: ConvCall) -> SliceType:
    """The default axis of slices of a call."""
    return guessed_axis(call.input_height, call.input_width, tiled=call.conv_config.output_layout is Layout.TILE)


def guessed_axis(height: int, width: int, *, tiled: bool) -> SliceType:
    """The default axis along which images are sliced."""
    tall = width < WIDE_IMAGE or height > width if tiled else height > TALL_RATIO * width
    return SliceType.DRAM_HEIGHT if tall else SliceType.DRAM_WIDTH


def describe_slices(config: SliceConfig) -> str:
    """Number and axis in words."""
    if config.num_slices == 1:
        return "one slice"
    return f"{config.num_slices} slices of {'rows' if config.slice_type is SliceType.DRAM_HEIGHT else 'columns'}"


def choose_slices(call: ConvCall, device_spec: DeviceSpec, *, free_l1_bytes: int) -> tuple[SliceConfig, Decision]:
    """The smallest number of slices that fit the free L1, along the given axis or the better guess, then the other.

    Returns the slices and the reason for the choice.
    """
    kinds, reason, whose = _kinds(call), "", " of a core's L1"
    limits: tuple[tuple[str, int], ...] = (("free_l1_bytes", free_l1_bytes),)
    known: dict[tuple[OutputSlice, bool], int] = {}

    def need(part: OutputSlice, several: bool) -> int:
        """Bytes of a slice, estimated once for all slices that are equal except for their position."""
        if (part, several) not in known:
            known[part, several] = slice_l1_bytes(call, part, device_spec, slices=1 + several)
        return known[part, several]

    counts = ((kind, count) for kind in kinds for count in range(1, most_slices(call, kind) + 1))
    for config in (SliceConfig(slice_type=kind, num_slices=count) for kind, count in counts):
        parts = (part.at_origin for part in output_slices(call, config) if not part.is_empty)
        needs: Iterable[int] = (need(part, config.num_slices > 1) for part in parts)
        try:
            if call.conv_config.act_block_h_override:  # its blocks are checked in all slices
                needs = list(needs)
            excess = next((need_bytes for need_bytes in needs if need_bytes > free_l1_bytes), None)
        except NoWindowError:  # a slice without outputs, on which the real search can crash
            continue
        if excess is None:
            free = f"{free_l1_bytes:,} B{'' if reason else whose} are free"
            text = f"{describe_slices(config)}, the least number that fits by the library's estimate: {reason}{free}"
            return config, Decision(name="num_slices", value=config.num_slices, text=text, limits=limits)
        limits = (("needed_l1_bytes", excess), ("free_l1_bytes", free_l1_bytes))
        reason = f"{describe_slices(config)} would take {excess:,} B{whose}, and "
    most, length = most_slices(call, kinds[-1]), sliced_length(call, kinds[-1])
    raise OutOfMemoryError(
        f"{none_found(kinds[-1], most, length, free_l1_bytes)}\n"
        "conv_config: a smaller act_block_h_override, weights_dtype=bfloat8_b, no double buffering or another "
        "shard_layout take less; other live L1 tensors may be released first"
    )


def estimates(call: ConvCall, device_spec: DeviceSpec) -> bool:
    """Whether the search for a number of slices estimates a slice; images without outputs along the axis have none.

    Raises the library's DeviceError for the blocks of a single slice. Those of a scheme that the library chooses are
    also compared with a core's outputs, which needs the format of the weights.
    """
    whole, chosen = SliceConfig(slice_type=_kinds(call)[0], num_slices=1), call.conv_config.shard_layout is None
    with suppress(NoWindowError, *(() if chosen else (partition.UnknownRatesError,))):
        for part in output_slices(call, whole):
            if chosen and not part.is_empty:
                slice_l1_bytes(call, part.at_origin, device_spec, slices=1)
            elif not part.is_empty:
                cores = input_cores(call, part.at_origin, device_spec)
                _estimated_layout(call, part.at_origin, cores, device_spec, slices=1)
    return call.output_lengths()[whole.slice_type is SliceType.DRAM_WIDTH] != 0


def require_outputs(call: ConvCall, refusal: str | None, free_l1_bytes: int | None) -> None:
    """Raises ArgumentError for a call without outputs, with the real library's first line if it has one.

    Raises nothing if the real library runs out of DRAM, which only the plan shows. ``refusal`` is our text for a call
    without outputs; None if it has outputs.
    """
    if refusal is None or (free_l1_bytes is not None and not call.folds and call.plans_without_outputs):
        return
    first = None
    if free_l1_bytes is not None:
        outputs = call.output_size if call.folds else call.output_lengths(unsigned=True)
        first = _slices_of_nothing(call, outputs, free_l1_bytes)
    raise ArgumentError(refusal if first is None else f"{first}\n{refusal}")


def _slices_of_nothing(call: ConvCall, outputs: tuple[int, int], free_l1_bytes: int) -> str | None:
    """The real library's error that it finds no slices of a call without outputs; None where it crashes instead.

    The library reports this error where the sliced axis has no outputs, or, if it chooses the axis, where both have
    none.
    """
    if call.takes_l1_path or min(outputs) < 0:
        return None
    kinds = _kinds(call)
    if call.slice_config is not None and call.slice_config.num_slices:
        return too_many_of_nothing(call, outputs)
    has_outputs = any(outputs[kind is SliceType.DRAM_WIDTH] for kind in kinds)
    return None if has_outputs else none_found(kinds[-1], 0, 0, free_l1_bytes)


def too_many_of_nothing(call: ConvCall, outputs: tuple[int, int]) -> str | None:
    """The first line of the real library's error for more slices than these outputs allow; None for no more."""
    config = call.slice_config
    if config is None or not config.num_slices:
        return None
    most = div_up(outputs[config.slice_type is SliceType.DRAM_WIDTH], rounding_of(call, config.slice_type))
    return too_many_line(config.num_slices, most) if config.num_slices > most else None


def _kinds(call: ConvCall) -> list[SliceType]:
    """The sliced axes that the search tries, in order."""
    if call.slice_config is not None:
        return [call.slice_config.slice_type]
    guess = guess_slice_type(call)
    return [guess, OTHER_AXIS[guess]]


def none_found(kind: SliceType, most: int, length: int, free_l1_bytes: int) -> str:
    """The first line of the real library's error that no number of slices fits L1."""
    axis = "height" if kind is SliceType.DRAM_HEIGHT else "width"
    return (
        f"DRAM Auto slice could not find valid slice configuration. Tried up to {most} slices for {axis}-slicing "
        f"on output dimension {length}. Available L1: {free_l1_bytes} bytes. "
        "Operation requires more memory than available even with maximum slicing."
    )
