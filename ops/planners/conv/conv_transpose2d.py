"""What ttnn.conv_transpose2d adds to convolutions: its rules, its refusals, and those of lowering by output phases.

What both kinds of convolution are asked stands in ``ops.planners.conv.checks``; here is what
conv_transpose2d and the preparation of its weights and bias ask besides. An output padding of the stride or more is not
refused: other frameworks do, the real library computes it rightly. Evidence: calls of the real library, version 0.81.1.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from device.errors import ArgumentError
from device.memory.memory_config import BufferType
from device.numbers.formats import div_up
from device.plan import DeviceOp, Plan
from ops.planners.conv.arguments import (
    AxisWindow,
    ConvCall,
    ConvRules,
    Freed,
    SliceType,
    frame_of,
    is_matmul,
    output_lengths,
    plans_without_outputs,
    prepared_as_matmul,
    takes_l1_path,
)
from ops.planners.conv.checks import (
    BLOCK_CHECKS,
    CONFIG_CHECKS,
    INPUT_CHECKS,
    INPUT_RANK_CHECKS,
    SEARCH_CHECKS,
    SIZE_CHECKS,
    bias_format_known,
    bias_refusals,
    output_override,
    raise_first,
    rows_of_block_operands,
    transposed_weight_rank,
    weight_refusals,
)
from ops.planners.conv.slicing import most_slices, output_slices, require_outputs, slice_call
from ops.planners.conv.strict import (
    OPERAND_CHECKS,
    dilation_given,
    groups_divide,
    groups_given,
    refuse_first,
    sizes_given,
    way_out,
)
from ops.programs.conv2d.weights import AsWanted
from ops.programs.phase_conv2d.values import PreparePhaseWeights
from ops.window import NoWindowError, PaddedAxis, transposed_axis


def validate(call: ConvCall) -> None:
    """Refuses a call that the real library refuses."""
    if _asks_for_slices(call):
        raise_first(call, SIZE_CHECKS, SEARCH_CHECKS, (_search_format_known,))
    raise_first(call, INPUT_CHECKS, SIZE_CHECKS, (transposed_weight_rank,), CONFIG_CHECKS, INPUT_RANK_CHECKS)


def validate_weights_preparation(call: ConvCall) -> None:
    """Refuses a call of prepare_conv_transpose2d_weights; its input has the memory config of the input to come."""
    if _searches_slices(call):
        raise_first(call, SIZE_CHECKS, SEARCH_CHECKS, (_search_format_known,))
    own = (weight_refusals, _prepared_slices, _kept_shards, output_override, _slice_shards)
    raise_first(call, own, BLOCK_CHECKS, CONFIG_CHECKS)


def validate_bias_preparation(call: ConvCall) -> None:
    """Refuses a call of prepare_conv_transpose2d_bias."""
    raise_first(call, (bias_format_known, _bias_on_host, _bias_of_dram_input), CONFIG_CHECKS, (bias_refusals,))


def check_arguments(call: ConvCall, *, free_l1_bytes: int | None = None) -> None:
    """Refuses a call that the real library crashes on, or never returns from."""
    refuse_first("conv_transpose2d", call, (sizes_given, groups_divide))
    require_outputs(call, next(_output_size(call), None), free_l1_bytes)


def check_strict(call: ConvCall) -> None:
    """Refuses a call that the real library accepts and gets wrong."""
    own = (_padding, _matmul_output_padding)
    refuse_first("conv_transpose2d", call, (groups_given, dilation_given, *own, *OPERAND_CHECKS))


def _output_size(call: ConvCall) -> Iterator[str]:
    height, width = output_lengths(call)
    if height < 1 or width < 1:
        yield (
            f"conv_transpose2d: padding {call.padding} leaves no output: it would be {height} high and {width} wide; "
            "pad less"
        )


def _padding(call: ConvCall) -> Iterator[str]:
    for sides, kernel, dilation in zip(
        (call.padding[:2], call.padding[2:]), call.kernel_size, call.dilation, strict=True
    ):
        limit = dilation * (kernel - 1)
        if max(sides) > limit:
            yield (
                f"padding must not exceed dilation * (kernel_size - 1), which is {limit} here, not {max(sides)}: "
                "the real library fills the whole output with the bias then; slice the output yourself"
            )


def _matmul_output_padding(call: ConvCall) -> Iterator[str]:
    plain = call.kernel_size == call.stride == call.dilation == (1, 1) and not any(call.padding)
    if plain and any(call.output_padding):
        yield (
            f"output_padding {call.output_padding} is ignored by a 1x1 convolution with stride 1, though the returned "
            "sizes count it; use output_padding=(0, 0)"
        )


def _asks_for_slices(call: ConvCall) -> bool:
    """Whether a slice config leaves the number of slices to the library."""
    config = call.slice_config
    return config is not None and config.slice_type is not SliceType.L1_FULL and not config.num_slices


def _searches_slices(call: ConvCall) -> bool:
    """Whether preparing looks for a number of slices: it does for L1_FULL, too."""
    config = call.slice_config
    return not takes_l1_path(call) if config is None else not config.num_slices


def _search_format_known(call: ConvCall) -> Iterator[str]:
    if call.conv_config.weights_format is None:
        yield (
            "get_cb_info expects conv_config.weights_dtype to be already set\n"
            "conv_config.weights_dtype: the number of slices depends on it; set it, for example to bfloat16"
        )


def _bias_on_host(call: ConvCall) -> Iterator[str]:
    if call.bias is not None and not call.bias.on_host:
        yield "conv bias should be placed on host\nbias_tensor: use .cpu(), or pass the bias as it was made"


def _prepared_slices(call: ConvCall) -> Iterator[str]:
    config = call.slice_config
    if config is None or takes_l1_path(call):
        return
    length = output_lengths(call)[0 if config.slice_type is SliceType.DRAM_HEIGHT else 1]
    if config.num_slices > length:
        yield (
            f"Number of slices {config.num_slices} should be less or equal than the dimension being sliced {length} "
            f"in Conv2D DRAM Slicing\ndram_slice_config: at most {length} slices fit the output; 0 finds the number"
        )


def _kept_shards(call: ConvCall) -> Iterator[str]:
    if takes_l1_path(call) and call.input.spec.memory_config.is_sharded():
        yield from _missing_shard_layout(call)


def _slice_shards(call: ConvCall) -> Iterator[str]:
    if not takes_l1_path(call):
        yield from _missing_shard_layout(call)


def _missing_shard_layout(call: ConvCall) -> Iterator[str]:
    """Shards, those of a slice too, whose layout is neither given nor kept."""
    if call.conv_config.reshard_if_not_optimal and call.conv_config.shard_layout is None:
        yield (
            "bad optional access\nconv_config.shard_layout: with reshard_if_not_optimal, set it to what the call will "
            "use, or leave reshard_if_not_optimal out"
        )


def plans_in_dram(call: ConvCall) -> bool:
    """Whether preparing a bias plans slices of a convolution over the frame, as for an input in DRAM."""
    return call.input.spec.memory_config.buffer_type is BufferType.DRAM and not prepared_as_matmul(call)


def _bias_of_dram_input(call: ConvCall) -> Iterator[str]:
    if not plans_in_dram(call):
        return
    yield from rows_of_block_operands(call)
    yield from _missing_shard_layout(call)


def check_slices(call: ConvCall) -> None:
    """Refuses a number of slices that the real library crashes on.

    Raises:
        ArgumentError: A slice has no outputs of its own.
    """
    config = call.slice_config
    if config is None or config.slice_type is SliceType.L1_FULL or takes_l1_path(call) or is_matmul(call):
        return
    if plans_without_outputs(call):
        return
    if not 1 < config.num_slices <= most_slices(call, config.slice_type):
        return
    for index, part in enumerate(output_slices(call, config)):
        if part.is_empty:
            continue
        try:
            frame_of(slice_call(call, part))
        except NoWindowError:
            raise ArgumentError(
                f"conv_transpose2d: dram_slice_config: slice {index} of {config.num_slices} has no outputs of its own, "
                f"which the real library crashes on; {way_out(call)}"
            ) from None


FUNCTION = 'conv_transpose2d, lowering="phase"'


def check_phases(call: ConvCall) -> None:
    """Refuses a call that this lowering can not carry out, and all that a strict device refuses."""
    check_strict(call)
    refuse_first(FUNCTION, call, (_config,))


def _config(call: ConvCall) -> Iterator[str]:
    config = call.conv_config
    for name, given, why in (
        ("padding_mode", config.replicate_padding, "padding is zero"),
        ("enable_activation_reuse", config.enable_activation_reuse, "rows of a phase are gathered by themselves"),
        ("force_split_reader", bool(config.force_split_reader), "the second processor reads weights alone"),
    ):
        if given:
            yield f'conv_config.{name} is not known to this lowering ({why}); leave it out, or use lowering="frame"'


def check_phase_weights(plan: Plan, call: ConvCall) -> None:
    """Refuses weights on the device that were prepared for anything else than this plan."""
    given: dict[str, DeviceOp | None] = (
        {} if call.weight.on_host else {call.weight.name or "weight": call.weight.made_by}
    )
    for one in plan.expected:
        if not isinstance(one.op, PreparePhaseWeights) or one.tensor not in given:
            continue
        made = given[one.tensor]
        if made != one.op and not isinstance(made, AsWanted):
            raise ArgumentError(
                f"{FUNCTION}: weight_tensor is on the device and was not prepared for this call and lowering; pass it "
                "as it was made, on the host, or as an earlier call of the same arguments returned it"
            )


def _axis(call: ConvCall, axis: int) -> PaddedAxis:
    """The rows (0) or the columns (1) of the frame."""
    before, after = call.padding[2 * axis : 2 * axis + 2]
    return transposed_axis(
        input_length=(call.input_height, call.input_width)[axis],
        kernel=call.kernel_size[axis],
        stride=call.stride[axis],
        padding=(before, after),
        output_padding=call.output_padding[axis],
        dilation=call.dilation[axis],
    )


def _window(call: ConvCall, axis: int, bounds: tuple[int, int], outputs: int) -> AxisWindow:
    """The window of output positions `bounds` on one axis, in the real library's own arithmetic."""
    length, stride = (call.input_height, call.input_width)[axis], call.stride[axis]
    before, after = call.padding[2 * axis : 2 * axis + 2]
    reach = call.dilation[axis] * (call.kernel_size[axis] - 1)
    real_before, real_after = reach - before, reach - after
    first, last = bounds
    start = max(0, div_up(first - real_before, stride))
    skipped = max(0, first - real_before)
    lead = -skipped % stride
    end = last - real_before + reach
    trail = (end - 1) % stride if last < outputs else 0
    stop = min(length, (end - 1) // stride + 1)
    pad_before = max(0, real_before - first, lead)
    pad_after = max(0, end - outputs, trail)
    output_padding = 0
    if first == 0:
        start, pad_before = 0, real_before
    if last == outputs:
        stop, pad_after, output_padding = length, real_after, call.output_padding[axis]
    return AxisWindow(start, stop, (reach - pad_before, reach - pad_after), output_padding)


def _filled(call: ConvCall, across: AxisWindow, columns: int) -> AxisWindow:
    """The window with more columns of output."""
    return AxisWindow(across.start, across.stop, across.padding, across.output_padding + columns)


CONV_TRANSPOSE2D: Final = ConvRules(
    function="conv_transpose2d",
    transposed=True,
    axis=_axis,
    window=_window,
    filled=_filled,
    one_slice_skips_dram=True,
    whole_window_is_slice=True,
    shards_uploaded_image=False,
    copy_freed=Freed.AFTER_MOVE,
    halo_freed=Freed.AFTER_PROGRAM,
    skips_halo=False,
    orders_full_inner_dim=False,
    reuses_activations=False,
)

# The same without inserted zeros: all else is planned alike, so that the two differ by what zeros cost.
CONV_TRANSPOSE2D_BY_PHASES: Final = replace(CONV_TRANSPOSE2D, orders_full_inner_dim=True, by_phases=True)
