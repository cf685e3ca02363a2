"""The rules of data formats, spelled out number by number: what the fast functions are held against."""

import math
import struct
from collections.abc import Sequence
from fractions import Fraction

from device.numbers.formats import EXPONENT_BIAS, GROUP, TILE_ELEMENTS, DataFormat


def float32_bits(value: float) -> int:
    """Bit pattern of a float that float32 holds exactly."""
    return int(struct.unpack("<I", struct.pack("<f", value))[0])


def round_float(value: float, fmt: DataFormat) -> float:
    """Nearest value of a float format, ties to even; overflow to infinity, gradual underflow."""
    if value == 0 or not math.isfinite(value):
        return value
    bias = (1 << (fmt.exponent_bits - 1)) - 1
    exponent = max(math.frexp(value)[1] - 1, 1 - bias)  # 1 - bias: denormals share the smallest exponent
    unit = Fraction(2) ** (exponent - fmt.mantissa_bits)
    magnitude = round(Fraction(abs(value)) / unit) * unit
    if magnitude >= Fraction(2) ** (bias + 1):
        return math.copysign(math.inf, value)
    return math.copysign(float(magnitude), value)


def shared_exponent(group: Sequence[float]) -> int:
    """Largest biased float32 exponent among up to 16 values."""
    return max(float32_bits(value) >> 23 & 0xFF for value in group)


def element_code(value: float, shared: int, fmt: DataFormat) -> int:
    """Sign and magnitude of one float32 value under a shared exponent."""
    bits = float32_bits(value)
    exponent = bits >> 23 & 0xFF
    if exponent == 0:
        return 0
    significand = bits & 0x7FFFFF | 0x800000
    if math.isnan(value):
        significand = 0xC00000  # quiet, without payload
    magnitude = round(Fraction(significand, 1 << (shared - exponent + 24 - fmt.mantissa_bits)))
    magnitude = min(magnitude, fmt.max_magnitude)
    return magnitude | (bits >> 31) << fmt.mantissa_bits if magnitude else 0


def element_value(code: int, shared: int, fmt: DataFormat) -> float:
    """What a sign and magnitude is worth under a shared exponent; 2**128 is infinity, more is NaN."""
    magnitude = code & fmt.max_magnitude
    sign = -1.0 if code >> fmt.mantissa_bits else 1.0
    value = magnitude * 2.0 ** (shared - EXPONENT_BIAS - fmt.mantissa_bits + 1)
    if value > 2.0**128:
        return math.nan
    return sign * (math.inf if value == 2.0**128 else value)


def quantize_row(row: Sequence[float], fmt: DataFormat) -> list[float]:
    """Host conversion of one row of float32 values to a float or block-float format."""
    if not fmt.is_block:
        return [round_float(value, fmt) for value in row]
    out = []
    for start in range(0, len(row), GROUP):
        group = row[start : start + GROUP]
        shared = shared_exponent(group)
        out += [element_value(element_code(value, shared, fmt), shared, fmt) for value in group]
    return out


def encode_block_tile(tile: Sequence[float], fmt: DataFormat) -> bytes:
    """Bytes of one tile of a block float from its 1024 float32 values in face order."""
    exponents, codes = [], []
    for start in range(0, TILE_ELEMENTS, GROUP):
        group = tile[start : start + GROUP]
        exponents.append(shared_exponent(group))
        codes += [element_code(value, exponents[-1], fmt) for value in group]
    if fmt.element_bits == 4:
        codes = [low | high << 4 for low, high in zip(codes[0::2], codes[1::2], strict=True)]
    return bytes(exponents + codes)


def decode_block_tile(data: bytes, fmt: DataFormat) -> list[float]:
    """Values, in face order, of one block-float tile's bytes."""
    exponents, body = data[: TILE_ELEMENTS // GROUP], data[TILE_ELEMENTS // GROUP :]
    codes = list(body)
    if fmt.element_bits == 4:
        codes = [nibble for byte in body for nibble in (byte & 15, byte >> 4)]
    return [element_value(code, exponents[index // GROUP], fmt) for index, code in enumerate(codes)]
