"""Which calls of matmul and linear are refused before anything is planned.

A refusal's first line is the real library's (0.81.1), unless it says what is not simulated.
"""

from collections.abc import Iterator
from math import prod

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.numbers.formats import BFLOAT4_B, BFLOAT8_B, BFLOAT16, FLOAT32
from ops.calls.matmul.plan import MatmulArguments

FORMATS = (BFLOAT16, FLOAT32, BFLOAT8_B, BFLOAT4_B)


class ArgumentError(DeviceError, ValueError):
    """A call of matmul or linear whose arguments contradict each other, or that is not simulated."""


def validate(a: MatmulArguments) -> None:
    """Refuses a call.

    Raises:
        ArgumentError: The first rule that is broken.
    """
    for check in (_operands, _shapes, _places, _bias):
        for text in check(a):
            raise ArgumentError(text)


def _operands(a: MatmulArguments) -> Iterator[str]:
    for name, letter, spec in (("input_tensor_a", "A", a.first), ("input_tensor_b", "B", a.second)):
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


def _shapes(a: MatmulArguments) -> Iterator[str]:
    width, height = a.first.shape[-1], a.second.shape[-2]
    if width != height:
        yield (
            "The width of the first tensor must be equal to the height of the second tensor. "
            f"Mismatch: width={width} height={height}\n"
            f"input_tensor_b: {list(a.second.shape)} can not follow {list(a.first.shape)}"
        )
    for name, spec in (("input_tensor_a", a.first), ("input_tensor_b", a.second)):
        if prod(spec.shape[:-2]) != 1:
            yield (
                f"matmul: {name} must be a single matrix, not a batch of shape {list(spec.shape)}: batches are not "
                "simulated; reshape rows into one matrix, or multiply one after the other"
            )


def _places(a: MatmulArguments) -> Iterator[str]:
    for name, place in (
        ("input_tensor_a", a.first.memory_config),
        ("input_tensor_b", a.second.memory_config),
        ("memory_config", a.memory_config),
    ):
        if place.is_sharded():
            yield (
                f"matmul: {name} must be interleaved, not {place.memory_layout.name}: matmuls of sharded tensors are "
                "simulated as 1x1 convolutions only"
            )


def _bias(a: MatmulArguments) -> Iterator[str]:
    if a.bias is None:
        return
    columns = a.second.shape[-1]
    if not _is_row(a.bias, columns):
        yield (
            f"linear: bias must be a single row of {columns} columns, [..., 1, {columns}], not the shape "
            f"{list(a.bias.shape)}"
        )
    if a.bias.layout is not Layout.TILE:
        yield f"linear: bias must be in TILE layout, not {a.bias.layout.name}; use to_layout(TILE_LAYOUT)"
    if a.bias.data_format not in FORMATS:
        yield f"linear: bias must be one of {', '.join(one.name for one in FORMATS)}, not {a.bias.data_format}"


def _is_row(bias: TensorSpec, columns: int) -> bool:
    return bias.shape[-1] == columns and bias.volume == columns
