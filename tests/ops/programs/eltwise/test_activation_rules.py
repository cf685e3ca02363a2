"""Which functions are refused where, held against what the real planner said to all of ttnn 0.81.1."""

import pytest

from device.numbers.formats import BFLOAT16
from ops.programs.eltwise.refusals import (
    FUSED_BY_MATMUL,
    fused_by_conv_refusal,
    fused_by_matmul_refusal,
    operation_refusal,
)
from ttsim.runtime.types.configs import UnaryOpType

NAMES = [name.lower() for name in UnaryOpType.__members__]


def first_line(text):
    return None if text is None else text.splitlines()[0]


@pytest.mark.parametrize(
    ("parameters", "fused", "alone"),
    [((), 55, 68), ((0.5,), 40, 47), ((4.0,), 42, 49), ((0.5, 1.0), 42, 51), ((2.0, 9.0), 43, 52)],
)
def test_as_many_functions_end_a_convolution_or_run_alone_as_the_real_planner_accepts(parameters, fused, alone):
    simulated = [name for name in NAMES if name not in ("bitcast", "softcap", "typecast")]
    assert sum(fused_by_conv_refusal((name, parameters)) is None for name in NAMES) == fused
    assert sum(operation_refusal((name, parameters), BFLOAT16) is None for name in simulated) == alone


UNDEFINED = "Undefined non-parametrized op type UnaryOpType::{}"
NO_PARAMETER = "operator should support at least one parameter but op_type UnaryOpType::{} does not"
NO_FORMAT = "Missing input dtype: Expected a valid input dtype, but none was provided."
REFUSED = {
    ("relu", (1.0,)): None,
    ("gelu", (1.0,)): None,
    ("leaky_relu", (0.1,)): None,
    ("leaky_relu", ()): UNDEFINED.format("LEAKY_RELU"),
    ("dropout", ()): UNDEFINED.format("DROPOUT"),
    ("dropout", (1.0,)): NO_PARAMETER.format("DROPOUT"),
    ("relu6", (1.0,)): NO_PARAMETER.format("RELU6"),
    ("square", ()): NO_FORMAT,
    ("square", (1.0,)): NO_PARAMETER.format("SQUARE"),
    ("relu_max", ()): UNDEFINED.format("RELU_MAX"),
    ("relu_max", (6.0,)): NO_FORMAT,
    ("right_shift", (1.0,)): "Missing input dtype for op_type UnaryOpType::RIGHT_SHIFT: a valid integer input dtype "
    "(Int32/UInt32/UInt16) is required.",
    ("sigmoid", (4.0, 1.0)): None,
    ("sigmoid", (1.0,)): "Invalid Vector mode value. Expected vector mode C (2) or RC (4) for sigmoid",
    ("power_iterative", (2.0,)): None,
    ("power_iterative", (-1.0,)): "POWER_ITERATIVE requires non-negative integer exponent, got -1",
    ("power_iterative", (0.5,)): "POWER_ITERATIVE requires non-negative integer exponent, got 0.5",
    ("rdiv", (1.0,)): "Expected rdiv to take 2 parameters (divisor, rounding mode)",
    ("rdiv", (1.0, 9.0)): "Invalid rdiv rounding mode 9 (expected 0, 1 or 2)",
    ("selu", (1.0,)): "Expected selu to take 2 parameters",
}
REFUSED_ALONE = {  # an operation of its own knows its format
    ("square", ()): None,
    ("relu_max", (6.0,)): None,
    (
        "bitwise_or",
        (1.0,),
    ): "Unsupported input dtype for bitwise/shift op_type UnaryOpType::BITWISE_OR: expected Int32, UInt32, or UInt16.",
    ("relu", (1.0,)): NO_PARAMETER.format("RELU"),
    ("mac_tss", (1.0,)): "Unsupported parameter type for index 1",
}


def test_functions_are_refused_in_the_real_library_s_words():
    assert {activation: first_line(fused_by_conv_refusal(activation)) for activation in REFUSED} == REFUSED
    alone = {activation: first_line(operation_refusal(activation, BFLOAT16)) for activation in REFUSED_ALONE}
    assert alone == REFUSED_ALONE


def test_a_matmul_asks_for_no_parameters():
    fused = [name for name in NAMES if fused_by_matmul_refusal((name, ())) is None]
    assert set(fused) == FUSED_BY_MATMUL
    text = "Unsupported UnaryOpType for fused activation: UnaryOpType::EXP"
    assert first_line(fused_by_matmul_refusal(("exp", ()))) == text
