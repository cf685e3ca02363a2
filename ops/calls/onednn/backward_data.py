"""The gradient with respect to the source: an ordinary strided convolution of the destination's gradient."""

from math import prod

from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder
from ops.calls.onednn.problem import Deconvolution
from ops.calls.onednn.stages import HOST_TENSOR, image_sticks, result_sticks, tap_matrices
from ops.definition.geometry import TransposedAxis
from ops.frame.axis import FrameAxis, gradient_axis
from ops.meanings import MEANINGS
from ops.programs.patch_matmul.bundles import bundle_count
from ops.programs.patch_matmul.plan import patch_matmul_work, run_patch_matmul
from ops.programs.patch_matmul.work import Patches


def strided_axis(axis: TransposedAxis) -> FrameAxis:
    """The destination as source positions meet it: position p and tap k at p * stride + k * dilation - padding."""
    return gradient_axis(
        output_length=axis.output_size,
        kernel=axis.kernel,
        stride=axis.stride,
        padding=(axis.pad_before, axis.pad_after),
        output_padding=axis.output_padding,
        dilation=axis.dilation,
    )


def plan_backward_data(d: Deconvolution, device_spec: DeviceSpec) -> Plan:
    """Plan ConvTransposeBackwardData.

    Args:
        d: The forward call.

    Returns:
        A plan of the host tensors "diff_dst" and "weights", and of the result "diff_src", rows of channels on the
        device.
    """
    builder = PlanBuilder(device_spec, dict.fromkeys(("diff_dst", "weights"), HOST_TENSOR))
    axes = tuple(strided_axis(axis) for axis in d.geometry.axes)
    bundles = bundle_count(d.groups, d.in_channels, d.out_channels)
    patches = Patches(batch=d.batch, axes=axes, channels=d.out_channels, groups=d.groups, bundles=bundles)
    parts = d.slicing.in0_slices
    sticks = image_sticks(builder, d, "diff_dst", d.geometry.output_shape, d.out_channels, parts=parts)
    taps = [range(axis.kernel) for axis in d.geometry.axes]
    weights = tap_matrices(builder, d, "weights.taps", taps, patches, d.in_channels, back=True)
    sizes = d.geometry.input_shape
    result = result_sticks(builder, "diff_src", d.batch * prod(sizes), d.in_channels, d.data_format)
    work = patch_matmul_work(
        patches,
        out_channels=d.in_channels,
        out_shape=sizes,
        slicing=d.slicing,
        bias=False,
        out_format=d.data_format,
        spec=device_spec,
    )
    run_patch_matmul(builder, work, [sticks, weights], result)
    builder.free_others(result)
    return builder.finish({"output": result.name}, known_works=MEANINGS)
