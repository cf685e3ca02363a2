"""Products that are added to what is there, with BLAS and without."""

import numpy as np
import pytest

from device.host import products
from device.host.products import SumOfProducts, add_product


@pytest.fixture(params=["BLAS", "numpy"], autouse=True)
def made_by(request, monkeypatch):
    if request.param == "numpy":
        monkeypatch.setattr(products, "_sgemm", lambda: None)
    elif products._sgemm() is None:
        pytest.skip("numpy has another BLAS")


def whole(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) % 7 - 3


@pytest.mark.parametrize("left", [whole(5, 3), whole(3, 5).T, whole(5, 9)[:, 2:5], whole(10, 3)[::2]])
@pytest.mark.parametrize("right", [whole(3, 4), whole(4, 3).T, whole(3, 8)[:, 3:7]])
def test_a_product_starts_a_sum_or_joins_it(left, right):
    memory = np.full((5, 6), np.nan, np.float32)
    total = memory[:, 1:5]
    add_product(left, right, total, start=True)
    assert total.tolist() == (left @ right).tolist()
    add_product(left, right, total, start=False)
    assert total.tolist() == (2 * (left @ right)).tolist()
    assert np.isnan(memory[:, [0, 5]]).all()


def test_a_sum_takes_rows_from_each_offset_on():
    left, right = whole(9, 3), [whole(3, 2), whole(2, 3).T + 1]
    total = np.full((4, 2), np.nan, np.float32)
    SumOfProducts([(left, 2, right[0]), (left, -1, right[1])]).write(1, total)
    assert total.tolist() == (left[3:7] @ right[0] + left[0:4] @ right[1]).tolist()


@pytest.mark.parametrize(("first", "rows"), [(0, 1), (5, 3), (8, 1)])
def test_rows_that_are_not_there_are_refused(first, rows):
    sums = SumOfProducts([(whole(9, 3), 2, whole(3, 2)), (whole(9, 3), -1, whole(3, 2))])
    with pytest.raises(ValueError, match="is not there"):
        sums.write(first, np.empty((rows, 2), np.float32))


def test_matrices_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="rows of the other"):
        SumOfProducts([(whole(9, 3), 0, whole(4, 2))])
    with pytest.raises(ValueError, match="is not there"):
        SumOfProducts([(whole(9, 3), 0, whole(3, 2))]).write(0, np.empty((2, 3), np.float32))


@pytest.mark.parametrize("matrix", [whole(3, 3).astype(np.float64), whole(3, 9)[:, ::3], whole(3, 3)[::-1]])
def test_what_blas_cannot_read_is_refused(matrix, made_by):
    with pytest.raises(ValueError, match="side by side"):
        SumOfProducts([(matrix, 0, whole(3, 2))])


def test_a_sum_where_it_does_not_belong_is_refused(made_by):
    if products._sgemm() is None:
        pytest.skip("numpy refuses it itself")
    with pytest.raises(ValueError, match="rows lie in one piece"):
        add_product(whole(5, 3), whole(3, 4), np.empty((4, 5), np.float32).T, start=True)
    with pytest.raises(ValueError, match="of its shape"):
        add_product(whole(5, 3), whole(3, 4), np.empty((5, 3), np.float32), start=True)
