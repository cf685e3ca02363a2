"""Refused tensors of a convolution: by the real library when it prepares them, or by a strict device."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import prod
from typing import Final

from device.errors import ArgumentError, DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout, ShardSpec, TensorMemoryLayout
from device.numbers.formats import BFLOAT16, FLOAT32, UINT32
from ops.builder import PlanBuilder
from ops.planners.conv.arguments import ConvCall, Operand

Check = Callable[[ConvCall], Iterator[str]]  # yields the texts of the faults, in order

WAY_OUT = "put input_tensor in DRAM, or leave dram_slice_config out"
HOST_WEIGHT_FORMATS = (BFLOAT16, FLOAT32, UINT32)


def refuse_first(call: ConvCall, checks: tuple[Check, ...], operation: str = "") -> None:
    """Raises ArgumentError with the first text of the checks, in the name of an operation if given."""
    for check in checks:
        for text in check(call):
            raise ArgumentError(f"{operation}: {text}" if operation else text)


def refuse_operands(builder: PlanBuilder, call: ConvCall) -> None:
    """Ends the plan in a refusal if weights or bias cannot be prepared, or were not.

    Operands that an earlier slice of the plan prepared have a name, and are not checked again.
    """
    text = None if call.weight.name else next(operand_refusals(call), None)
    if text is not None:
        builder.refuse(ArgumentError(text))


def operand_refusals(call: ConvCall) -> Iterator[str]:
    """Why weights and bias of a call are refused, in the order the real library looks."""
    yield from weight_refusals(call)
    yield from bias_refusals(call)


def weight_refusals(call: ConvCall) -> Iterator[str]:
    """Why weights are refused."""
    spec, wanted = call.weight.spec, call.conv_config.weights_format
    if call.rules.transposed and not call.weight.on_host:
        if spec.layout is not Layout.TILE:
            yield (
                "Weights should be in TILE layout.\nweight_tensor: weights on the device must be prepared; use "
                "prepare_conv_transpose2d_weights, or pass them on the host"
            )
    elif not call.weight.on_host:
        if wanted not in (None, spec.data_format):
            yield (
                "Host conv weights layout should be in row_major layout\n"
                f"weight_tensor: it was prepared in {spec.data_format}, so that the real library prepares it anew for "
                f"conv_config.weights_dtype {wanted}; leave that out, or pass the weights on the host"
            )
    else:
        unsupported = "Unsupported data type"
        if call.rules.transposed:
            yield from transposed_weight_rank(call)
            unsupported += " for transform_weights_for_conv_transpose2d"
        else:
            if len(spec.shape) != 4:
                yield (
                    "Host conv weights should be 4D tensor\nweight_tensor: it must have the four axes [out_channels, "
                    f"in_channels / groups, kernel height, kernel width], not the shape {list(spec.shape)}"
                )
            if spec.layout is not Layout.ROW_MAJOR:
                yield (
                    "Host conv weights layout should be in row_major layout\n"
                    "weight_tensor: make it with layout=ROW_MAJOR_LAYOUT; block floats come from "
                    "conv_config.weights_dtype"
                )
        if spec.data_format not in HOST_WEIGHT_FORMATS:
            yield (
                f"{unsupported}\nweight_tensor: weights on the host must be bfloat16 or float32, not "
                f"{spec.data_format}; set conv_config.weights_dtype to have them converted"
            )


def bias_refusals(call: ConvCall) -> Iterator[str]:
    """Why the bias is refused."""
    if call.bias is None:
        return
    data_format, wanted = call.bias.spec.data_format, call.conv_config.weights_format
    if call.rules.transposed and call.bias.on_host and not call.weight.on_host:
        yield (
            "Device Operations expect device tensors as inputs\nbias_tensor: with weights that are prepared, the bias "
            "must be too; use prepare_conv_transpose2d_bias"
        )
    if not call.rules.transposed and not call.bias.on_host and wanted not in (None, data_format):
        yield (
            "Host conv bias layout should be in row_major layout\n"
            f"bias_tensor: it is on the device in {data_format}, so that the real library prepares it anew for "
            f"conv_config.weights_dtype {wanted}; leave that out, or pass the bias on the host"
        )
    yield from bias_shape(call)


def bias_shape(call: ConvCall) -> Iterator[str]:
    """A bias on the host has one row of the call's output channels."""
    if call.bias is None or not call.bias.on_host:
        return
    spec, wanted = call.bias.spec, [1, 1, 1, call.out_channels]
    yield from _rank("bias_tensor", "[1, 1, 1, out_channels]", call.bias)
    if spec.shape[3] != call.out_channels:
        yield (
            "Bias must have the same length as output channels\n"
            f"bias_tensor: its shape must be {wanted}, not {list(spec.shape)}"
        )
    if len(spec.shape) != 4:
        yield f"Host conv bias should be 4D tensor\nbias_tensor: its shape must be {wanted}, not {list(spec.shape)}"
    if spec.layout is not Layout.ROW_MAJOR:
        yield (
            "Host conv bias layout should be in row_major layout\n"
            "bias_tensor: make it with layout=ROW_MAJOR_LAYOUT; block floats come from conv_config.weights_dtype"
        )
    if spec.shape[:3] != (1, 1, 1):
        yield f"Host conv bias shape is not correct\nbias_tensor: its shape must be {wanted}, not {list(spec.shape)}"


def _rank(name: str, wanted: str, operand: Operand) -> Iterator[str]:
    """A raw operand with fewer than four axes."""
    shape = operand.spec.shape
    if len(shape) < 4:
        yield (
            f"ShapeBase[] index out of range. 3 not in [-4, {len(shape)})\n"
            f"{name}: it must have the four axes {wanted}, not the shape {list(shape)}"
        )


def transposed_weight_rank(call: ConvCall) -> Iterator[str]:
    """Weights of a transposed convolution that are asked for their kernel."""
    if call.weight.on_host:
        yield from _rank(
            "weight_tensor", "[in_channels, out_channels / groups, kernel height, kernel width]", call.weight
        )


def sliced_weight_rank(call: ConvCall) -> Iterator[str]:
    """A weight of conv2d that is asked for its kernel first, to plan slices and to choose their scheme."""
    chosen = call.conv_config.shard_layout is None
    if chosen and call.weight.on_host and not call.takes_l1_path and not call.is_matmul:
        yield from _rank(
            "weight_tensor", "[out_channels, in_channels / groups, kernel height, kernel width]", call.weight
        )


def view_refusal(spec: TensorSpec, shape: tuple[int, ...]) -> str | None:
    """Why rows in shards with padded columns cannot be viewed under an unpadded shape of the same channels.

    Only a shard as wide as the tensor may lose its padding. The shard then counts as more, narrower rows, which must
    match the shard shape and fill the buffer.
    """
    shards, (rows, cols) = spec.memory_config.shard_spec, spec.matrix
    if shards is None or spec.layout is Layout.TILE or spec.shape[-1] != shape[-1] or cols == shape[-1]:
        return None
    if prod(shape) != spec.volume:
        return None
    ours = (
        f"input_tensor: its rows of {shape[-1]} channels are padded to {cols} in shards of {list(shards.shape)}, which "
        f"slices can not be cut from; {WAY_OUT}"
    )
    if shards.shape[1] != cols:
        return (
            "Changing the last dimension of a sharded tensor is not supported unless the shard width matches the input "
            f"last dimension. Input shape: Shape({list(spec.padded_shape)}), New shape: Shape({list(shape)}), "
            f"Shard width: {shards.shape[1]}\n{ours}"
        )
    narrow = ShardSpec(shards.grid, (prod(shards.shape) // shape[-1], shape[-1]), shards.orientation)
    try:
        TensorSpec(shape, spec.data_format, spec.layout, replace(spec.memory_config, shard_spec=narrow), shape)
    except DeviceError as error:
        return f"{str(error).splitlines()[0]}\n{ours}"
    element_bytes = spec.data_format.element_bytes or 0
    if rows * cols % shape[-1]:
        return (
            f"For valid non-interleaved buffers page size {shape[-1] * element_bytes} must equal buffer size "
            f"{rows * cols * element_bytes}. For interleaved-buffers, buffer size should be divisible by the page size"
            f"\n{ours}"
        )
    return None


def claimed_shape(call: ConvCall) -> str:
    """The shape of the input according to the call, as text."""
    return (
        f"batch_size={call.batch_size}, input_height={call.input_height}, input_width={call.input_width}, "
        f"in_channels={call.in_channels}"
    )


def claimed_volume(call: ConvCall) -> int:
    """The number of elements of the input according to the call."""
    return prod(call.image_shape)


def _strict_input(call: ConvCall) -> Iterator[str]:
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
    """Whether the input has more channels than the call, which meet zero weights: it fills its shards in L1."""
    spec, place = call.input.spec, call.input.spec.memory_config
    same_sticks = spec.volume * call.in_channels == claimed_volume(call) * spec.shape[-1]
    if not same_sticks or not call.fills_alignment or not call.takes_l1_path or call.input.on_host:
        return False
    if place.shard_spec is not None:
        height = place.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED
        return height and place.shard_spec.shape[1] == spec.shape[-1]
    return place.memory_layout is TensorMemoryLayout.INTERLEAVED and not call.is_matmul


def _strict_formats(call: ConvCall) -> Iterator[str]:
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
    """Whether weights or bias are refused, in the real library's words, once they are to be prepared."""
    return next(operand_refusals(call), None) is not None


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
        yield "weight_tensor on the host must be in ROW_MAJOR_LAYOUT: tiles would be read as rows"


def _strict_weight(call: ConvCall) -> Iterator[str]:
    spec = call.weight.spec
    if _refused_later(call):
        return
    if call.weight.on_host:
        yield from raw_weight(call)
    elif spec.shape[-1:] != (call.out_channels,):
        yield (
            f"weight_tensor on the device must be prepared for out_channels = {call.out_channels}, the size of its "
            f"last axis, not have the shape {list(spec.shape)}; prepare the weights for this call"
        )


def _strict_bias(call: ConvCall) -> Iterator[str]:
    if call.bias is None or call.bias.on_host or _refused_later(call):
        return
    spec = call.bias.spec
    if spec.layout is not Layout.TILE or spec.shape[-1:] != (call.out_channels,):
        yield (
            f"bias_tensor on the device must be prepared for out_channels = {call.out_channels}: it is "
            f"{spec.layout.name} with shape {list(spec.shape)}; pass it on the host, or as an earlier call returned it"
        )


# Tensors that the real library accepts and computes nonsense for
STRICT_OPERANDS: Final[tuple[Check, ...]] = (_strict_input, _strict_formats, _strict_weight, _strict_bias)
