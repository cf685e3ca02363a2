"""The functions that the library fuses or runs as separate operations, and its error texts for other functions."""

from collections.abc import Iterator, Mapping
from typing import Final

from device.numbers.formats import DataFormat

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
# Functions that the library knows by name where an activation may be a text
BY_NAME: Final[Mapping[str, Activation]] = {
    name: (name, ())
    for name in (
        "abs", "abs_int32", "alt_complex_rotate90", "cos", "cosh", "exp", "gelu", "hardsigmoid", "log", "log10",
        "log1p", "log2", "recip", "relu", "relu6", "rsqrt", "sigmoid", "sign", "silu", "sin", "sinh", "sqrt",
        "square", "tanh",
    )
} | {
    "gelu_approx": ("gelu", (1.0,)),
    "hardmish": ("hardmish", (1.0,)),
    "mish": ("mish", (0.0,)),
    "selu": ("selu", (1.0507009873554805, 1.6732632423543772)),
    "sigmoid_approx": ("sigmoid", (4.0, 1.0)),
    "softplus": ("softplus", (1.0, 20.0)),
}  # fmt: skip
OF_TWO_NUMBERS: Final = frozenset(("mac_tss", "where_tss"))


NOT_SIMULATED: Final = frozenset(("bitcast", "softcap", "typecast"))  # other output formats; of one architecture alone
FIRST_COLUMNS, WHOLE_TILES = VECTOR_MODES = (2, 4)  # of sigmoid: what it computes of every tile


def fused_by_conv_refusal(activation: Activation) -> str | None:
    """Why a convolution cannot end with a function, with the real library's text and ours; None if it can."""
    if activation[0] == "relu":  # the packer's, which has no code
        return None
    return next(_refusals(activation, None), None)


def fused_by_matmul_refusal(activation: Activation) -> str | None:
    """Why a matmul program cannot end with a function, whatever its parameters; None if it can."""
    if activation[0] in FUSED_BY_MATMUL:
        return None
    return (
        f"Unsupported UnaryOpType for fused activation: UnaryOpType::{activation[0].upper()}\n"
        f"A matmul program fuses {', '.join(sorted(FUSED_BY_MATMUL)).upper()}; a 1x1 convolution without shard_layout, "
        "and a product without core_grid, run any activation as an operation of its own"
    )


def operation_refusal(activation: Activation, data_format: DataFormat) -> str | None:
    """Why a separate operation on a tensor of this format cannot apply the function; some are not simulated as one."""
    name, parameters = activation
    if name in NOT_SIMULATED:
        return f"activation: {name.upper()} is not simulated as an operation of its own"
    if name in OF_TWO_NUMBERS and len(parameters) == 1:
        return f"Unsupported parameter type for index 1\nactivation: give both numbers of {name.upper()}"
    return next(_refusals(activation, data_format), None)


def _refusals(activation: Activation, data_format: DataFormat | None) -> Iterator[str]:
    """Every reason, in the real library's order; no format where the program does not say it."""
    name, parameters = activation
    named, shown = name.upper(), f"UnaryOpType::{name.upper()}"
    if not parameters and (name in WITH_PARAMETERS or name in WITHOUT_CODE):
        yield (
            f"Undefined non-parametrized op type {shown}\nactivation: {named} "
            f"{'is not simulated' if name in WITHOUT_CODE else 'needs its parameters'}; for example "
            "UnaryWithParam(UnaryOpType.RELU)"
        )
    if parameters and name not in WITH_PARAMETERS and name not in WITH_OR_WITHOUT:
        yield (
            f"operator should support at least one parameter but op_type {shown} does not\n"
            f"activation: leave out the parameters {list(parameters)}"
        )
    if name in OF_INTEGERS and data_format is None:
        yield (
            f"Missing input dtype for op_type {shown}: a valid integer input dtype (Int32/UInt32/UInt16) is required.\n"
            f"activation: {named} is of integers, which a convolution does not make"
        )
    if name in OF_INTEGERS:
        yield (
            f"Unsupported input dtype for bitwise/shift op_type {shown}: expected Int32, UInt32, or UInt16.\n"
            f"activation: {named} is of integers, not of {data_format}"
        )
    if name in OF_A_FORMAT and data_format is None:
        yield (
            "Missing input dtype: Expected a valid input dtype, but none was provided.\n"
            f"activation: a convolution does not fuse {named}, whose code depends on the data type; apply the "
            "function to the output instead"
        )
    yield from parameter_refusals(name, parameters)


def parameter_refusals(name: str, parameters: tuple[float, ...]) -> Iterator[str]:
    """Every reason why a function is not applied with its parameters, with the real library's text and ours."""
    match name, parameters:
        case "sigmoid", (mode, *_) if int(mode) not in VECTOR_MODES:
            yield (
                "Invalid Vector mode value. Expected vector mode C (2) or RC (4) for sigmoid\n"
                f"activation: the first parameter of SIGMOID is {mode:g}; leave the parameters out"
            )
        case "power_iterative", (exponent, *_) if exponent < 0 or exponent % 1:
            yield (
                f"POWER_ITERATIVE requires non-negative integer exponent, got {exponent:g}\n"
                "activation: POWER takes any exponent"
            )
        case "rdiv", (_,):
            yield (
                "Expected rdiv to take 2 parameters (divisor, rounding mode)\n"
                "activation: give RDIV a divisor and a rounding mode: 0, 1 or 2"
            )
        case "rdiv", (_, mode, *_) if int(mode) not in range(3):
            yield (
                f"Invalid rdiv rounding mode {int(mode)} (expected 0, 1 or 2)\n"
                "activation: the second parameter of RDIV is its rounding mode"
            )
        case "selu", (_,):
            yield "Expected selu to take 2 parameters\nactivation: give SELU its scale and its alpha"
