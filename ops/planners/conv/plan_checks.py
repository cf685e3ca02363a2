"""Plans that a strict device refuses: the real library carries them out and computes nonsense."""

from collections.abc import Iterator
from itertools import chain
from typing import Final

import numpy as np

from device.errors import ArgumentError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, Layout
from device.numbers.formats import Integers, div_up
from device.plan import Allocate, DeviceOp, Operation, Plan
from ops.planners.conv.arguments import ConvCall
from ops.programs.conv2d.op import Conv2dOp
from ops.programs.conv2d.partition import BLOCK, HEIGHT, WIDTH
from ops.programs.conv2d.weights import AsWanted, PrepareBias, PrepareWeights, misfit
from ops.programs.data_movement.copy import Conversion, CopyTensor
from ops.programs.data_movement.placement import whole_shards
from ops.programs.data_movement.reshard import misplaced_rows
from ops.programs.data_movement.slice import SliceWrite, Window
from ops.programs.halo.plan import HaloOp
from ops.programs.phase_conv2d.plan import PhaseConv2dOp
from ops.programs.phase_conv2d.values import PreparePhaseWeights
from ops.window import PaddedAxis

DEALS_ROWS: Final = frozenset({Conversion.INTERLEAVED_TO_SHARDED, Conversion.RESHARD, Conversion.COPY})
PHASES: Final = 'conv_transpose2d, lowering="phase"'
MOST_IDLE: Final = 8  # at most 1 / MOST_IDLE of the caller's cores may be idle in a slice


def check_strict_plan(plan: Plan, call: ConvCall) -> None:
    """Raises ArgumentError for a plan that the real library carries out and gets wrong."""
    fault = plan_fault(plan, call)
    if fault is not None:
        raise ArgumentError(fault)


def plan_fault(plan: Plan, call: ConvCall) -> str | None:
    """The fault in the results of a plan; None if they are right."""
    operations = [step for step in plan.steps if isinstance(step, Operation)]
    if plan.refused or any(
        operation.refused or operation.unfinished for operation in operations
    ):  # an error of the real library's own
        return None
    ops = [operation.op for operation in operations]
    faults = chain(_misused(plan, call), _faults(ops, call), _unwritten_channels(plan, operations))
    text = next(faults, None)
    if text is None and (misplaced := misplaced_rows(plan)) is not None:  # of a resharded input
        text = f"input_tensor: {misplaced}"
    return None if text is None else f"{call.rules.function}: {text}"


def _misused(plan: Plan, call: ConvCall) -> Iterator[str]:
    """Prepared weights and bias that operations take for others."""
    prepared = {step.tensor: step.op for step in plan.steps if isinstance(step, Allocate)}
    made_here = set(prepared)
    prepared |= {
        name: operand.made_by for name, operand in (("weight", call.weight), ("bias", call.bias)) if operand is not None
    }
    for expected in plan.expected:
        if isinstance(expected.op, PrepareWeights | PrepareBias):
            role = "weight" if isinstance(expected.op, PrepareWeights) else "bias"
            text = misfit(prepared.get(expected.tensor), plan.tensors[expected.tensor], expected.op)
            if text is not None and call.folding is not None and expected.tensor in made_here:
                yield (
                    "conv_config.enable_kernel_stride_folding: of an input in DRAM the real library folds the image, "
                    f"but not the weights ({text}); set it to False, or put the input in L1"
                )
            elif text is not None:
                yield (
                    f"{role}_tensor: {text}: the real library reads it as it lies and computes something else; "
                    "prepare it with the arguments of this call, or pass it raw on the host"
                )


def _unwritten_channels(plan: Plan, operations: list[Operation]) -> Iterator[str]:
    """Rows of channels that do not fill their shards, under an output whose activations are block floats.

    The program that distributes the rows writes their channels and leaves the rest of the shards as L1 was. The rest
    meets zero weights; but 16 columns of a K block that becomes a block float share an exponent, the largest of all.
    Source: tt-metal 0.81.1 (reader of InterleavedToSharded; PaddedSlice writes zeros behind the channels); recorded: 3,
    5, 12 and 20 channels with a bfloat8_b output give other numbers in another order of calls, 8, 16, 24, 32 and 40 do
    not.
    """
    width = columns = 0
    for step in operations:
        if isinstance(step.op, CopyTensor) and step.op.conversion in DEALS_ROWS:
            target_name = step.outputs[-1].tensor if step.outputs else step.inputs[-1]
            source, target = plan.tensors[step.inputs[0]], plan.tensors[target_name]
            ragged = target.layout is Layout.ROW_MAJOR and _held_columns(source) < _held_columns(target)
            width, columns = (source.shape[-1], _held_columns(target)) if ragged else (0, 0)
        elif isinstance(step.op, Conv2dOp) and width and step.op.problem.out_format.is_block:
            yield (
                f"input_tensor: its rows of {width} channels are dealt to shards that hold {columns}, and what is "
                f"behind the channels stays as L1 was; an output in {step.op.problem.out_format} makes block floats "
                "of all of it, which share exponents, so that the real library's numbers change with what lay in "
                f"memory before; pad input_tensor and the weights with zeros to {columns} channels, give "
                "input_tensor in TILE_LAYOUT, or ask for dtype=bfloat16"
            )


def _held_columns(spec: TensorSpec) -> int:
    """Columns that a tensor has room for: of shards all of them."""
    place = spec.memory_config
    return whole_shards(place)[1] if place.shard_spec is not None else spec.shape[-1]


def _faults(ops: list[DeviceOp | None], call: ConvCall) -> Iterator[str]:
    last: Conv2dOp | PhaseConv2dOp | None = None
    halo: HaloOp | None = None
    windows = []
    for op in ops:
        if isinstance(op, HaloOp):
            halo = op
        if isinstance(op, Conv2dOp | PhaseConv2dOp):
            last = op
        if isinstance(op, Conv2dOp):
            yield from _program_faults(op, call)
            if halo is not None:
                yield from _shard_faults(halo, op)
        elif isinstance(op, SliceWrite) and last is not None:
            windows.append(op.window)
            yield from _slice_faults(last, op.window, call)
            if isinstance(last, Conv2dOp):
                yield from _idle_cores(last, call)
    if windows:
        yield from _unwritten(windows, call)


def _program_faults(op: Conv2dOp, call: ConvCall) -> Iterator[str]:
    layout = op.layout
    if call.rules.transposed and op.options.full_inner_dim and layout.scheme is BLOCK:
        yield (
            "conv_config.full_inner_dim reads the weights of a BLOCK_SHARDED transposed convolution, which this is, "
            "in the wrong order; leave it out, or set shard_layout to HEIGHT_SHARDED or WIDTH_SHARDED"
        )
    if layout.scheme is not WIDTH:
        return
    core_blocks = layout.blocks.k_blocks // layout.config.channel_cores
    if layout.shards.in_width % (core_blocks * TILE):
        yield (
            f"conv_config.act_block_w_div cuts the {layout.shards.in_width} channels of every WIDTH_SHARDED core into "
            f"{core_blocks} parts, but each tap of a part reads whole tiles of {TILE} weights, so that taps meet "
            f"weights that are not theirs; use a divisor of {layout.shards.in_width // TILE}, such as 1"
        )


def _shard_faults(halo: HaloOp, op: Conv2dOp) -> Iterator[str]:
    """BLOCK shards whose channels are not the channels of each core's weights."""
    shard_channels, weight_channels = halo.plan.arguments.shard_width, op.layout.shards.in_width
    if op.layout.scheme is BLOCK and shard_channels != weight_channels:
        yield (
            f"input_tensor: every BLOCK_SHARDED core holds {shard_channels} of its channels, and the weights are "
            f"prepared for {weight_channels}, so that channels meet weights of others; give an input of "
            f"{op.problem.in_channels} channels, in interleaved memory"
        )


def _slice_faults(op: Conv2dOp | PhaseConv2dOp, window: Window, call: ConvCall) -> Iterator[str]:
    """A slice that computes other outputs than its own."""
    frame = op.problem.frame
    wanted, computed = _size(window), (frame.rows.outputs, frame.columns.outputs)
    if computed[0] != wanted[0] or computed[1] < wanted[1]:
        yield (
            f"{_slices_name(call)}: a slice that stands for {wanted[0]} x {wanted[1]} outputs computes "
            f"{computed[0]} x {computed[1]}, so that wrong ones come out, as of the real library; {way_out(call)}"
        )
    if not frame.replicate:
        return
    whole = call.frame()
    axes = ((whole.rows, frame.rows), (whole.columns, frame.columns))
    for (all_of_it, part), first, outputs in zip(axes, window.begins[1:3], wanted, strict=True):
        if not _same_sources(all_of_it, part, first, outputs):
            yield (
                f"{_slices_name(call)}: padding_mode Replicate repeats pixels at the edges of every slice, where the "
                f"whole image has inserted zeros or other pixels, as in the real library; {way_out(call)}, or put the "
                "input in L1"
            )


def _idle_cores(op: Conv2dOp, call: ConvCall) -> Iterator[str]:
    """A slice on the caller's HEIGHT_SHARDED cores that leaves more than an eighth of them without outputs.

    Cores with outputs may then multiply zeros or stale memory instead of their windows. The reason is unknown, and no
    plan tells right from wrong: on the same cores the same slice was right on one chip and wrong on the other. Recorded
    slices that leave up to an eighth of the cores idle are right, on both chips where both are recorded; slices that
    leave half of the cores or more idle are right or wrong; nothing is recorded in between.
    """
    layout = op.layout
    cores, used = layout.out_config.nhw_cores, div_up(op.problem.out_rows, layout.shards.out_rows)
    if call.conv_config.override_sharding_config and layout.scheme is HEIGHT and MOST_IDLE * (cores - used) > cores:
        yield (
            f"conv_config.core_grid: a slice of {op.problem.out_rows} outputs leaves {cores - used} of its {cores} "
            f"HEIGHT_SHARDED cores idle, more than one in {MOST_IDLE}; then the real library's other cores can "
            "compute with what lay in their memory before instead of the image; use fewer cores (such as the "
            f"{used} that this slice needs), another shard_layout, or put the input in L1"
        )


def _same_sources(whole: PaddedAxis, part: PaddedAxis, first: int, outputs: int) -> bool:
    """Whether the first windows of a part read what the windows of the whole axis from ``first`` on read."""
    positions = np.arange((outputs - 1) * part.stride + part.reach + 1)
    ours, theirs = _nearest_inputs(part, positions), _nearest_inputs(whole, positions + first * whole.stride)
    read = ours >= 0
    distances = (theirs - ours)[read]
    return bool(np.array_equal(read, theirs >= 0) and (distances == distances[:1]).all())


def _nearest_inputs(axis: PaddedAxis, positions: Integers) -> Integers:
    """The input that each position of a replicated axis holds; -1 for the zeros between inputs."""
    inside = np.clip(positions - axis.before, 0, (axis.input_length - 1) * axis.input_dilation)
    inputs: Integers = np.where(inside % axis.input_dilation, -1, inside // axis.input_dilation)
    return inputs


def _unwritten(windows: list[Window], call: ConvCall) -> Iterator[str]:
    """Outputs that no slice writes."""
    frame = call.frame()
    outputs = frame.rows.outputs * frame.columns.outputs
    missing = outputs - sum(rows * columns for rows, columns in map(_size, windows))
    if missing:
        yield (
            f"{_slices_name(call)}: {missing} of {outputs} outputs are never written, because a slice reads no input, "
            f"as in the real library; {way_out(call)}"
        )


def _size(window: Window) -> tuple[int, int]:
    """Rows and columns of a window of an image."""
    return window.ends[1] - window.begins[1], window.ends[2] - window.begins[2]


def _slices_name(call: ConvCall) -> str:
    return "dram_slice_config" if call.rules.transposed else "slice_config"


def way_out(call: ConvCall) -> str:
    """Advice about wrong slices; a call without given slices cannot leave them out."""
    if call.slice_config is not None and call.slice_config.num_slices:
        return f"give another number of slices, cut along the other axis, or leave {_slices_name(call)} out"
    return f"give a {_slices_name(call)} with another number of slices, or one that cuts along the other axis"


def check_phase_weights(plan: Plan, call: ConvCall) -> None:
    """Refuses weights on the device that were prepared for anything else than this plan of output phases."""
    if call.weight.on_host:
        return
    prepared = call.weight.made_by
    for expected in plan.expected:
        ours = isinstance(expected.op, PreparePhaseWeights) and expected.tensor == (call.weight.name or "weight")
        if ours and prepared != expected.op and not isinstance(prepared, AsWanted):
            raise ArgumentError(
                f"{PHASES}: weight_tensor is on the device and was not prepared for this call and lowering; pass it "
                "as it was made, on the host, or as an earlier call of the same arguments returned it"
            )
