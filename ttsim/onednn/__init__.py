"""oneDNN's transposed convolution and its gradients on a simulated device, with oneDNN's names.

All functions take and return numpy arrays of float32, float16 or ml_dtypes.bfloat16, with one, two or three spatial
axes. ``precision="ieee"`` gives nearly the results of float32 arithmetic rounded once: numbers are split into slices,
which are multiplied in 13 passes of LoFi for float32 and 8 passes for float16 and bfloat16; the plan includes all
passes. All slices of a tensor have the same exponents, so errors scale with the largest numbers: before rounding, the
sum of n products of a and b is off by less than n * max|a| * max|b| * 2**-22 (float16 and bfloat16: 2**-16), plus the
rounding of float32 sums. ``precision="device"`` is a single pass, which truncates float32 to TF32.
``precision="float64"``, for tests, computes with float64 arrays regardless of ``values``; plan, memory and cycles are
those of "ieee" for float32. Without a device, a call runs on the default device or on a fresh device with
``values="fast"``.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from device.numbers.formats import Array
from ops.planners.onednn.checks import BACKPROP_FILTERS, BACKWARD_DATA, BACKWARD_WEIGHTS, FORWARD
from ttsim.onednn.calls import OPERATIONS, Call, GraphOperation, call_of, run
from ttsim.runtime.device import Device
from ttsim.runtime.session import outside_graphs
from ttsim.runtime.types.docs import described
from ttsim.runtime.types.signatures import public

__all__ = [
    "OPERATIONS",
    "Call",
    "GraphOperation",
    "conv_transpose",
    "conv_transpose_backprop_filters",
    "conv_transpose_backward_data",
    "conv_transpose_backward_weights",
    "run",
]


@outside_graphs
def conv_transpose(
    src: Array,
    weights: Array,
    bias: Array | None = None,
    *,
    strides: Sequence[int] | None = None,
    pads_begin: Sequence[int] | None = None,
    pads_end: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    auto_pad: str = "none",
    output_padding: Sequence[int] | None = None,
    groups: int = 1,
    data_format: str = "NXC",
    weights_format: str = "XOI",
    device: Device | None = None,
    precision: str = "ieee",
    lowering: str = "zero_insertion",
    dst_shape: Sequence[int] | None = None,
    strict: bool = False,
) -> Array:
    """The operation ConvTranspose: a transposed convolution of one, two or three spatial axes.

    Args:
        src: The source: [N, *spatial, I] for data_format NXC, [N, I, *spatial] for NCX.
        weights: [*kernel, O / groups, I] for weights_format XOI, [I, O / groups, *kernel] for IOX,
            [O / groups, I, *kernel] for OIX and [*kernel, I, O / groups] for XIO.
        bias: [O]; None for no bias.
        strides: A stride for every spatial axis; required, like pads_begin, pads_end and dilations.
        pads_begin: Positions cut off at the beginning of the full output.
        pads_end: Positions cut off at the end of the full output.
        dilations: Distances between taps; 1 for a dense kernel.
        auto_pad: "none" for the given pads, "same_upper", "same_lower" or "valid", in upper or lower case.
        output_padding: Positions added at the end of the output.
        groups: Groups of channels.
        data_format: "NXC" or "NCX".
        weights_format: "XOI", "IOX", "OIX" or "XIO".
        device: The device; None for the default device, or a new device with ``values="fast"``.
        precision: "ieee" for nearly the results of float32, "device" for a single pass, which truncates float32 to
            TF32, or "float64" for float64 arithmetic, which no device has; see `ttsim.onednn`.
        lowering: "zero_insertion" inserts zeros between the positions of src, as ttnn does; "phase" computes each
            output phase as a small dense convolution.
        dst_shape: The shape that the result must have; None for any.
        strict: Refuse output_padding that is not smaller than strides, as oneDNN's CPU library does.

    Returns:
        The destination, in ``data_format`` and of the type of src.

    Raises:
        ArgumentTypeError: ``device`` is not a device.
        ArgumentError: An argument breaks a rule of oneDNN's text.
        DeviceError: The call does not fit the device.

    Examples:
        >>> source = np.array([[[1.0], [2.0]]], np.float32)
        >>> weights = np.array([[[1.0]], [[10.0]]], np.float32)
        >>> ttnn.onednn.conv_transpose(
        ...     source, weights, strides=[2], pads_begin=[0], pads_end=[0], dilations=[1]).ravel().tolist()
        [1.0, 10.0, 2.0, 20.0]
    """
    arrays, attributes = {"src": src, "weights": weights, "bias": bias}, _attributes(locals())
    options = {"lowering": lowering, "dst_shape": dst_shape, "strict": strict}
    return run(call_of(FORWARD, attributes, precision, arrays, **options), device)


@outside_graphs
@described(like=conv_transpose)
def conv_transpose_backward_data(
    diff_dst: Array,
    weights: Array,
    *,
    strides: Sequence[int] | None = None,
    pads_begin: Sequence[int] | None = None,
    pads_end: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    auto_pad: str = "none",
    output_padding: Sequence[int] | None = None,
    groups: int = 1,
    data_format: str = "NXC",
    weights_format: str = "XOI",
    src_shape: Sequence[int] | None = None,
    device: Device | None = None,
    precision: str = "ieee",
) -> Array:
    """The operation ConvTransposeBackwardData: the gradient of the source.

    Args:
        diff_dst: Gradient of the destination.
        output_padding: The output padding of `conv_transpose`; None derives it from the sizes.
        src_shape: The shape that the result must have; None for any.

    Returns:
        The gradient, in ``data_format`` and of the type of diff_dst.

    Examples:
        >>> gradient, weights = np.ones((1, 4, 1), np.float32), np.array([[[1.0]], [[10.0]]], np.float32)
        >>> ttnn.onednn.conv_transpose_backward_data(
        ...     gradient, weights, strides=[2], pads_begin=[0], pads_end=[0], dilations=[1]).ravel().tolist()
        [11.0, 11.0]
    """
    arrays, attributes = {"diff_dst": diff_dst, "weights": weights}, _attributes(locals())
    return run(call_of(BACKWARD_DATA, attributes, precision, arrays, src_shape=src_shape), device)


@outside_graphs
@described(like=conv_transpose)
def conv_transpose_backward_weights(
    src: Array,
    diff_dst: Array,
    weights_shape: Sequence[int] | Array | None = None,
    *,
    strides: Sequence[int] | None = None,
    pads_begin: Sequence[int] | None = None,
    pads_end: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    auto_pad: str = "none",
    output_padding: Sequence[int] | None = None,
    groups: int = 1,
    data_format: str = "NXC",
    weights_format: str = "XOI",
    diff_weights_shape: Sequence[int] | None = None,
    device: Device | None = None,
    precision: str = "ieee",
) -> Array:
    """The operation ConvTransposeBackwardWeights: the gradient of the weights.

    Args:
        src: The source of the forward operation.
        diff_dst: Gradient of the destination.
        weights_shape: Shape of the weights as stored, including groups.
        output_padding: The output padding of `conv_transpose`; None derives it from the sizes.
        diff_weights_shape: The shape that the result must have; it may replace weights_shape.

    Returns:
        The gradient, in ``weights_format`` and of the type of src.

    Examples:
        >>> source, gradient = np.array([[[1.0], [2.0]]], np.float32), np.ones((1, 4, 1), np.float32)
        >>> ttnn.onednn.conv_transpose_backward_weights(
        ...     source, gradient, (2, 1, 1), strides=[2], pads_begin=[0], pads_end=[0], dilations=[1]).ravel().tolist()
        [3.0, 3.0]
    """
    arrays, attributes = {"src": src, "diff_dst": diff_dst}, _attributes(locals())
    options = {"weights_shape": weights_shape, "declared": diff_weights_shape}
    return run(call_of(BACKWARD_WEIGHTS, attributes, precision, arrays, **options), device)


@outside_graphs
@described(like=conv_transpose)
def conv_transpose_backprop_filters(
    input_forward: Array,
    output_delta: Array,
    filter_shape: Sequence[int] | Array | None = None,
    *,
    strides: Sequence[int] | None = None,
    pads_begin: Sequence[int] | None = None,
    pads_end: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    auto_pad: str = "none",
    output_padding: Sequence[int] | None = None,
    groups: int = 1,
    data_format: str = "NXC",
    filter_format: str = "XIO",
    device: Device | None = None,
    precision: str = "ieee",
) -> Array:
    """The operation ConvTransposeBackpropFilters, the older form of `conv_transpose_backward_weights`.

    Args:
        input_forward: The source of the forward operation.
        output_delta: Gradient of the destination.
        filter_shape: Shape of the filter as stored, including groups.
        output_padding: The output padding of `conv_transpose`; None derives it from the sizes.
        filter_format: "XIO" or "OIX"; the newer formats are accepted as well.

    Returns:
        The gradient, in ``filter_format`` and of the type of input_forward.

    Examples:
        >>> source, gradient = np.array([[[1.0], [2.0]]], np.float32), np.ones((1, 4, 1), np.float32)
        >>> ttnn.onednn.conv_transpose_backprop_filters(
        ...     source, gradient, (2, 1, 1), strides=[2], pads_begin=[0], pads_end=[0], dilations=[1]).ravel().tolist()
        [3.0, 3.0]
    """
    arrays, attributes = {"src": input_forward, "diff_dst": output_delta}, _attributes(locals())
    return run(call_of(BACKPROP_FILTERS, attributes, precision, arrays, weights_shape=filter_shape), device)


ATTRIBUTES: Final = (
    *("strides", "pads_begin", "pads_end", "dilations", "auto_pad", "output_padding", "groups", "data_format"),
    *("weights_format", "filter_format"),
)


def _attributes(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of an operation among the arguments of its function."""
    return {name: arguments[name] for name in ATTRIBUTES if name in arguments}


__dir__ = public(globals())
