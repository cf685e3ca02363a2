"""Conversions against ml_dtypes, numpy, the rule of block floats in float64, and bytes that ttnn 0.81.1 wrote."""

import dataclasses

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st

from device.errors import ArgumentError
from device.host.compiling import numba_installed
from device.numbers import formats as block_floats
from device.numbers.formats import (
    BFLOAT4_B,
    BFLOAT8_B,
    BFLOAT16,
    FLOAT16,
    FLOAT32,
    FORMATS,
    GROUP,
    INT32,
    TILE_ELEMENTS,
    UINT8,
    UINT16,
    DataFormat,
    decode_rows,
    decode_tiles,
    encode_rows,
    encode_tiles,
    largest_exponents,
    quantize,
    round_groups,
    spread,
    write_exactly,
)

BLOCKS = [BFLOAT8_B, BFLOAT4_B]


def block_codes(values, fmt):
    """Shared exponents [groups] and codes [groups, 16] of a block float, by the rule in float64.

    The largest exponent counts; magnitudes are rounded to even and limited, denormals dropped, a NaN has no payload.
    """
    bits = np.asarray(values, np.float32).reshape(-1, GROUP).view(np.uint32)
    exponents, fractions = (bits >> 23 & 0xFF).astype(int), bits & 0x7FFFFF
    significands = np.where((exponents == 255) & (fractions > 0), 0xC00000, fractions | 0x800000)
    shared = exponents.max(axis=1)
    magnitudes = np.rint(significands * 2.0 ** (exponents - shared[:, None] + fmt.mantissa_bits - 24)).astype(int)
    magnitudes = np.where(exponents > 0, np.minimum(magnitudes, fmt.max_magnitude), 0)
    return shared, np.where(magnitudes > 0, magnitudes | (bits >> 31).astype(int) << fmt.mantissa_bits, 0)


def code_values(shared, codes, fmt):
    """What codes are worth under shared exponents; 2**128 is infinity, more is NaN."""
    values = (codes & fmt.max_magnitude) * 2.0 ** (shared[:, None] - 126.0 - fmt.mantissa_bits)
    values = np.where(values > 2.0**128, np.nan, np.where(values == 2.0**128, np.inf, values))
    return np.where(codes >> fmt.mantissa_bits, -values, values)


def tile_bytes(shared, codes, fmt):
    """A tile of shared exponents and codes."""
    body = codes.ravel().astype(np.uint8)
    return np.concatenate([shared.astype(np.uint8), body if fmt is BFLOAT8_B else body[0::2] | body[1::2] << 4])


def same(left, right):
    left, right = np.asarray(left).astype(np.float64), np.asarray(right).astype(np.float64)
    return np.array_equal(left, right, equal_nan=True) and np.array_equal(
        np.signbit(left) & ~np.isnan(left), np.signbit(right) & ~np.isnan(right)
    )


def random_bits(seed, shape, low=0, high=256):
    rng = np.random.default_rng(seed)
    bits = rng.integers(low, high, shape) << 23 | rng.integers(0, 2, shape) << 31 | rng.integers(0, 1 << 23, shape)
    return bits.astype(np.uint32).view(np.float32)


def test_sizes():
    assert {name: fmt.tile_bytes for name, fmt in FORMATS.items()} == {
        "bfloat16": 2048, "float32": 4096, "float16": 2048, "bfloat8_b": 1088, "bfloat4_b": 576,
        "uint8": 1024, "int8": 1024, "uint16": 2048, "uint32": 4096, "int32": 4096,
    }  # fmt: skip
    assert BFLOAT16.element_bytes == 2
    assert BFLOAT8_B.element_bytes is None
    assert [BFLOAT16.exponent_bits, FLOAT16.exponent_bits, BFLOAT4_B.exponent_bits, UINT8.exponent_bits] == [8, 5, 8, 0]
    assert str(BFLOAT8_B) == "bfloat8_b"


def test_formats_are_compared_by_all_that_they_say():
    copy, like = dataclasses.replace(BFLOAT16), dataclasses.replace(BFLOAT16, mantissa_bits=8)
    assert copy is not BFLOAT16
    assert (copy, hash(copy)) == (BFLOAT16, hash(BFLOAT16))
    assert BFLOAT16 not in (like, FLOAT32, "bfloat16")


def test_contradictions_are_refused():
    with pytest.raises(ValueError, match=r"^odd: .*element_bits must be mantissa_bits \+ 1, not 8 with 6$"):
        DataFormat(name="odd", element_bits=8, mantissa_bits=6, storage=BFLOAT16.storage, is_block=True)
    with pytest.raises(ValueError, match=r"^bfloat16: storage bfloat16 does not have 32 bits$"):
        dataclasses.replace(BFLOAT16, element_bits=32)


@pytest.mark.parametrize(("fmt", "dtype"), [(BFLOAT16, ml_dtypes.bfloat16), (FLOAT16, np.float16)])
class TestAllCodes:
    """The 65,536 values of a 16-bit float: kept, and the midpoints between neighbors go to the even one."""

    def codes(self, dtype):
        values = np.arange(1 << 16, dtype=np.uint16).view(dtype).astype(np.float32)
        return values[~np.isnan(values)]

    def test_exact_values_stay(self, fmt, dtype):
        values = self.codes(dtype)
        assert same(quantize(values, fmt), values)

    def test_between_values(self, fmt, dtype):
        values = self.codes(dtype)
        halfway = ((values[:-1].astype(np.float64) + values[1:]) / 2).astype(np.float32)
        with np.errstate(over="ignore"):
            for between in (halfway, np.nextafter(halfway, np.float32(9)), np.nextafter(halfway, np.float32(-9))):
                between = between[np.isfinite(between)]
                assert same(quantize(between, fmt), between.astype(dtype))

    def test_bytes(self, fmt, dtype):
        values = np.arange(1 << 16, dtype=np.uint16).view(dtype).reshape(-1, TILE_ELEMENTS)
        for encode, decode in ((encode_tiles, decode_tiles), (encode_rows, decode_rows)):
            assert np.array_equal(encode(values, fmt).reshape(-1), values.view(np.uint8).reshape(-1))
            assert np.array_equal(decode(encode(values, fmt), fmt).view(np.uint16), values.view(np.uint16))


def test_float32_is_left_alone():
    values = random_bits(0, (4, 32))
    assert quantize(values, FLOAT32) is values


@pytest.mark.parametrize("fmt", BLOCKS)
def test_not_a_number_stays_one(fmt):
    row = np.ones(16, np.float32)
    row[3], row[5], row[7] = np.nan, -np.inf, np.inf
    got = quantize(row, fmt).astype(np.float32)
    assert np.isnan(got[3])
    assert got[[5, 7]].tolist() == [-np.inf, np.inf]
    assert not np.delete(got, [3, 5, 7]).any()


# Bytes that ttnn 0.81.1 wrote for these groups, read from a dumped host tensor.
GROUPS = [
    (
        [1.9999, 1.375, 0.125, -0.0, 1/128, -1e-4, 1, 1.5, 0.5, 0.25, 1e-3, 1.0078125, 1.01171875, -1.99, 3/256, 1e-40],
        127,
        [0x7F, 0x58, 0x08, 0, 0, 0, 0x40, 0x60, 0x20, 0x10, 0, 0x40, 0x41, 0xFF, 0x01, 0],
        [7, 6, 0, 0, 0, 0, 4, 6, 2, 1, 0, 4, 4, 15, 0, 0],
    ),
    ([np.inf, 1, -2, 3e38], 255, [0x40, 0, 0, 0x38], [4, 0, 0, 4]),
    ([np.nan, 1, -2, -np.inf], 255, [0x60, 0, 0, 0xC0], [6, 0, 0, 12]),
    ([3.3e38, 1e38, -2e38, 1e37], 254, [0x7C, 0x26, 0xCB, 0x04], [7, 2, 13, 0]),
    ([1e-40, 1.2e-38, -1e-39, 2e-38], 1, [0, 0x41, 0, 0x6D], [0, 4, 0, 7]),
    ([1e-40, -1e-41], 0, [0, 0], [0, 0]),
    ([1.2e-38, 1.1e-38, -1.1e-38, 8e-39], 1, [0x41, 0, 0, 0], [4, 0, 0, 0]),
    ([5e-38, 1.1e-38, -1.1e-38, 1.3e-38], 3, [0x44, 0, 0, 0x12], [4, 0, 0, 1]),
]  # fmt: skip


@pytest.mark.parametrize("group", GROUPS)
def test_block_bytes_of_the_real_library(group):
    values, exponent, codes8, codes4 = group
    tile = np.zeros(TILE_ELEMENTS, np.float32)
    tile[: len(values)] = values
    data = encode_tiles(tile, BFLOAT8_B)
    assert data[:64].tolist() == [exponent] + [0] * 63
    assert data[64 : 64 + len(values)].tolist() == codes8
    data = encode_tiles(tile, BFLOAT4_B)
    assert data[:64].tolist() == [exponent] + [0] * 63
    assert np.array_equal(data, tile_bytes(*block_codes(tile, BFLOAT4_B), BFLOAT4_B))
    nibbles = [nibble for byte in data[64:].tolist() for nibble in (byte & 15, byte >> 4)]
    assert nibbles[: len(values)] == codes4
    assert not any(nibbles[len(values) :])


@pytest.mark.parametrize("fmt", BLOCKS)
@pytest.mark.parametrize("exponent", [0, 1, 2, 7, 120, 127, 254, 255])
def test_every_code_under_every_exponent(exponent, fmt):
    codes = np.resize(np.arange(16 if fmt is BFLOAT4_B else 256), (TILE_ELEMENTS // GROUP, GROUP))
    shared = np.full(len(codes), exponent)
    assert same(decode_tiles(tile_bytes(shared, codes, fmt), fmt).reshape(-1, GROUP), code_values(shared, codes, fmt))


@pytest.mark.parametrize("fmt", BLOCKS)
@pytest.mark.parametrize("exponents", [(0, 256), (118, 128), (0, 8), (250, 255), (225, 240), (254, 256)])
def test_block_floats_follow_the_rule(fmt, exponents):
    values = random_bits(1, (2, TILE_ELEMENTS), *exponents)
    values[:, ::3] = (values[:, ::3].view(np.uint32) & np.uint32(0xFFFF8000)).view(np.float32)  # make ties likely
    for tile in values:
        shared, codes = block_codes(tile, fmt)
        with np.errstate(invalid="ignore"):
            assert same(quantize(tile, fmt).reshape(-1, GROUP), code_values(shared, codes, fmt))
            assert np.array_equal(encode_tiles(tile, fmt), tile_bytes(shared, codes, fmt))


@given(st.integers(0, 2**32), st.integers(0, 247), st.sampled_from(sorted(FORMATS)))
def test_round_trip(seed, low, name):
    fmt = FORMATS[name]
    values = random_bits(seed, (2, TILE_ELEMENTS), low, low + 8)
    values = quantize(values if fmt.is_float else values.view(np.uint32), fmt)
    data = encode_tiles(values, fmt)
    assert data.shape == (2, fmt.tile_bytes)
    assert data.dtype == np.uint8
    assert same(decode_tiles(data, fmt), values)
    assert np.array_equal(encode_tiles(decode_tiles(data, fmt), fmt), data)
    assert same(quantize(values, fmt), values)


@given(st.lists(st.integers(0, 40), min_size=1, max_size=3), st.sampled_from(BLOCKS))
def test_groups_run_along_the_last_axis(shape, fmt):
    values = random_bits(2, shape, 100, 130)
    got = quantize(values, fmt)
    assert got.shape == values.shape
    assert got.dtype == fmt.storage
    padded = np.zeros((*shape[:-1], 48), np.float32)
    padded[..., : shape[-1]] = values
    assert same(got, quantize(padded, fmt)[..., : shape[-1]])


def test_strides_and_scalars():
    values = random_bits(3, (32, 32), 120, 128)
    assert same(quantize(values.T, BFLOAT8_B), quantize(values.T.copy(), BFLOAT8_B))
    assert quantize(np.float32(1.2), BFLOAT8_B) == 1.203125
    assert quantize(np.float64(1.2), BFLOAT16).dtype == BFLOAT16.storage


def test_integers():
    assert quantize(np.array([1, 70000]), UINT16).tolist() == [1, 70000 - 65536]
    assert quantize(np.array([-1.9, 2.9]), INT32).tolist() == [-1, 2]
    assert quantize(np.array([2.0**62 + 2.0**10]), INT32).tolist() == [2**10]
    for number in (np.nan, -np.inf, 3e38, -(2.0**63)):
        with pytest.raises(ArgumentError, match=r"^quantize: uint8 holds integers, not infinities or NaN, nor numbers"):
            quantize(np.array([number]), UINT8)


@pytest.mark.parametrize("fmt", [BFLOAT16, BFLOAT8_B, FLOAT32], ids=str)
def test_exact_numbers_are_written_with_all_their_bits(fmt):
    """Of a part of rows, into every second row; the payload of a NaN, the sign of zero and denormals, too."""
    given = random_bits(5, (3, 8)).view(np.uint32) & 0xFFFF0000
    given[0, :4] = [0x7F810000, 0xFFFF0000, 0x80000000, 0x00010000]
    place = np.zeros((6, 4), fmt.storage)
    write_exactly(given.view(np.float32)[:, :4], place[::2])
    shift = 32 - 8 * place.itemsize
    assert np.array_equal(place[::2].view(f"u{place.itemsize}"), given[:, :4] >> shift)
    assert not place[1::2].any()


def test_wrong_sizes_are_named():
    with pytest.raises(
        ValueError, match=r"^encode_tiles: the last axis must hold the 1024 elements of a tile, not 32$"
    ):
        encode_tiles(np.zeros((32, 32)), BFLOAT16)
    with pytest.raises(ValueError, match=r"^decode_tiles: a bfloat8_b tile has 1088 bytes, not 1024$"):
        decode_tiles(np.zeros(1024, np.uint8), BFLOAT8_B)
    with pytest.raises(ValueError, match=r"^decode_rows: float32 takes 4 bytes an element, not 6 a row$"):
        decode_rows(np.zeros((2, 6), np.uint8), FLOAT32)
    for convert in (encode_rows, decode_rows):
        with pytest.raises(ValueError, match=r"^bfloat4_b exists in tiles only; use encode_tiles or decode_tiles$"):
            convert(np.zeros(32, np.uint8), BFLOAT4_B)


@given(st.integers(0, 3), st.integers(0, 10**6))
def test_largest_exponents(groups, seed):
    bits = np.random.default_rng(seed).integers(0, 1 << 32, (groups, GROUP), np.uint32)
    expected = (bits & np.uint32(0x7F800000)).max(axis=1, initial=0)
    assert largest_exponents(bits).tolist() == expected.tolist()


def test_spread():
    assert spread(np.array([1, 2])).tolist() == [[1] * 16, [2] * 16]


@pytest.mark.parametrize("mantissa_bits", [3, 7])
@pytest.mark.parametrize("exponent", [0, 1, 3, 8, 9, 127, 230])
def test_both_widths_of_rounding_give_the_same(mantissa_bits, exponent):
    """A group with a number too large for float32 sums, far away from it, sends the chunk the other way."""
    rng = np.random.default_rng(exponent)
    fields = np.maximum(exponent - rng.integers(0, 12, (64, GROUP)), 0).astype(np.uint32)
    signs = rng.integers(0, 2, (64, GROUP), np.uint32) << np.uint32(31)
    groups = (signs | fields << np.uint32(23) | rng.integers(0, 1 << 23, (64, GROUP), np.uint32)).view(np.float32)
    narrow, wide = np.empty_like(groups), np.empty((65, GROUP), np.float32)
    round_groups(groups, mantissa_bits, narrow)
    round_groups(np.concatenate([groups, np.full((1, GROUP), 3e38, np.float32)]), mantissa_bits, wide)
    assert np.array_equal(narrow, wide[:64])


@pytest.mark.skipif(not numba_installed(), reason="numba is not installed")
@pytest.mark.parametrize("mantissa_bits", [3, 7])
@pytest.mark.parametrize("exponent", [0, 1, 3, 8, 9, 127, 230, 250])
def test_compiled_loops_round_the_same(monkeypatch, mantissa_bits, exponent):
    """Denormals are dropped and ties go to even; numbers too large for the loops are left to numpy.

    Loops round 64 groups at a time.
    """
    rng = np.random.default_rng(exponent)
    fields = np.maximum(exponent - rng.integers(0, 12, (80, GROUP)), 0).astype(np.uint32)
    groups = (fields << np.uint32(23) | rng.integers(0, 1 << 23, (80, GROUP), np.uint32)).view(np.float32)
    groups[1] = np.float32(2.0) ** np.arange(-8, 8) + np.float32(0.5)
    groups[::3] *= -1
    kept, result = groups.copy(), []
    for loops in (False, True):
        monkeypatch.setattr(block_floats, "worth_loading", lambda module, seconds, loops=loops: loops)
        result.append(np.empty(groups.shape, BFLOAT16.storage))
        round_groups(groups, mantissa_bits, result[-1])
    assert np.array_equal(result[0].view(np.uint16), result[1].view(np.uint16))
    assert np.array_equal(groups, kept)
