"""Activations a convolution may end with, under ttnn's names."""

from dataclasses import dataclass
from enum import Enum

from device.errors import ArgumentTypeError, shown

# Names and numbers of ttnn 0.81.1.
UnaryOpType = Enum(
    "UnaryOpType",
    """
    EXP RECIP GELU GELU_TANH RELU SQRT SIGMOID LOG LOG1P TANH LOG2 LOG10 SIN COS COSH SINH ABS ABS_INT32 SIGN
    SQUARE EQZ NEZ GTZ LTZ GEZ LEZ RELU_MAX RELU_MIN POWER POWER_ITERATIVE LEAKY_RELU ELU EXP2 HEAVISIDE EXPM1
    SIGNBIT ASIN ACOS ACOSH RSQRT RELU6 ATAN ASINH ATANH ERF ERFC ISINF ISPOSINF ISNEGINF ISNAN
    LOGICAL_NOT_UNARY ISFINITE ERFINV I0 I1 TAN RSUB RDIV SILU SOFTPLUS IDENTITY NEG ADD_UNARY_SFPU
    SUB_UNARY_SFPU MUL_UNARY_SFPU DIV_UNARY_SFPU UNARY_NE UNARY_EQ UNARY_GT UNARY_LT UNARY_GE UNARY_LE
    TILED_PROD TYPECAST BITCAST BITWISE_XOR BITWISE_NOT BITWISE_AND BITWISE_OR RIGHT_SHIFT FLOOR CEIL TRUNC FRAC
    ROUND LEFT_SHIFT REMAINDER FMOD DROPOUT FILL PRELU_SFPU ZERO_POINT ALT_COMPLEX_ROTATE90 MISH HARDMISH
    MAXIMUM MINIMUM TANHSHRINK THRESHOLD SOFTSHRINK HARDSHRINK HARDTANH HARDSIGMOID HARDSWISH WHERE_TSS MAC_TSS
    SOFTSIGN CELU CLAMP_TSS SELU RPOW CBRT LOGSIGMOID LOGIT XIELU LGAMMA DIGAMMA POLYGAMMA SOFTCAP
    """,
    start=0,
)
WRONG_ARGUMENTS = "__init__(): incompatible function arguments. The following argument types are supported:"
MOST_PARAMETERS = 2
UnaryOpType.__repr__ = UnaryOpType.__str__  # type: ignore[method-assign]  # as the real library prints it


@dataclass(frozen=True, slots=True, init=False)
class UnaryWithParam:
    """An activation and its parameters.

    Attributes:
        op_type: Which.
        params: Its numbers, for example the slope of a LEAKY_RELU.
    """

    op_type: UnaryOpType
    params: tuple[float, ...]

    def __init__(self, op_type: UnaryOpType | tuple[UnaryOpType, float], *params: float) -> None:
        """Takes a UnaryOpType with up to two numbers, or one with its number as a tuple.

        Raises:
            ArgumentTypeError: There is no UnaryOpType, or its parameters are not up to two numbers.
        """
        given: object = op_type
        if isinstance(op_type, tuple) and len(op_type) == MOST_PARAMETERS and not params:
            given, params = op_type[0], op_type[1:]
        if not isinstance(given, UnaryOpType):
            near = str(given).upper()
            hint = f"; did you mean UnaryOpType.{near}?" if near in UnaryOpType.__members__ else ""
            raise ArgumentTypeError(
                f"{WRONG_ARGUMENTS}\nUnaryWithParam: op_type must be a UnaryOpType, not {shown(given)}{hint}\n"
                "    1. __init__(op_type: UnaryOpType, *params: float)"
            )
        if len(params) > MOST_PARAMETERS:
            raise ArgumentTypeError(
                f"{WRONG_ARGUMENTS}\nUnaryWithParam: op_type takes up to {MOST_PARAMETERS} numbers, not {len(params)}"
            )
        try:
            if any(isinstance(number, str) for number in params):
                raise TypeError
            plain = tuple(map(float, params))
        except (TypeError, ValueError, OverflowError):
            raise ArgumentTypeError(
                f"{WRONG_ARGUMENTS}\nUnaryWithParam: params must be numbers, not {shown(params)}"
            ) from None
        object.__setattr__(self, "op_type", given)
        object.__setattr__(self, "params", plain)

    def __repr__(self) -> str:
        """As the real library prints it."""
        params = f", params={list(self.params)}" if self.params else ""
        return f"UnaryWithParam(op_type=UnaryOpType::{self.op_type.name}{params})"
