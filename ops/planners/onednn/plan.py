"""Plans of oneDNN's deconvolution, its data gradient and its weight gradient."""

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.numbers.formats import FLOAT32
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.planners.conv.arguments import Lowering
from ops.planners.onednn.checks import Deconvolution
from ops.programs.patch_matmul import plan as patch_plan
from ops.programs.patch_matmul.gather import bundle_count
from ops.programs.patch_matmul.op import FillRows, Patches, PrepareBias, PrepareSticks, PrepareTaps
from ops.reference import TransposedAxis
from ops.window import OutputPhase, PaddedAxis, convolution_axis, output_phases, transposed_axis

# What the tensors of a plan are on the host does not matter to it: each is prepared as its operation says.
HOST_TENSOR = TensorSpec((1,), FLOAT32, Layout.ROW_MAJOR)


def _window(axis: TransposedAxis) -> dict[str, Any]:
    """Kernel, stride, padding and dilation of an axis; output padding is subtracted from the end padding."""
    padding = (axis.pad_before, axis.pad_after - axis.output_padding)
    return {"kernel": axis.kernel, "stride": axis.stride, "padding": padding, "dilation": axis.dilation}


def frame_axis(axis: TransposedAxis) -> PaddedAxis:
    """One axis of the zero-filled frame, with mirrored taps."""
    return transposed_axis(input_length=axis.input_size, output_padding=0, **_window(axis))


def strided_axis(axis: TransposedAxis) -> PaddedAxis:
    """The destination as source positions meet it: position p and tap k at p * stride + k * dilation - padding."""
    return convolution_axis(input_length=axis.output_size, **_window(axis))


def _patches(d: Deconvolution, axes: Sequence[PaddedAxis], channels: int) -> Patches:
    """The patches that windows along some axes gather from an image of ``channels`` channels."""
    bundles = bundle_count(d.groups, d.in_channels, d.out_channels)
    return Patches(batch=d.batch, axes=tuple(axes), channels=channels, groups=d.groups, bundles=bundles)


def _sticks(
    builder: PlanBuilder, d: Deconvolution, source: str, spatial: Sequence[int], channels: int, slices: int
) -> PlanTensor:
    """An image as rows of channels, with each value split into ``slices``."""
    sticks = patch_plan.rows_spec(d.batch * prod(spatial), channels * slices, d.slicing.part_format)
    return builder.upload(f"{source}.sticks", sticks, source, PrepareSticks(d.channels_last))


def plan_forward(
    d: Deconvolution, device_spec: DeviceSpec, *, bias: bool, lowering: Lowering = Lowering.ZERO_INSERTION
) -> Plan:
    """Plan ConvTranspose of the host tensors "src", "weights" and "bias"; its result is "dst", rows of channels."""
    builder, geometry = PlanBuilder(device_spec, dict.fromkeys(("src", "weights", "bias"), HOST_TENSOR)), d.geometry
    src = _sticks(builder, d, "src", geometry.input_shape, d.in_channels, d.slicing.in0_slices)
    row = (
        [builder.upload("bias.row", patch_plan.rows_spec(1, d.out_channels, FLOAT32), "bias", PrepareBias())]
        if bias
        else []
    )
    dst = builder.allocate(
        "dst", patch_plan.rows_spec(d.batch * prod(geometry.output_shape), d.out_channels, d.dst_format)
    )
    whole = [frame_axis(axis) for axis in geometry.axes]
    if lowering is Lowering.ZERO_INSERTION:
        phases: Sequence[tuple[OutputPhase, ...]] = [tuple(OutputPhase(axis, range(axis.kernel)) for axis in whole)]
    else:
        phases = list(product(*(output_phases(axis) for axis in whole)))
    parts = [_patches(d, [phase.axis for phase in part], d.in_channels) for part in phases]
    weights: list[PlanTensor | None] = []
    for number, (part, patches) in enumerate(zip(phases, parts, strict=True)):
        if not all(axis.kernel for axis in patches.axes):  # a phase without taps, which is the bias or zeros
            weights.append(None)
            continue
        lasts = [axis.kernel - 1 for axis in geometry.axes]  # the kernel is mirrored
        taps = tuple(
            range(last - phase.taps.start, last - phase.taps[-1] - 1, -phase.taps.step)
            for phase, last in zip(part, lasts, strict=True)
        )
        op = PrepareTaps(weights_format=d.weights_format, groups=d.groups, taps=taps, towards_source=False)
        name = "weights.taps" if len(phases) == 1 else f"weights.phase{number}"
        weights.append(builder.upload(name, patch_plan.weights_spec(patches, d.out_channels, d.slicing), "weights", op))
    shape, channels = geometry.output_shape, d.out_channels
    result: dict[str, Any] = {"out_channels": channels, "out_shape": shape, "out_format": d.dst_format, "bias": bias}
    for patches, phase_weights in zip(parts, weights, strict=True):
        if phase_weights is None:
            patch_plan.run_fill_rows(builder, FillRows(batch=d.batch, axes=patches.axes, **result), row, dst)
        else:
            work = patch_plan.patch_matmul_work(patches, slicing=d.slicing, spec=device_spec, **result)
            patch_plan.run_patch_matmul(builder, work, [src, phase_weights, *row], dst)
    builder.free_others(dst)
    return builder.finish({"output": dst})


def plan_backward_data(d: Deconvolution, device_spec: DeviceSpec) -> Plan:
    """Plan ConvTransposeBackwardData of the host tensors "diff_dst" and "weights"; its result "diff_src" has rows."""
    builder, geometry = PlanBuilder(device_spec, dict.fromkeys(("diff_dst", "weights"), HOST_TENSOR)), d.geometry
    patches = _patches(d, [strided_axis(axis) for axis in geometry.axes], d.out_channels)
    sticks = _sticks(builder, d, "diff_dst", geometry.output_shape, d.out_channels, d.slicing.in0_slices)
    taps = tuple(range(axis.kernel) for axis in geometry.axes)
    prepare = PrepareTaps(weights_format=d.weights_format, groups=d.groups, taps=taps, towards_source=True)
    weights = builder.upload(
        "weights.taps", patch_plan.weights_spec(patches, d.in_channels, d.slicing), "weights", prepare
    )
    sizes = geometry.input_shape
    result = builder.allocate("diff_src", patch_plan.rows_spec(d.batch * prod(sizes), d.in_channels, d.data_format))
    op = patch_plan.patch_matmul_work(
        patches,
        out_channels=d.in_channels,
        out_shape=sizes,
        slicing=d.slicing,
        bias=False,
        out_format=d.data_format,
        spec=device_spec,
    )
    patch_plan.run_patch_matmul(builder, op, [sticks, weights], result)
    builder.free_others(result)
    return builder.finish({"output": result})


def plan_backward_weights(d: Deconvolution, device_spec: DeviceSpec) -> Plan:
    """Plan ConvTransposeBackwardWeights of the host tensors "src" and "diff_dst".

    The result is "diff_weights": an array of [groups, *kernel, I / groups, O / groups].
    """
    builder, geometry = PlanBuilder(device_spec, dict.fromkeys(("src", "diff_dst"), HOST_TENSOR)), d.geometry
    patches = _patches(d, [strided_axis(axis) for axis in geometry.axes], d.out_channels)
    op = patch_plan.pixel_matmul_work(
        patches, channels=d.in_channels, slicing=d.slicing, out_format=d.data_format, spec=device_spec
    )
    rows = builder.upload("src.transposed", patch_plan.transposed_spec(op), "src", PrepareSticks(d.channels_last))
    sticks = _sticks(builder, d, "diff_dst", geometry.output_shape, d.out_channels, d.slicing.in1_slices)
    result = patch_plan.run_pixel_matmul(builder, op, [rows, sticks], "diff_weights")
    builder.free_others(result)
    return builder.finish({"output": result})
