"""Which calls of conv_transpose2d are refused before anything is planned.

What both kinds of convolution are asked stands in ``ops.calls.convolution.validation``; here is what
conv_transpose2d and the preparation of its weights and bias ask besides. An output padding of the stride or more is not
refused: other frameworks do, the real library computes it rightly. Evidence: calls of the real library, version 0.81.1.
"""

from collections.abc import Iterator

from device.errors import ArgumentError
from device.memory.memory_config import BufferType
from ops.calls.convolution.arguments import ConvArguments, SliceType
from ops.calls.convolution.operand_checks import bias_refusals, transposed_weight_rank, weight_refusals
from ops.calls.convolution.output_checks import output_override
from ops.calls.convolution.output_lengths import output_lengths, plans_without_outputs
from ops.calls.convolution.problem import frame_of, is_matmul, prepared_as_matmul, takes_l1_path
from ops.calls.convolution.sanity import (
    OPERAND_CHECKS,
    dilation_given,
    groups_divide,
    groups_given,
    refuse_first,
    sizes_given,
)
from ops.calls.convolution.slice_choice import require_outputs
from ops.calls.convolution.slicing import most_slices, output_slices, slice_call
from ops.calls.convolution.soundness import way_out
from ops.calls.convolution.validation import (
    BLOCK_CHECKS,
    CONFIG_CHECKS,
    INPUT_CHECKS,
    INPUT_RANK_CHECKS,
    SEARCH_CHECKS,
    SIZE_CHECKS,
    bias_format_known,
    raise_first,
    rows_of_block_operands,
)
from ops.frame.axis import NoWindowError


def validate(call: ConvArguments) -> None:
    """Refuses a call that the real library refuses.

    Raises:
        ArgumentError: The first rule that is broken.
    """
    if _asks_for_slices(call):
        raise_first(call, SIZE_CHECKS, SEARCH_CHECKS, (_search_format_known,))
    raise_first(call, INPUT_CHECKS, SIZE_CHECKS, (transposed_weight_rank,), CONFIG_CHECKS, INPUT_RANK_CHECKS)


def validate_weights_preparation(call: ConvArguments) -> None:
    """Refuses a call of prepare_conv_transpose2d_weights; the memory config of ``input`` is that of the future input.

    Raises:
        ArgumentError: The first rule that is broken.
    """
    if _searches_slices(call):
        raise_first(call, SIZE_CHECKS, SEARCH_CHECKS, (_search_format_known,))
    own = (weight_refusals, _prepared_slices, _kept_shards, output_override, _slice_shards)
    raise_first(call, own, BLOCK_CHECKS, CONFIG_CHECKS)


def validate_bias_preparation(call: ConvArguments) -> None:
    """Refuses a call of prepare_conv_transpose2d_bias.

    Raises:
        ArgumentError: The first rule that is broken.
    """
    raise_first(call, (bias_format_known, _bias_on_host, _bias_of_dram_input), CONFIG_CHECKS, (bias_refusals,))


def require_possible(call: ConvArguments, *, free_l1_bytes: int | None = None) -> None:
    """Refuses a call that the real library crashes on, or never returns from.

    Args:
        free_l1_bytes: Free bytes of every L1 bank; None where nothing is computed yet.

    Raises:
        ArgumentError: The first rule that is broken.
    """
    refuse_first("conv_transpose2d", call, (sizes_given, groups_divide))
    require_outputs(call, next(_output_size(call), None), free_l1_bytes)


def require_sane(call: ConvArguments) -> None:
    """Refuses a call that the real library accepts and gets wrong.

    Raises:
        ArgumentError: The first rule that is broken.
    """
    own = (_padding, _matmul_output_padding)
    refuse_first("conv_transpose2d", call, (groups_given, dilation_given, *own, *OPERAND_CHECKS))


def _output_size(call: ConvArguments) -> Iterator[str]:
    height, width = output_lengths(call)
    if height < 1 or width < 1:
        yield (
            f"conv_transpose2d: padding {call.padding} leaves no output: it would be {height} high and {width} wide; "
            "pad less"
        )


def _padding(call: ConvArguments) -> Iterator[str]:
    for sides, kernel, dilation in zip(
        (call.padding[:2], call.padding[2:]), call.kernel_size, call.dilation, strict=True
    ):
        limit = dilation * (kernel - 1)
        if max(sides) > limit:
            yield (
                f"padding must not exceed dilation * (kernel_size - 1), which is {limit} here, not {max(sides)}: "
                "the real library fills the whole output with the bias then; slice the output yourself"
            )


def _matmul_output_padding(call: ConvArguments) -> Iterator[str]:
    plain = call.kernel_size == call.stride == call.dilation == (1, 1) and not any(call.padding)
    if plain and any(call.output_padding):
        yield (
            f"output_padding {call.output_padding} is ignored by a 1x1 convolution with stride 1, though the returned "
            "sizes count it; use output_padding=(0, 0)"
        )


def _asks_for_slices(call: ConvArguments) -> bool:
    """Whether a slice config leaves the number of slices to the library."""
    config = call.slice_config
    return config is not None and config.slice_type is not SliceType.L1_FULL and not config.num_slices


def _searches_slices(call: ConvArguments) -> bool:
    """Whether preparing looks for a number of slices: it does for L1_FULL, too."""
    config = call.slice_config
    return not takes_l1_path(call) if config is None else not config.num_slices


def _search_format_known(call: ConvArguments) -> Iterator[str]:
    if call.conv_config.weights_format is None:
        yield (
            "get_cb_info expects conv_config.weights_dtype to be already set\n"
            "conv_config.weights_dtype: the number of slices depends on it; set it, for example to bfloat16"
        )


def _bias_on_host(call: ConvArguments) -> Iterator[str]:
    if call.bias is not None and not call.bias.on_host:
        yield "conv bias should be placed on host\nbias_tensor: use .cpu(), or pass the bias as it was made"


def _prepared_slices(call: ConvArguments) -> Iterator[str]:
    config = call.slice_config
    if config is None or takes_l1_path(call):
        return
    length = output_lengths(call)[0 if config.slice_type is SliceType.DRAM_HEIGHT else 1]
    if config.num_slices > length:
        yield (
            f"Number of slices {config.num_slices} should be less or equal than the dimension being sliced {length} "
            f"in Conv2D DRAM Slicing\ndram_slice_config: at most {length} slices fit the output; 0 finds the number"
        )


def _kept_shards(call: ConvArguments) -> Iterator[str]:
    if takes_l1_path(call) and call.input.spec.memory_config.is_sharded():
        yield from _missing_shard_layout(call)


def _slice_shards(call: ConvArguments) -> Iterator[str]:
    if not takes_l1_path(call):
        yield from _missing_shard_layout(call)


def _missing_shard_layout(call: ConvArguments) -> Iterator[str]:
    """Shards, those of a slice too, whose layout is neither given nor kept."""
    if call.conv_config.reshard_if_not_optimal and call.conv_config.shard_layout is None:
        yield (
            "bad optional access\nconv_config.shard_layout: with reshard_if_not_optimal, set it to what the call will "
            "use, or leave reshard_if_not_optimal out"
        )


def plans_in_dram(call: ConvArguments) -> bool:
    """Whether preparing a bias plans slices of a convolution over the frame, as for an input in DRAM."""
    return call.input.spec.memory_config.buffer_type is BufferType.DRAM and not prepared_as_matmul(call)


def _bias_of_dram_input(call: ConvArguments) -> Iterator[str]:
    if not plans_in_dram(call):
        return
    yield from rows_of_block_operands(call)
    yield from _missing_shard_layout(call)


def require_possible_slices(call: ConvArguments) -> None:
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
