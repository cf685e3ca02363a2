"""Data formats, including block floats: bits, storage, conversion and packing; rounding of sizes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from device.errors import ArgumentError
from device.host.compiling import loops_of, worth_loading

Integers: TypeAlias = NDArray[np.int64]


def div_up(value: int, divisor: int) -> int:
    """Smallest integer that is not less than ``value / divisor``; ``divisor`` is positive."""
    return -(-value // divisor)


def round_up(value: int, multiple: int) -> int:
    """Smallest multiple of ``multiple`` (positive) that is not less than ``value``."""
    return -(-value // multiple) * multiple


Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

GROUP: Final = 16  # values that share an exponent
EXPONENT_BIAS: Final = 127
_CHUNK_GROUPS: Final = 1 << 12  # groups handled at a time, so that temporaries stay in the cache
_ROUND_SECONDS: Final = 2e-9  # what numpy takes for a number
_EXPONENT_FIELD: Final = np.uint32(0x7F800000)
_FRACTION_BITS: Final = 23
_MOST_NARROW_FIELD: Final = 230 << _FRACTION_BITS
_MAGIC_OF_ONE: Final = np.float32(1.5 * 2.0**_FRACTION_BITS).view(np.uint32)
_SMALLEST_NORMAL: Final = np.float32(2.0**-126)


def whole_groups(values: Array) -> Array:
    """Numbers [..., columns] as float32, padded with zeros to whole groups that share an exponent."""
    columns = values.shape[-1]
    filled = np.zeros((*values.shape[:-1], round_up(columns, GROUP)), np.float32)
    filled[..., :columns] = values
    return filled


def largest_exponents(bits: Array) -> Array:
    """The largest exponent field of every 16 neighbors, in place: uint32 [groups], bit patterns of powers of two.

    Maxima of ever more neighbors slide over all numbers, although only one in sixteen is kept: a loop over all numbers
    becomes vector instructions, a loop over sixteen does not. ``bits`` are uint32 bit patterns of float32 numbers.
    """
    fields = np.bitwise_and(bits, _EXPONENT_FIELD).reshape(-1)
    for distance in (8, 4, 2, 1):
        fields = np.maximum(fields[:-distance], fields[distance:])
    return fields[::GROUP]


def spread(values: Array) -> Array:
    """Each value for all 16 members of its group: [groups, 16] of [groups]."""
    return np.repeat(values, GROUP).reshape(-1, GROUP)


def to_read(values: Array) -> Array:
    """A read-only view, because loops are compiled separately for writable arrays."""
    seen = values[...]
    seen.flags.writeable = False
    return seen


def round_groups(groups: Array, mantissa_bits: int, out: Array) -> None:
    """Rounds groups [n, 16] to what a block float of ``mantissa_bits`` magnitude bits holds.

    ``groups`` are float32 or a dtype that fits it, widened chunk by chunk; ``out`` holds the results exactly.
    """
    if _round_compiled(groups, mantissa_bits, out):
        return
    for chunk in _chunks(len(groups)):
        _round_into(out[chunk], groups[chunk].astype(np.float32, copy=False), mantissa_bits)


def _round_compiled(groups: Array, mantissa_bits: int, out: Array) -> bool:
    """Whether compiled loops rounded float32 groups: they are worth loading, and no group is too large for them."""
    fits = groups.dtype == np.float32 and out.dtype.itemsize == 2 and groups.flags.c_contiguous
    if not fits or not worth_loading("device.numbers.loops", groups.size * _ROUND_SECONDS):
        return False
    loops = loops_of("device.numbers.loops")
    done: bool = loops.round_even(to_read(groups.view(np.int32)), mantissa_bits, out.view(np.uint16))
    return done


def encode_groups(groups: Array, mantissa_bits: int) -> tuple[Array, Array]:
    """Shared exponents [n] and sign-and-magnitude codes [n, 16], both uint8; the sign stands above the magnitude.

    ``groups`` are [n, 16] as ``round_groups`` leaves them.
    """
    exponents = np.empty(len(groups), np.uint8)
    codes = np.empty(groups.shape, np.uint8)
    for chunk in _chunks(len(groups)):
        exponents[chunk], codes[chunk] = _codes(groups[chunk].astype(np.float32), mantissa_bits)
    return exponents, codes


def decode_groups(exponents: Array, codes: Array, mantissa_bits: int, out: Array) -> None:
    """The inverse of ``encode_groups``; ``out`` [n, 16] is of a dtype that holds the values exactly."""
    for chunk in _chunks(len(codes)):
        out[chunk] = _values(exponents[chunk], codes[chunk], mantissa_bits)


def _chunks(groups: int) -> Iterator[slice]:
    return (slice(start, start + _CHUNK_GROUPS) for start in range(0, groups, _CHUNK_GROUPS))


def _unit_exponents(exponents: Array, mantissa_bits: int) -> Array:
    """The exponent of a value of magnitude 1."""
    units: Array = exponents.astype(np.int32) + (1 - mantissa_bits - EXPONENT_BIAS)
    return units


def _round_into(out: Array, groups: Array, mantissa_bits: int) -> None:
    """Rounds float32 [n, 16].

    Adding and subtracting 1.5 * 2**(fraction bits) units rounds to a multiple of the unit, ties to even, because the
    last bit of that sum is worth one unit.
    """
    fields = largest_exponents(groups.view(np.uint32))
    if fields.max() > _MOST_NARROW_FIELD:  # the sum would overflow float32
        out[...] = _rounded_wide(groups, fields >> np.uint32(_FRACTION_BITS), mantissa_bits)
        return
    small = (fields > 0) & (fields <= (mantissa_bits + 1) << _FRACTION_BITS)
    if small.any():  # a denormal could still reach a magnitude of one there
        groups = np.where(small[:, None] & (np.abs(groups) < _SMALLEST_NORMAL), np.float32(0), groups)
    magic = fields + np.uint32((_FRACTION_BITS + 1 - mantissa_bits << _FRACTION_BITS) + (1 << _FRACTION_BITS - 1))
    magic[fields == 0] = _MAGIC_OF_ONE  # only zeros and denormals there: all become zero
    limit = fields | np.uint32((1 << _FRACTION_BITS) - (1 << _FRACTION_BITS + 1 - mantissa_bits))
    magic, limit = spread(magic.view(np.float32)), spread(limit.view(np.float32))
    rounded = groups + magic
    rounded -= magic
    np.minimum(rounded, limit, out=rounded)
    np.maximum(rounded, np.negative(limit, out=limit), out=rounded)
    if out.dtype.itemsize == 2:
        out.view(np.uint16)[...] = rounded.view(np.uint16)[:, 1::2]  # the upper halves: bfloat16 as it is
    else:
        out[...] = rounded


def _rounded_wide(groups: Array, exponents: Array, mantissa_bits: int) -> Array:
    """Rounded float32 [n, 16] of any magnitude, infinities and NaN among them."""
    unit = np.ldexp(1.0, _unit_exponents(exponents, mantissa_bits))
    unit[exponents == 0] = 1.0
    small = (exponents > 0) & (exponents <= mantissa_bits + 1)
    normal = np.where(small[:, None] & (np.abs(groups) < _SMALLEST_NORMAL), np.float32(0), groups)
    magic = (unit * (1.5 * 2.0**52))[:, None]
    limit = (unit * ((1 << mantissa_bits) - 1))[:, None]
    rounded = np.clip(normal + magic - magic, -limit, limit)
    np.copyto(rounded, normal, where=~np.isfinite(normal))
    with np.errstate(over="ignore"):
        return rounded.astype(np.float32)


def _codes(groups: Array, mantissa_bits: int) -> tuple[Array, Array]:
    exponents = largest_exponents(groups.view(np.uint32)) >> np.uint32(_FRACTION_BITS)
    magnitudes = np.abs(groups) * np.ldexp(1.0, -_unit_exponents(exponents, mantissa_bits))[:, None]
    if exponents.max() == 255:
        top_bit = 1 << (mantissa_bits - 1)
        magnitudes[np.isinf(groups)] = top_bit
        magnitudes[np.isnan(groups)] = top_bit + top_bit // 2  # quiet, without payload
    signs = groups.view(np.uint32) >> 31 << mantissa_bits
    return exponents, magnitudes.astype(np.uint8) | signs.astype(np.uint8)


def _values(exponents: Array, codes: Array, mantissa_bits: int) -> Array:
    magnitudes = np.arange(1 << mantissa_bits, dtype=np.float32)
    scale = np.ldexp(np.float32(1), _unit_exponents(exponents, mantissa_bits))
    with np.errstate(over="ignore"):
        values: Array = np.concatenate([magnitudes, -magnitudes])[codes] * scale[:, None]
    if exponents.max() == 255:
        beyond = (codes & ((1 << mantissa_bits) - 1)) > 1 << (mantissa_bits - 1)
        values[beyond & (exponents == 255)[:, None]] = np.nan
    return values


INTEGERS_END: Final = 2.0**63  # what is cut to an integer is smaller
TILE_ELEMENTS: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFormat:
    """A number format of the machine."""

    name: str  # As ttnn prints it, in lower case
    element_bits: int  # Bits of one element, without a shared exponent
    mantissa_bits: int  # Fraction bits of a float, magnitude bits of a block float, 0 for integers
    storage: np.dtype[Any]  # numpy dtype that decoded elements are held in; every value of the format is exact in it
    is_block: bool = False  # Whether 16 elements share an exponent byte
    is_float: bool = True  # Whether it holds floating-point numbers (block floats do)

    def __post_init__(self) -> None:
        """Raises an error for an inconsistent description."""
        if self.is_block and self.mantissa_bits + 1 != self.element_bits:
            raise ValueError(
                f"{self.name}: an element of a block float is a sign and a magnitude, so element_bits must be "
                f"mantissa_bits + 1, not {self.element_bits} with {self.mantissa_bits}"
            )
        if not self.is_block and self.storage.itemsize * 8 != self.element_bits:
            raise ValueError(f"{self.name}: storage {self.storage} does not have {self.element_bits} bits")

    def __eq__(self, other: object) -> bool:
        """Whether all fields are equal; formats are nearly always constants, or differ by name."""
        if self is other:
            return True
        if not isinstance(other, DataFormat):
            return NotImplemented
        return self.name == other.name and all(
            getattr(self, field) == getattr(other, field) for field in self.__slots__
        )

    def __hash__(self) -> int:
        """The hash of the name: formats are hashed often, and two formats of one name are nearly always the same."""
        return hash(self.name)

    @property
    def element_bytes(self) -> int | None:
        """Bytes of one element; None for block floats, whose elements have no size."""
        return None if self.is_block else self.element_bits // 8

    @property
    def tile_bytes(self) -> int:
        """Bytes of a 32x32 tile, shared exponents included."""
        return TILE_ELEMENTS * self.element_bits // 8 + (TILE_ELEMENTS // GROUP if self.is_block else 0)

    @property
    def exponent_bits(self) -> int:
        """Exponent bits of a float, those of the shared exponent for a block float, 0 for integers."""
        if self.is_block:
            return 8
        return self.element_bits - 1 - self.mantissa_bits if self.is_float else 0

    @property
    def max_magnitude(self) -> int:
        """Largest magnitude of a block float's element (127 or 7)."""
        return (1 << self.mantissa_bits) - 1

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
INT8: Final = DataFormat(name="int8", element_bits=8, mantissa_bits=0, storage=np.dtype(np.int8), is_float=False)
INT32: Final = DataFormat(name="int32", element_bits=32, mantissa_bits=0, storage=np.dtype(np.int32), is_float=False)

FORMATS: Final[Mapping[str, DataFormat]] = MappingProxyType(
    {fmt.name: fmt for fmt in (BFLOAT16, FLOAT32, FLOAT16, BFLOAT8_B, BFLOAT4_B, UINT8, INT8, UINT16, UINT32, INT32)}
)


def quantize(values: Array, fmt: DataFormat) -> Array:
    """The host's conversion of ``values`` to ``fmt``.

    Floats are rounded to nearest, ties to even; overflow gives infinity and denormals stay. Block floats take groups of
    16 along the last axis (the last group of a row may be shorter), round each magnitude to nearest even under the
    largest exponent of the group, saturate, and drop denormals and the sign of zero. Integers are truncated toward zero
    and wrap. NaN stays NaN without its payload.

    Args:
        values: Any shape and real dtype; anything wider than float32 is rounded to float32 first.
        fmt: The target format.

    Returns:
        Same shape, ``fmt.storage``; the argument itself when nothing changes.

    Raises:
        ArgumentError: Infinity or NaN for an integer format.
    """
    values = np.asarray(values)
    if values.dtype == fmt.storage and not fmt.is_block:
        return values
    if not fmt.is_float:
        return _to_integers(values, fmt)
    with np.errstate(over="ignore", invalid="ignore"):
        if fmt.is_block and values.dtype == fmt.storage:
            return _quantize_blocks(values, fmt)
        singles = values.astype(np.float32, copy=False)
        return _quantize_blocks(singles, fmt) if fmt.is_block else singles.astype(fmt.storage, copy=False)


def encode_rows(values: Array, fmt: DataFormat) -> Array:
    """Row-major bytes of values that ``quantize`` converts first: uint8 [..., n * element_bytes], little-endian.

    Raises:
        ValueError: ``fmt`` is a block float, which exists in tiles only.
    """
    _refuse_block(fmt)
    return np.ascontiguousarray(quantize(values, fmt)).view(np.uint8)


def decode_rows(data: Array, fmt: DataFormat) -> Array:
    """Values of row-major bytes, [..., n] in ``fmt.storage``; the inverse of ``encode_rows``.

    Raises:
        ValueError: ``fmt`` is a block float, or the last axis holds no whole number of elements.
    """
    _refuse_block(fmt)
    if data.shape[-1] % fmt.storage.itemsize:
        raise ValueError(
            f"decode_rows: {fmt} takes {fmt.storage.itemsize} bytes an element, not {data.shape[-1]} a row"
        )
    return np.ascontiguousarray(data, np.uint8).view(fmt.storage)


def encode_tiles(tiles: Array, fmt: DataFormat) -> Array:
    """Bytes of tiles as they lie in memory: uint8 [..., tile_bytes].

    A block-float tile begins with 64 shared exponents, one for each row of 16 in face order; the elements follow as
    sign and magnitude, two to a byte (first one low) in bfloat4_b. ``tiles`` are [..., 1024] in face order
    (``device.memory.memory_config.tilize``); ``quantize`` converts them first.
    """
    if tiles.shape[-1] != TILE_ELEMENTS:
        raise ValueError(f"encode_tiles: the last axis must hold the 1024 elements of a tile, not {tiles.shape[-1]}")
    if not fmt.is_block:
        return encode_rows(tiles, fmt)
    lead = tiles.shape[:-1]
    groups = quantize(tiles, fmt).reshape(-1, GROUP)
    exponents, codes = encode_groups(groups, fmt.mantissa_bits)
    body = codes.reshape(*lead, TILE_ELEMENTS)
    if fmt.element_bits == 4:
        body = body[..., 0::2] | body[..., 1::2] << np.uint8(4)
    return np.concatenate([exponents.reshape(*lead, TILE_ELEMENTS // GROUP), body], axis=-1)


def decode_tiles(data: Array, fmt: DataFormat) -> Array:
    """Values of tiles' bytes, exactly: [..., 1024] in ``fmt.storage``, face order; the inverse of ``encode_tiles``."""
    if data.shape[-1] != fmt.tile_bytes:
        raise ValueError(f"decode_tiles: a {fmt} tile has {fmt.tile_bytes} bytes, not {data.shape[-1]}")
    if not fmt.is_block:
        return decode_rows(data, fmt)
    lead = data.shape[:-1]
    exponents, body = data[..., : TILE_ELEMENTS // GROUP], data[..., TILE_ELEMENTS // GROUP :]
    if fmt.element_bits == 4:
        body = np.stack([body & 15, body >> 4], axis=-1)
    out = np.empty((body.size // GROUP, GROUP), fmt.storage)
    decode_groups(exponents.reshape(-1), body.reshape(-1, GROUP), fmt.mantissa_bits, out)
    return out.reshape(*lead, TILE_ELEMENTS)


def bit_patterns(values: Array) -> Array:
    """A view of numbers as unsigned integers of their size, which numpy copies without conversion."""
    return values.view(np.dtype(f"u{values.dtype.itemsize}"))


def write_exactly(values: Array, place: Array) -> None:
    """Writes float32 numbers to an array of a dtype that holds them exactly; bfloat16 gets their upper halves.

    ``values`` are contiguous in their last axis.
    """
    if place.dtype == _BFLOAT16:
        place.view(np.uint16)[...] = values.view(np.uint16)[..., 1::2]
    else:
        place[...] = values


def _refuse_block(fmt: DataFormat) -> None:
    if fmt.is_block:
        raise ValueError(f"{fmt} exists in tiles only; use encode_tiles or decode_tiles")


def _to_integers(values: Array, fmt: DataFormat) -> Array:
    if np.issubdtype(values.dtype, np.integer) or values.dtype == np.bool_:
        return values.astype(fmt.storage)
    wide = values.astype(np.float64)
    if not (np.abs(wide) < INTEGERS_END).all():
        raise ArgumentError(
            f"quantize: {fmt} holds integers, not infinities or NaN, nor numbers of 2^63 and more, of which no bits "
            "would be left; convert to a float format instead"
        )
    return wide.astype(np.int64).astype(fmt.storage)


def _quantize_blocks(values: Array, fmt: DataFormat) -> Array:
    """``quantize`` for block floats; ``values`` is float32, or what the format is held in, of any shape."""
    rows = np.atleast_1d(values)
    length = rows.shape[-1]
    if length % GROUP:
        rows = whole_groups(rows)
    groups = np.ascontiguousarray(rows).reshape(-1, GROUP)
    out = np.empty(groups.shape, fmt.storage)
    round_groups(groups, fmt.mantissa_bits, out)
    return out.reshape(rows.shape)[..., :length].reshape(values.shape)
