"""Plans of the forward operation, in two lowerings.

``frame``: a convolution of stride 1 over the source with zeros inserted between its positions, as ttnn runs it.
``phase``: one small dense convolution for every product of output phases, without any of those zeros.
"""

from collections.abc import Sequence
from enum import Enum
from itertools import product
from math import prod

from device.plan import Operation, Plan
from device.spec.device_spec import DeviceSpec
from ops.calls.onednn.problem import Deconvolution
from ops.calls.onednn.stages import bias_row, image_sticks, planned, result_sticks, tap_matrices
from ops.definition.geometry import Axis
from ops.programs.movement.staged import Staged
from ops.programs.patch_matmul.axis import DensePhase, PatchAxis, dense_phases
from ops.programs.patch_matmul.plan import fill_rows, patch_matmul, patch_matmul_work
from ops.programs.patch_matmul.work import FillRows, Patches, bundle_count


class Lowering(Enum):
    """How the forward operation is computed; the names are the values users give."""

    FRAME = "frame"
    PHASE = "phase"


def frame_axis(axis: Axis) -> PatchAxis:
    """One axis of the zero-filled frame; its taps are mirrored."""
    return PatchAxis(
        input_size=axis.input_size,
        outputs=axis.output_size,
        taps=axis.kernel,
        start=-axis.frame_before,
        spacing=axis.dilation,
        insertion=axis.stride,
    )


def plan_forward(d: Deconvolution, spec: DeviceSpec, *, bias: bool, lowering: Lowering = Lowering.FRAME) -> Plan:
    """Plan ConvTranspose.

    Args:
        d: The call.
        spec: The device.
        bias: There is a bias.
        lowering: How it is computed.

    Returns:
        A plan of the host tensors "src", "weights" and "bias", and of the result "dst", rows of channels on the device.
    """
    src = image_sticks(d, "src", d.geometry.input_shape, d.in_channels, spec, parts=d.slicing.in0_slices)
    return plan_forward_of(d, src, spec, bias=bias, lowering=lowering)


def plan_forward_of(d: Deconvolution, src: Staged, spec: DeviceSpec, *, bias: bool, lowering: Lowering) -> Plan:
    """Plan ConvTranspose of a source that is sticks in DRAM already.

    Args:
        d: The call.
        src: How the sticks come about; what these steps allocate is released in the end.
        spec: The device.
        bias: There is a bias.
        lowering: How it is computed.

    Returns:
        A plan of the host tensors "weights" and "bias", of what ``src`` is made of, and of the result "dst".
    """
    geometry, stages = d.geometry, [src]
    if bias:
        stages.append(bias_row(d.out_channels, spec))
    stages.append(result_sticks("dst", d.batch * prod(geometry.output_shape), d.out_channels, d.dst_format, spec))
    row = ("bias.row",) if bias else ()
    whole = [frame_axis(axis) for axis in geometry.axes]
    steps: list[Operation] = []
    if lowering is Lowering.FRAME:
        parts: Sequence[tuple[DensePhase, ...]] = [tuple(DensePhase(axis, range(axis.taps)) for axis in whole)]
    else:
        parts = list(product(*(dense_phases(axis) for axis in whole)))
    for number, part in enumerate(parts):
        name = "weights.taps" if len(parts) == 1 else f"weights.phase{number}"
        stage, step = _part(d, part, (src.name, name, *row), spec)
        stages += stage
        steps.append(step)
    return planned(stages, steps, "dst")


def _part(
    d: Deconvolution, part: Sequence[DensePhase], inputs: tuple[str, ...], spec: DeviceSpec
) -> tuple[list[Staged], Operation]:
    """The weights of one output phase or of the frame, if any, and the program that computes it."""
    row = inputs[2:]  # the bias, if there is one
    axes = tuple(phase.axis for phase in part)
    out_shape = d.geometry.output_shape
    if not all(axis.taps for axis in axes):
        fill = FillRows(
            batch=d.batch,
            axes=axes,
            out_channels=d.out_channels,
            out_shape=out_shape,
            bias=bool(row),
            out_format=d.dst_format,
        )
        return [], fill_rows(fill, inputs=row, output="dst", spec=spec)
    bundles = bundle_count(d.groups, d.in_channels, d.out_channels)
    patches = Patches(batch=d.batch, axes=axes, channels=d.in_channels, groups=d.groups, bundles=bundles)
    mirrored = [_mirrored(phase.taps, axis.kernel) for phase, axis in zip(part, d.geometry.axes, strict=True)]
    stage = tap_matrices(d, inputs[1], mirrored, patches, d.out_channels, spec, back=False)
    work = patch_matmul_work(
        patches,
        out_channels=d.out_channels,
        out_shape=out_shape,
        slicing=d.slicing,
        bias=bool(row),
        out_format=d.dst_format,
        spec=spec,
    )
    return [stage], patch_matmul(work, inputs=inputs, output="dst")


def _mirrored(taps: range, kernel: int) -> range:
    """Kernel indices of mirrored taps, in the same order."""
    last = kernel - 1
    return range(last - taps.start, last - taps[-1] - 1, -taps.step)
