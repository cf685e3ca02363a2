"""Integers: rounding, the two helpers every size rule is made of, and arrays of them."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Integers: TypeAlias = NDArray[np.int64]


def div_up(value: int, divisor: int) -> int:
    """Smallest integer that is not less than ``value / divisor``; ``divisor`` is positive."""
    return -(-value // divisor)


def round_up(value: int, multiple: int) -> int:
    """Smallest multiple of ``multiple`` (positive) that is not less than ``value``."""
    return -(-value // multiple) * multiple
