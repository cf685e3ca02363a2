"""What weights and bias are asked when they are prepared, once the input lies as the convolution reads it.

A refusal's first line is the real library's. Evidence: every first line was read from a call of the real library,
version 0.81.1, and so was their place: behind the choice of slices, and behind the programs that move the input.
"""

from collections.abc import Iterator

from device.errors import ArgumentError
from device.memory.memory_config import Layout
from device.numbers.formats import BFLOAT16, FLOAT32, UINT32
from ops.builder import PlanBuilder
from ops.calls.convolution.arguments import ConvArguments, Operand

HOST_WEIGHT_FORMATS = (BFLOAT16, FLOAT32, UINT32)


def refuse_operands(builder: PlanBuilder, call: ConvArguments) -> None:
    """Ends the plan in a refusal where weights or bias can not be prepared, or were not.

    Those that an earlier slice of the plan prepared have a name, and are not looked at again.
    """
    text = None if call.weight.name else next(operand_refusals(call), None)
    if text is not None:
        builder.refuse(ArgumentError(text))


def operand_refusals(call: ConvArguments) -> Iterator[str]:
    """Why weights and bias of a call are refused, in the order the real library looks."""
    yield from weight_refusals(call)
    yield from bias_refusals(call)


def weight_refusals(call: ConvArguments) -> Iterator[str]:
    """Why weights are refused."""
    if call.rules.transposed:
        yield from _transposed_weight(call)
    elif call.weight.on_host:
        yield from _host_weight(call)
    elif call.conv_config.weights_format not in (None, call.weight.spec.data_format):
        yield (
            "Host conv weights layout should be in row_major layout\n"
            f"weight_tensor: it was prepared in {call.weight.spec.data_format}, so that the real library prepares it "
            f"anew for conv_config.weights_dtype {call.conv_config.weights_format}; leave that out, or pass the "
            "weights on the host"
        )


def bias_refusals(call: ConvArguments) -> Iterator[str]:
    """Why the bias is refused."""
    if call.rules.transposed:
        yield from _bias_side(call)
    elif call.bias is not None and not call.bias.on_host:
        held, wanted = call.bias.spec.data_format, call.conv_config.weights_format
        if wanted not in (None, held):
            yield (
                "Host conv bias layout should be in row_major layout\n"
                f"bias_tensor: it is on the device in {held}, so that the real library prepares it anew for "
                f"conv_config.weights_dtype {wanted}; leave that out, or pass the bias on the host"
            )
    yield from bias_shape(call)


def rank(name: str, wanted: str, operand: Operand) -> Iterator[str]:
    """A raw operand with fewer than four axes."""
    shape = operand.spec.shape
    if len(shape) < 4:
        yield (
            f"ShapeBase[] index out of range. 3 not in [-4, {len(shape)})\n"
            f"{name}: it must have the four axes {wanted}, not the shape {list(shape)}"
        )


def transposed_weight_rank(call: ConvArguments) -> Iterator[str]:
    """Weights of a transposed convolution that are asked for their kernel."""
    if call.weight.on_host:
        yield from rank(
            "weight_tensor", "[in_channels, out_channels / groups, kernel height, kernel width]", call.weight
        )


def _transposed_weight(call: ConvArguments) -> Iterator[str]:
    spec = call.weight.spec
    if not call.weight.on_host:
        if spec.layout is not Layout.TILE:
            yield (
                "Weights should be in TILE layout.\nweight_tensor: weights on the device must be prepared; use "
                "prepare_conv_transpose2d_weights, or pass them on the host"
            )
        return
    yield from transposed_weight_rank(call)
    if spec.data_format not in HOST_WEIGHT_FORMATS:
        yield (
            "Unsupported data type for transform_weights_for_conv_transpose2d\n"
            f"weight_tensor: weights on the host must be bfloat16 or float32, not {spec.data_format}; "
            "set conv_config.weights_dtype to have them converted"
        )


def _host_weight(call: ConvArguments) -> Iterator[str]:
    spec = call.weight.spec
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


def _bias_side(call: ConvArguments) -> Iterator[str]:
    if call.bias is not None and call.bias.on_host and not call.weight.on_host:
        yield (
            "Device Operations expect device tensors as inputs\nbias_tensor: with weights that are prepared, the bias "
            "must be too; use prepare_conv_transpose2d_bias"
        )


def bias_shape(call: ConvArguments) -> Iterator[str]:
    """A bias on the host has one row of the call's output channels."""
    if call.bias is None or not call.bias.on_host:
        return
    spec, wanted = call.bias.spec, [1, 1, 1, call.out_channels]
    yield from rank("bias_tensor", "[1, 1, 1, out_channels]", call.bias)
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
