"""A call of a function of two operands, and the formats that ttnn 0.81.1 takes together."""

from dataclasses import dataclass

from device.errors import ArgumentError, DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import MemoryConfig
from device.numbers.formats import INT32, UINT8, UINT16, UINT32, DataFormat
from ops.programs.eltwise.binary import Activations, BinaryOperation
from ops.programs.eltwise.integers import RELU

RANGES = {UINT32: (0, 2**32 - 1), INT32: (-(2**31), 2**31 - 1)}  # of numbers that such a tensor is combined with
NAMES = {BinaryOperation.ADD: "ADD", BinaryOperation.SUBTRACT: "SUB", BinaryOperation.MULTIPLY: "MUL"}


@dataclass(frozen=True, slots=True, kw_only=True)
class BinaryArguments:
    """A call."""

    operation: BinaryOperation  # What is done
    left: TensorSpec  # The first tensor, "input"
    right: TensorSpec | None = None  # The second, "input_b"; None for a number
    scalar: float | None = None  # The number, if there is no second tensor
    out_format: DataFormat | None = None  # Format of the result; None for the first tensor's
    place: MemoryConfig | None = None  # Where the result goes; None lets the call choose
    activations: Activations = ()  # Functions of the result, in order
    left_activations: Activations = ()  # Functions of the first operand, in order
    right_activations: Activations = ()  # Functions of the second operand, in order
    target: TensorSpec | None = None  # The caller's tensor "target" that the result is written into, if there is one
    fast: bool = False  # Whether a product is computed in the fast and approximate mode
    scalar_first: bool = False  # Whether the number is the first operand


def require_formats(call: BinaryArguments) -> None:
    """Raises for formats that the library does not combine (DeviceError), or whose results are not simulated."""
    left, right = call.left.data_format, None if call.right is None else call.right.data_format
    operation = f"BinaryOpType::{NAMES[call.operation]}"
    for operand, data_format in (("A", left), ("B", right)):
        if data_format == UINT8:
            raise DeviceError(
                f"Input tensor {operand} dtype {_named(UINT8)} is not supported for binary operation {operation}\n"
                f"{call.operation.value}: typecast the tensor"
            )
    if left.is_float and (right is None or right.is_float):
        return
    multiplies = call.operation is BinaryOperation.MULTIPLY
    if right is not None and right != left:
        if multiplies and left.is_float is not right.is_float and UINT16 not in (left, right):
            raise ArgumentError(f"multiply: {left} and {right} are not simulated together; typecast one of the tensors")
        raise DeviceError(
            f"Mixed dtype is not supported for binary operation {operation}, dtype A: {_named(left)}, dtype B: "
            f"{_named(right)}\n{call.operation.value}: typecast one of the tensors"
        )
    if call.scalar is not None:
        _require_integer(call.scalar, left, call.operation)
    if any(name != RELU for name, _ in (*call.activations, *call.left_activations, *call.right_activations)):
        raise ArgumentError(
            f"{call.operation.value}: activations of integers but relu are not simulated; typecast the tensors"
        )
    wanted = call.out_format or (left if call.target is None else call.target.data_format)
    if wanted != left:
        raise ArgumentError(
            f"{call.operation.value}: integers ({left}) with a result of another format, {wanted}, are not simulated; "
            "typecast the result"
        )


def _require_integer(number: float, data_format: DataFormat, operation: BinaryOperation) -> None:
    """A number that is combined with a tensor of integers must be one of the tensor's format."""
    least, most = RANGES.get(data_format, (0, 2**16 - 1))
    if number.is_integer() and least <= number <= most:
        return
    if data_format not in RANGES or operation is BinaryOperation.MULTIPLY:
        raise ArgumentError(
            f"{operation.value}: {number:g} with a tensor of {data_format} is not simulated; typecast the tensor to "
            "floats"
        )
    raise DeviceError(
        f"Binary operation BinaryOpType::{NAMES[operation]} with a {_named(data_format)} tensor cannot represent the "
        f"scalar {number:g}: only a finite integer within the range of {_named(data_format)} survives being packed as "
        "one, and this value would be changed silently. Typecast the input to a floating-point dtype, or use a scalar "
        f"that the dtype holds.\n{operation.value}: give a whole number from {least} to {most}"
    )


def _named(data_format: DataFormat) -> str:
    return f"DataType::{data_format.name.upper()}"
