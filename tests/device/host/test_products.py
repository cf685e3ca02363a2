"""Products that are added to what is there, one by one and by a compiled loop."""

import importlib.util
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from device.host import products
from device.host.products import Matrix, add_products, blas_adds

pytestmark = pytest.mark.skipif(not blas_adds(), reason="numpy has another BLAS")
NUMBA = importlib.util.find_spec("numba") is not None


@pytest.fixture(params=["one by one", pytest.param("compiled", marks=pytest.mark.skipif(not NUMBA, reason="no numba"))])
def compiled(request, monkeypatch):
    monkeypatch.setattr(products, "worth_loading", lambda module, seconds: request.param == "compiled")


def whole(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) % 7 - 3


def add(calls, columns, *matrices):
    add_products(np.array(calls, np.int64), columns, *matrices)


@pytest.mark.parametrize("left", [whole(5, 3), np.asfortranarray(whole(5, 3))])
@pytest.mark.parametrize("right", [whole(3, 4), np.asfortranarray(whole(3, 4))])
def test_a_product_joins_the_sums(left, right, compiled):
    memory = np.full((5, 6), 10, np.float32)
    memory[:, [0, 5]] = np.nan
    operands = [
        Matrix(values.ravel("K"), max(values.strides) // 4, transposed=not values.flags.c_contiguous)
        for values in (left, right)
    ]
    add([[5, 3, 0, 0, 1]], 4, *operands, Matrix(memory, 6))
    assert memory[:, 1:5].tolist() == (10 + left @ right).tolist()
    assert np.isnan(memory[:, [0, 5]]).all()


def test_rows_may_lie_apart_on_both_sides(compiled):
    left, right, total = whole(8, 3), whole(3, 2), np.zeros((6, 2), np.float32)
    calls = [[2, 3, 3, 0, 2], [3, 3, 0, 0, 0], [1, 3, 21, 0, 10]]  # rows 1 and 3 to 1 and 3, 0 2 4 to 0 2 4, 7 to 5
    add(calls, 2, Matrix(left, 6), Matrix(right, 2), Matrix(total, 4))
    assert total.tolist() == (left[[0, 1, 2, 3, 4, 7]] @ right).tolist()


def test_operands_may_begin_anywhere(compiled):
    left, right, total = whole(6), whole(6), np.zeros(3, np.float32)
    add([[1, 2, 0, 0, 2]], 1, Matrix(left, 2, 4), Matrix(right, 1, 3), Matrix(total, 1, -1))
    assert total.tolist() == [0, float(left[4] * right[3] + left[5] * right[4]), 0]


@pytest.mark.skipif(not NUMBA, reason="numba is not installed")
@pytest.mark.parametrize(("rows", "depth", "columns"), [(64, 64, 64), (17, 130, 33), (300, 128, 96)])
def test_a_compiled_loop_leaves_no_trace_in_the_numbers(rows, depth, columns, monkeypatch):
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((rows + 3, depth), np.float32), rng.standard_normal((depth, columns), np.float32)
    calls, result = [[rows, depth, depth * n, 0, 0] for n in range(3)], []
    for worth in (False, True):
        monkeypatch.setattr(products, "worth_loading", lambda module, seconds, worth=worth: worth)
        result.append(np.zeros((rows, columns), np.float32))
        add(calls, columns, Matrix(left, depth), Matrix(right, columns), Matrix(result[-1], columns))
    assert "device.host.product_loops" in sys.modules
    assert result[0].tobytes() == result[1].tobytes()


def test_without_such_a_blas_nothing_is_multiplied(monkeypatch):
    monkeypatch.setattr(products, "sgemm_address", lambda: None)
    assert not blas_adds()
    with pytest.raises(NotImplementedError, match="another BLAS"):
        add([[1, 1, 0, 0, 0]], 1, *[Matrix(whole(1), 1)] * 3)


@pytest.mark.parametrize(("core", "in_place"), [(b"SkylakeX", True), (b"Zen", False), (None, False)])
def test_small_products_are_made_in_place_by_kernels_for_avx_512(monkeypatch, core, in_place):
    def named():
        return core

    library = SimpleNamespace(openblas_get_corename=named) if core else None
    monkeypatch.setattr(products, "numpy_library", lambda: library)
    assert products.multiplies_in_place.__wrapped__() is in_place
