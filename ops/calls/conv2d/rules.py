"""What conv2d does in its own way: its frame is the image with zeros around it."""

from typing import Final

from ops.calls.convolution.arguments import AxisWindow, ConvArguments, ConvRules
from ops.frame.axis import FrameAxis, convolution_axis


def _axis(call: ConvArguments, axis: int) -> FrameAxis:
    """The rows (0) or the columns (1) of the frame."""
    before, after = call.padding[2 * axis : 2 * axis + 2]
    return convolution_axis(
        input_length=(call.input_height, call.input_width)[axis],
        kernel=call.kernel_size[axis],
        stride=call.stride[axis],
        padding=(before, after),
        dilation=call.dilation[axis],
    )


def _window(call: ConvArguments, axis: int, bounds: tuple[int, int], outputs: int) -> AxisWindow:
    """The window of output positions `bounds` on one axis, in the real library's own arithmetic."""
    length, stride = (call.input_height, call.input_width)[axis], call.stride[axis]
    before, after = call.padding[2 * axis : 2 * axis + 2]
    reach = call.dilation[axis] * (call.kernel_size[axis] - 1)
    first, last = bounds
    start, stop = first * stride - before, (last - 1) * stride - before + reach + 1
    pad_before, pad_after = max(0, -start), max(0, stop - length)
    if first == 0:
        start, pad_before = 0, before
    if last == outputs:
        stop, pad_after = length, after
    return AxisWindow(max(0, start), min(length, stop), (pad_before, pad_after), 0)


def _filled(call: ConvArguments, across: AxisWindow, columns: int) -> AxisWindow:
    """The window with more columns of output."""
    before, after = across.padding
    return across._replace(padding=(before, after + columns * call.stride[1]))


CONV2D: Final = ConvRules(
    function="conv2d",
    transposed=False,
    axis=_axis,
    window=_window,
    filled=_filled,
    one_slice_skips_dram=False,
    whole_window_is_slice=False,
    shards_uploaded_image=True,
    frees_copy_after_halo=True,
    frees_halo_last=True,
    skips_halo=True,
    orders_full_inner_dim=True,
    reuses_activations=True,
)
