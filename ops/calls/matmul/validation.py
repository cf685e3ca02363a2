"""Which calls of matmul and linear are refused before anything is planned.

A refusal's first line is the real library's (0.81.1), unless it says what is not simulated.
"""

from collections.abc import Iterator

from device.errors import ArgumentError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.numbers.formats import BFLOAT4_B, BFLOAT8_B, BFLOAT16, FLOAT32
from ops.calls.matmul.arguments import MatmulArguments
from ops.calls.matmul.choice import batches_mismatch

FORMATS = (BFLOAT16, FLOAT32, BFLOAT8_B, BFLOAT4_B)


def validate(call: MatmulArguments) -> None:
    """Refuses a call.

    Raises:
        ArgumentError: The first rule that is broken.
    """
    for check in (_operands, _shapes, _places, _bias):
        for text in check(call):
            raise ArgumentError(text)


def _operands(call: MatmulArguments) -> Iterator[str]:
    for name, letter, spec in (("input_tensor_a", "A", call.first), ("input_tensor_b", "B", call.second)):
        if len(spec.shape) < 2:
            yield (
                f"matmul: {name} must have at least two axes, not the shape {list(spec.shape)}; "
                "vectors are not simulated"
            )
        if spec.layout is not Layout.TILE:
            yield f"Inputs to matmul must be tilized\n{name}: it is in {spec.layout.name}; use to_layout(TILE_LAYOUT)"
        if spec.data_format not in FORMATS:
            yield (
                f"Unsupported data format for input {letter}: DataType::{spec.data_format.name.upper()}\n"
                f"{name}: it must be one of {', '.join(one.name for one in FORMATS)}"
            )
    if call.output_format not in FORMATS:
        yield (
            f"matmul: dtype must be one of {', '.join(one.name for one in FORMATS)}, not {call.output_format}: "
            "the packer's bits of a sum are no integers; convert the output instead"
        )


def _shapes(call: MatmulArguments) -> Iterator[str]:
    width, height = call.first_sides[1], call.second_sides[0]
    if width != height:
        yield (
            "The width of the first tensor must be equal to the height of the second tensor. "
            f"Mismatch: width={width} height={height}\n"
            f"input_tensor_b: {list(call.second.shape)} can not follow {list(call.first.shape)}"
        )
    first, second = call.first.shape, call.second.shape
    if any(side != 1 for side in second[: max(0, len(second) - len(first))]):
        yield (
            "When in1 rank greater than in0 rank front dimensions need to be 1\n"
            f"input_tensor_b: its shape {list(second)} has more axes than {list(first)}; "
            "reshape input_tensor_a to as many"
        )
    if call.second_batches == 1:
        return
    if len(first) != len(second):
        yield (
            "Batched (non-bcast) matmul requires inputs of the same rank, "
            f"got a_shape rank: {len(first)} vs b_shape rank: {len(second)}\n"
            f"input_tensor_a: reshape it from {list(first)} to {len(second)} axes, as input_tensor_b has"
        )
    if call.first_batches == 1:
        return
    for axis, (one, other) in enumerate(zip(first[:-2], second[:-2], strict=True)):
        if one != other:
            yield (
                f"{batches_mismatch(axis, one, other)}\n"
                f"input_tensor_b: {list(second)} must have the batches of input_tensor_a, {list(first)}, or be a "
                "single matrix; or else input_tensor_a a single one"
            )


def _places(call: MatmulArguments) -> Iterator[str]:
    for name, place in (
        ("input_tensor_a", call.first.memory_config),
        ("input_tensor_b", call.second.memory_config),
        ("memory_config", call.memory_config),
    ):
        if place.is_sharded():
            yield (
                f"matmul: {name} must be interleaved, not {place.memory_layout.name}: matmuls of sharded tensors are "
                "simulated as 1x1 convolutions only"
            )


def _bias(call: MatmulArguments) -> Iterator[str]:
    if call.bias is None:
        return
    columns = call.second_sides[1]
    if not _is_row(call.bias, columns):
        yield (
            f"linear: bias must be a single row of {columns} columns, [..., 1, {columns}], not the shape "
            f"{list(call.bias.shape)}"
        )
    if call.bias.layout is not Layout.TILE:
        yield f"linear: bias must be in TILE layout, not {call.bias.layout.name}; use to_layout(TILE_LAYOUT)"
    if call.bias.data_format not in FORMATS:
        yield f"linear: bias must be one of {', '.join(one.name for one in FORMATS)}, not {call.bias.data_format}"


def _is_row(bias: TensorSpec, columns: int) -> bool:
    return bias.shape[-1:] == (columns,) and bias.volume == columns
