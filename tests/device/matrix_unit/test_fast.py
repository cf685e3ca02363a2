"""The fast reading against the exact one: the same roundings where the packer rounds, the same parts in every phase."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from device.matrix_unit import fast, packer
from device.matrix_unit.arithmetic import EXACT, FAST, arithmetic_of, cut
from device.matrix_unit.exact import MatrixUnitMode
from device.numbers.formats import BFLOAT4_B, BFLOAT8_B, BFLOAT16, FLOAT32, quantize

FORMATS = [FLOAT32, BFLOAT16, BFLOAT8_B, BFLOAT4_B]
TF32_MASK = 0xFFFFE000


def numbers(shape, seed, spread=2.0):
    """float32 of many binades and both signs."""
    rng = np.random.default_rng(seed)
    scale = np.exp2(rng.integers(-8, 8, shape) * spread / 2)
    return (rng.standard_normal(shape) * scale).astype(np.float32)


def operand(values):
    """Cut to the eleven bits of an operand."""
    return (values.view(np.uint32) & np.uint32(TF32_MASK)).view(np.float32)


def mode(fidelity_phases=4, *, fp32_dest=True):
    return MatrixUnitMode(fidelity_phases=fidelity_phases, fp32_dest=fp32_dest, minus_one_quirk=False)


def products(activations, weights, dst, how):
    """The exact and the fast product; the fast one may write over what it is given."""
    exact = EXACT.product(activations, weights, dst, mode=how)
    masks = FAST.operand_masks(how)
    operands = [cut(values.copy(), mask) for values, mask in zip((activations, weights), masks, strict=True)]
    return exact, FAST.product(*operands, None if dst is None else dst.copy(), mode=how)


@pytest.mark.parametrize("fidelity_phases", [1, 2, 3, 4])
@pytest.mark.parametrize("start", [False, True])
def test_every_fidelity_multiplies_the_same_parts(fidelity_phases, start):
    """One product for each result, which a float32 Dst holds with all its bits."""
    activations, weights = np.zeros((33, 32), np.float32), operand(numbers((32, 40), 2, 0))
    activations[:, 5] = operand(numbers((33,), 1, 0))
    dst = np.zeros((33, 40), np.float32) if start else None
    exact, fast = products(activations, weights, dst, mode(fidelity_phases))
    assert np.array_equal(exact, fast)


def test_sums_are_close():
    """The matrix unit keeps eleven bits of the largest product of eight."""
    activations, weights = operand(numbers((33, 64), 1, 0)), operand(numbers((64, 40), 2, 0))
    exact, fast = products(activations, weights, numbers((33, 40), 3, 0), mode())
    assert np.abs(fast - exact).max() < 2.0**-10 * np.abs(exact).max()


def test_a_16_bit_dst_is_rounded_once():
    """257 needs nine bits: half up on the magnitude."""
    activations, weights = np.array([[1.0, 1.0], [-1.0, -1.0]], np.float32), np.array([[256.0], [1.0]], np.float32)
    got = FAST.product(activations, weights, None, mode=mode(fp32_dest=False))
    assert got.ravel().tolist() == [258.0, -258.0]
    assert FAST.product(activations, weights, None, mode=mode()).ravel().tolist() == [257.0, -257.0]


seeds = st.integers(0, 10**6)


@given(seeds, st.sampled_from(FORMATS), st.booleans())
def test_unpacking_is_exact(seed, fmt, fp32_dest):
    values = quantize(numbers((4, 32), seed), fmt).astype(np.float32)
    want = packer.unpack(values, fmt, fp32_dest=fp32_dest)
    assert np.array_equal(fast.unpack(values.copy(), fmt, fp32_dest=fp32_dest), want)


@given(seeds, st.sampled_from(FORMATS), st.booleans(), st.booleans())
def test_packing_is_exact(seed, fmt, fp32_dest, relu):
    dst = numbers((4, 32), seed) if fp32_dest else quantize(numbers((4, 32), seed), BFLOAT16).astype(np.float32)
    want = packer.pack(dst, fmt, fp32_dest=fp32_dest, relu=relu)
    assert np.array_equal(fast.pack(dst.copy(), fmt, fp32_dest=fp32_dest, relu=relu), want)


@pytest.mark.parametrize("fmt", [BFLOAT8_B, BFLOAT4_B])
@pytest.mark.parametrize("largest", [2.0**-126, 2.0**-104, 2.0**110, 2.0**112, np.inf, np.nan])
def test_block_floats_of_any_scale_are_packed_exactly(largest, fmt):
    """Among them (67/64)^2 * 2^-104, the square of a bfloat8_b number, and neighbors that are denormal."""
    values = (numbers((64, 32), 1) * np.float32(largest if np.isfinite(largest) else 1)).astype(np.float32)
    values[0, 0], values[3] = largest, (67 / 64) ** 2 * 2.0**-104
    want = packer.pack(values, fmt, fp32_dest=True)
    assert np.array_equal(fast.pack(values.copy(), fmt, fp32_dest=True).view(np.int32), want.view(np.int32))


@given(seeds, st.sampled_from([FLOAT32, BFLOAT16]), st.sampled_from(FORMATS), st.booleans(), st.booleans())
def test_tilizing_is_exact(seed, source, target, fp32_dest, keeps_tf32):
    """As far as the matrix unit sees it: a float32 target is cut when it is read.

    Where the fast tilize shares exponents without rounding first, results differ by a unit of the group.
    """
    values = quantize(numbers((4, 32), seed), source).astype(np.float32)
    how = {"fp32_dest": fp32_dest, "keeps_tf32": keeps_tf32}
    want = packer.unpack(packer.tilize(values, source, target, **how), target, fp32_dest=fp32_dest)
    got = fast.unpack(fast.tilize(values.copy(), source, target, **how), target, fp32_dest=fp32_dest)
    if target.is_block and fp32_dest and not keeps_tf32:
        unit = np.abs(values).max() * 2.0 ** (1 - target.mantissa_bits)
        assert np.abs(got - want).max() <= unit
    else:
        assert np.array_equal(got, want)


@given(seeds, st.sampled_from([FLOAT32, BFLOAT16]))
def test_adding_in_l1_is_off_by_a_tie_at_most(seed, fmt):
    stored, packed = (quantize(numbers((4, 32), seed + n), fmt).astype(np.float32) for n in (0, 1))
    want = packer.accumulate_l1(stored, packed, fmt)
    got = fast.accumulate_l1(stored.copy(), packed.copy(), fmt)
    ulp = 2.0**-7 if fmt is BFLOAT16 else 0
    assert (np.abs(got - want) <= ulp * np.abs(want)).all()


@given(seeds, st.booleans())
def test_adding_a_bias_is_close(seed, fp32_dest):
    """The exact addition keeps eleven bits of the larger operand, less where they nearly cancel."""
    fmt = FLOAT32 if fp32_dest else BFLOAT16
    dst, bias = (packer.unpack(quantize(numbers((4, 32), seed + n), fmt), fmt, fp32_dest=fp32_dest) for n in (0, 1))
    want = packer.add_bias(dst, bias[0], fp32_dest=fp32_dest)
    got = fast.add_bias(dst.copy(), bias[0], fp32_dest=fp32_dest)
    assert fp32_dest or not (got.view(np.uint32) & np.uint32(0xFFFF)).any()
    larger = np.maximum(np.abs(dst), np.abs(bias[0]))
    assert (np.abs(got - want) <= larger * (2.0**-9 if fp32_dest else 2.0**-6)).all()


@pytest.mark.parametrize("dtype", [np.float32, BFLOAT16.storage])
def test_operands_that_are_no_finite_numbers_are_multiplied_exactly(dtype):
    finite, odd = np.ones((300, 300), dtype), np.ones((300, 300), dtype)
    assert arithmetic_of(FAST, finite, finite.T, None) is FAST
    for number in (np.inf, -np.inf, np.nan):
        odd[299, 299] = number
        assert arithmetic_of(FAST, finite, odd) is EXACT
        assert arithmetic_of(FAST, odd[:, ::2], finite) is FAST  # those that are read count
    assert arithmetic_of(EXACT, finite) is EXACT


def test_every_bfloat16_is_known_as_finite_or_not():
    for number in np.arange(1 << 16, dtype=np.uint16).view(BFLOAT16.storage):
        chosen = arithmetic_of(FAST, np.full((1, 1), number))
        assert (chosen is FAST) == bool(np.isfinite(np.float32(number))), number
