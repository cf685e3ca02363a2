"""The BLAS that numpy brings along, if it is OpenBLAS: what of it is called without numpy."""

import ctypes
import sys
from functools import cache
from typing import Any, Final

NAMES_OF_SGEMM: Final = ("scipy_cblas_sgemm64_", "cblas_sgemm64_")  # those whose sizes are integers of 64 bits


@cache
def library() -> Any:
    """The library that numpy's products are in; None where it is not found."""
    try:
        return ctypes.CDLL(sys.modules["numpy._core._multiarray_umath"].__file__)
    except (KeyError, OSError, TypeError):  # an older numpy, or one that is built in another way
        return None


@cache
def sgemm_address() -> int | None:
    """Where the product is that numpy calls for float32 matrices; None if it has another BLAS."""
    for name in NAMES_OF_SGEMM:
        if hasattr(library(), name):
            return ctypes.cast(getattr(library(), name), ctypes.c_void_p).value
    return None
