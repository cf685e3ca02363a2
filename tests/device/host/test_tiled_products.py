"""Products of numbers and of pairs, by hand and as chains of additions; convolutions show that BLAS has their bits."""

import importlib.util
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from device.host import products
from device.host.pieces import depth_of_part
from device.numbers.formats import BFLOAT16

needs_numba = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed")


def words(values):
    """Numbers of bfloat16, two in an int32 as they lie in memory."""
    return np.ascontiguousarray(np.asarray(values, np.float32).astype(BFLOAT16.storage)).view(np.int32)


def pairs(values):
    """The same with the first of two above."""
    return words(values).view(np.uint16).reshape(-1, 2)[:, ::-1].reshape(*np.shape(values)).copy().view(np.int32)


def chain(left, right):
    """Products added one after the other in float32, in the parts of a long sum."""
    total, done = np.zeros((left.shape[0], right.shape[1]), np.float32), 0
    while done < left.shape[1]:
        part, end = np.zeros_like(total), done + depth_of_part(left.shape[1] - done)
        for k in range(done, end):
            part += left[:, k : k + 1] * right[k]
        total, done = total + part if done else part, end
    return total


def multiplied(left, right, together, *, total=None, rounds=False, order=None):
    """The product of matrices whose numbers are bfloat16, or of some rows of the first one; words of one or two."""
    loops = importlib.import_module("device.host.tiled_products")
    one, other = (np.ascontiguousarray(values, np.float32) for values in (left, right))
    if together == 2:
        one, other = pairs(left), np.ascontiguousarray(pairs(np.ascontiguousarray(np.transpose(right))).T)
    order = np.arange(len(left)) if order is None else np.array(order)
    rooms = -(-len(order) // 6) * 6
    begins = 4 * one.shape[1] * np.pad(order, (0, rooms - len(order)), mode="edge")
    made = np.full((rooms, right.shape[1]), np.nan, np.float32)
    if total is not None:
        made[: len(total)] = total
    loops.product_in_tiles(
        (len(order), right.shape[1], left.shape[1]),
        (one.ctypes.data, begins.ctypes.data),
        (other.ctypes.data, other.shape[1]),
        together,
        total is not None,
        rounds,
        (made.ctypes.data, made.shape[1]),
    )
    return made[: len(order)]


def numbers(shape, seed):
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return values.astype(BFLOAT16.storage).astype(np.float32)


TOGETHER = pytest.mark.parametrize("together", [1, 2], ids=["numbers", "pairs"])


@needs_numba
@TOGETHER
@pytest.mark.parametrize("rows", [1, 5, 6, 13])
@pytest.mark.parametrize("columns", [16, 32, 48, 64, 80])
@pytest.mark.parametrize("depth", [2, 36, 480, 930])
def test_sums_go_from_one_product_to_the_next(rows, columns, depth, together):
    """930 products are summed in two parts, of 448 and 482, which is split again."""
    left, right = numbers((rows, depth), rows), numbers((depth, columns), columns)
    assert np.array_equal(multiplied(left, right, together), chain(left, right))


@needs_numba
@TOGETHER
def test_the_first_of_two_neighbors_is_added_first(together):
    """1 + 2^24 loses the 1; the other way round it would stay."""
    left, right = np.array([[1, 0, 2**12, 2**12]]), np.zeros((4, 16))
    right[:, 0], right[:, 1] = [1, 0, 2**12, -(2**12)], [1, 0, -(2**12), 2**12]
    assert multiplied(left, right, together)[0, :2].tolist() == [0, 1]


@needs_numba
@TOGETHER
def test_products_join_what_is_there_and_are_rounded_half_up(together):
    """256 + 1 is 258 in bfloat16, 256 + 3 is 260, and -256 - 1 is -258."""
    left, right = np.array([[1, 0], [3, 0], [-1, 0]]), np.ones((2, 16))
    before = np.array([[256], [256], [-256]]) * np.ones((1, 16), np.float32)
    assert multiplied(left, right, together, total=before.astype(np.float32))[:, 0].tolist() == [257, 259, -257]
    assert multiplied(left, right, together, total=before.astype(np.float32), rounds=True)[:, 0].tolist() == [
        258,
        260,
        -258,
    ]
    assert multiplied(257 * left / 257, right, together, rounds=True)[:, 15].tolist() == [1, 3, -1]


@needs_numba
@TOGETHER
def test_long_sums_are_rounded_in_the_end_only(together):
    """450 products are summed in two parts: 240 times 1.25 is 300, which bfloat16 has, and 210 times is 262.5."""
    left, right = np.full((1, 450), 1.25), np.ones((450, 16))
    assert multiplied(left, right, together)[0, 0] == 562.5
    assert multiplied(left, right, together, rounds=True)[0, 0] == 564


@needs_numba
@TOGETHER
def test_rows_may_lie_anywhere(together):
    left, right, order = numbers((14, 4), 1), numbers((4, 16), 2), [3, 3, 0, 13, 5, 6, 7, 1]
    assert np.array_equal(multiplied(left, right, together, order=order), chain(left, right)[order])


@needs_numba
@pytest.mark.parametrize("count", [1, 15, 16, 37])
def test_neighbors_change_places_and_are_cut(count):
    loops = importlib.import_module("device.host.tiled_products")
    values = numbers(2 * count + 2, count)
    target = np.zeros(count + 1, np.int32)
    loops.make_pairs(words(values), 1, np.int32(-1), target, 1, count)
    assert target.tolist() == [0, *pairs(values)[1:]]
    mask = loops.mask_of_pair(np.int32(-0x20000))
    assert mask & 0xFFFFFFFF == 0xFFFEFFFE
    loops.make_pairs(words(values), 1, mask, target, 1, count)
    assert target.tolist() == [0, *(pairs(values)[1:] & mask)]


@needs_numba
def test_other_processors_have_the_same_bits(monkeypatch):
    tiles, numba = importlib.import_module("device.host.vector_code"), importlib.import_module("numba")
    monkeypatch.setattr(tiles, "_INSTRUCTION", False)
    tile = tiles._tile_of(32 // tiles.LANES)

    @numba.njit
    def multiply(left, begins, right, total):
        here, rows = np.int64(left.ctypes.data), np.int64(begins.ctypes.data)
        right_place, total_place = (np.int64(right.ctypes.data), 128), (np.int64(total.ctypes.data), 128)
        tile(here, rows, right_place, total_place, left.shape[1], True, False, False)

    left, right, total = numbers((6, 40), 1), numbers((40, 32), 2), np.empty((6, 32), np.float32)
    begins = 4 * 20 * np.arange(6)
    multiply(pairs(left), begins, np.ascontiguousarray(pairs(np.ascontiguousarray(right.T)).T), total)
    assert np.array_equal(total, chain(left, right))


@needs_numba
def test_a_product_is_added_with_one_rounding():
    """(1 + 2^-12)^2 less 1 + 2^-11 is 2^-24, which a rounded product has not."""
    left, right = np.array([[-1, 1 + 2**-12]]), np.zeros((2, 16))
    right[:, 0] = [1 + 2**-11, 1 + 2**-12]
    assert multiplied(left, right, 1)[0, 0] == 2**-24


@pytest.mark.parametrize(
    ("features", "numbers_too", "expected"),
    [("+avx512bf16,+fma", True, True), ("+fma,-avx512bf16", True, False), ("+neon", True, False), ("", False, False)],
)
def test_the_processor_that_numba_compiles_for_decides(monkeypatch, features, numbers_too, expected):
    codegen = SimpleNamespace(magic_tuple=lambda: ("x86_64", "znver4", features))
    context = SimpleNamespace(codegen=lambda: codegen)
    registry = SimpleNamespace(cpu_target=SimpleNamespace(target_context=context))
    monkeypatch.setitem(sys.modules, "numba.core.registry", registry)
    monkeypatch.setattr(products, "load_numba", lambda: True)
    assert products.multiplies_numbers.__wrapped__() is numbers_too
    assert products.multiplies_pairs.__wrapped__() is expected
    monkeypatch.setattr(products, "load_numba", lambda: None)
    assert products.multiplies_numbers.__wrapped__() is False
    assert products.multiplies_pairs.__wrapped__() is False
