"""The gradient with respect to the weights: a matmul over positions of source channels and destination patches."""

from dataclasses import replace

from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.calls.onednn.backward_data import strided_axis
from ops.calls.onednn.problem import Deconvolution
from ops.calls.onednn.stages import image_sticks, planned, prepared
from ops.programs.patch_matmul.bundles import bundle_count
from ops.programs.patch_matmul.host_work import PrepareSticks
from ops.programs.patch_matmul.plan import pixel_matmul, pixel_matmul_work, transposed_spec
from ops.programs.patch_matmul.work import Patches


def plan_backward_weights(d: Deconvolution, spec: DeviceSpec) -> Plan:
    """Plan ConvTransposeBackwardWeights.

    Args:
        d: The forward call.
        spec: The device.

    Returns:
        A plan of the host tensors "src" and "diff_dst", and of the result "diff_weights": the array is
        [groups, *kernel, I / groups, O / groups].
    """
    axes = tuple(strided_axis(axis) for axis in d.geometry.axes)
    bundles = bundle_count(d.groups, d.in_channels, d.out_channels)
    patches = Patches(batch=d.batch, axes=axes, channels=d.out_channels, groups=d.groups, bundles=bundles)
    work = pixel_matmul_work(patches, channels=d.in_channels, slicing=d.slicing, out_format=d.data_format, spec=spec)
    rows = prepared("src.transposed", transposed_spec(work), spec, source="src", work=PrepareSticks(d.channels_last))
    sticks = image_sticks(d, "diff_dst", d.geometry.output_shape, d.out_channels, spec, parts=d.slicing.in1_slices)
    name = "diff_weights"
    steps, made = pixel_matmul(work, inputs=(rows.name, sticks.name), output=name, spec=spec)
    plan = planned((rows, sticks), steps, name)
    return replace(plan, tensors={**plan.tensors, **made})
