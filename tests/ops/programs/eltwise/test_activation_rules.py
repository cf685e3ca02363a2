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


@pytest.mark.parametrize(
    ("activation", "text"),
    [
        (("relu", (1.0,)), None),
        (("gelu", (1.0,)), None),
        (("leaky_relu", (0.1,)), None),
        (("leaky_relu", ()), "Undefined non-parametrized op type UnaryOpType::LEAKY_RELU"),
        (("dropout", ()), "Undefined non-parametrized op type UnaryOpType::DROPOUT"),
        (
            ("dropout", (1.0,)),
            "operator should support at least one parameter but op_type UnaryOpType::DROPOUT does not",
        ),
        (("relu6", (1.0,)), "operator should support at least one parameter but op_type UnaryOpType::RELU6 does not"),
        (("square", ()), "Missing input dtype: Expected a valid input dtype, but none was provided."),
        (("square", (1.0,)), "operator should support at least one parameter but op_type UnaryOpType::SQUARE does not"),
        (("relu_max", ()), "Undefined non-parametrized op type UnaryOpType::RELU_MAX"),
        (("relu_max", (6.0,)), "Missing input dtype: Expected a valid input dtype, but none was provided."),
        (
            ("right_shift", (1.0,)),
            "Missing input dtype for op_type UnaryOpType::RIGHT_SHIFT: a valid integer input dtype "
            "(Int32/UInt32/UInt16) is required.",
        ),
        (("sigmoid", (4.0, 1.0)), None),
        (("sigmoid", (1.0,)), "Invalid Vector mode value. Expected vector mode C (2) or RC (4) for sigmoid"),
        (("power_iterative", (2.0,)), None),
        (("power_iterative", (-1.0,)), "POWER_ITERATIVE requires non-negative integer exponent, got -1"),
        (("power_iterative", (0.5,)), "POWER_ITERATIVE requires non-negative integer exponent, got 0.5"),
        (("rdiv", (1.0,)), "Expected rdiv to take 2 parameters (divisor, rounding mode)"),
        (("rdiv", (1.0, 9.0)), "Invalid rdiv rounding mode 9 (expected 0, 1 or 2)"),
        (("selu", (1.0,)), "Expected selu to take 2 parameters"),
    ],
)
def test_a_convolution_refuses_a_function_in_the_real_library_s_words(activation, text):
    assert first_line(fused_by_conv_refusal(activation)) == text


def test_an_operation_of_its_own_knows_its_format():
    assert operation_refusal(("square", ()), BFLOAT16) is None
    assert operation_refusal(("relu_max", (6.0,)), BFLOAT16) is None
    text = (
        "Unsupported input dtype for bitwise/shift op_type UnaryOpType::BITWISE_OR: expected Int32, UInt32, or UInt16."
    )
    assert first_line(operation_refusal(("bitwise_or", (1.0,)), BFLOAT16)) == text
    assert first_line(operation_refusal(("relu", (1.0,)), BFLOAT16)) == (
        "operator should support at least one parameter but op_type UnaryOpType::RELU does not"
    )
    assert first_line(operation_refusal(("mac_tss", (1.0,)), BFLOAT16)) == "Unsupported parameter type for index 1"


def test_a_matmul_asks_for_no_parameters():
    fused = [name for name in NAMES if fused_by_matmul_refusal((name, ())) is None]
    assert set(fused) == FUSED_BY_MATMUL
    text = "Unsupported UnaryOpType for fused activation: UnaryOpType::EXP"
    assert first_line(fused_by_matmul_refusal(("exp", ()))) == text
