"""Packing, unpacking, L1 accumulation and the bias addition against the rules in float64, which holds all bits."""

import importlib
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from device.host.compiling import numba_installed
from device.matrix_unit import packer
from device.matrix_unit.packer import (
    accumulate_l1,
    add_bias,
    flushed,
    pack,
    share_exponents,
    tilize,
    typecast,
    unpack,
    without_nan,
)
from device.numbers.formats import BFLOAT4_B, BFLOAT8_B, BFLOAT16, FLOAT16, FLOAT32, GROUP, INT32, quantize

needs_numba = pytest.mark.skipif(not numba_installed(), reason="numba is not installed")
each_width = pytest.mark.parametrize("fp32_dest", [False, True])
each_seed = given(seed=st.integers(0, 2**32 - 1), spread=st.sampled_from([0, 1, 3, 9, 14, 40]))
examples = settings(max_examples=40, deadline=None)


def numbers(seed, spread, shape, cut=0, center=127):
    """Random float32 of exponents within ``spread`` of ``center``, ``cut`` low bits clear, some of them zero."""
    rng = np.random.default_rng(seed)
    exponents = (center + rng.integers(-spread, spread + 1, shape)).astype(np.uint32)
    bits = rng.integers(0, 1 << 32, shape, dtype=np.uint32) & np.uint32(0x807FFFFF) | exponents << np.uint32(23)
    bits &= np.uint32(0xFFFFFFFF << cut & 0xFFFFFFFF)
    bits[rng.random(shape) < 0.1] = 0
    return bits.view(np.float32)


def exponents_of(values):
    """Exponent fields of float32 numbers; 0 for zero."""
    return (np.asarray(values, np.float32).view(np.uint32) >> 23 & 0xFF).astype(int)


def half_up(values):
    """The nearest integers, ties away from zero."""
    return np.sign(values) * np.floor(np.abs(values) + 0.5)


def rounded_to(values, significant_bits):
    """Numbers with so many significant bits, half up."""
    unit = 2.0 ** (exponents_of(values) - 126.0 - significant_bits)
    return half_up(np.asarray(values, np.float64) / unit) * unit


def same_bits(left, right):
    return np.array_equal(np.asarray(left, np.float32).view(np.uint32), np.asarray(right, np.float32).view(np.uint32))


# ---- unpack


@pytest.mark.parametrize(("fp32_dest", "want"), [(True, 1 + 2.0**-10), (False, 1 + 2.0**-7)])
def test_float32_is_cut_and_never_rounded(fp32_dest, want):
    almost_two = np.float32(2 - 2.0**-23)
    got = unpack(np.array([almost_two, -almost_two, want, 2.0**-126]), FLOAT32, fp32_dest=fp32_dest)
    largest = 2 - (2.0**-10 if fp32_dest else 2.0**-7)
    assert got.tolist() == [largest, -largest, want, 2.0**-126]


@each_width
@pytest.mark.parametrize("fmt", [FLOAT32, BFLOAT16])
def test_denormals_and_negative_zero_read_as_zero(fmt, fp32_dest):
    got = unpack(np.array([2.0**-127, -(2.0**-130), -0.0], np.float32), fmt, fp32_dest=fp32_dest)
    assert same_bits(got, np.zeros(3))


# ---- pack


@examples
@each_seed
def test_float32_dst_to_bfloat16_is_half_up(seed, spread):
    values = numbers(seed, spread, 50)
    assert same_bits(pack(values, BFLOAT16, fp32_dest=True), rounded_to(values, 8))


def test_special_values_to_bfloat16():
    values = np.array([np.inf, -np.inf, np.nan, 3.4e38, 1e-40, -0.0], np.float32)
    assert same_bits(pack(values, BFLOAT16, fp32_dest=True), [np.inf, -np.inf, np.inf, np.inf, 0.0, 0.0])
    assert same_bits(pack(values[[0, 1, 2, 4, 5]], BFLOAT16, fp32_dest=False), [np.inf, -np.inf, np.inf, 0.0, 0.0])


@each_width
def test_tilizing_makes_an_infinity_of_a_nan(fp32_dest):
    values = np.array([np.nan, -np.nan, 1.5], np.float32)
    got = tilize(values, BFLOAT16, BFLOAT16, fp32_dest=fp32_dest, keeps_tf32=True)
    assert got.tolist() == [np.inf, -np.inf, 1.5]


def packed_groups(values, magnitude_bits, first_round=True):
    """The packer's block floats."""
    groups = np.asarray(values, np.float64).reshape(-1, GROUP)
    sevens = rounded_to(groups, 7) if first_round else groups
    unit = 2.0 ** (exponents_of(sevens).max(axis=1, keepdims=True) - 133.0)
    dropped = 2 ** (7 - magnitude_bits)
    kept = np.minimum(np.abs(half_up(sevens / unit)), 127) // dropped * dropped
    return (np.where((sevens < 0) & (kept > 0), -1, 1) * kept * unit).reshape(values.shape)


@each_width
@pytest.mark.parametrize("fmt", [BFLOAT8_B, BFLOAT4_B])
@examples
@each_seed
def test_block_floats_round_twice(fmt, fp32_dest, seed, spread):
    values = numbers(seed, spread, (3, 32), cut=0 if fp32_dest else 16)
    assert same_bits(pack(values, fmt, fp32_dest=fp32_dest), packed_groups(values, fmt.mantissa_bits))


def test_rounding_twice_is_not_rounding_once():
    """129/256 is 32.25 units of 1/64; at seven bits it becomes 65/128, which is 32.5 units and goes up."""
    values = np.zeros(16, np.float32)
    values[:2] = 1.0, 129 / 256
    assert pack(values, BFLOAT8_B, fp32_dest=True)[:2].tolist() == [1.0, 33 / 64]
    straight = tilize(values, FLOAT32, BFLOAT8_B, fp32_dest=True, keeps_tf32=False)
    assert straight[:2].tolist() == [1.0, 32 / 64]


@pytest.mark.parametrize("fmt", [BFLOAT8_B, BFLOAT4_B])
@pytest.mark.parametrize("center", [3, 240, 252])
def test_block_floats_at_the_ends_of_the_exponent(fmt, center):
    values = numbers(9, 2, (4, 16), center=center)
    assert same_bits(pack(values, fmt, fp32_dest=True), packed_groups(values, fmt.mantissa_bits))


def test_infinity_leaves_only_large_neighbors():
    values = np.zeros(16, np.float32)
    values[:4] = np.inf, -np.inf, 1e38, 1.0
    got = pack(values, BFLOAT8_B, fp32_dest=True)
    assert got[:2].tolist() == [np.inf, -np.inf]
    assert got[2] == pytest.approx(1e38, rel=0.02)
    assert not got[3:].any()


@each_width
@pytest.mark.parametrize(
    ("fmt", "plain", "rectified"),
    [
        (BFLOAT8_B, [-100.0, 1.0, 2.0], [0.0, 1.015625, 1.53125]),  # units of 1, then of 1/64
        (BFLOAT4_B, [-96.0, 0.0, 0.0], [0.0, 1.0, 1.5]),  # units of 16, then of 1/4
    ],
    ids=str,
)
def test_relu_comes_before_the_shared_exponent(fmt, plain, rectified, fp32_dest):
    values = np.zeros(16, np.float32)
    values[:3] = -100, 65 / 64, 98 / 64
    assert pack(values, fmt, fp32_dest=fp32_dest)[:3].tolist() == plain
    assert pack(values, fmt, fp32_dest=fp32_dest, relu=True)[:3].tolist() == rectified


def test_pack_names_what_does_not_fit():
    with pytest.raises(ValueError, match=r"^pack: the packer writes float32, bfloat16 and block floats, not float16$"):
        pack(np.zeros(16, np.float32), FLOAT16, fp32_dest=True)
    with pytest.raises(ValueError, match=r"^pack: bfloat8_b shares exponents among 16 neighbors, .* not 20; pad it"):
        pack(np.zeros((2, 20), np.float32), BFLOAT8_B, fp32_dest=True)


# ---- tilize


@pytest.mark.parametrize(
    ("target", "fp32_dest", "keeps_tf32", "want"),
    [
        (FLOAT32, True, False, 1 + 127 / 128 + 7 / 1024),  # TF32, whatever the architecture
        (FLOAT32, False, True, 1 + 127 / 128),
        (BFLOAT16, True, True, 2.0),  # TF32 in Dst, then half up
        (BFLOAT16, True, False, 1 + 127 / 128),  # cut to bfloat16 on the way
        (BFLOAT16, False, True, 1 + 127 / 128),
    ],
)
def test_float32_is_cut_before_it_is_packed(target, fp32_dest, keeps_tf32, want):
    values = np.full((1, 16), 2 - 2.0**-20, np.float32)
    assert tilize(values, FLOAT32, target, fp32_dest=fp32_dest, keeps_tf32=keeps_tf32)[0, 0] == np.float32(want)


@pytest.mark.parametrize(("fp32_dest", "keeps_tf32", "rounds_first"), [(0, 0, 1), (0, 1, 1), (1, 1, 1), (1, 0, 0)])
@examples
@each_seed
def test_tilizing_to_block_floats(fp32_dest, keeps_tf32, rounds_first, seed, spread):
    values = numbers(seed, spread, (3, 32))
    cut = unpack(values, FLOAT32, fp32_dest=bool(fp32_dest and keeps_tf32))
    got = tilize(values, FLOAT32, BFLOAT8_B, fp32_dest=bool(fp32_dest), keeps_tf32=bool(keeps_tf32))
    assert same_bits(got, packed_groups(cut, 7, bool(rounds_first)))


# ---- accumulation in L1


@examples
@each_seed
def test_l1_adds_bfloat16_to_nearest_even(seed, spread):
    stored, packed = numbers(seed, spread, (2, 60), cut=16)
    exact = stored.astype(np.float64) + packed
    unit = 2.0 ** (np.frexp(exact)[1] - 8.0)
    assert same_bits(accumulate_l1(stored, packed, BFLOAT16), np.rint(exact / unit) * unit)


def test_l1_adds_float32_as_ieee_does():
    stored, packed = numbers(6, 12, (2, 500))
    assert same_bits(accumulate_l1(stored, packed, FLOAT32), stored + packed)


@pytest.mark.parametrize("fmt", [FLOAT32, BFLOAT16])
def test_l1_flushes_denormals(fmt):
    tiny = 2.0**-126
    stored = np.array([tiny / 2, tiny * 1.5, -tiny * 1.5, tiny], np.float32)
    packed = np.array([tiny / 2, -tiny, tiny, tiny / 4], np.float32)
    assert same_bits(accumulate_l1(stored, packed, fmt), [0.0, 0.0, -0.0, tiny])


def test_l1_does_not_add_block_floats():
    with pytest.raises(ValueError, match=r"^accumulate_l1: L1 adds float32 and bfloat16, not bfloat8_b$"):
        accumulate_l1(np.zeros(16, np.float32), np.zeros(16, np.float32), BFLOAT8_B)


# ---- bias


def biased(left, right, fp32_dest):
    """The element-wise addition of operands; further than eleven bits below the larger one nothing is left."""
    left, right = np.broadcast_arrays(left.astype(np.float64), right.astype(np.float64))
    swaps = np.abs(right) > np.abs(left)
    larger, smaller = np.where(swaps, right, left), np.where(swaps, left, right)
    unit = 2.0 ** (exponents_of(larger) - 137.0)
    reaches = exponents_of(larger) - exponents_of(smaller) < 12
    total = (larger / unit + np.where(reaches, half_up(smaller / unit), 0)) * unit
    return total if fp32_dest else rounded_to(total, 8)


@each_width
@pytest.mark.parametrize("cut", [13, 16])
@examples
@each_seed
def test_bias_is_added_at_eleven_bits(fp32_dest, cut, seed, spread):
    dst, bias = numbers(seed, spread, (4, 20), cut=cut), numbers(seed + 1, spread, 20, cut=cut)
    assert same_bits(add_bias(dst, bias, fp32_dest=fp32_dest), biased(dst, bias, fp32_dest))


def test_a_bias_that_a_float_addition_would_round_otherwise():
    """2**-11 + 2**-12 below 1.0 lies between two units of 1.0 and goes to the nearer one before it is added."""
    dst, bias = np.array([[1.0]], np.float32), np.array([-(2.0**-11) * 1.5], np.float32)
    assert add_bias(dst, bias, fp32_dest=True)[0, 0] == 1 - 2.0**-10


@each_width
@pytest.mark.parametrize("center", [237, 238, 250])
def test_bias_at_large_exponents(fp32_dest, center):
    dst, bias = numbers(8, 3, (4, 20), cut=16, center=center), numbers(9, 3, 20, cut=16, center=center)
    assert same_bits(add_bias(dst, bias, fp32_dest=fp32_dest), biased(dst, bias, fp32_dest))


@each_width
def test_bias_overflow_and_cancellation(fp32_dest):
    dst = np.array([[3.3e38, 1.5, 2.0**-126 * 1.5]], np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
    bias = np.array([3.3e38, -1.5, -(2.0**-126)], np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
    got = add_bias(dst.view(np.float32), bias.view(np.float32), fp32_dest=fp32_dest)
    assert same_bits(got, [[np.inf, 0.0, 0.0]])


SPECIAL = [0x00000000, 0x80000000, 0x00000001, 0x807FFFFF, 0x00800000, 0x80800000, 0x7F800000, 0xFF800000, 0x7F800001]


def test_zeros_and_denormals_are_flushed():
    bits = np.array([*SPECIAL, 0xFFFFFFFF], np.uint32)
    kept = bits.copy()
    assert flushed(bits).tolist() == [0, 0, 0, 0, *kept[4:].tolist()]
    assert np.array_equal(bits, kept)


def test_nan_becomes_infinity_of_its_sign():
    bits = np.array([*SPECIAL, 0xFFFFFFFF], np.uint32)
    assert without_nan(bits).tolist() == [*SPECIAL[:8], 0x7F800000, 0xFF800000]
    assert without_nan(bits[:8]).tolist() == SPECIAL[:8]


# ---- typecast


@pytest.mark.parametrize("source", [BFLOAT16, FLOAT32])
def test_bfloat8_b_is_rounded_once_half_up_and_limited(source):
    x = quantize((np.random.default_rng(1).standard_normal((64, 64)) * 3).astype(np.float32), source)
    groups = x.astype(np.float64).reshape(-1, GROUP)
    unit = 2.0 ** (np.frexp(np.abs(groups).max(axis=1, keepdims=True))[1] - 7)
    want = np.sign(groups) * np.minimum(np.floor(np.abs(groups) / unit + 0.5), 127) * unit
    got = typecast(x, source, BFLOAT8_B)
    np.testing.assert_array_equal(got.astype(np.float64).reshape(-1, GROUP), want)
    assert got.dtype == BFLOAT8_B.storage
    assert not np.signbit(got[got == 0]).any()


def test_what_lies_just_below_a_half_is_rounded_down():
    below = np.float32(0.5) - np.float32(2.0**-25)
    x = np.array([64.0, below, 0.5, -below, -0.5], np.float32)
    assert typecast(x, FLOAT32, BFLOAT8_B).astype(float).tolist() == [64.0, 0.0, 1.0, 0.0, -1.0]


def test_bfloat4_b_is_rounded_to_seven_bits_and_cut():
    x = quantize(np.random.default_rng(2).standard_normal((8, 32)).astype(np.float32), BFLOAT16)
    np.testing.assert_array_equal(typecast(x, BFLOAT16, BFLOAT4_B).astype(np.float32), pack(
        x.astype(np.float32), BFLOAT4_B, fp32_dest=False
    ))  # fmt: skip
    assert typecast(np.array([4.0, 1.9, 2.1], np.float32), FLOAT32, BFLOAT4_B).astype(float).tolist() == [4.0, 1.0, 2.0]


def test_other_formats_are_rounded_as_the_host_rounds():
    x = np.array([1.00390625, -2.5], np.float32)
    assert typecast(x, FLOAT32, BFLOAT16).tolist() == quantize(x, BFLOAT16).tolist()
    assert typecast(x, FLOAT32, INT32).tolist() == [1, -2]
    assert typecast(np.array([3, 4], np.int32), INT32, BFLOAT8_B).astype(float).tolist() == [3.0, 4.0]


def test_groups_that_are_not_full_are_filled_with_zeros():
    x = np.full((2, 5), 0.75, np.float32).astype(BFLOAT16.storage)
    assert typecast(x, BFLOAT16, BFLOAT8_B).tolist() == x.tolist()


@pytest.mark.parametrize("target", [BFLOAT8_B, BFLOAT4_B], ids=str)
def test_a_large_tensor_is_converted_in_parts(target):
    """65 rows at a time; the rows of a turned array do not lie one after the other."""
    x = np.random.default_rng(3).standard_normal((1000, 2, 70)).astype(np.float32).T
    whole = typecast(x, FLOAT32, target)
    assert whole.shape == (70, 2, 1000)
    for image, rows in zip(whole, x, strict=True):
        for result, row in zip(image, rows, strict=True):
            assert np.array_equal(result, typecast(row, FLOAT32, target))
    assert typecast(x[:0], FLOAT32, target).shape == (0, 2, 1000)


# ---- the compiled twins

FORMATS = [FLOAT32, BFLOAT16, BFLOAT8_B, BFLOAT4_B]
OPERAND = 0xFFFFE000  # what a number of 11 significant bits has
ODD = [
    *(0x00000000, 0x80000000, 0x00000001, 0x807FFFFF, 0x007FE000, 0x00800000, 0x80800000),  # zeros, denormals, smallest
    *(0x7F800000, 0xFF800000, 0x7F800001, 0x7FC00000, 0xFFFFFFFF, 0x7F7FFFFF, 0xFF7FE000),  # infinities, NaN, largest
    *(0x3F808000, 0xBF808000, 0x3F818000, 0x3F810000, 0x3F820000, 0x3F830000, 0x3F800000, 0xBF800000),  # ties
]


def agree(function, *arrays, **options):
    """Numpy and the compiled loops give the same bits and leave their arguments alone."""
    kept, results = [array.copy() for array in arrays], []
    for loops in (None, importlib.import_module("device.matrix_unit.packing_loops")):
        with pytest.MonkeyPatch.context() as patch, np.errstate(all="ignore"):
            patch.setattr(packer, "_loops", lambda bits, loops=loops: loops)
            results.append(function(*arrays, **options).view(np.uint32))
    assert results[0].shape == results[1].shape
    assert np.array_equal(*results), [hex(arrays[0].view(np.uint32)[results[0] != results[1]][0])]
    assert all(np.array_equal(a.view(np.uint32), b.view(np.uint32)) for a, b in zip(arrays, kept, strict=True))


def odd_numbers(seed, spread, shape, mask, center):
    """`numbers`, one in five special."""
    rng, bits = np.random.default_rng(seed), numbers(seed, spread, shape, center=np.clip(center, spread, 255 - spread))
    odd = np.where(rng.random(shape) < 0.2, rng.choice(np.array(ODD, np.uint32), shape), bits.view(np.uint32))
    return (odd & np.uint32(mask)).view(np.float32)


@needs_numba
@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    spread=st.sampled_from([0, 1, 5, 14, 40, 120]),
    center=st.sampled_from([3, 11, 127, 236, 240, 252]),
    fp32_dest=st.booleans(),
    relu=st.booleans(),
)
def test_any_numbers(seed, spread, center, fp32_dest, relu):
    values = odd_numbers(seed, spread, (3, 48), 0xFFFFFFFF, center)
    operands = odd_numbers(seed, spread, (3, 48), OPERAND, center)
    for fmt in FORMATS:
        agree(unpack, values, fmt=fmt, fp32_dest=fp32_dest)
        agree(pack, values, fmt=fmt, fp32_dest=fp32_dest, relu=relu)
    for keeps_tf32, fmt in product((False, True), FORMATS):
        agree(tilize, values, source=FLOAT32, target=fmt, fp32_dest=fp32_dest, keeps_tf32=keeps_tf32)
    for fmt in (BFLOAT8_B, BFLOAT4_B):
        agree(share_exponents, operands, fmt=fmt)
    for bias in (operands[1], operands[::-1].copy()):
        agree(add_bias, operands, bias, fp32_dest=fp32_dest)


@needs_numba
@each_width
def test_special_numbers_side_by_side(fp32_dest):
    """Every special pattern beside every other, each pair alone in its group."""
    groups = np.zeros((len(ODD) ** 2, 16), np.uint32)
    groups[:, :2] = list(product(ODD, ODD))
    pairs = groups.view(np.float32)
    for fmt, relu in product(FORMATS, (False, True)):
        agree(pack, pairs, fmt=fmt, fp32_dest=fp32_dest, relu=relu)
        agree(unpack, pairs, fmt=fmt, fp32_dest=fp32_dest)
    operands = (np.array(ODD, np.uint32) & np.uint32(OPERAND)).view(np.float32)
    agree(add_bias, np.repeat(operands[:, None], len(operands), 1), operands, fp32_dest=fp32_dest)


@needs_numba
@each_width
@pytest.mark.parametrize("dropped", range(12))
def test_ties_at_every_place(fp32_dest, dropped):
    """A half of the last place that is kept, and its neighbors, under a larger number and beside a larger bias."""
    significands = 0x3F800000 - (dropped << 23) | np.arange(1 << 10, dtype=np.uint32) << np.uint32(13)
    values = np.concatenate([significands, significands | np.uint32(1 << 31)]).view(np.float32).reshape(-1, 16)
    values = values.copy()
    values[:, 0] = 1.0
    agree(pack, values, fmt=BFLOAT8_B, fp32_dest=fp32_dest)
    agree(share_exponents, values, fmt=BFLOAT4_B)
    for bias in (1.0, -1.0, 1.5):
        agree(add_bias, values, np.full(16, bias, np.float32), fp32_dest=fp32_dest)
