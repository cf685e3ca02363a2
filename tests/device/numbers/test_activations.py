import math

import numpy as np
import pytest

from device.errors import DeviceError
from device.numbers.activations import FUNCTIONS, apply_activation

INPUTS = np.array([-20.0, -3.5, -1.0, -0.25, 0.0, 0.25, 1.0, 3.0, 7.0, 20.0], np.float32)


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


DEFINITIONS = {
    "abs": abs,
    "elu": lambda x: x if x > 0 else math.expm1(x),
    "exp": math.exp,
    "gelu": lambda x: x * 0.5 * (1 + math.erf(x / math.sqrt(2))),
    "hardsigmoid": lambda x: min(max(x / 6 + 0.5, 0), 1),
    "hardswish": lambda x: x * min(max(x / 6 + 0.5, 0), 1),
    "leaky_relu": lambda x: x if x > 0 else 0.01 * x,
    "log": lambda x: math.log(x) if x > 0 else -math.inf if x == 0 else math.nan,
    "relu6": lambda x: min(max(x, 0), 6),
    "sigmoid": sigmoid,
    "silu": lambda x: x * sigmoid(x),
    "softplus": lambda x: math.log1p(math.exp(x)),
    "sqrt": lambda x: math.sqrt(x) if x >= 0 else math.nan,
    "square": lambda x: x * x,
    "tanh": math.tanh,
}


def test_every_function_has_a_definition_here():
    assert FUNCTIONS.keys() == DEFINITIONS.keys()


@pytest.mark.parametrize("name", DEFINITIONS)
def test_float32_dst(name):
    got = apply_activation(INPUTS, name, (), fp32_dest=True)
    assert got.dtype == np.float32
    want = np.array([DEFINITIONS[name](float(x)) for x in INPUTS])
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=5e-7)


@pytest.mark.parametrize(("name", "slope"), [("leaky_relu", 0.25), ("elu", 2.0)])
def test_parameters(name, slope):
    got = apply_activation(np.array([-1.0, 2.0], np.float32), name, (slope,), fp32_dest=True)
    below = -slope if name == "leaky_relu" else slope * math.expm1(-1)
    np.testing.assert_allclose(got, [below, 2.0], rtol=1e-6)


def test_16_bit_dst_is_rounded_half_up():
    """The squares of 17, 1.0625 and 23 / 16 have nine bits; a half goes away from zero."""
    values = np.array([17.0, 1.0625, 1.4375], np.float32)
    got = apply_activation(values, "square", (), fp32_dest=False)
    assert got.tolist() == [290.0, 1.1328125, 2.0625]
    assert (got.view(np.uint32) & 0xFFFF == 0).all()


def test_the_input_is_left_alone():
    values = INPUTS.copy()
    apply_activation(values, "square", (), fp32_dest=False)
    assert np.array_equal(values, INPUTS)


def test_unknown_activations_are_refused():
    message = r"^Unsupported activation SINE\nactivation must be one of RELU, ABS, ELU, .*, TANH$"
    with pytest.raises(DeviceError, match=message):
        apply_activation(INPUTS, "sine", (), fp32_dest=True)
