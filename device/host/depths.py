"""Long sums of products in parts, whatever a matrix's size and whoever calls BLAS for it.

BLAS would decide by itself where a sum is split, but differently for small matrices and large ones and from machine to
machine, so that the last bits of a sum would depend on what is computed beside it. In parts they do not, with
OpenBLAS's kernels for AVX-512; those for older processors sum by the place in a product, too (docs/values.md, Fast).
"""

from typing import Final

DEPTH: Final = 448  # what OpenBLAS's kernels for AVX-512 add up in one go, of small matrices and of large ones
_MULTIPLE: Final = 16


def depth_of_part(depth: int) -> int:
    """How many of so many products are added up in one go, as OpenBLAS with AVX-512 does where matrices are large."""
    if depth >= 2 * DEPTH:
        return DEPTH
    return depth if depth <= DEPTH else (depth // 2 + _MULTIPLE - 1) // _MULTIPLE * _MULTIPLE
