"""How far a right result may lie from float64, by the formats that the numbers pass on their way."""

from typing import Final

import numpy as np

from device.numbers.formats import GROUP, Array

SMALLEST: Final = 1e-37  # denormals are flushed
CUT_TO_TF32: Final = 2.0**-10  # of a float32 on its way through the matrix unit's registers
BLOCK_BITS: Final = {"bfloat8_b": 6, "bfloat4_b": 2}  # fraction bits of the largest number of a group


def rounding(values: Array, dtype: str) -> Array:
    """The error of one rounding to a data type, for each element; block floats may also be cut."""
    magnitudes = np.abs(np.asarray(values, np.float64))
    if dtype in BLOCK_BITS:
        return block_units(magnitudes, BLOCK_BITS[dtype])
    if dtype == "bfloat16":
        return magnitudes * 2.0**-8 + SMALLEST
    if dtype == "float32":
        return magnitudes * CUT_TO_TF32 + SMALLEST
    return np.zeros_like(magnitudes)


def block_units(magnitudes: Array, bits: int) -> Array:
    """The last place of each element of a block float, by the largest of its 16 neighbors in a row."""
    rows = magnitudes.reshape(*magnitudes.shape[:-1], -1) if magnitudes.ndim else magnitudes.reshape(1)
    width = rows.shape[-1]
    groups = np.zeros((*rows.shape[:-1], -(-width // GROUP) * GROUP))
    groups[..., :width] = rows
    largest = groups.reshape(*rows.shape[:-1], -1, GROUP).max(-1)
    # 1 % above: a number that is rounded up to a power of 2 raises the exponent of its group
    exponents = np.floor(np.log2(np.maximum(largest * 1.01, 2.0**-126)))
    units = np.repeat(2.0 ** (exponents - bits), GROUP, axis=-1)[..., :width]
    return units.reshape(magnitudes.shape) + SMALLEST


def moving(values: Array, dtype: str, *, regrouped: bool = True) -> Array:
    """The error of a movement of numbers: none for bfloat16, the cut of a float32, a rounding of a block float.

    Args:
        values: What is moved, as it comes out.
        dtype: The data type that it keeps.
        regrouped: The elements of a block float may get other neighbors, perhaps in several passes: the error is
            then that of the largest number of all.
    """
    if dtype == "float32":
        return np.abs(values) * CUT_TO_TF32 + SMALLEST
    if dtype not in BLOCK_BITS or not values.size:
        return np.zeros(np.shape(values))
    if not regrouped:
        return rounding(values, dtype)
    everywhere: Array = 2 * block_units(np.full(np.shape(values), np.abs(values).max()), BLOCK_BITS[dtype])
    return everywhere


def regrouped(values: Array, dtype: str) -> float:
    """The error of one rounding of any element to a data type, whatever its neighbors are."""
    largest = np.full(1, np.abs(values).max(initial=0.0))
    return float(rounding(largest, dtype)[0])


def sum_error(values: Array, terms: Array, squares: Array, count: int, dtype: str, *, low_fidelity: bool) -> Array:
    """The error of a sum of products in the matrix unit.

    Errors of single steps have no sign of their own, so they add up as the root of their number; a partial sum is as
    large as the result and three times its spread, or as the sum of all magnitudes.

    Args:
        terms: The sums of the magnitudes of the products.
        squares: The sums of the squares of the products.
        count: How many products each sum has.
        dtype: Data type of the result.
        low_fidelity: Whether the matrix unit may run in LoFi, which multiplies 5 and 7 bits of the operands.
    """
    scale = np.minimum(terms, np.abs(values) + 3 * np.sqrt(squares))
    steps = 4 * (-(-count // 16) + 2)  # 16 products a step, in up to four fidelity phases
    error = scale * (2.0**-8 * (4 + 2 * np.sqrt(steps)) + (2.0**-4 if low_fidelity else 2.0**-6))
    # block floats: the partial sums of each block of products are packed, too
    packed = 4 * rounding(scale, dtype) if dtype in BLOCK_BITS else 2 * rounding(values, dtype)
    return np.asarray(error + packed)
