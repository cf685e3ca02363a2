"""What a strict device refuses of a convolution: calls that the real library accepts and computes nonsense for."""

from collections.abc import Iterator
from itertools import chain
from typing import Final

import numpy as np

from device.errors import ArgumentError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, Layout, TensorMemoryLayout
from device.numbers.formats import Integers, div_up
from device.plan import Allocate, DeviceOp, Operation, Plan
from ops.planners.conv.arguments import ConvCall, fills_alignment, frame_of, is_matmul, takes_l1_path
from ops.planners.conv.checks import Check, claimed_shape, claimed_volume, operand_refusals
from ops.programs.conv2d.op import Conv2dOp
from ops.programs.conv2d.parallel_config import BLOCK, HEIGHT, WIDTH
from ops.programs.conv2d.weights import PrepareBias, PrepareWeights, misfit
from ops.programs.data_movement.copy import Conversion, CopyTensor
from ops.programs.data_movement.placement import whole_shards
from ops.programs.data_movement.reshard import misplaced_rows
from ops.programs.data_movement.slice import SliceWrite, Window
from ops.programs.halo.plan import HaloOp
from ops.programs.phase_conv2d.plan import PhaseConv2dOp
from ops.window import PaddedAxis


def refuse_first(operation: str, call: ConvCall, checks: tuple[Check, ...]) -> None:
    """Raises ArgumentError, in the operation's name, with the first text that a check gives."""
    for check in checks:
        for text in check(call):
            raise ArgumentError(f"{operation}: {text}")


def sizes_given(call: ConvCall) -> Iterator[str]:
    """Sizes that are nothing."""
    for name in ("in_channels", "out_channels", "batch_size", "input_height", "input_width"):
        if getattr(call, name) < 1:
            yield (f"{name} must be at least 1, not {getattr(call, name)}")
    if min(call.kernel_size) < 1:
        yield (f"kernel_size must be at least (1, 1), not {call.kernel_size}")


def groups_divide(call: ConvCall) -> Iterator[str]:
    """Groups that do not divide the channels."""
    for name in ("in_channels", "out_channels"):
        if call.groups and getattr(call, name) % call.groups:
            yield (f"groups must divide {name}, but {getattr(call, name)} is no multiple of {call.groups}")


def groups_given(call: ConvCall) -> Iterator[str]:
    """No groups."""
    if call.groups < 1:
        yield (f"groups must be at least 1, not {call.groups}")


def dilation_given(call: ConvCall) -> Iterator[str]:
    """Taps that fall together."""
    if 0 in call.dilation:
        yield (f"dilation must be at least (1, 1), not {call.dilation}; 1 means neighboring taps")


def _input(call: ConvCall) -> Iterator[str]:
    spec, claimed = call.input.spec, claimed_volume(call)
    if _pads_channels(call):
        return
    if claimed != spec.volume:
        yield (
            f"{claimed_shape(call)} are {claimed} elements, but input_tensor has {spec.volume} "
            f"(shape {list(spec.shape)}): the real library reads or writes beyond it"
        )
    if spec.shape[-1] != call.in_channels:
        yield (
            f"input_tensor must be channels-last, [N, H, W, C] or [1, 1, N*H*W, C] with C = in_channels = "
            f"{call.in_channels}, but its last axis is {spec.shape[-1]} (shape {list(spec.shape)}); permute NCHW first"
        )


def _pads_channels(call: ConvCall) -> bool:
    """Whether the input has channels behind those of the call that meet zero weights: it fills its shards in L1."""
    spec, place = call.input.spec, call.input.spec.memory_config
    same_sticks = spec.volume * call.in_channels == claimed_volume(call) * spec.shape[-1]
    if not same_sticks or not fills_alignment(call) or not takes_l1_path(call) or call.input.on_host:
        return False
    if place.shard_spec is not None:
        height = place.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED
        return height and place.shard_spec.shape[1] == spec.shape[-1]
    return place.memory_layout is TensorMemoryLayout.INTERLEAVED and not is_matmul(call)


def _formats(call: ConvCall) -> Iterator[str]:
    weights = None if _refused_later(call) else call.weight.spec.data_format
    for name, data_format in (
        ("input_tensor", call.input.spec.data_format),
        ("dtype", call.out_format),
        ("conv_config.weights_dtype", call.conv_config.weights_format),
        ("weight_tensor", weights),
        ("bias_tensor", None if call.bias is None else call.bias.spec.data_format),
    ):
        if data_format is not None and not data_format.is_float:
            yield (f"{name} must be a floating-point type, not {data_format}; the result would be nonsense")


def raw_weight(call: ConvCall) -> Iterator[str]:
    """A weight on the host has the shape of the call, in rows."""
    spec = call.weight.spec
    (kernel_rows, kernel_cols), groups = call.kernel_size, max(call.groups, 1)
    first, second = (call.in_channels, "in_channels"), (call.out_channels, "out_channels")
    if not call.rules.transposed:
        first, second = second, first
    wanted = [first[0], second[0] // groups, kernel_rows, kernel_cols]
    if list(spec.shape) != wanted:
        yield (
            f"weight_tensor must have the shape {wanted} ({first[1]}, {second[1]} / groups, kernel height, "
            f"kernel width), not {list(spec.shape)}"
        )
    if spec.layout is not Layout.ROW_MAJOR:
        yield ("weight_tensor on the host must be in ROW_MAJOR_LAYOUT: tiles would be read as rows")


def _refused_later(call: ConvCall) -> bool:
    """Whether weights or bias are refused, in the real library's words, once they are to be prepared."""
    return next(operand_refusals(call), None) is not None


def _weight(call: ConvCall) -> Iterator[str]:
    if _refused_later(call):
        return
    if call.weight.on_host:
        yield from raw_weight(call)
        return
    spec = call.weight.spec
    if spec.shape[-1:] != (call.out_channels,):
        yield (
            f"weight_tensor on the device must be prepared for out_channels = {call.out_channels}, the size of its "
            f"last axis, not have the shape {list(spec.shape)}; prepare the weights for this call"
        )


def _bias(call: ConvCall) -> Iterator[str]:
    if call.bias is None or call.bias.on_host or _refused_later(call):
        return
    spec = call.bias.spec
    if spec.layout is not Layout.TILE or spec.shape[-1:] != (call.out_channels,):
        yield (
            f"bias_tensor on the device must be prepared for out_channels = {call.out_channels}: it is "
            f"{spec.layout.name} with shape {list(spec.shape)}; pass it on the host, or as an earlier call returned it"
        )


OPERAND_CHECKS: Final = (_input, _formats, _weight, _bias)


DEALS_ROWS: Final = frozenset({Conversion.INTERLEAVED_TO_SHARDED, Conversion.RESHARD, Conversion.COPY})
MOST_IDLE: Final = 8  # one core in so many may be idle in a slice of the caller's cores


def check_strict_plan(plan: Plan, call: ConvCall) -> None:
    """Refuses a plan that the real library carries out and gets wrong.

    Raises:
        ArgumentError: The first rule that is broken, and what would work.
    """
    fault = plan_fault(plan, call)
    if fault is not None:
        raise ArgumentError(fault)


def plan_fault(plan: Plan, call: ConvCall) -> str | None:
    """What is wrong with the results of a plan; None if nothing is."""
    operations = [step for step in plan.steps if isinstance(step, Operation)]
    if plan.refused or any(one.refused or one.unfinished for one in operations):  # an error of the real library's own
        return None
    ops = [one.op for one in operations]
    faults = chain(_misused(plan, call), _faults(ops, call), _unwritten_channels(plan, operations), _misplaced(plan))
    return next((f"{call.rules.function}: {text}" for text in faults), None)


def _misplaced(plan: Plan) -> Iterator[str]:
    """Rows of an input that is dealt to other shards, which the real library gets wrong."""
    text = misplaced_rows(plan)
    if text is not None:
        yield f"input_tensor: {text}"


def _misused(plan: Plan, call: ConvCall) -> Iterator[str]:
    """Prepared weights and bias that operations take for others."""
    made = {step.tensor: step.op for step in plan.steps if isinstance(step, Allocate)}
    made_here = set(made)
    made |= {name: one.made_by for name, one in (("weight", call.weight), ("bias", call.bias)) if one is not None}
    for one in plan.expected:
        if isinstance(one.op, PrepareWeights | PrepareBias):
            role = "weight" if isinstance(one.op, PrepareWeights) else "bias"
            text = misfit(made.get(one.tensor), plan.tensors[one.tensor], one.op)
            if text is not None and call.folding is not None and one.tensor in made_here:
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

    The program that deals the rows writes their channels and leaves the rest of the shards as L1 was. The rest meets
    zero weights; but 16 columns of a K block that becomes a block float share an exponent, the largest of all. Source:
    tt-metal 0.81.1 (reader of InterleavedToSharded; PaddedSlice writes zeros behind the channels); recorded: 3, 5, 12
    and 20 channels with a bfloat8_b output give other numbers in another order of calls, 8, 16, 24, 32 and 40 do not.
    """
    width = held = 0
    for step in operations:
        if isinstance(step.op, CopyTensor) and step.op.conversion in DEALS_ROWS:
            target_name = step.outputs[-1].tensor if step.outputs else step.inputs[-1]
            source, target = plan.tensors[step.inputs[0]], plan.tensors[target_name]
            ragged = target.layout is Layout.ROW_MAJOR and _held_columns(source) < _held_columns(target)
            width, held = (source.shape[-1], _held_columns(target)) if ragged else (0, 0)
        elif isinstance(step.op, Conv2dOp) and width and step.op.problem.out_format.is_block:
            yield (
                f"input_tensor: its rows of {width} channels are dealt to shards that hold {held}, and what is behind "
                f"the channels stays as L1 was; an output in {step.op.problem.out_format} makes block floats of all "
                "of it, which share exponents, so that the real library's numbers change with what lay in memory "
                f"before; pad input_tensor and the weights with zeros to {held} channels, give input_tensor in "
                "TILE_LAYOUT, or ask for dtype=bfloat16"
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
    parts = layout.blocks.k_blocks // layout.config.channel_cores
    if layout.shards.in_width % (parts * TILE):
        yield (
            f"conv_config.act_block_w_div cuts the {layout.shards.in_width} channels of every WIDTH_SHARDED core into "
            f"{parts} parts, but each tap of a part reads whole tiles of {TILE} weights, so that taps meet weights "
            f"that are not theirs; use a divisor of {layout.shards.in_width // TILE}, such as 1"
        )


def _shard_faults(halo: HaloOp, op: Conv2dOp) -> Iterator[str]:
    """BLOCK shards of other channels than those that the rows of weights of each core stand for."""
    given, read = halo.plan.arguments.shard_width, op.layout.shards.in_width
    if op.layout.scheme is BLOCK and given != read:
        yield (
            f"input_tensor: every BLOCK_SHARDED core holds {given} of its channels, and the weights are prepared for "
            f"{read}, so that channels meet weights of others; give an input of {op.problem.in_channels} channels, "
            "in interleaved memory"
        )


def _slice_faults(op: Conv2dOp | PhaseConv2dOp, window: Window, call: ConvCall) -> Iterator[str]:
    """A slice that computes other outputs than those it stands for."""
    frame = op.problem.frame
    wanted, computed = _size(window), (frame.rows.outputs, frame.columns.outputs)
    if computed[0] != wanted[0] or computed[1] < wanted[1]:
        yield (
            f"{_slices_name(call)}: a slice that stands for {wanted[0]} x {wanted[1]} outputs computes "
            f"{computed[0]} x {computed[1]}, so that wrong ones come out, as of the real library; {way_out(call)}"
        )
    if not frame.replicate:
        return
    whole = frame_of(call)
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

    Then cores that have outputs may multiply zeros or stale memory instead of their windows. Why is not known, and no
    plan tells right from wrong: on the same cores the same slice came out right on one chip and wrong on the other.
    The recorded slices that leave up to an eighth of the cores idle are right, on both chips where both are recorded;
    those that leave half of them or more are right or wrong; none is recorded in between.
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
    frame = frame_of(call)
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
    """What to do about slices that come out wrong; slices that were not given cannot be left out."""
    if call.slice_config is not None and call.slice_config.num_slices:
        return f"give another number of slices, cut along the other axis, or leave {_slices_name(call)} out"
    return f"give a {_slices_name(call)} with another number of slices, or one that cuts along the other axis"
