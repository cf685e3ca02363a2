"""Calls that the real library accepts and then crashes on, hangs in, or gets wrong: refused before they do harm.

``require_possible`` holds what nothing can be computed for; ``require_sane`` (a device's strict mode) what the real
library computes wrongly without a word. An output padding of the stride or more is not among them: other frameworks
refuse it, the real library computes it rightly. Evidence: calls of the real library, version 0.81.1.
"""

from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from device.memory.memory_config import Layout, TensorMemoryLayout
from ops.calls.convolution.arguments import ConvArguments, ConvTranspose2dArguments
from ops.calls.convolution.validation import ArgumentError, claimed_shape, claimed_volume
from ops.definition.geometry import plan_geometry

Arguments = TypeVar("Arguments", bound=ConvArguments)


def require_possible(arguments: ConvTranspose2dArguments) -> None:
    """Refuses a call that the real library crashes on, or never returns from.

    Raises:
        ArgumentError: The first rule that is broken.
    """
    refuse_first("conv_transpose2d", arguments, (sizes_given, groups_divide, _output_size))


def require_sane(arguments: ConvTranspose2dArguments) -> None:
    """Refuses a call that the real library accepts and gets wrong.

    Raises:
        ArgumentError: The first rule that is broken.
    """
    own = (_padding, _matmul_output_padding, _full_inner_dim)
    refuse_first("conv_transpose2d", arguments, (groups_given, dilation_given, *own, *OPERAND_CHECKS))


def refuse_first(
    operation: str, arguments: Arguments, checks: tuple[Callable[[Arguments], Iterator[str]], ...]
) -> None:
    """Raises ArgumentError, in the operation's name, with the first text that a check gives."""
    for check in checks:
        for text in check(arguments):
            raise ArgumentError(f"{operation}: {text}")


def sizes_given(a: ConvArguments) -> Iterator[str]:
    """Sizes that are nothing."""
    for name in ("in_channels", "out_channels", "batch_size", "input_height", "input_width"):
        if getattr(a, name) < 1:
            yield (f"{name} must be at least 1, not {getattr(a, name)}")
    if min(a.kernel_size) < 1:
        yield (f"kernel_size must be at least (1, 1), not {a.kernel_size}")


def groups_divide(a: ConvArguments) -> Iterator[str]:
    """Groups that do not divide the channels."""
    for name in ("in_channels", "out_channels"):
        if a.groups and getattr(a, name) % a.groups:
            yield (f"groups must divide {name}, but {getattr(a, name)} is no multiple of {a.groups}")


def output_size(a: ConvTranspose2dArguments) -> tuple[int, int]:
    """Height and width of the output; zero or less where padding leaves nothing."""
    top, bottom, left, right = a.padding
    height, width = plan_geometry(
        (a.input_height, a.input_width),
        a.kernel_size,
        stride=a.stride,
        pad_before=(top, left),
        pad_after=(bottom, right),
        output_padding=a.output_padding,
        dilation=a.dilation,
    ).output_shape
    return height, width


def _output_size(a: ConvTranspose2dArguments) -> Iterator[str]:
    height, width = output_size(a)
    if height < 1 or width < 1:
        yield (f"padding {a.padding} leaves no output: it would be {height} high and {width} wide; pad less")


def groups_given(a: ConvArguments) -> Iterator[str]:
    """No groups."""
    if a.groups < 1:
        yield (f"groups must be at least 1, not {a.groups}")


def dilation_given(a: ConvArguments) -> Iterator[str]:
    """Taps that fall together."""
    if 0 in a.dilation:
        yield (f"dilation must be at least (1, 1), not {a.dilation}; 1 means neighboring taps")


def _padding(a: ConvTranspose2dArguments) -> Iterator[str]:
    for sides, kernel, dilation in zip((a.padding[:2], a.padding[2:]), a.kernel_size, a.dilation, strict=True):
        limit = dilation * (kernel - 1)
        if max(sides) > limit:
            yield (
                f"padding must not exceed dilation * (kernel_size - 1), which is {limit} here, not {max(sides)}: "
                "the real library fills the whole output with the bias then; slice the output yourself"
            )


def _matmul_output_padding(a: ConvTranspose2dArguments) -> Iterator[str]:
    plain = a.kernel_size == a.stride == a.dilation == (1, 1) and not any(a.padding)
    if plain and any(a.output_padding):
        yield (
            f"output_padding {a.output_padding} is ignored by a 1x1 convolution with stride 1, though the returned "
            "sizes count it; use output_padding=(0, 0)"
        )


def _full_inner_dim(a: ConvTranspose2dArguments) -> Iterator[str]:
    layout = a.conv_config.shard_layout
    if a.conv_config.full_inner_dim and layout in (None, TensorMemoryLayout.BLOCK_SHARDED):
        yield (
            "conv_config.full_inner_dim reads the weights of a block-sharded transposed convolution in the wrong "
            "order; leave it out"
        )


def _input(a: ConvArguments) -> Iterator[str]:
    spec, claimed = a.input.spec, claimed_volume(a)
    if claimed != spec.volume:
        yield (
            f"{claimed_shape(a)} are {claimed} elements, but input_tensor has {spec.volume} "
            f"(shape {list(spec.shape)}): the real library reads or writes beyond it"
        )
    if spec.shape[-1] != a.in_channels:
        yield (
            f"input_tensor must be channels-last, [N, H, W, C] or [1, 1, N*H*W, C] with C = in_channels = "
            f"{a.in_channels}, but its last axis is {spec.shape[-1]} (shape {list(spec.shape)}); permute NCHW first"
        )


def _formats(a: ConvArguments) -> Iterator[str]:
    weights = a.weight.spec.data_format
    for name, data_format in (
        ("input_tensor", a.input.spec.data_format),
        ("dtype", a.out_format),
        ("conv_config.weights_dtype", a.conv_config.weights_format),
        ("weight_tensor", weights),
        ("bias_tensor", None if a.bias is None else a.bias.spec.data_format),
    ):
        if data_format is not None and not data_format.is_float:
            yield (f"{name} must be a floating-point type, not {data_format}; the result would be nonsense")


def _weight(a: ConvArguments) -> Iterator[str]:
    spec = a.weight.spec
    (kernel_rows, kernel_cols), groups = a.kernel_size, max(a.groups, 1)
    if a.weight.on_host:
        first, second = (a.in_channels, "in_channels"), (a.out_channels, "out_channels")
        if not isinstance(a, ConvTranspose2dArguments):
            first, second = second, first
        wanted = [first[0], second[0] // groups, kernel_rows, kernel_cols]
        if list(spec.shape) != wanted:
            yield (
                f"weight_tensor must have the shape {wanted} ({first[1]}, {second[1]} / groups, kernel height, "
                f"kernel width), not {list(spec.shape)}"
            )
        if spec.layout is not Layout.ROW_MAJOR:
            yield ("weight_tensor on the host must be in ROW_MAJOR_LAYOUT: tiles would be read as rows")
        return
    if spec.shape[-1] != a.out_channels:
        yield (
            f"weight_tensor on the device must be prepared for out_channels = {a.out_channels}, but its last axis is "
            f"{spec.shape[-1]}; prepare the weights for this call"
        )


def _bias(a: ConvArguments) -> Iterator[str]:
    if a.bias is None or a.bias.on_host:
        return
    spec = a.bias.spec
    if spec.layout is not Layout.TILE or spec.shape[-1] != a.out_channels:
        yield (
            f"bias_tensor on the device must be prepared for out_channels = {a.out_channels}: it is {spec.layout.name} "
            f"with shape {list(spec.shape)}; pass it on the host, or as an earlier call returned it"
        )


OPERAND_CHECKS: Final = (_input, _formats, _weight, _bias)
