"""Which calls of conv2d are refused before anything is planned.

What both kinds of convolution are asked stands in ``ops.calls.convolution.validation`` and ``strictness``; here is what
conv2d asks besides, and what of it this library does not simulate. Evidence: calls of the real library, version 0.81.1.
"""

from collections.abc import Callable, Iterator
from typing import Final

from device.memory.memory_config import BufferType, Layout
from device.memory.tiles import TILE
from ops.calls.conv2d.folding import folds
from ops.calls.convolution.arguments import Conv2dArguments
from ops.calls.convolution.problem import is_matmul
from ops.calls.convolution.slicing import output_slices
from ops.calls.convolution.strictness import (
    OPERAND_CHECKS,
    dilation_given,
    groups_divide,
    groups_given,
    refuse_first,
    sizes_given,
)
from ops.calls.convolution.validation import (
    BIAS_SHAPE_CHECKS,
    CONFIG_CHECKS,
    HOST_WEIGHT_FORMATS,
    INPUT_CHECKS,
    SIZE_CHECKS,
    ArgumentError,
    raise_first,
    takes_l1_path,
)
from ops.programs.halo.frame import count_windows

Check = Callable[[Conv2dArguments], Iterator[str]]


def validate(a: Conv2dArguments) -> None:
    """Refuses a call that the real library refuses, or that is not simulated.

    Raises:
        ArgumentError: The first rule that is broken.
    """
    _raise_first(a, (_output_override,))
    raise_first(a, SIZE_CHECKS)
    _raise_first(a, (_folded_sizes,))
    raise_first(a, () if is_matmul(a) or folds(a) else INPUT_CHECKS)
    _raise_first(a, (_weight,))
    raise_first(a, CONFIG_CHECKS, BIAS_SHAPE_CHECKS)


def require_possible(a: Conv2dArguments) -> None:
    """Refuses a call that the real library crashes on, and the ways to compute it that are not simulated.

    Raises:
        ArgumentError: The first rule that is broken.
    """
    refuse_first("conv2d", a, (sizes_given, groups_divide, groups_given, dilation_given, _output_size))
    refuse_first("conv2d", a, SIMULATED_CHECKS)


def require_sane(a: Conv2dArguments) -> None:
    """Refuses a call that the real library accepts and gets wrong.

    Raises:
        ArgumentError: The first rule that is broken.
    """
    refuse_first("conv2d", a, (_slices_with_input, *OPERAND_CHECKS))


def _raise_first(a: Conv2dArguments, checks: tuple[Check, ...]) -> None:
    for check in checks:
        for text in check(a):
            raise ArgumentError(text)


def output_size(a: Conv2dArguments) -> tuple[int, int]:
    """Height and width of the output; zero or less where the kernel does not fit."""
    top, bottom, left, right = a.padding
    height, width = (
        count_windows(length + padding, dilation * (kernel - 1), stride)
        for length, padding, kernel, dilation, stride in zip(
            (a.input_height, a.input_width), (top + bottom, left + right), a.kernel_size, a.dilation, a.stride,
            strict=True,
        )
    )  # fmt: skip
    return height, width


def _output_size(a: Conv2dArguments) -> Iterator[str]:
    height, width = output_size(a)
    if height < 1 or width < 1:
        yield (
            f"kernel_size {a.kernel_size} with dilation {a.dilation} does not fit an image of "
            f"{a.input_height} x {a.input_width} with padding {a.padding}; pad more"
        )


def _output_override(a: Conv2dArguments) -> Iterator[str]:
    if a.conv_config.override_output_sharding_config and not takes_l1_path(a):
        yield (
            "Conv2D DRAM slicing doesn't support override_output_sharding_config.\n"
            "conv_config.override_output_sharding_config: put the input in L1, or leave the override out"
        )


def _folded_sizes(a: Conv2dArguments) -> Iterator[str]:
    if not folds(a):
        return
    (top, bottom, left, right), way_out = a.padding, "conv_config.enable_kernel_stride_folding: leave it to the library"
    for name, length, stride in (
        ("height", a.input_height + top + bottom, a.stride[0]),
        ("width", a.input_width + left + right, a.stride[1]),
    ):
        if length % stride:
            yield (
                f"Padded input {name} ({length}) must be divisible by stride ({stride}) for kernel stride folding.\n"
                f"{way_out}, or pad to whole windows"
            )
    if any(a.padding) and a.input.spec.layout is Layout.TILE:
        yield f"ttnn.pad: on device tile padding does not support front padding\n{way_out}, or give rows"


def _weight(a: Conv2dArguments) -> Iterator[str]:
    spec = a.weight.spec
    if not a.weight.on_host:
        if spec.layout is not Layout.TILE:
            yield (
                "conv2d: weight_tensor on the device must be prepared weights in TILE layout; the real library would "
                "fetch others back to prepare them: pass them on the host, or as an earlier call returned them"
            )
        return
    if len(spec.shape) != 4:
        yield (
            "Host conv weights should be 4D tensor\nweight_tensor: it must have the four axes [out_channels, "
            f"in_channels / groups, kernel height, kernel width], not the shape {list(spec.shape)}"
        )
    if spec.layout is not Layout.ROW_MAJOR:
        yield (
            "Host conv weights layout should be in row_major layout\n"
            "weight_tensor: make it with layout=ROW_MAJOR_LAYOUT; block floats come from conv_config.weights_dtype"
        )
    if spec.data_format not in HOST_WEIGHT_FORMATS:
        yield (
            f"Unsupported data type\nweight_tensor: weights on the host must be bfloat16 or float32, not "
            f"{spec.data_format}; set conv_config.weights_dtype to have them converted"
        )


def _slices_with_input(a: Conv2dArguments) -> Iterator[str]:
    config = a.slice_config
    if config is None or config.num_slices < 2 or takes_l1_path(a) or is_matmul(a):
        return
    if any(part.is_empty for part in output_slices(a, config)):
        yield (
            f"slice_config: one of {config.num_slices} slices lies in the padding alone, and the real library leaves "
            "it and all that follow unwritten; use fewer slices"
        )


def _folding(a: Conv2dArguments) -> Iterator[str]:
    if not folds(a):
        return
    way_out = "set conv_config.enable_kernel_stride_folding=False, which the real library obeys too"
    if a.kernel_size != a.stride:
        yield f"folding windows of {a.kernel_size} at stride {a.stride}, which overlap, is not simulated; {way_out}"
    if a.dilation != (1, 1):
        yield f"folding windows with dilation {a.dilation} gives wrong results; {way_out}"
    if a.conv_config.shard_layout is not None or a.conv_config.override_sharding_config:
        yield (
            "folding windows is simulated without a shard_layout only: with one, the real library prepares the "
            f"weights in another order than the input has; leave it out, or {way_out}"
        )
    if not a.input.on_host and a.input.spec.memory_config.is_sharded():
        yield f"folding windows of a sharded input is not simulated; {way_out}"
    if a.input.spec.layout is Layout.TILE and a.in_channels % TILE:
        yield f"folding windows of tiles that {a.in_channels} channels do not fill is not simulated; {way_out}"
    in_l1 = not a.input.on_host and a.input.spec.memory_config.buffer_type is BufferType.L1
    if in_l1 and a.input.spec.layout is Layout.TILE:
        yield f"folding windows of tiles in L1 is not simulated; {way_out}"


def _activation_reuse(a: Conv2dArguments) -> Iterator[str]:
    if a.conv_config.enable_activation_reuse:
        yield (
            "conv_config.enable_activation_reuse is not simulated: its circular buffers and K blocks differ; "
            "leave it out"
        )


def _depthwise(a: Conv2dArguments) -> Iterator[str]:
    depthwise = a.groups == a.in_channels == a.out_channels and a.groups > 1
    one_row = a.kernel_size[0] == 1 and a.input_height == 1
    if depthwise and one_row and a.bias is None and not is_matmul(a):
        yield (
            "the depthwise convolution of a single row without a bias, which the real library computes element by "
            "element, is not simulated; give a bias of zeros to have it computed as any other"
        )


SIMULATED_CHECKS: Final[tuple[Check, ...]] = (_folding, _activation_reuse, _depthwise)
