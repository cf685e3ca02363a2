"""What no convolution can compute: refused in our own words."""

from collections.abc import Iterator
from typing import Final

from device.errors import ArgumentError
from device.memory.memory_config import Layout, TensorMemoryLayout
from ops.calls.convolution.arguments import ConvArguments
from ops.calls.convolution.operand_checks import operand_refusals
from ops.calls.convolution.problem import fills_alignment, is_matmul, takes_l1_path
from ops.calls.convolution.validation import Check, claimed_shape, claimed_volume


def refuse_first(operation: str, call: ConvArguments, checks: tuple[Check, ...]) -> None:
    """Raises ArgumentError, in the operation's name, with the first text that a check gives."""
    for check in checks:
        for text in check(call):
            raise ArgumentError(f"{operation}: {text}")


def sizes_given(call: ConvArguments) -> Iterator[str]:
    """Sizes that are nothing."""
    for name in ("in_channels", "out_channels", "batch_size", "input_height", "input_width"):
        if getattr(call, name) < 1:
            yield (f"{name} must be at least 1, not {getattr(call, name)}")
    if min(call.kernel_size) < 1:
        yield (f"kernel_size must be at least (1, 1), not {call.kernel_size}")


def groups_divide(call: ConvArguments) -> Iterator[str]:
    """Groups that do not divide the channels."""
    for name in ("in_channels", "out_channels"):
        if call.groups and getattr(call, name) % call.groups:
            yield (f"groups must divide {name}, but {getattr(call, name)} is no multiple of {call.groups}")


def groups_given(call: ConvArguments) -> Iterator[str]:
    """No groups."""
    if call.groups < 1:
        yield (f"groups must be at least 1, not {call.groups}")


def dilation_given(call: ConvArguments) -> Iterator[str]:
    """Taps that fall together."""
    if 0 in call.dilation:
        yield (f"dilation must be at least (1, 1), not {call.dilation}; 1 means neighboring taps")


def _input(call: ConvArguments) -> Iterator[str]:
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


def _pads_channels(call: ConvArguments) -> bool:
    """Whether the input has channels behind those of the call that meet zero weights: it fills its shards in L1."""
    spec, place = call.input.spec, call.input.spec.memory_config
    same_sticks = spec.volume * call.in_channels == claimed_volume(call) * spec.shape[-1]
    if not same_sticks or not fills_alignment(call) or not takes_l1_path(call) or call.input.on_host:
        return False
    if place.shard_spec is not None:
        height = place.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED
        return height and place.shard_spec.shape[1] == spec.shape[-1]
    return place.memory_layout is TensorMemoryLayout.INTERLEAVED and not is_matmul(call)


def _formats(call: ConvArguments) -> Iterator[str]:
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


def raw_weight(call: ConvArguments) -> Iterator[str]:
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


def _refused_later(call: ConvArguments) -> bool:
    """Whether weights or bias are refused, in the real library's words, once they are to be prepared."""
    return next(operand_refusals(call), None) is not None


def _weight(call: ConvArguments) -> Iterator[str]:
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


def _bias(call: ConvArguments) -> Iterator[str]:
    if call.bias is None or call.bias.on_host or _refused_later(call):
        return
    spec = call.bias.spec
    if spec.layout is not Layout.TILE or spec.shape[-1:] != (call.out_channels,):
        yield (
            f"bias_tensor on the device must be prepared for out_channels = {call.out_channels}: it is "
            f"{spec.layout.name} with shape {list(spec.shape)}; pass it on the host, or as an earlier call returned it"
        )


OPERAND_CHECKS: Final = (_input, _formats, _weight, _bias)
