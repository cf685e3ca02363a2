"""Which calls of conv2d are refused before anything is planned.

What both kinds of convolution are asked stands in ``ops.calls.convolution.validation``; here is what
conv2d asks besides, and what of it this library does not simulate. Evidence: calls of the real library, version 0.81.1.
"""

from collections.abc import Iterator
from typing import Final

from device.memory.memory_config import Layout, TensorMemoryLayout
from device.numbers.integers import div_up
from ops.calls.conv2d.folding import WAY_OUT, folds
from ops.calls.convolution.arguments import ConvArguments
from ops.calls.convolution.image_checks import view_refusal
from ops.calls.convolution.operand_checks import bias_shape, rank, weight_refusals
from ops.calls.convolution.output_lengths import output_lengths, plans_without_outputs
from ops.calls.convolution.problem import image_shape, is_matmul, prepared_as_matmul, takes_l1_path
from ops.calls.convolution.sanity import (
    OPERAND_CHECKS,
    dilation_given,
    groups_divide,
    groups_given,
    refuse_first,
    sizes_given,
)
from ops.calls.convolution.slice_choice import require_outputs
from ops.calls.convolution.slicing import output_slices
from ops.calls.convolution.validation import (
    CONFIG_CHECKS,
    IMAGE_AXES,
    INPUT_CHECKS,
    INPUT_RANK_CHECKS,
    SIZE_CHECKS,
    Check,
    bias_format_known,
    raise_first,
    rows_of_block_operands,
)

UNFOLD: Final = "conv_config.enable_kernel_stride_folding: leave it to the library"


def validate(call: ConvArguments) -> None:
    """Refuses a call that the real library refuses, or that is not simulated.

    Raises:
        ArgumentError: The first rule that is broken.
    """
    raise_first(call, (_output_override,))
    raise_first(call, SIZE_CHECKS)
    raise_first(call, (_folded_sizes, _folded_rank))
    if not folds(call):
        validate_whole(call)


def validate_whole(call: ConvArguments) -> None:
    """The checks of `validate` that come once windows are folded, if they are: of what is left of the call.

    Raises:
        ArgumentError: The first rule that is broken.
    """
    raise_first(call, () if is_matmul(call) or _whole_windows(call) else INPUT_CHECKS)
    raise_first(call, (_sliced_weight_rank, *CONFIG_CHECKS), INPUT_RANK_CHECKS)


def validate_prepared(call: ConvArguments, role: str) -> None:
    """Refuses the preparation of the weights or the bias of a call to come.

    Args:
        call: The call; the memory config of ``input`` is that of the input to come.
        role: "weight" or "bias".

    Raises:
        ArgumentError: The first rule that is broken.
    """
    raise_first(call, (bias_format_known,) if role == "bias" else ())
    raise_first(call, SIZE_CHECKS, (_folded_lengths,) if folds(call) else ())
    raise_first(call, (weight_refusals,) if role == "weight" else (bias_shape,), CONFIG_CHECKS)


def validate_prepared_blocks(call: ConvArguments) -> None:
    """Refuses to prepare block floats for what is left of a call, once windows are folded.

    Raises:
        ArgumentError: Its input is in DRAM, and it is no matmul.
    """
    raise_first(call, () if prepared_as_matmul(call) else (rows_of_block_operands,))


def require_possible(call: ConvArguments, *, free_l1_bytes: int | None = None) -> None:
    """Refuses a call that the real library crashes on, and the ways to compute it that are not simulated.

    Args:
        free_l1_bytes: Free bytes of every L1 bank; None where nothing is computed yet.

    Raises:
        ArgumentError: The first rule that is broken.
    """
    refuse_first("conv2d", call, (sizes_given, groups_divide, groups_given, dilation_given))
    folded = output_size(call) if folds(call) else None
    require_outputs(call, next(_output_size(call), None), free_l1_bytes, folded=folded)
    refuse_first("conv2d", call, SIMULATED_CHECKS)


def require_sane(call: ConvArguments) -> None:
    """Refuses a call that the real library accepts and gets wrong.

    Raises:
        ArgumentError: The first rule that is broken.
    """
    refuse_first("conv2d", call, (_folded_dilation, _folded_padding, _slices_with_input, *OPERAND_CHECKS))


def output_size(call: ConvArguments) -> tuple[int, int]:
    """Height and width of the output; zero or less where the kernel does not fit."""
    if not folds(call):
        return output_lengths(call)
    top, bottom, left, right = call.padding
    height, width = (
        (length + padding) // stride - dilation * (div_up(kernel, stride) - 1)
        for length, padding, kernel, dilation, stride in zip(
            (call.input_height, call.input_width),
            (top + bottom, left + right),
            call.kernel_size,
            call.dilation,
            call.stride,
            strict=True,
        )
    )
    return height, width


def _output_size(call: ConvArguments) -> Iterator[str]:
    height, width = output_size(call)
    if height < 1 or width < 1:
        yield (
            f"conv2d: kernel_size {call.kernel_size} with dilation {call.dilation} does not fit an image of "
            f"{call.input_height} x {call.input_width} with padding {call.padding}; pad more"
        )


def _output_override(call: ConvArguments) -> Iterator[str]:
    if call.conv_config.override_output_sharding_config and not takes_l1_path(call):
        yield (
            "Conv2D DRAM slicing doesn't support override_output_sharding_config.\n"
            "conv_config.override_output_sharding_config: put the input in L1, or leave the override out"
        )


def _folded_lengths(call: ConvArguments) -> Iterator[str]:
    top, bottom, left, right = call.padding
    for name, length, stride in (
        ("height", call.input_height + top + bottom, call.stride[0]),
        ("width", call.input_width + left + right, call.stride[1]),
    ):
        if length % stride:
            yield (
                f"Padded input {name} ({length}) must be divisible by stride ({stride}) for kernel stride folding.\n"
                f"{UNFOLD}, or pad to whole windows"
            )


def _folded_sizes(call: ConvArguments) -> Iterator[str]:
    if not folds(call):
        return
    yield from _folded_lengths(call)
    if call.stride[0] > call.kernel_size[0] or call.stride[1] > call.kernel_size[1]:
        yield (
            "Conv2D kernel stride folding: Stride must be less than or equal to kernel size\n"
            f"{UNFOLD}: windows of {call.kernel_size} at stride {call.stride} leave pixels out"
        )
    spec, place = call.input.spec, call.input.spec.memory_config
    high_shards = place.is_sharded() and place.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED
    if not call.input.on_host and spec.shape[1:3] != (call.input_height, call.input_width):
        text = view_refusal(spec, image_shape(call))
        if text is not None:
            yield text
    if (call.padding[0] or call.padding[2]) and spec.layout is Layout.TILE and not high_shards:
        yield f"ttnn.pad: on device tile padding does not support front padding\n{UNFOLD}, or give rows"


def _sliced_weight_rank(call: ConvArguments) -> Iterator[str]:
    """A weight that is asked for its kernel first, to plan slices and to choose their scheme."""
    chosen = call.conv_config.shard_layout is None
    if chosen and call.weight.on_host and not takes_l1_path(call) and not is_matmul(call):
        yield from rank(
            "weight_tensor", "[out_channels, in_channels / groups, kernel height, kernel width]", call.weight
        )


def _folded_rank(call: ConvArguments) -> Iterator[str]:
    """An input that is folded as it is, with other than four axes."""
    shape, stride = call.input.spec.shape, call.stride[0]
    if not folds(call) or len(shape) == IMAGE_AXES:
        return
    if len(shape) < IMAGE_AXES:
        yield (
            f"ShapeBase[] index out of range. {len(shape)} not in [-4, {len(shape)})\n"
            f"input_tensor: give it as [N, H, W, C], not with the shape {list(shape)}; or {WAY_OUT}"
        )
    elif shape[1] % stride:
        yield (
            f"Fold: logical H ({shape[1]}) must be divisible by stride_h ({stride}).\n"
            f"input_tensor: give it as [N, H, W, C], not with the shape {list(shape)}; or {WAY_OUT}"
        )


def _slices_with_input(call: ConvArguments) -> Iterator[str]:
    config = call.slice_config
    if config is None or config.num_slices < 2 or takes_l1_path(call) or is_matmul(call) or folds(call):
        return
    if plans_without_outputs(call):
        return
    if any(part.is_empty for part in output_slices(call, config)):
        yield (
            f"slice_config: one of {config.num_slices} slices lies in the padding alone, and the real library leaves "
            "it and all that follow unwritten; use fewer slices"
        )


def _whole_windows(call: ConvArguments) -> bool:
    """Whether windows side by side were folded, of which no slices are cut."""
    return call.folding is not None and call.folding.whole


def _folded_dilation(call: ConvArguments) -> Iterator[str]:
    """Taps that are folded as if they were neighbors."""
    if folds(call) and any(taps > 1 and apart > 1 for taps, apart in zip(call.kernel_size, call.dilation, strict=True)):
        yield f"folding windows with dilation {call.dilation} gives wrong results; {WAY_OUT}"


def _folded_padding(call: ConvArguments) -> Iterator[str]:
    """Images that are padded with zeros before they are folded."""
    if folds(call) and call.conv_config.replicate_padding and any(call.padding):
        yield f"padding_mode Replicate is padded with zeros where windows are folded; {WAY_OUT}"


def _folding(call: ConvArguments) -> Iterator[str]:
    if not folds(call):
        return
    spec, place = call.input.spec, call.input.spec.memory_config
    if call.input.on_host or not place.is_sharded():
        return
    if any(call.padding) and place.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED:
        yield f"folding windows of padded HEIGHT shards is not simulated; {WAY_OUT}"
    if spec.layout is Layout.ROW_MAJOR and spec.matrix[1] != call.in_channels:
        yield f"folding windows of shards that are wider than {call.in_channels} channels is not simulated; {WAY_OUT}"


def _depthwise(call: ConvArguments) -> Iterator[str]:
    depthwise = call.groups == call.in_channels == call.out_channels and call.groups > 1
    one_row = call.kernel_size[0] == 1 and call.input_height == 1
    if depthwise and one_row and call.bias is None and not is_matmul(call):
        yield (
            "the depthwise convolution of a single row without a bias, which the real library computes element by "
            "element, is not simulated; give a bias of zeros to have it computed as any other"
        )


SIMULATED_CHECKS: Final[tuple[Check, ...]] = (_folding, _depthwise)
