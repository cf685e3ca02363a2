"""Tensors as the real library prints them."""

import numpy as np

from device.numbers.formats import Array

EDGE_ITEMS = 2  # of an axis that is cut
LONGEST = 4  # axis that is shown whole
HEAD = len("ttnn.Tensor(")
LARGEST_RATIO, LARGEST, SMALLEST = 1000, 1e8, 1e-4  # beyond these, numbers are printed with exponents
INTEGER = "{:5d}"
FIXED, SCIENTIFIC = "{:7.4f}", "{:11.4e}"


def printed(values: Array) -> str:
    """Values as a tensor prints them: axes of five and more cut to the first and last two, a column for the sign."""
    if not values.size:
        return "[]"
    return _block(values, _number_format(values), HEAD)


def _number_format(values: Array) -> str:
    """How each number is written; that depends on all of them, shown or not."""
    if values.dtype.kind != "f":
        return INTEGER
    magnitudes = np.abs(values[np.isfinite(values) & (values != 0)])
    if not magnitudes.size:
        return FIXED
    low, high = float(magnitudes.min()), float(magnitudes.max())
    return SCIENTIFIC if high > LARGEST_RATIO * low or high > LARGEST or low < SMALLEST else FIXED


def _block(values: Array, number_format: str, indent: int) -> str:
    """One axis and what is in it; ``indent`` is where its bracket stands."""
    if not values.ndim:
        return number_format.format(values.item())
    count = len(values)
    shown = range(count) if count <= LONGEST else (*range(EDGE_ITEMS), *range(count - EDGE_ITEMS, count))
    parts = [_block(values[place], number_format, indent + 1) for place in shown]
    if count > LONGEST:
        parts.insert(EDGE_ITEMS, " ..." if values.ndim == 1 else "...")
    between = ", " if values.ndim == 1 else "," + "\n" * (values.ndim - 1) + " " * (indent + 1)
    return f"[{between.join(parts)}]"
