"""Products of blocks: what they name that does not fit, and where numba is not."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from device.host.compiling import numba_installed
from device.matrix_unit import blocks
from device.matrix_unit.blocks import block_product
from device.matrix_unit.exact import MatrixUnitMode

ROOT = Path(__file__).resolve().parents[3]


WITHOUT_NUMBA = """
import sys
sys.modules["numba"] = None
import numpy as np
from device.matrix_unit.exact import MatrixUnitMode
from device.host.compiling import numba_installed
from device.matrix_unit import blocks
from device.matrix_unit.blocks import block_product
mode = MatrixUnitMode(fidelity_phases=4, fp32_dest=True, minus_one_quirk=False)
rows = 15_000  # 0.3 s of numpy and more
result = block_product(np.ones((rows, 32), np.float32), np.ones((32, 64), np.float32), mode=mode)
assert (result == 32).all()
assert result.shape == (rows, 64)
try:
    block_product(np.ones((1, 32), np.float32), np.ones((32, 64), np.float32), mode=mode, engine="compiled")
except ImportError as error:
    assert str(error) == "block_product: the compiled engine needs numba; install it, or use engine='numpy'", error
else:
    raise AssertionError
"""


def test_without_numba_everything_but_the_compiled_engine_works():
    subprocess.run([sys.executable, "-W", "error", "-c", WITHOUT_NUMBA], check=True, cwd=ROOT)


def test_numba_is_not_loaded_for_small_products():
    code = """
import sys
import numpy as np
from device.matrix_unit.exact import MatrixUnitMode
from device.host.compiling import numba_installed
from device.matrix_unit import blocks
from device.matrix_unit.blocks import block_product
mode = MatrixUnitMode(fidelity_phases=4, fp32_dest=True, minus_one_quirk=False)
block_product(np.ones((8, 32), np.float32), np.ones((32, 64), np.float32), mode=mode)
assert "numba" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


ANY_MODE = MatrixUnitMode(fidelity_phases=1, fp32_dest=False, minus_one_quirk=False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"activations": np.zeros((2, 24), np.float32)},
            r"share a K that is a multiple of 16, not \[2, 24\] and \[32, 3\]",
        ),
        (
            {"activations": np.zeros((2, 32))},
            r"activations must be a matrix of float32 or uint32 bit patterns, not float64",
        ),
        ({"dst": np.zeros((3, 2), np.float32)}, r"dst must be \[rows, cols\] = \[2, 3\], not \[3, 2\]"),
        ({"half_counts": [1]}, r"half_counts must name 0, 1 or 2 halves for every K tile and 2 in all .*, not \[1\]"),
        ({"dst": np.full((2, 3), 1.00001, np.float32)}, r"a 16-bit Dst holds bfloat16 values; cut dst first"),
        ({"engine": "fast"}, r"engine must be one of auto, compiled, numpy, truth, not 'fast'"),
    ],
)
def test_block_product_names_what_does_not_fit(arguments, message):
    usual = {"activations": np.zeros((2, 32), np.float32), "weights": np.zeros((32, 3), np.float32), "mode": ANY_MODE}
    with pytest.raises(ValueError, match=message):
        block_product(**(usual | arguments))


def test_an_odd_number_of_halves_needs_half_counts():
    with pytest.raises(ValueError, match=r"not None, which means whole tiles$"):
        block_product(np.zeros((2, 16), np.float32), np.zeros((16, 3), np.float32), mode=ANY_MODE)


def test_mode_names_what_does_not_fit():
    with pytest.raises(ValueError, match=r"^fidelity_phases must be 1 \(LoFi\), .* not 0$"):
        MatrixUnitMode(fidelity_phases=0, fp32_dest=True, minus_one_quirk=True)


@pytest.fixture
def told(monkeypatch):
    """Whether products were taken for ones of narrow numbers."""
    heard, judge = [], blocks._are_narrow
    monkeypatch.setattr(blocks, "_are_narrow", lambda *fields: heard.append(judge(*fields)) or heard[-1])
    return heard


def of_field(field, shape, rng, cut=16):
    """Bit patterns of either sign with one exponent field."""
    bits = rng.integers(0, 1 << 32, shape, dtype=np.uint32) & np.uint32(0x807FFFFF) | np.uint32(field << 23)
    return bits & np.uint32(0xFFFFFFFF << cut & 0xFFFFFFFF)


@pytest.mark.skipif(not numba_installed(), reason="numba is not installed")
@pytest.mark.parametrize("fp32_dest", [False, True])
@pytest.mark.parametrize(
    ("activations", "weights", "dst", "narrow"),
    [
        (89, 89, None, True),  # 89 + 89 - 127 - 12 - 23 is 16
        (89, 88, None, False),
        (89, 89, 16, True),
        (89, 89, 15, False),
        (100, 127, 232, True),  # 232 + 12 + the 5 bits of 16 steps is 249
        (100, 127, 233, False),
        (127, 127, 0, True),
        (200, 153, 226, True),  # as large as products may be
    ],
)
def test_numbers_at_both_ends_of_narrow_ones_have_the_bits_of_the_truth(
    told, activations, weights, dst, narrow, fp32_dest
):
    rng = np.random.default_rng(29)
    left, right = of_field(activations, (24, 64), rng), of_field(weights, (64, 70), rng)
    left[:8, 32:], right[32:] = left[:8, :32], right[:32] ^ np.uint32(1 << 31)  # which cancels
    left[8:16, rng.random(64) < 0.7] = 0
    left[16:20, :16] = right[:16, :3] = 0
    start = None if dst is None else of_field(dst, (24, 70), rng)
    for quirk in (False, True):
        mode = MatrixUnitMode(fidelity_phases=4, fp32_dest=fp32_dest, minus_one_quirk=quirk)
        want = block_product(left, right, start, mode=mode, engine="truth")
        got = block_product(left, right, start, mode=mode, engine="compiled")
        assert np.array_equal(got.view(np.uint32), want.view(np.uint32))
    assert told == [narrow] * 2
