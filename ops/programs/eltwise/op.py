"""Element-wise device operations: their functions, activations, integers, binary programs."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

import numpy as np

from device.matrix_unit.arithmetic import Arithmetic
from device.matrix_unit.exact import multiplied_elements
from device.numbers.block_floats import Integers, whole_groups
from device.numbers.formats import BFLOAT16, FLOAT32, INT32, UINT8, UINT16, UINT32, Array, DataFormat, quantize
from device.numbers.vector_unit import VectorUnitMode, apply_activation, cut_to_bfloat16, rounded_to_even_bfloat16
from device.plan import DeviceOp
from device.spec.parts import ComputeSpec

SIX: Final = 6  # where relu6 ends
RELU: Final = "relu"

# The formats of integers that each function takes.
SUPPORTED: Final[Mapping[str, tuple[DataFormat, ...]]] = MappingProxyType(
    {
        "abs": (UINT8, UINT16, UINT32, INT32),
        RELU: (UINT8, UINT16, UINT32, INT32),
        "relu6": (UINT8, UINT16, UINT32, INT32),
        "leaky_relu": (UINT8, UINT16, UINT32),
        "neg": (INT32,),
        "square": (UINT16, UINT32, INT32),
    }
)
_FUNCTIONS: Final[Mapping[str, Callable[[Integers], Integers]]] = MappingProxyType(
    {
        "abs": np.abs,
        RELU: lambda values: np.maximum(values, 0),
        "relu6": lambda values: np.clip(values, 0, SIX),
        "leaky_relu": lambda values: values,  # of formats without a sign alone
        "neg": np.negative,
        "square": np.square,
    }
)


def applied_to_integers(values: Array, name: str, data_format: DataFormat) -> Array:
    """A function of every element, in storage of the same format."""
    with np.errstate(over="ignore"):
        return _FUNCTIONS[name](values.astype(np.int64)).astype(data_format.storage)


def combined_integers(left: Array, right: Array, operation: str, data_format: DataFormat) -> Array:
    """The sum, difference or product of integers, in storage of their format; ``operation`` is ttnn's name."""
    first, second = left.astype(np.int64), right.astype(np.int64)
    with np.errstate(over="ignore"):
        made = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply}[operation](first, second)
    return np.asarray(made, np.int64).astype(data_format.storage)


Activation = tuple[str, tuple[float, ...]]

WITH_PARAMETERS: Final = frozenset((
    "add_unary_sfpu", "bitwise_and", "bitwise_or", "bitwise_xor", "celu", "clamp_tss", "div_unary_sfpu", "elu",
    "fill", "fmod", "hardshrink", "hardtanh", "heaviside", "leaky_relu", "left_shift", "logit", "mac_tss",
    "maximum", "minimum", "mish", "mul_unary_sfpu", "polygamma", "power", "power_iterative", "prelu_sfpu", "rdiv",
    "relu_max", "relu_min", "remainder", "right_shift", "round", "rpow", "rsub", "selu", "softcap", "softplus",
    "softshrink", "sub_unary_sfpu", "threshold", "typecast", "unary_eq", "unary_ge", "unary_gt", "unary_le",
    "unary_lt", "unary_ne", "where_tss", "xielu",
))  # fmt: skip
WITH_OR_WITHOUT: Final = frozenset((
    "bitcast", "erf", "exp", "gelu", "gelu_tanh", "log", "log10", "log1p", "log2", "rsqrt", "sigmoid", "sqrt",
    "tanh",
))  # fmt: skip
WITHOUT_CODE: Final = frozenset(("dropout", "zero_point"))  # operations of their own run them
OF_A_FORMAT: Final = frozenset((
    "add_unary_sfpu", "ceil", "clamp_tss", "eqz", "floor", "frac", "gez", "gtz", "lez", "logical_not_unary", "ltz",
    "maximum", "minimum", "neg", "nez", "relu_max", "relu_min", "rsub", "signbit", "square", "trunc", "unary_eq",
    "unary_ge", "unary_gt", "unary_le", "unary_lt", "unary_ne",
))  # fmt: skip
OF_INTEGERS: Final = frozenset(("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"))
FUSED_BY_MATMUL: Final = frozenset((
    "gelu", "gelu_tanh", "hardsigmoid", "hardtanh", "relu", "relu6", "selu", "sigmoid", "silu", "softplus", "tanh",
))  # fmt: skip
OF_TWO_NUMBERS: Final = frozenset(("mac_tss", "where_tss"))
NOT_SIMULATED: Final = frozenset(("bitcast", "softcap", "typecast"))  # other output formats; of one architecture alone
WHOLE_TILES: Final = 4  # the vector modes of sigmoid: a whole tile, or its first columns
FIRST_COLUMNS: Final = 2


def fused_by_conv_refusal(activation: Activation) -> str | None:
    """Why a convolution can not end with a function, in the real library's words and ours; None if it can.

    Args:
        activation: ttnn's name in lower case, and its parameters.
    """
    if activation[0] == "relu":  # the packer's, which has no code
        return None
    return next(_refusals(activation, None), None)


def fused_by_matmul_refusal(activation: Activation) -> str | None:
    """The same of a matmul program, whatever the parameters."""
    if activation[0] in FUSED_BY_MATMUL:
        return None
    return (
        f"Unsupported UnaryOpType for fused activation: UnaryOpType::{activation[0].upper()}\n"
        f"A sharded 1x1 convolution fuses {', '.join(sorted(FUSED_BY_MATMUL)).upper()}; without shard_layout any "
        "activation runs as an operation of its own"
    )


def operation_refusal(activation: Activation, data_format: DataFormat) -> str | None:
    """The same of an operation of its own on a tensor of this format, and what is not simulated as one."""
    name, parameters = activation
    if name in NOT_SIMULATED:
        return f"activation: {name.upper()} is not simulated as an operation of its own"
    if name in OF_TWO_NUMBERS and len(parameters) == 1:
        return f"Unsupported parameter type for index 1\nactivation: give both numbers of {name.upper()}"
    return next(_refusals(activation, data_format), None)


def _refusals(activation: Activation, data_format: DataFormat | None) -> Iterator[str]:
    """Every reason, in the real library's order; no format where the program does not say it."""
    (name, parameters), shown = activation, f"UnaryOpType::{activation[0].upper()}"
    if not parameters and (name in WITH_PARAMETERS or name in WITHOUT_CODE):
        yield (
            f"Undefined non-parametrized op type {shown}\n"
            f"activation: {activation[0].upper()} {_wanted(name)}; for example UnaryWithParam(UnaryOpType.RELU)"
        )
    if not parameters:
        yield from _format_refusals(name, data_format)
        return
    if name not in WITH_PARAMETERS and name not in WITH_OR_WITHOUT:
        yield (
            f"operator should support at least one parameter but op_type {shown} does not\n"
            f"activation: leave out the parameters {list(parameters)}"
        )
    yield from _format_refusals(name, data_format)
    if name in _OF_PARAMETERS:
        yield from _OF_PARAMETERS[name](parameters)


def _wanted(name: str) -> str:
    return "is not simulated" if name in WITHOUT_CODE else "needs its parameters"


def _format_refusals(name: str, data_format: DataFormat | None) -> Iterator[str]:
    shown = f"UnaryOpType::{name.upper()}"
    if name in OF_INTEGERS and data_format is None:
        yield (
            f"Missing input dtype for op_type {shown}: a valid integer input dtype (Int32/UInt32/UInt16) is required.\n"
            f"activation: {name.upper()} is of integers, which a convolution does not make"
        )
    if name in OF_INTEGERS:
        yield (
            f"Unsupported input dtype for bitwise/shift op_type {shown}: expected Int32, UInt32, or UInt16.\n"
            f"activation: {name.upper()} is of integers, not of {data_format}"
        )
    if name in OF_A_FORMAT and data_format is None:
        yield (
            "Missing input dtype: Expected a valid input dtype, but none was provided.\n"
            f"activation: a convolution does not fuse {name.upper()}, whose code depends on the data type; apply the "
            "function to the output instead"
        )


def _sigmoid(parameters: tuple[float, ...]) -> Iterator[str]:
    if int(parameters[0]) not in (FIRST_COLUMNS, WHOLE_TILES):
        yield (
            "Invalid Vector mode value. Expected vector mode C (2) or RC (4) for sigmoid\n"
            f"activation: the first parameter of SIGMOID is {parameters[0]:g}; leave the parameters out"
        )


def _power_iterative(parameters: tuple[float, ...]) -> Iterator[str]:
    if parameters[0] < 0 or parameters[0] % 1:
        yield (
            f"POWER_ITERATIVE requires non-negative integer exponent, got {parameters[0]:g}\n"
            "activation: POWER takes any exponent"
        )


def _rdiv(parameters: tuple[float, ...]) -> Iterator[str]:
    if len(parameters) < 2:
        yield (
            "Expected rdiv to take 2 parameters (divisor, rounding mode)\n"
            "activation: give RDIV a divisor and a rounding mode: 0, 1 or 2"
        )
    elif int(parameters[1]) not in range(3):
        yield (
            f"Invalid rdiv rounding mode {int(parameters[1])} (expected 0, 1 or 2)\n"
            "activation: the second parameter of RDIV is its rounding mode"
        )


def _selu(parameters: tuple[float, ...]) -> Iterator[str]:
    if len(parameters) < 2:
        yield "Expected selu to take 2 parameters\nactivation: give SELU its scale and its alpha"


_OF_PARAMETERS: Final[dict[str, Callable[[tuple[float, ...]], Iterator[str]]]] = {
    "sigmoid": _sigmoid,
    "power_iterative": _power_iterative,
    "rdiv": _rdiv,
    "selu": _selu,
}


Activations = tuple[tuple[str, tuple[float, ...]], ...]


class BinaryOperation(Enum):
    """What is done to two operands; values are ttnn's names."""

    ADD = "add"
    SUBTRACT = "subtract"
    MULTIPLY = "multiply"


@dataclass(frozen=True, slots=True, kw_only=True)
class Binary(DeviceOp):
    """Two tensors, or a tensor and a number, element by element; sides of length 1 are repeated."""

    operation: BinaryOperation  # What is done
    left_format: DataFormat  # Format of the first operand
    right_format: DataFormat | None = None  # Format of the second; None for a number
    scalar: float | None = None  # The number, if the second operand is one
    data_format: DataFormat
    activations: Activations = ()  # Functions of the result in order, each with its parameters
    left_activations: Activations = ()  # The same of the first operand, whose results lie in its format on their way
    right_activations: Activations = ()  # The same of the second
    # A product that the matrix unit computes, but of float32 tensors; sums and differences know no such mode
    fast: bool = False
    scalar_first: bool = False  # The number is the first operand, and the tensor the second

    @property
    def by_vector_unit(self) -> bool:
        """Whether the vector unit computes it."""
        if not self.left_format.is_float:
            return True
        if self.operation is BinaryOperation.MULTIPLY and not self.fast:
            return self.right_format in (None, self.left_format) and not self.left_format.is_block
        return self.left_format == FLOAT32 and self.right_format in (None, FLOAT32)

    @property
    def scalar_format(self) -> DataFormat:
        """What a number is packed as: the tensor's own format for the vector unit, unless that is a block float."""
        return self.left_format if self.by_vector_unit and not self.left_format.is_block else BFLOAT16

    @property
    def second_format(self) -> DataFormat:
        """Format of the second operand, tensor or number."""
        return self.scalar_format if self.right_format is None else self.right_format

    @property
    def fp32_dest(self) -> bool:
        """Whether Dst is 32 bits wide."""
        return self.data_format == FLOAT32 or self.left_format == self.second_format == FLOAT32


def combined(work: Binary, left: Array, right: Array | None, arithmetic: Arithmetic, compute: ComputeSpec) -> Array:
    """The result of an operation.

    Args:
        left: The first operand in storage of its format.
        right: The second one; None for a number.
        arithmetic: What is rounded where.
        compute: Figures of the device's math units.

    Returns:
        The broadcast shape, in storage of the result's format.
    """
    if not work.left_format.is_float:
        return _of_integers(work, left, right)
    wide = work.fp32_dest
    second = np.asarray(work.scalar, np.float32) if right is None else right.astype(np.float32)
    if right is None:
        second = quantize(second, work.scalar_format).astype(np.float32)
    shape = np.broadcast_shapes(left.shape, second.shape)
    mode = VectorUnitMode(fp32_dest=wide, reciprocal_table=compute.reciprocal_table)
    operands = (
        (left.astype(np.float32), work.left_format, work.left_activations),
        (second, work.second_format, work.right_activations),
    )
    first, other = (
        np.broadcast_to(
            _seen(
                _prepared(np.atleast_1d(one), data_format, functions, arithmetic, mode), data_format, work, arithmetic
            ),
            shape or (1,),
        ).copy()
        for one, data_format, functions in operands
    )
    dst = _combined(work, *((other, first) if work.scalar_first else (first, other)), arithmetic, compute)
    last_relu = bool(work.activations) and work.activations[-1][0] == RELU
    for name, parameters in work.activations[: -1 if last_relu else None]:
        dst = applied(dst, name, parameters, mode)
    return packed(dst, work.data_format, arithmetic, wide=wide, relu=last_relu).reshape(shape)


def _of_integers(work: Binary, left: Array, right: Array | None) -> Array:
    """The result of operands that are integers of one format."""
    operands = [left, np.asarray(work.scalar) if right is None else right]
    for number, functions in enumerate((work.left_activations, work.right_activations)):
        for name, _ in functions:
            operands[number] = applied_to_integers(operands[number], name, work.left_format)
    first, second = reversed(operands) if work.scalar_first else operands
    made = combined_integers(first, second, work.operation.value, work.data_format)
    for name, _ in work.activations:
        made = applied_to_integers(made, name, work.data_format)
    return made


def _prepared(
    values: Array, data_format: DataFormat, functions: Activations, arithmetic: Arithmetic, mode: VectorUnitMode
) -> Array:
    """Functions of an operand before the operation, packed in its format."""
    if not functions:
        return values
    dst = values if mode.fp32_dest else arithmetic.unpack(values, data_format, fp32_dest=False)
    last_relu = functions[-1][0] == RELU
    for name, parameters in functions[: -1 if last_relu else None]:
        dst = applied(dst, name, parameters, mode)
    return packed(dst, data_format, arithmetic, wide=mode.fp32_dest, relu=last_relu).astype(np.float32)


def applied(dst: Array, name: str, parameters: tuple[float, ...], mode: VectorUnitMode) -> Array:
    """A function of every element of Dst, by ttnn's name in lower case."""
    return np.maximum(dst, np.float32(0)) if name == RELU else apply_activation(dst, name, parameters, mode=mode)


def packed(dst: Array, data_format: DataFormat, arithmetic: Arithmetic, *, wide: bool, relu: bool = False) -> Array:
    """Dst as the packer writes it: [..., columns] in storage of a format."""
    columns = dst.shape[-1]
    if data_format != FLOAT32:
        dst = np.where(np.isnan(dst), np.float32(np.inf), dst)  # the packer knows no NaN
    if data_format.is_block:
        dst = whole_groups(dst)
    made = arithmetic.pack(dst, data_format, fp32_dest=wide, relu=relu)
    return made[..., :columns].astype(data_format.storage)


def _seen(values: Array, data_format: DataFormat, work: Binary, arithmetic: Arithmetic) -> Array:
    """An operand where it is computed on: whole in a 32-bit Dst of the vector unit, else as the matrix unit has it."""
    if work.by_vector_unit and work.fp32_dest:
        return values
    return arithmetic.unpack(values, data_format, fp32_dest=work.fp32_dest)


def _combined(work: Binary, left: Array, right: Array, arithmetic: Arithmetic, compute: ComputeSpec) -> Array:
    """Dst, as wide as the work has it."""
    if work.operation is BinaryOperation.MULTIPLY and not work.by_vector_unit and arithmetic.slice_by_slice:
        bits = [one.view(np.uint32) for one in (left, right)]
        quirk = compute.minus_one_quirk
        return multiplied_elements(*bits, fp32_dest=work.fp32_dest, minus_one_quirk=quirk).view(np.float32)
    if work.operation is BinaryOperation.MULTIPLY:
        product = np.asarray(left * right, np.float32)
        return product if work.fp32_dest else rounded_to_even_bfloat16(product)
    addend = right if work.operation is BinaryOperation.ADD else -right
    if work.by_vector_unit:
        return np.asarray(left + addend, np.float32)
    return arithmetic.add_bias(left, addend, fp32_dest=work.fp32_dest)


FILL = "fill"  # the function that gives one number everywhere; a 16-bit Dst cuts it


@dataclass(frozen=True, slots=True, kw_only=True)
class AddRow(DeviceOp):
    """A row is added to every row of a matrix."""

    data_format: DataFormat  # Format of the matrix and of the sum
    row_format: DataFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class Activate(DeviceOp):
    """A function of every element."""

    name: str  # ttnn's name in lower case
    parameters: tuple[float, ...]
    data_format: DataFormat  # Format of the tensor, which decides how wide Dst is
    out_format: DataFormat | None = None  # Format of the result; None for that of the tensor

    @property
    def made_format(self) -> DataFormat:
        """Format of the result."""
        return self.out_format or self.data_format


def added_row(work: AddRow, matrix: Array, row: Array, arithmetic: Arithmetic) -> Array:
    """The sum of a matrix and a row.

    Args:
        matrix: [..., columns] in storage of its format.
        row: [at least columns] in storage of its format.
        arithmetic: What is rounded where.

    Returns:
        [..., columns] in storage of the matrix's format.
    """
    wide = FLOAT32 in (work.data_format, work.row_format)
    used = row[: matrix.shape[-1]].astype(np.float32)
    if work.data_format == work.row_format == FLOAT32:
        return np.asarray(matrix + used, np.float32)
    seen = arithmetic.unpack(matrix.astype(np.float32), work.data_format, fp32_dest=wide)
    total = arithmetic.add_bias(seen, arithmetic.unpack(used, work.row_format, fp32_dest=wide), fp32_dest=wide)
    return packed(total, work.data_format, arithmetic, wide=wide)


def activated(work: Activate, values: Array, arithmetic: Arithmetic, *, reciprocal_table: bool) -> Array:
    """A function of every element, in the same shape.

    Args:
        values: Any shape, in storage of the tensor's format.
        arithmetic: What is rounded where.
        reciprocal_table: A figure of the device's math units.

    Returns:
        In storage of the result's format.
    """
    if not work.data_format.is_float:
        return applied_to_integers(values, work.name, work.made_format)
    wide = work.data_format == FLOAT32
    dst = np.atleast_1d(values.astype(np.float32))
    if not wide:
        dst = arithmetic.unpack(dst, work.data_format, fp32_dest=False)
    mode = VectorUnitMode(fp32_dest=wide, reciprocal_table=reciprocal_table)
    if work.name == FILL:
        number = np.full_like(dst, work.parameters[0])
        dst = number if wide else cut_to_bfloat16(number)
    else:
        dst = applied(dst, work.name, work.parameters, mode)
    return packed(dst, work.made_format, arithmetic, wide=wide).reshape(values.shape)
