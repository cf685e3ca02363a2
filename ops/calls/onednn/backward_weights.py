"""The gradient with respect to the weights: a matmul over positions of source channels and destination patches."""

from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder
from ops.calls.onednn.backward_data import strided_axis
from ops.calls.onednn.problem import Deconvolution
from ops.calls.onednn.stages import HOST_TENSOR, image_sticks
from ops.meanings import MEANINGS
from ops.programs.patch_matmul.bundles import bundle_count
from ops.programs.patch_matmul.host_work import PrepareSticks
from ops.programs.patch_matmul.plan import pixel_matmul_work, run_pixel_matmul, transposed_spec
from ops.programs.patch_matmul.work import Patches


def plan_backward_weights(d: Deconvolution, device_spec: DeviceSpec) -> Plan:
    """Plan ConvTransposeBackwardWeights.

    Args:
        d: The forward call.

    Returns:
        A plan of the host tensors "src" and "diff_dst", and of the result "diff_weights": the array is
        [groups, *kernel, I / groups, O / groups].
    """
    builder = PlanBuilder(device_spec, dict.fromkeys(("src", "diff_dst"), HOST_TENSOR))
    axes = tuple(strided_axis(axis) for axis in d.geometry.axes)
    bundles = bundle_count(d.groups, d.in_channels, d.out_channels)
    patches = Patches(batch=d.batch, axes=axes, channels=d.out_channels, groups=d.groups, bundles=bundles)
    work = pixel_matmul_work(
        patches, channels=d.in_channels, slicing=d.slicing, out_format=d.data_format, spec=device_spec
    )
    rows = builder.upload("src.transposed", transposed_spec(work), "src", PrepareSticks(d.channels_last))
    parts = d.slicing.in1_slices
    sticks = image_sticks(builder, d, "diff_dst", d.geometry.output_shape, d.out_channels, parts=parts)
    result = run_pixel_matmul(builder, work, [rows, sticks], "diff_weights")
    builder.free_others(result)
    return builder.finish({"output": result.name}, known_works=MEANINGS)
