"""Products that are added to what is there, one by one and by a compiled loop."""

import importlib.util
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from device.host import products
from device.host.products import Loop, Matrix, Operands, Products, add_products, blas_adds

pytestmark = pytest.mark.skipif(not blas_adds(), reason="numpy has another BLAS")
ONCE = Loop(1), Loop(1)
NUMBA = importlib.util.find_spec("numba") is not None


@pytest.fixture(params=["one by one", pytest.param("compiled", marks=pytest.mark.skipif(not NUMBA, reason="no numba"))])
def compiled(request, monkeypatch):
    monkeypatch.setattr(products, "worth_loading", lambda module, seconds: request.param == "compiled")


def whole(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) % 7 - 3


def of(calls, columns, left, right, total_distance, loops=ONCE):
    return Products(
        calls=np.array(calls, np.int64), columns=columns, left=left, right=right, total_distance=total_distance,
        loops=loops,
    )  # fmt: skip


@pytest.mark.parametrize("left", [whole(5, 3), np.asfortranarray(whole(5, 3))])
@pytest.mark.parametrize("right", [whole(3, 4), np.asfortranarray(whole(3, 4))])
def test_a_product_joins_the_sums(left, right, compiled):
    lies = [Matrix(not one.flags.c_contiguous, max(one.strides) // 4) for one in (left, right)]
    memory = np.full((5, 6), 10, np.float32)
    memory[:, [0, 5]] = np.nan
    flat = [one.ravel("K") for one in (left, right)]
    add_products(of([[5, 3, 0, 0, 1]], 4, *lies, 6), Operands(*flat, memory), 0, 1)
    assert memory[:, 1:5].tolist() == (10 + left @ right).tolist()
    assert np.isnan(memory[:, [0, 5]]).all()


def test_rows_may_lie_apart_on_both_sides(compiled):
    left, right, total = whole(8, 3), whole(3, 2), np.zeros((6, 2), np.float32)
    calls = [[2, 3, 3, 0, 2], [3, 3, 0, 0, 0], [1, 3, 21, 0, 10]]  # rows 1 and 3 to 1 and 3, 0 2 4 to 0 2 4, 7 to 5
    add_products(of(calls, 2, Matrix(False, 6), Matrix(False, 2), 4), Operands(left, right, total), 0, 3)
    assert total.tolist() == (left[[0, 1, 2, 3, 4, 7]] @ right).tolist()


def test_calls_begin_and_end_where_they_are_told_to(compiled):
    left, right, total = whole(4, 2), whole(2, 2), np.zeros((4, 2), np.float32)
    calls = [[1, 2, 2 * row, 0, 2 * row] for row in range(4)]
    add_products(of(calls, 2, Matrix(False, 2), Matrix(False, 2), 2), Operands(left, right, total), 1, 3)
    assert total[1:3].tolist() == (left[1:3] @ right).tolist()
    assert not total[[0, 3]].any()


def test_loops_repeat_all_calls_further_on(compiled):
    left, right, total = whole(4, 3), whole(3, 10), np.zeros((4, 10), np.float32)
    loops = Loop(2, left=6, total=20), Loop(5, right=2, total=2)  # two rows at a time, two columns at a time
    add_products(of([[2, 3, 0, 0, 0]], 2, Matrix(False, 3), Matrix(False, 10), 10, loops),
                 Operands(left, right, total), 0, 1)  # fmt: skip
    assert total.tolist() == (left @ right).tolist()


def test_operands_may_begin_anywhere(compiled):
    left, right, total = whole(6), whole(6), np.zeros(3, np.float32)
    add_products(of([[1, 2, 0, 0, 2]], 1, Matrix(False, 2), Matrix(False, 1), 1),
                 Operands(left, right, total, 4, 3, -1), 0, 1)  # fmt: skip
    assert total.tolist() == [0, float(left[4] * right[3] + left[5] * right[4]), 0]


@pytest.mark.skipif(not NUMBA, reason="numba is not installed")
@pytest.mark.parametrize(("rows", "depth", "columns"), [(64, 64, 64), (17, 130, 33), (300, 128, 96)])
def test_a_compiled_loop_leaves_no_trace_in_the_numbers(rows, depth, columns, monkeypatch):
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((rows + 3, depth), np.float32), rng.standard_normal((depth, columns), np.float32)
    several = of([[rows, depth, depth * n, 0, 0] for n in range(3)], columns, Matrix(False, depth),
                 Matrix(False, columns), columns)  # fmt: skip
    result = []
    for worth in (False, True):
        monkeypatch.setattr(products, "worth_loading", lambda module, seconds, worth=worth: worth)
        result.append(np.zeros((rows, columns), np.float32))
        add_products(several, Operands(left, right, result[-1]), 0, 3)
    assert "device.host.product_loops" in sys.modules
    assert result[0].tobytes() == result[1].tobytes()


def test_without_such_a_blas_nothing_is_multiplied(monkeypatch):
    monkeypatch.setattr(products, "_sgemm", lambda: None)
    assert not blas_adds()
    with pytest.raises(NotImplementedError, match="another BLAS"):
        add_products(of([[1, 1, 0, 0, 0]], 1, Matrix(False, 1), Matrix(False, 1), 1),
                     Operands(whole(1), whole(1), whole(1)), 0, 1)  # fmt: skip


@pytest.mark.parametrize(("core", "in_place"), [(b"SkylakeX", True), (b"Zen", False), (None, False)])
def test_small_products_are_made_in_place_by_kernels_for_avx_512(monkeypatch, core, in_place):
    def named():
        return core

    library = SimpleNamespace(openblas_get_corename=named) if core else None
    monkeypatch.setattr(products, "numpy_library", lambda: library)
    assert products.multiplies_in_place.__wrapped__() is in_place
