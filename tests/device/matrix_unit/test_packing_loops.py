"""The compiled twins of the packer against numpy, bit for bit: ordinary numbers, ties, and all that is special."""

import importlib
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from device.host.compiling import numba_installed
from device.matrix_unit import packer
from device.matrix_unit.packer import add_bias, pack, share_exponents, tilize, unpack
from device.numbers.formats import BFLOAT4_B, BFLOAT8_B, BFLOAT16, FLOAT32

pytestmark = pytest.mark.skipif(not numba_installed(), reason="numba is not installed")
FORMATS = [FLOAT32, BFLOAT16, BFLOAT8_B, BFLOAT4_B]
OPERAND = 0xFFFFE000  # what a number of 11 significant bits has
SPECIAL = [
    *(0x00000000, 0x80000000, 0x00000001, 0x807FFFFF, 0x007FE000, 0x00800000, 0x80800000),  # zeros, denormals, smallest
    *(0x7F800000, 0xFF800000, 0x7F800001, 0x7FC00000, 0xFFFFFFFF, 0x7F7FFFFF, 0xFF7FE000),  # infinities, NaN, largest
    *(0x3F808000, 0xBF808000, 0x3F818000, 0x3F810000, 0x3F820000, 0x3F830000, 0x3F800000, 0xBF800000),  # ties
]


@pytest.fixture
def engine(monkeypatch):
    """Sets who computes: numpy or the compiled loops, whatever is worth it."""
    loops = importlib.import_module("device.matrix_unit.packing_loops")

    def choose(name):
        monkeypatch.setattr(packer, "_loops", lambda bits: {"numpy": None, "compiled": loops}[name])

    return choose


def agree(engine, function, *arrays, **options):
    kept = [array.copy() for array in arrays]
    results = []
    with np.errstate(all="ignore"):
        for name in ("numpy", "compiled"):
            engine(name)
            results.append(function(*arrays, **options).view(np.uint32))
    assert results[0].shape == results[1].shape
    assert np.array_equal(*results), [hex(arrays[0].view(np.uint32)[results[0] != results[1]][0])]
    assert all(np.array_equal(a.view(np.uint32), b.view(np.uint32)) for a, b in zip(arrays, kept, strict=True))


def numbers(seed, spread, shape, mask, center=127):
    """Float32 of exponents around ``center``, one in five special."""
    rng = np.random.default_rng(seed)
    exponents = np.clip(center + rng.integers(-spread, spread + 1, shape), 0, 255).astype(np.uint32)
    bits = rng.integers(0, 1 << 32, shape, dtype=np.uint32) & np.uint32(0x807FFFFF) | exponents << np.uint32(23)
    bits = np.where(rng.random(shape) < 0.2, rng.choice(np.array(SPECIAL, np.uint32), shape), bits)
    return (bits & np.uint32(mask)).view(np.float32)


def all_pairs():
    """Every special pattern beside every other, each pair alone in its group."""
    groups = np.zeros((len(SPECIAL) ** 2, 16), np.uint32)
    groups[:, :2] = list(product(SPECIAL, SPECIAL))
    return groups.view(np.float32)


seeds = given(
    seed=st.integers(0, 2**32 - 1),
    spread=st.sampled_from([0, 1, 5, 14, 40, 200]),
    center=st.sampled_from([3, 11, 127, 236, 240, 252]),
    fp32_dest=st.booleans(),
    relu=st.booleans(),
)


@settings(max_examples=60, deadline=None)
@seeds
def test_any_numbers(seed, spread, center, fp32_dest, relu):
    with pytest.MonkeyPatch.context() as patch:
        loops = importlib.import_module("device.matrix_unit.packing_loops")

        def engine(name):
            patch.setattr(packer, "_loops", lambda bits: {"numpy": None, "compiled": loops}[name])

        values = numbers(seed, spread, (3, 48), 0xFFFFFFFF, center)
        operands = numbers(seed, spread, (3, 48), OPERAND, center)
        for fmt in FORMATS:
            agree(engine, unpack, values, fmt=fmt, fp32_dest=fp32_dest)
            agree(engine, pack, values, fmt=fmt, fp32_dest=fp32_dest, relu=relu)
        for keeps_tf32, fmt in product((False, True), FORMATS):
            agree(engine, tilize, values, source=FLOAT32, target=fmt, fp32_dest=fp32_dest, keeps_tf32=keeps_tf32)
        for fmt in (BFLOAT8_B, BFLOAT4_B):
            agree(engine, share_exponents, operands, fmt=fmt)
        for bias in (operands[1], operands[::-1].copy()):
            agree(engine, add_bias, operands, bias, fp32_dest=fp32_dest)


@pytest.mark.parametrize("fp32_dest", [False, True])
def test_special_numbers_side_by_side(engine, fp32_dest):
    for fmt, relu in product(FORMATS, (False, True)):
        agree(engine, pack, all_pairs(), fmt=fmt, fp32_dest=fp32_dest, relu=relu)
        agree(engine, unpack, all_pairs(), fmt=fmt, fp32_dest=fp32_dest)
    operands = (np.array(SPECIAL, np.uint32) & np.uint32(OPERAND)).view(np.float32)
    agree(engine, add_bias, np.repeat(operands[:, None], len(operands), 1), operands, fp32_dest=fp32_dest)


@pytest.mark.parametrize("fp32_dest", [False, True])
@pytest.mark.parametrize("dropped", range(12))
def test_ties_at_every_place(engine, fp32_dest, dropped):
    """A half of the last place that is kept, and its neighbors, under a larger number and beside a larger bias."""
    significands = 0x3F800000 - (dropped << 23) | np.arange(1 << 10, dtype=np.uint32) << np.uint32(13)
    values = np.concatenate([significands, significands | np.uint32(1 << 31)]).view(np.float32).reshape(-1, 16)
    values = values.copy()
    values[:, 0] = 1.0
    agree(engine, pack, values, fmt=BFLOAT8_B, fp32_dest=fp32_dest)
    agree(engine, share_exponents, values, fmt=BFLOAT4_B)
    for bias in (1.0, -1.0, 1.5):
        agree(engine, add_bias, values, np.full(16, bias, np.float32), fp32_dest=fp32_dest)
