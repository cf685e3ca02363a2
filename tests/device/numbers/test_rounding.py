"""Roundings in place: numbers worked out by hand, and the same bits with compiled loops as without."""

import importlib

import numpy as np
import pytest
from hypothesis import given, strategies as st

from device.host.compiling import compiled, numba_installed
from device.numbers import rounding
from device.numbers.formats import BFLOAT16, div_up, round_up

needs_numba = pytest.mark.skipif(not numba_installed(), reason="numba is not installed")
WAYS = ["numpy", pytest.param("loops", marks=needs_numba)]


@pytest.fixture(params=WAYS)
def way(request, monkeypatch):
    """Who rounds, whatever is loaded."""
    monkeypatch.setattr(rounding, "worth_loading", lambda module, seconds: request.param == "loops")


def numbers(shape, seed=0):
    """float32 of many binades, with zeros, ties, denormals and the largest."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape).astype(np.float32) * np.exp2(rng.integers(-140, 120, shape)).astype(np.float32)
    flat = values.reshape(-1)
    flat[:: 7 * 16] = 0
    flat[5 :: 3 * 16] = np.float32(1.00390625)
    flat[6 :: 5 * 16] = -np.float32(1.00390625)
    return values


def by_numpy_and_loops(monkeypatch, call):
    """The bits both ways give."""
    result = []
    for loops in (False, True):
        monkeypatch.setattr(rounding, "worth_loading", lambda module, seconds, loops=loops: loops)
        with np.errstate(all="ignore"):
            result.append(call().view(np.uint32))
    return result


def test_bfloat16_is_rounded_half_up(way):
    """1 + 2^-8 lies in the middle between 1 and 1 + 2^-7."""
    values = np.array([1 + 2**-8, -1 - 2**-8, 1 + 2**-9, 257], np.float32)
    assert rounding.round_half_up(values).tolist() == [1 + 2**-7, -1 - 2**-7, 1, 258]


def test_sums_are_rounded_if_dst_is_narrow(way):
    values = np.array([[256, -256], [1, 2]], np.float32)
    assert rounding.add(values.copy(), np.array([1, -1], np.float32), rounds=True).tolist() == [[258, -258], [2, 1]]
    assert rounding.add(values.copy(), np.array([1, -1], np.float32), rounds=False).tolist() == [[257, -257], [2, 1]]
    assert rounding.add(values.copy(), values, rounds=True).tolist() == [[512, -512], [2, 4]]


def test_groups_share_the_exponent_of_their_largest(way):
    """Under 64 a magnitude of seven bits counts ones, one of three counts sixteens, cut."""
    values = np.zeros((1, 32), np.float32)
    values[0, :5] = [64, 0.5, 1.49, -1.5, -63]
    assert rounding.share(values.copy(), 7)[0, :5].tolist() == [64, 1, 1, -2, -63]
    assert rounding.share(values.copy(), 3)[0, :5].tolist() == [64, 0, 0, 0, -48]
    assert not rounding.share(values.copy(), 7)[0, 5:].any()


@pytest.mark.parametrize("mantissa_bits", [7, 3])
@pytest.mark.parametrize("largest", [2.0**-119, 2.0**-104, 2.0**110])
def test_groups_of_any_scale_round_alike(way, largest, mantissa_bits):
    """No smallest exponent takes bits from small numbers."""
    values = np.zeros((1, 16), np.float32)
    values[0, :5] = np.array([64, 0.5, 1.49, -1.5, -63]) / 64
    want = rounding.share(values.copy(), mantissa_bits) * np.float32(largest)
    result = rounding.share(values * np.float32(largest), mantissa_bits)
    assert result[0, 0] == largest
    assert np.array_equal(result.view(np.int32), want.view(np.int32))


def test_denormals_are_zero_where_an_exponent_is_shared(way):
    """Beside 2^-126 a magnitude of one is 2^-132."""
    values = np.zeros((2, 16), np.float32)
    values[:, 1] = 2.0**-127
    values[0, 0] = 2.0**-126
    assert rounding.share(values.copy(), 7)[:, :2].tolist() == [[2.0**-126, 0], [0, 0]]


def test_what_does_not_lie_in_one_piece_is_rounded_too(way):
    values = numbers((4, 64))[:, ::2]
    want = rounding.round_half_up(np.ascontiguousarray(values))
    assert np.array_equal(rounding.round_half_up(values), want)


def test_rows_become_float32_side_by_side(way):
    values = np.array([[1, 2], [3, 4]], BFLOAT16.storage)
    rows = [np.array([1, -1, 2]), np.array([0, 1, 5])]
    (whole,) = rounding.widen_rows(values, slice(0, 2), 2, rows, -1)
    assert whole.tolist() == [[3, 4, 1, 2], [0, 0, 3, 4], [0, 0, 0, 0]]


def test_rows_become_float32_part_by_part(way):
    """Parts of two columns and one; a mask that keeps sign and exponent makes 1, 2 and 4 of all."""
    values = np.array([[9, 1, 2, 3], [9, 4, 5, 6]], BFLOAT16.storage)
    first, last = rounding.widen_rows(values, slice(1, 4), 2, [slice(0, 2), np.array([1, 0])], -(1 << 23))
    assert first.tolist() == [[1, 2, 4, 4], [4, 4, 1, 2]]
    assert last.tolist() == [[2, 4], [4, 2]]
    assert all(part.flags.c_contiguous and part.dtype == np.float32 for part in (first, last))
    (none,) = rounding.widen_rows(values, slice(0, 2), 2, [np.array([], int)], -1)
    assert none.shape == (0, 2)


@needs_numba
@pytest.mark.parametrize("seed", range(3))
def test_loops_give_the_bits_of_numpy(monkeypatch, seed):
    values, others = numbers((37, 48), seed), numbers((37, 48), seed + 10)
    for call in (
        lambda: rounding.round_half_up(values.copy()),
        lambda: rounding.add(values.copy(), others, rounds=True),
        lambda: rounding.add(values.copy(), others[3], rounds=True),
        lambda: rounding.add(values.copy(), others, rounds=False),
        lambda: rounding.share(values.copy(), 7),
        lambda: rounding.share(values.copy(), 3),
    ):
        one, other = by_numpy_and_loops(monkeypatch, call)
        assert np.array_equal(one, other)


@given(st.integers(0, 10**9), st.integers(1, 10**5))
def test_smallest_multiple(value, multiple):
    rounded = round_up(value, multiple)
    assert rounded % multiple == 0
    assert value <= rounded < value + multiple
    assert div_up(value, multiple) * multiple == rounded


@pytest.mark.parametrize(("value", "expected"), [(0, 0), (1, 32), (32, 32), (33, 64)])
def test_tiles(value, expected):
    assert round_up(value, 32) == expected


@pytest.mark.skipif(not numba_installed(), reason="numba is not installed")
def test_neighbors_get_the_largest_exponent_of_them():
    """1.9375 becomes 2 where half of its lowest bit is added; signs and fractions do not count, nor do others."""
    spread = importlib.import_module("device.numbers.sixteen").spread_exponents

    @compiled
    def spread_second(bits, added, tops):
        spread(bits, 16, added, tops)

    values = np.full(48, 256, np.float32)
    values[16:32] = 0.0
    values[[18, 31]] = [1.5, -1.9375]
    for added, largest in ((0, 1.0), (1 << 19, 2.0)):
        tops = np.full(48, 7, np.int32)
        spread_second(values.view(np.int32), np.int32(added), tops)
        assert tops[16:32].view(np.float32).tolist() == [largest] * 16
        assert tops[:16].tolist() == tops[32:].tolist() == [7] * 16
