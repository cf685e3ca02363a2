"""Matrices of taps in one piece, by numpy and by a compiled loop."""

import importlib.util
from itertools import permutations

import numpy as np
import pytest

from device.host.threads import side_by_side
from ops.programs.patch_matmul import gather as tap_copies
from ops.programs.patch_matmul.gather import in_one_piece

NUMBA = importlib.util.find_spec("numba") is not None


@pytest.fixture(params=["numpy", pytest.param("compiled", marks=pytest.mark.skipif(not NUMBA, reason="no numba"))])
def compiled(request, monkeypatch):
    monkeypatch.setattr(tap_copies, "worth_loading", lambda module, seconds: request.param == "compiled")


@pytest.mark.parametrize("order", list(permutations(range(3))))
@pytest.mark.parametrize("mirrored", [False, True])
def test_copies_hold_the_same_numbers(order, mirrored, compiled):
    shape = (4, 70, 37)  # taps, rows, columns
    stored = np.arange(2 * np.prod(shape), dtype=np.float32).reshape(2, *np.take(shape, order))
    weights = stored.transpose(0, *(1 + np.argsort(order))).reshape(2, 2, 2, 70, 37)
    weights = weights[:, ::-1, ::-1] if mirrored else weights
    made = in_one_piece(weights, side_by_side)
    assert made.flags.c_contiguous
    assert np.array_equal(made.reshape(weights.shape), weights)


def test_what_is_in_one_piece_is_not_copied():
    weights = np.ones((1, 2, 3, 4), np.float32)
    assert in_one_piece(weights, side_by_side) is weights
