"""oneDNN's transposed convolution and its gradients on a simulated device, under oneDNN's names.

All take and return numpy arrays of float32, float16 or ml_dtypes.bfloat16, on one, two or three spatial axes.
``precision="ieee"`` gives results nearly as if computed in float32 and rounded once: numbers are multiplied in slices,
float32 in 13 passes of LoFi and the other two in 8, and the plan holds all of them. Slices lie on one grid for each
tensor, so that what products lose is measured by the largest numbers: before that rounding, the sum of n products of a
and b is off by less than n * max|a| * max|b| * 2**-22 (float16 and bfloat16: 2**-16), besides the rounding of float32
sums. ``precision="device"`` is a single pass, which cuts float32 to TF32. ``precision="float64"``, for tests, computes
with float64 arrays as no device does, whatever its ``values``; plan, memory and cycles are those of "ieee" for float32.
Without a device, a call runs on the default device or on a fresh one with ``values="fast"``.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from device.numbers.formats import Array
from ops.planners.onednn.checks import BACKPROP_FILTERS, BACKWARD_DATA, BACKWARD_WEIGHTS, FORWARD
from ttsim.onednn.calls import OPERATIONS, Call, GraphOperation, call_of, run
from ttsim.runtime.device import Device
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
    """ConvTranspose.

    Args:
        src: [N, *spatial, I] for data_format NXC, [N, I, *spatial] for NCX.
        weights: [*kernel, O / groups, I] for weights_format XOI, [I, O / groups, *kernel] for IOX, and likewise OIX and
            XIO.
        bias: [O].
        strides: For every spatial axis; required, as pads_begin, pads_end and dilations are.
        pads_begin: What is cut off at the beginning of the full output.
        pads_end: What is cut off at its end.
        dilations: 1 for a dense kernel.
        auto_pad: "none" for the given pads, "same_upper", "same_lower" or "valid", in any case.
        output_padding: What is added at the end.
        groups: Groups of channels.
        data_format: "NXC" or "NCX".
        weights_format: "XOI", "IOX", "OIX" or "XIO".
        precision: "ieee", "device" or "float64".
        lowering: "zero_insertion" inserts zeros between the positions of src, as ttnn does; "phase" computes each
            output phase as a small dense convolution.
        dst_shape: Shape the result must have.
        strict: Refuse output_padding that is not smaller than strides, as oneDNN's CPU library does.

    Returns:
        dst, of the type of src.

    Raises:
        ArgumentError: An argument breaks a rule of the text.
        DeviceError: The call does not fit the device.
    """
    arrays, attributes = {"src": src, "weights": weights, "bias": bias}, _attributes(locals())
    options = {"lowering": lowering, "dst_shape": dst_shape, "strict": strict}
    return run(call_of(FORWARD, attributes, precision, arrays, **options), device)


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
    """The gradient of the source by ConvTransposeBackwardData; attributes and errors are those of `conv_transpose`.

    Args:
        diff_dst: Gradient of dst.
        output_padding: That of `conv_transpose`; left out, what is over of diff_dst is taken for it.
        src_shape: Shape the result must have.
    """
    arrays, attributes = {"diff_dst": diff_dst, "weights": weights}, _attributes(locals())
    return run(call_of(BACKWARD_DATA, attributes, precision, arrays, src_shape=src_shape), device)


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
    """The weights' gradient by ConvTransposeBackwardWeights; attributes and errors are those of `conv_transpose`.

    Args:
        src: The source of the forward operation.
        diff_dst: Gradient of dst.
        weights_shape: Stored shape of the weights, groups included.
        output_padding: That of `conv_transpose`; left out, what is over of diff_dst is taken for it.
        diff_weights_shape: Shape the result must have; it stands in for weights_shape.
    """
    arrays, attributes = {"src": src, "diff_dst": diff_dst}, _attributes(locals())
    options = {"weights_shape": weights_shape, "declared": diff_weights_shape}
    return run(call_of(BACKWARD_WEIGHTS, attributes, precision, arrays, **options), device)


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
    """The gradient of the filter by ConvTransposeBackpropFilters, the older form of `conv_transpose_backward_weights`.

    Args:
        input_forward: The source of the forward operation.
        output_delta: Gradient of its result.
        filter_shape: Stored shape of the filter, groups included.
        filter_format: "XIO" or "OIX"; the newer formats are understood, too.
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
