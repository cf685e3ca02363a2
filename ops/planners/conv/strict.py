"""The refusals of a strict device: calls and plans that the real library runs with wrong results."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, Layout, TensorMemoryLayout
from device.numbers.formats import Integers, div_up, round_up
from device.plan import Allocate, Operation, Plan
from ops.planners.conv.arguments import Check, ConvCall, refuse_first
from ops.planners.conv.checks import FOLDING_WAY_OUT, dilation_given, groups_divide, groups_given
from ops.planners.conv.operands import operand_refusals, rows_of_weights
from ops.planners.conv.slicing import output_slices, slices_name, way_out
from ops.programs.conv2d.op import Conv2dOp
from ops.programs.conv2d.partition import BLOCK, HEIGHT, WIDTH
from ops.programs.conv2d.weights import PrepareBias, PrepareWeights, misfit
from ops.programs.data_movement.copy import Conversion, CopyTensor, misplaced_rows
from ops.programs.data_movement.placement import whole_shards
from ops.programs.data_movement.slice import SliceWrite, Window
from ops.programs.halo.plan import HaloOp
from ops.programs.phase_conv2d.plan import PhaseConv2dOp
from ops.window import PaddedAxis

DEALS_ROWS: Final = frozenset({Conversion.INTERLEAVED_TO_SHARDED, Conversion.RESHARD, Conversion.COPY})
MOST_IDLE: Final = 8  # at most 1 / MOST_IDLE of the caller's cores may be idle in a slice


def check_strict(call: ConvCall) -> None:
    """Raises ArgumentError for a call that the real library accepts and computes wrongly."""
    refuse_first(call, TRANSPOSED_CHECKS if call.rules.transposed else CONV2D_CHECKS, call.rules.function)


# Checks of windows


def _padding(call: ConvCall) -> Iterator[str]:
    for axis in range(2):
        limit, most = call.dilation[axis] * (call.kernel_size[axis] - 1), max(call.padding[2 * axis : 2 * axis + 2])
        if most > limit:
            yield (
                f"padding must not exceed dilation * (kernel_size - 1), which is {limit} here, not {most}: "
                "the real library fills the whole output with the bias then; slice the output yourself"
            )
    plain = call.kernel_size == call.stride == call.dilation == (1, 1) and not any(call.padding)
    if plain and any(call.output_padding):
        yield (
            f"output_padding {call.output_padding} is ignored by a 1x1 convolution with stride 1, though the returned "
            "sizes count it; use output_padding=(0, 0)"
        )


def _folding(call: ConvCall) -> Iterator[str]:
    """Taps that are folded as if they were neighbors, and images that are padded with zeros before they are folded."""
    if not call.folds:
        return
    if any(kernel > 1 and dilation > 1 for kernel, dilation in zip(call.kernel_size, call.dilation, strict=True)):
        yield f"folding windows with dilation {call.dilation} gives wrong results; {FOLDING_WAY_OUT}"
    if call.conv_config.replicate_padding and any(call.padding):
        yield f"padding_mode Replicate is padded with zeros where windows are folded; {FOLDING_WAY_OUT}"


def _slices_with_input(call: ConvCall) -> Iterator[str]:
    config = call.slice_config
    if config is None or config.num_slices < 2 or call.in_one_piece or call.folds or call.plans_without_outputs:
        return
    if any(part.is_empty for part in output_slices(call, config)):
        yield (
            f"slice_config: one of {config.num_slices} slices lies in the padding alone, and the real library leaves "
            "it and all that follow unwritten; use fewer slices"
        )


def _repeated_weights(call: ConvCall) -> Iterator[str]:
    """Weights of channels by themselves that a matmul reads as a matrix."""
    if call.repeats_weights and (call.is_matmul or call.folds):
        yield (
            f"groups={call.groups} of one channel each: the real library repeats the weights of a row without a bias "
            "for all input channels, and multiplies by them as by a matrix; give a bias of zeros"
        )


# Checks of tensors


def _input(call: ConvCall) -> Iterator[str]:
    spec = call.input.spec
    if _pads_channels(call):
        return
    if call.claimed_volume != spec.volume:
        yield (
            f"{call.claimed_shape} are {call.claimed_volume} elements, but input_tensor has {spec.volume} "
            f"(shape {list(spec.shape)}): the real library reads or writes beyond it"
        )
    if spec.shape[-1] != call.in_channels:
        yield (
            f"input_tensor must be channels-last, [N, H, W, C] or [1, 1, N*H*W, C] with C = in_channels = "
            f"{call.in_channels}, but its last axis is {spec.shape[-1]} (shape {list(spec.shape)}); permute NCHW first"
        )


def _pads_channels(call: ConvCall) -> bool:
    """Whether the input has more channels than the call, which meet zero weights: it fills its shards in L1."""
    spec, place, channels = call.input.spec, call.input.spec.memory_config, call.input.spec.shape[-1]
    if call.input.on_host or not call.takes_l1_path or spec.volume * call.in_channels != call.claimed_volume * channels:
        return False
    tiled = spec.layout is Layout.TILE
    unit = TILE if tiled else next((size for size in (TILE, TILE // 2) if channels % size == 0), TILE // 4)
    if channels <= call.in_channels or channels != round_up(call.in_channels, unit):
        return False
    if place.shard_spec is not None:
        return place.memory_layout is HEIGHT and place.shard_spec.shape[1] == channels
    return place.memory_layout is TensorMemoryLayout.INTERLEAVED and not call.is_matmul


def _formats(call: ConvCall) -> Iterator[str]:
    for name, data_format in (
        ("input_tensor", call.input.spec.data_format),
        ("dtype", call.out_format),
        ("conv_config.weights_dtype", call.conv_config.weights_format),
        ("weight_tensor", None if _refused_later(call) else call.weight.spec.data_format),
        ("bias_tensor", None if call.bias is None else call.bias.spec.data_format),
    ):
        if data_format is not None and not data_format.is_float:
            yield f"{name} must be a floating-point type, not {data_format}; the result would be nonsense"


def _refused_later(call: ConvCall) -> bool:
    """Whether weights or bias are refused, with the real library's text, once they are to be prepared."""
    return next(operand_refusals(call), rows_of_weights(call)) is not None


def raw_weight(call: ConvCall) -> Iterator[str]:
    """The refusal of a host weight that is not ROW_MAJOR or has not the shape of the call.

    A conv2d weight may have fewer input channels: the plan shows whether zeros multiply the other channels.
    """
    yield from groups_divide(call)
    spec, groups = call.weight.spec, max(call.groups, 1)
    (first, first_name), (second, name) = (call.out_channels, "out_channels"), (call.in_channels, "in_channels")
    if call.rules.transposed:
        first, first_name, second, name = second, name, first, first_name
    wanted = [first, second // groups, *call.kernel_size]
    padded = not call.rules.transposed and groups == 1 and not call.folds and 0 < spec.shape[1] < wanted[1]
    if list(spec.shape) != [wanted[0], spec.shape[1] if padded else wanted[1], *wanted[2:]]:
        yield (
            f"weight_tensor must have the shape {wanted} ({first_name}, {name} / groups, kernel height, "
            f"kernel width), not {list(spec.shape)}"
        )
    if spec.layout is not Layout.ROW_MAJOR:
        yield "weight_tensor on the host must be in ROW_MAJOR_LAYOUT: tiles would be read as rows"


def _operands(call: ConvCall) -> Iterator[str]:
    if _refused_later(call):
        return
    weight, bias = call.weight.spec, None if call.bias is None or call.bias.on_host else call.bias.spec
    if call.weight.on_host:
        yield from raw_weight(call)
    elif weight.shape[-1:] != (call.out_channels,):
        yield (
            f"weight_tensor on the device must be prepared for out_channels = {call.out_channels}, the size of its "
            f"last axis, not have the shape {list(weight.shape)}; prepare the weights for this call"
        )
    if bias is not None and (bias.layout is not Layout.TILE or bias.shape[-1:] != (call.out_channels,)):
        yield (
            f"bias_tensor on the device must be prepared for out_channels = {call.out_channels}: it is "
            f"{bias.layout.name} with shape {list(bias.shape)}; pass it on the host, or as an earlier call returned it"
        )


OF_TENSORS: Final[tuple[Check, ...]] = (_input, _formats, _operands)
TRANSPOSED_CHECKS: Final[tuple[Check, ...]] = (groups_given, dilation_given, _padding, *OF_TENSORS)
CONV2D_CHECKS: Final[tuple[Check, ...]] = (dilation_given, _folding, _repeated_weights, _slices_with_input, *OF_TENSORS)


# Faults of plans


def plan_fault(plan: Plan, call: ConvCall) -> str | None:
    """Why a plan of the real library gives wrong results; None if the results are right."""
    operations = [step for step in plan.steps if isinstance(step, Operation)]
    if plan.refused or any(operation.refused or operation.unfinished for operation in operations):
        return None  # an error of the real library's own
    text = next(_faults(plan, operations, call), None)
    return None if text is None else f"{call.rules.function}: {text}"


def _faults(plan: Plan, operations: list[Operation], call: ConvCall) -> Iterator[str]:
    yield from _misused(plan, call)
    last: Conv2dOp | PhaseConv2dOp | None = None
    halo: HaloOp | None = None
    windows = []
    for step in operations:
        op = step.op
        halo = op if isinstance(op, HaloOp) else halo
        last = op if isinstance(op, Conv2dOp | PhaseConv2dOp) else last
        if isinstance(op, Conv2dOp):
            yield from _program_faults(op, halo, call)
        elif isinstance(op, SliceWrite) and last is not None:
            windows.append(op.window)
            yield from _slice_faults(last, op.window, call)
    if windows:
        yield from _unwritten(windows, call)
    yield from _unwritten_channels(plan, operations)
    if (misplaced := misplaced_rows(plan)) is not None:  # of a resharded input
        yield f"input_tensor: {misplaced}"


def _misused(plan: Plan, call: ConvCall) -> Iterator[str]:
    """Prepared weights and bias that operations take for others."""
    made_here = {step.tensor: step.op for step in plan.steps if isinstance(step, Allocate)}
    prepared_before = {"weight": call.weight.created_by, "bias": None if call.bias is None else call.bias.created_by}
    for expected in plan.expected:
        if not isinstance(expected.op, PrepareWeights | PrepareBias):
            continue
        prepared, tensor = {**made_here, **prepared_before}.get(expected.tensor), plan.tensors[expected.tensor]
        text = misfit(prepared, tensor, expected.op)
        if text is not None and call.folding is not None and expected.tensor in made_here:
            yield (
                "conv_config.enable_kernel_stride_folding: of an input in DRAM the real library folds the image, "
                f"but not the weights ({text}); set it to False, or put the input in L1"
            )
        elif text is not None:
            yield (
                f"{'weight' if isinstance(expected.op, PrepareWeights) else 'bias'}_tensor: {text}: the real library "
                "reads it as it lies and computes something else; prepare it with the arguments of this call, or pass "
                "it raw on the host"
            )


def _unwritten_channels(plan: Plan, operations: list[Operation]) -> Iterator[str]:
    """The refusal of rows of channels that do not fill their shards, if activations become block floats.

    The program that distributes the rows writes their channels and leaves the rest of the shards unwritten. The rest is
    multiplied by zero weights; but 16 columns of a K block share the largest exponent when they become block floats.
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


def _program_faults(op: Conv2dOp, halo: HaloOp | None, call: ConvCall) -> Iterator[str]:
    """Weights read in the wrong order, and channels that meet the weights of others."""
    layout = op.layout
    if call.rules.transposed and op.options.full_inner_dim and layout.scheme is BLOCK:
        yield (
            "conv_config.full_inner_dim reads the weights of a BLOCK_SHARDED transposed convolution, which this is, "
            "in the wrong order; leave it out, or set shard_layout to HEIGHT_SHARDED or WIDTH_SHARDED"
        )
    core_blocks, width = layout.blocks.k_blocks // layout.config.channel_cores, layout.shards.in_width
    if layout.scheme is WIDTH and width % (core_blocks * TILE):
        yield (
            f"conv_config.act_block_w_div cuts the {width} channels of every WIDTH_SHARDED core into "
            f"{core_blocks} parts, but each tap of a part reads whole tiles of {TILE} weights, so that taps meet "
            f"weights that are not theirs; use a divisor of {width // TILE}, such as 1"
        )
    shard_channels = width if halo is None else halo.plan.arguments.shard_width
    if layout.scheme is BLOCK and shard_channels != width:
        yield (
            f"input_tensor: every BLOCK_SHARDED core holds {shard_channels} of its channels, and the weights are "
            f"prepared for {width}, so that channels meet weights of others; give an input of "
            f"{op.problem.in_channels} channels, in interleaved memory"
        )


def _slice_faults(op: Conv2dOp | PhaseConv2dOp, window: Window, call: ConvCall) -> Iterator[str]:
    """A slice that computes other outputs than its own."""
    frame, name = op.problem.frame, slices_name(call)
    wanted, computed = _size(window), (frame.rows.outputs, frame.columns.outputs)
    if computed[0] != wanted[0] or computed[1] < wanted[1]:
        yield (
            f"{name}: a slice that stands for {wanted[0]} x {wanted[1]} outputs computes "
            f"{computed[0]} x {computed[1]}, so that wrong ones come out, as of the real library; {way_out(call)}"
        )
    whole = call.frame() if frame.replicate else frame
    axes = ((whole.rows, frame.rows), (whole.columns, frame.columns))
    for (all_of_it, part), first, outputs in zip(axes, window.begins[1:3], wanted, strict=True):
        if frame.replicate and not _same_sources(all_of_it, part, first, outputs):
            yield (
                f"{name}: padding_mode Replicate repeats pixels at the edges of every slice, where the whole image has "
                f"inserted zeros or other pixels, as in the real library; {way_out(call)}, or put the input in L1"
            )
    if isinstance(op, Conv2dOp):
        yield from _idle_cores(op, call)


def _idle_cores(op: Conv2dOp, call: ConvCall) -> Iterator[str]:
    """The refusal of a slice on the caller's HEIGHT_SHARDED cores that leaves more than an eighth of them idle.

    Cores with outputs may then multiply zeros or stale memory instead of their windows. The reason is unknown, and the
    plan does not show it: the same slice on the same cores was right on one chip and wrong on the other. Recorded
    slices that leave up to an eighth of the cores idle are right on all recorded chips; slices that leave half of the
    cores or more idle are right or wrong; nothing is recorded in between.
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
            f"{slices_name(call)}: {missing} of {outputs} outputs are never written, because a slice reads no input, "
            f"as in the real library; {way_out(call)}"
        )


def _size(window: Window) -> tuple[int, int]:
    return window.ends[1] - window.begins[1], window.ends[2] - window.begins[2]
