"""The definitions that random calls compare with are torch's functions of the same names, in float64."""

import numpy as np
import pytest

from ops.programs.eltwise.pairs import PAIRS
from tools.random_calls.combinations import wrapped
from tools.random_calls.elementwise import FUNCTIONS, NUMBERS, definition
from ttsim.api.pairs import FUNCTIONS as PAIR_FUNCTIONS
from ttsim.api.unary import NAMES

torch = pytest.importorskip("torch")
F = torch.nn.functional

X = np.concatenate([np.linspace(-4, 4, 97), [0.1, 30.0, -30.0]])  # with integers and halves
# Functions that torch has under another name, with other arguments, or not at all
OTHERS = {
    "relu6": F.relu6,
    "gelu": F.gelu,
    "elu": F.elu,
    "hardsigmoid": F.hardsigmoid,
    "hardswish": F.hardswish,
    "leaky_relu": lambda x: F.leaky_relu(x, 0.125),
    "mish": F.mish,
    "silu": F.silu,
    "swish": F.silu,
    "sigmoid_accurate": torch.sigmoid,
    "eqz": lambda x: x == 0,
    "nez": lambda x: x != 0,
    "gtz": lambda x: x > 0,
    "ltz": lambda x: x < 0,
    "gez": lambda x: x >= 0,
    "lez": lambda x: x <= 0,
    "cbrt": lambda x: x.sign() * x.abs() ** (1 / 3),
    "tanhshrink": F.tanhshrink,
    "celu": F.celu,
    "hardshrink": F.hardshrink,
    "hardtanh": F.hardtanh,
    "selu": F.selu,
    "heaviside": lambda x: torch.heaviside(x, torch.tensor(0.5, dtype=x.dtype)),
    "identity": lambda x: x,
    "polygamma": lambda x: torch.polygamma(2, x),
    "relu_max": lambda x: F.relu(torch.clamp(x, max=1.0)),
    "relu_min": lambda x: torch.clamp(x, min=0.5),
    "softplus": F.softplus,
    "softshrink": F.softshrink,
    "softsign": F.softsign,
    "threshold": lambda x: F.threshold(x, 0.5, 2.0),
    "fill": lambda x: x * 0 + 2,
    "rpow": lambda x: 2.0**x,
    "log_sigmoid": F.logsigmoid,
    "hardmish": lambda x: x * torch.clamp(x + 2, 0, 2) / 2,
    "logical_not": torch.logical_not,
    "isneginf": torch.isneginf,
    "isposinf": torch.isposinf,
}


def numbers_of(name):
    return tuple(float(number) for number in NUMBERS.get(name, {}).values())


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("bitwise_not", "xielu")])
def test_functions_of_one_operand(name):
    function = OTHERS.get(name) or getattr(torch, name, None) or getattr(torch.special, name)
    given = X[X > 0] if name in ("digamma", "polygamma") else X  # which have poles
    want = function(torch.tensor(given)).to(torch.float64).numpy()
    with np.errstate(all="ignore"):
        got = FUNCTIONS[name](given) if name in FUNCTIONS else definition(name, given, numbers_of(name))
    np.testing.assert_allclose(np.asarray(got, np.float64), want, rtol=1e-5, atol=1e-5)


OTHER_PAIRS = {
    "squared_difference": lambda a, b: (a - b) ** 2,
    "rsub": lambda a, b: b - a,
    "logical_right_shift": lambda a, b: torch.where(b < 32, (a.long() & 0xFFFFFFFF) >> b, 0).int(),
    "bitwise_left_shift": lambda a, b: torch.where(b < 32, a << b, 0),
    "bitwise_right_shift": lambda a, b: a >> torch.clamp(b, max=31),
    # the step is that of float32, whatever the data type
    "nextafter": lambda a, b: torch.nextafter(a.float(), b.float()).double(),
}


@pytest.mark.parametrize("name", sorted({row.operation for row in PAIR_FUNCTIONS.values()}))
def test_functions_of_two_operands(name):
    generator = np.random.default_rng(1)
    whole = not any(data_format.is_float for data_format in PAIRS[name].formats)
    a = generator.integers(-100, 100, 400) if whole else generator.integers(-20, 20, 400) / 8
    b = generator.integers(0, 40, 400) if whole else generator.integers(-20, 20, 400) / 8
    function = OTHER_PAIRS.get(name) or getattr(torch, name, None) or getattr(torch.special, name)
    want = function(*(torch.tensor(side).to(torch.int32 if whole else torch.float64) for side in (a, b))).numpy()
    with np.errstate(all="ignore"):
        got = np.asarray(PAIRS[name].values(a, b))
    got = wrapped(got, "int32") if whole else got
    np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=1e-6, atol=1e-6)
