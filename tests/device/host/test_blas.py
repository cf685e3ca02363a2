"""The product that numpy calls, called without numpy."""

import ctypes

import numpy as np
import pytest

from device.host import blas


def test_the_product_is_numpys():
    address = blas.sgemm_address()
    if address is None:
        pytest.skip("numpy has another BLAS")
    size, number, array = ctypes.c_int64, ctypes.c_float, ctypes.c_void_p
    kinds = [ctypes.c_int] * 3 + [size] * 3 + [number, array, size, array, size, number, array, size]
    sgemm = ctypes.CFUNCTYPE(None, *kinds)(address)
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((5, 9), np.float32), rng.standard_normal((9, 7), np.float32)
    made = np.empty((5, 7), np.float32)
    pointers = [one.ctypes.data for one in (left, right, made)]
    sgemm(101, 111, 111, 5, 7, 9, 1.0, pointers[0], 9, pointers[1], 7, 0.0, pointers[2], 7)
    assert np.array_equal(made, left @ right)


def test_another_blas_has_none(monkeypatch):
    monkeypatch.setattr(blas, "library", lambda: None)
    assert blas.sgemm_address.__wrapped__() is None
