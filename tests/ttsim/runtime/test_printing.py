"""Texts of the real library, version 0.81.1."""

import numpy as np
import pytest

from ttsim.runtime.tensor import printed


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([0.1, 2, -3], "[ 0.1000,  2.0000, -3.0000]"),
        ([1e6, 2.5], "[ 1.0000e+06,  2.5000e+00]"),
        ([np.nan, np.inf, -np.inf, 1], "[    nan,     inf,    -inf,  1.0000]"),
        ([np.inf, 5e-5], "[        inf,  5.0000e-05]"),
        (np.arange(6.0) * 100, "[ 0.0000, 100.0000,  ..., 400.0000, 500.0000]"),
        ([1, 1000], "[ 1.0000, 1000.0000]"),
        ([3e38, 2e38], "[ 3.0000e+38,  2.0000e+38]"),
        ([2e8, 1e8], "[ 2.0000e+08,  1.0000e+08]"),
        (3.5, " 3.5000"),
        (np.zeros((0, 3)), "[]"),
        ([[-1.5, 2], [33.25, 4]], "[[-1.5000,  2.0000],\n             [33.2500,  4.0000]]"),
    ],
)
def test_floats(values: object, text: str) -> None:
    assert printed(np.asarray(values, np.float32)) == text


def test_integers_and_cut_axes() -> None:
    assert printed(np.arange(3, dtype=np.int32) * -100000) == "[    0, -100000, -200000]"
    rows = ["[[    0,     1,  ...,    28,    29]", "...", "[  270,   271,  ...,   298,   299]]"]
    lines = printed(np.arange(300, dtype=np.uint32).reshape(10, 30)).splitlines()
    assert [lines[0], lines[2].strip(), lines[4].strip()] == [f"{rows[0]},", f"{rows[1]},", rows[2]]


def test_empty_lines_stand_between_matrices() -> None:
    gap, zeros = "\n\n             ", "[[ 0.0000,  0.0000]]"
    parts = [zeros, zeros, "...", zeros, zeros]
    assert printed(np.zeros((5, 1, 2), np.float32)) == "[" + f",{gap}".join(parts) + "]"
