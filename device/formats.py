"""Data formats as values: what a number is stored as, host conversion to it, and its exact bytes.

Adding a format is adding one constant: the tests run over all of ``FORMATS``. The slow truth of every rule here stands in
``device.formats_scalar``; both run under the same tests.

A *block float* stores 16 neighbours of a row as sign and magnitude under one shared exponent. Its decoded values fit bfloat16, so
that is what they are held in.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import ml_dtypes
import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

GROUP: Final = 16  # values that share an exponent
TILE_ELEMENTS: Final = 1024
EXPONENT_BIAS: Final = 127
_CHUNK: Final = 1 << 16  # elements handled at a time, so that temporaries stay in the cache


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFormat:
    """A number format of the machine.

    Attributes:
        name: As ttnn prints it, in lower case.
        element_bits: Bits of one element, without a shared exponent.
        mantissa_bits: Fraction bits of a float, magnitude bits of a block float, 0 for integers.
        is_block: Whether 16 elements share an exponent byte.
        is_float: Whether it holds floating-point numbers (block floats do).
        storage: numpy dtype that decoded elements are held in; every value of the format is exact in it.
    """

    name: str
    element_bits: int
    mantissa_bits: int
    storage: np.dtype[Any]
    is_block: bool = False
    is_float: bool = True

    def __post_init__(self) -> None:
        """Refuses a description that contradicts itself."""
        if self.is_block and self.mantissa_bits + 1 != self.element_bits:
            raise ValueError(
                f"{self.name}: an element of a block float is a sign and a magnitude, so element_bits must be "
                f"mantissa_bits + 1, not {self.element_bits} with {self.mantissa_bits}"
            )
        if not self.is_block and self.storage.itemsize * 8 != self.element_bits:
            raise ValueError(f"{self.name}: storage {self.storage} does not have {self.element_bits} bits")

    @property
    def element_bytes(self) -> int | None:
        """Bytes of one element; None for block floats, which have no size of their own."""
        return None if self.is_block else self.element_bits // 8

    @property
    def tile_bytes(self) -> int:
        """Bytes of a 32x32 tile, shared exponents included."""
        return TILE_ELEMENTS * self.element_bits // 8 + (TILE_ELEMENTS // GROUP if self.is_block else 0)

    @property
    def max_magnitude(self) -> int:
        """Largest magnitude of a block float's element (127 or 7)."""
        return (1 << self.mantissa_bits) - 1

    @property
    def unit_exponent(self) -> int:
        """A block float's magnitude m under the shared exponent E is worth m * 2**(E + unit_exponent)."""
        return 1 - self.mantissa_bits - EXPONENT_BIAS

    def __str__(self) -> str:
        """The name."""
        return self.name


_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)

BFLOAT16: Final = DataFormat(name="bfloat16", element_bits=16, mantissa_bits=7, storage=_BFLOAT16)
FLOAT32: Final = DataFormat(name="float32", element_bits=32, mantissa_bits=23, storage=np.dtype(np.float32))
FLOAT16: Final = DataFormat(name="float16", element_bits=16, mantissa_bits=10, storage=np.dtype(np.float16))
BFLOAT8_B: Final = DataFormat(name="bfloat8_b", element_bits=8, mantissa_bits=7, storage=_BFLOAT16, is_block=True)
BFLOAT4_B: Final = DataFormat(name="bfloat4_b", element_bits=4, mantissa_bits=3, storage=_BFLOAT16, is_block=True)
UINT8: Final = DataFormat(name="uint8", element_bits=8, mantissa_bits=0, storage=np.dtype(np.uint8), is_float=False)
UINT16: Final = DataFormat(name="uint16", element_bits=16, mantissa_bits=0, storage=np.dtype(np.uint16), is_float=False)
UINT32: Final = DataFormat(name="uint32", element_bits=32, mantissa_bits=0, storage=np.dtype(np.uint32), is_float=False)
INT32: Final = DataFormat(name="int32", element_bits=32, mantissa_bits=0, storage=np.dtype(np.int32), is_float=False)

FORMATS: Final[Mapping[str, DataFormat]] = MappingProxyType(
    {fmt.name: fmt for fmt in (BFLOAT16, FLOAT32, FLOAT16, BFLOAT8_B, BFLOAT4_B, UINT8, UINT16, UINT32, INT32)}
)
