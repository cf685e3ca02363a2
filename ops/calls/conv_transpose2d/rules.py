"""What conv_transpose2d does in its own way: its frame has zeros inserted, and its slices overlap in the input."""

from dataclasses import replace
from typing import Final

from device.numbers.integers import div_up
from ops.calls.convolution.arguments import AxisWindow, ConvArguments, ConvRules
from ops.frame.axis import FrameAxis, transposed_axis


def _axis(call: ConvArguments, axis: int) -> FrameAxis:
    """The rows (0) or the columns (1) of the frame."""
    before, after = call.padding[2 * axis : 2 * axis + 2]
    return transposed_axis(
        input_length=(call.input_height, call.input_width)[axis],
        kernel=call.kernel_size[axis],
        stride=call.stride[axis],
        padding=(before, after),
        output_padding=call.output_padding[axis],
        dilation=call.dilation[axis],
    )


def _window(call: ConvArguments, axis: int, bounds: tuple[int, int], outputs: int) -> AxisWindow:
    """The window of output positions `bounds` on one axis, in the real library's own arithmetic."""
    length, stride = (call.input_height, call.input_width)[axis], call.stride[axis]
    before, after = call.padding[2 * axis : 2 * axis + 2]
    reach = call.dilation[axis] * (call.kernel_size[axis] - 1)
    real_before, real_after = reach - before, reach - after
    first, last = bounds
    start = max(0, div_up(first - real_before, stride))
    skipped = max(0, first - real_before)
    lead = -skipped % stride
    end = last - real_before + reach
    trail = (end - 1) % stride if last < outputs else 0
    stop = min(length, (end - 1) // stride + 1)
    pad_before = max(0, real_before - first, lead)
    pad_after = max(0, end - outputs, trail)
    output_padding = 0
    if first == 0:
        start, pad_before = 0, real_before
    if last == outputs:
        stop, pad_after, output_padding = length, real_after, call.output_padding[axis]
    return AxisWindow(start, stop, (reach - pad_before, reach - pad_after), output_padding)


def _filled(call: ConvArguments, across: AxisWindow, columns: int) -> AxisWindow:
    """The window with more columns of output."""
    return AxisWindow(across.start, across.stop, across.padding, across.output_padding + columns)


CONV_TRANSPOSE2D: Final = ConvRules(
    function="conv_transpose2d",
    transposed=True,
    axis=_axis,
    window=_window,
    filled=_filled,
    one_slice_skips_dram=True,
    whole_window_is_slice=True,
    shards_uploaded_image=False,
    frees_copy_after_halo=False,
    frees_halo_last=False,
    skips_halo=False,
    orders_full_inner_dim=False,
    reuses_activations=False,
)

# The same without inserted zeros: all else is planned alike, so that the two differ by what zeros cost.
CONV_TRANSPOSE2D_BY_PHASES: Final = replace(CONV_TRANSPOSE2D, orders_full_inner_dim=True, by_phases=True)
