"""Plans of the forward operation, in two lowerings.

``frame``: a convolution of stride 1 over the source with zeros inserted between its positions, as ttnn runs it.
``phase``: one small dense convolution for every product of output phases, without any of those zeros.
"""

from collections.abc import Sequence
from enum import Enum
from itertools import product
from math import prod

from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.calls.onednn.problem import Deconvolution
from ops.calls.onednn.stages import HOST_TENSOR, bias_row, image_sticks, result_sticks, tap_matrices
from ops.definition.geometry import TransposedAxis
from ops.frame.axis import FrameAxis, OutputPhase, output_phases, transposed_axis
from ops.meanings import MEANINGS
from ops.programs.patch_matmul.bundles import bundle_count
from ops.programs.patch_matmul.plan import patch_matmul_work, run_fill_rows, run_patch_matmul
from ops.programs.patch_matmul.work import FillRows, Patches


class Lowering(Enum):
    """How the forward operation is computed; the names are the values users give."""

    FRAME = "frame"
    PHASE = "phase"


def frame_axis(axis: TransposedAxis) -> FrameAxis:
    """One axis of the zero-filled frame; its taps are mirrored. Output padding is so much less padding."""
    return transposed_axis(
        input_length=axis.input_size,
        kernel=axis.kernel,
        stride=axis.stride,
        padding=(axis.pad_before, axis.pad_after - axis.output_padding),
        output_padding=0,
        dilation=axis.dilation,
    )


def plan_forward(d: Deconvolution, device_spec: DeviceSpec, *, bias: bool, lowering: Lowering = Lowering.FRAME) -> Plan:
    """Plan ConvTranspose.

    Args:
        lowering: How it is computed.

    Returns:
        A plan of the host tensors "src", "weights" and "bias", and of the result "dst", rows of channels on the device.
    """
    builder = PlanBuilder(device_spec, dict.fromkeys(("src", "weights", "bias"), HOST_TENSOR))
    src = image_sticks(builder, d, "src", d.geometry.input_shape, d.in_channels, parts=d.slicing.in0_slices)
    result = forward(builder, d, src, bias=bias, lowering=lowering)
    return builder.finish({"output": result.name}, known_works=MEANINGS)


def forward(builder: PlanBuilder, d: Deconvolution, src: PlanTensor, *, bias: bool, lowering: Lowering) -> PlanTensor:
    """Steps of ConvTranspose from a source that is sticks in DRAM already.

    Args:
        builder: The plan, with the host tensors "weights" and "bias"; all that it holds but the result is released.
        d: The call.
        src: The sticks.
        bias: There is a bias.
        lowering: How it is computed.

    Returns:
        The result "dst".
    """
    geometry = d.geometry
    row = [bias_row(builder, d.out_channels)] if bias else []
    dst = result_sticks(builder, "dst", d.batch * prod(geometry.output_shape), d.out_channels, d.dst_format)
    whole = [frame_axis(axis) for axis in geometry.axes]
    if lowering is Lowering.FRAME:
        parts: Sequence[tuple[OutputPhase, ...]] = [tuple(OutputPhase(axis, range(axis.taps)) for axis in whole)]
    else:
        parts = list(product(*(output_phases(axis) for axis in whole)))
    names = ["weights.taps"] if len(parts) == 1 else [f"weights.phase{number}" for number in range(len(parts))]
    weights = [_weights(builder, d, part, name) for part, name in zip(parts, names, strict=True)]
    for part, taps in zip(parts, weights, strict=True):
        _run_part(builder, d, part, src, taps, row, dst)
    builder.free_others(dst)
    return dst


def _patches(d: Deconvolution, part: Sequence[OutputPhase]) -> Patches:
    """What the positions of an output phase, or of the whole frame, meet."""
    bundles = bundle_count(d.groups, d.in_channels, d.out_channels)
    axes = tuple(phase.axis for phase in part)
    return Patches(batch=d.batch, axes=axes, channels=d.in_channels, groups=d.groups, bundles=bundles)


def _weights(builder: PlanBuilder, d: Deconvolution, part: Sequence[OutputPhase], name: str) -> PlanTensor | None:
    """The weights of one output phase or of the frame, if it needs any."""
    patches = _patches(d, part)
    if not all(axis.taps for axis in patches.axes):
        return None
    mirrored = [_mirrored(phase.taps, axis.kernel) for phase, axis in zip(part, d.geometry.axes, strict=True)]
    return tap_matrices(builder, d, name, mirrored, patches, d.out_channels, back=False)


def _run_part(
    builder: PlanBuilder,
    d: Deconvolution,
    part: Sequence[OutputPhase],
    src: PlanTensor,
    weights: PlanTensor | None,
    row: list[PlanTensor],
    dst: PlanTensor,
) -> None:
    """The program that computes one output phase or the frame; without weights it writes the bias or zeros."""
    patches, out_shape = _patches(d, part), d.geometry.output_shape
    if weights is None:
        fill = FillRows(
            batch=d.batch,
            axes=patches.axes,
            out_channels=d.out_channels,
            out_shape=out_shape,
            bias=bool(row),
            out_format=d.dst_format,
        )
        run_fill_rows(builder, fill, row, dst)
        return
    work = patch_matmul_work(
        patches,
        out_channels=d.out_channels,
        out_shape=out_shape,
        slicing=d.slicing,
        bias=bool(row),
        out_format=d.dst_format,
        spec=builder.device_spec,
    )
    run_patch_matmul(builder, work, [src, weights, *row], dst)


def _mirrored(taps: range, kernel: int) -> range:
    """Kernel indices of mirrored taps, in the same order."""
    last = kernel - 1
    return range(last - taps.start, last - taps[-1] - 1, -taps.step)
