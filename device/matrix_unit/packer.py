"""Conversions between L1 and the matrix unit: unpacking, packing, accumulation in L1, and the addition of a bias.

All functions take float32 arrays whose values are exact in their format; every rounding of the device is here, and
"half up" always means on the magnitude. Sources: Tenstorrent's ISA documentation and open functional simulator; bits
checked against recorded runs of ttnn 0.81.1.

Rounding to a multiple of a unit adds and subtracts 1.5 * 2**23 units. That rounds ties to even; stretching the number
by 1 + 2**-13 beforehand makes them go away from zero and moves nothing else, as operands have 11 bits at most.
"""

from math import prod
from typing import Any, Final

import numpy as np

from device.host.compiling import loops_of, worth_loading
from device.host.threads import parts_of
from device.numbers.formats import (
    BFLOAT8_B,
    BFLOAT16,
    FLOAT32,
    GROUP,
    Array,
    DataFormat,
    largest_exponents,
    quantize,
    spread,
    whole_groups,
)

SIGN: Final = np.uint32(0x80000000)
EXPONENT_FIELD: Final = np.uint32(0x7F800000)
INFINITY: Final = np.uint32(0x7F800000)
ALL_BITS: Final = np.uint32(0xFFFFFFFF)
TF32_MASK: Final = np.uint32(0xFFFFE000)
BFLOAT16_MASK: Final = np.uint32(0xFFFF0000)
SEVEN_BITS_MASK: Final = np.uint32(0xFFFE0000)  # sign, exponent and a significand of 7 bits with the hidden one
OPERAND_FRACTION_BITS: Final = 10
BFLOAT8_FRACTION_BITS: Final = 6
BFLOAT8_MAGNITUDE_BITS: Final = 7
EXPONENT_BIAS: Final = 127
STRETCH: Final = 1.0 + 2.0**-13
MAX_NARROW_EXPONENT: Final = 237  # up to here 1.5 * 2**23 units fit float32
ELEMENT_SECONDS: Final = 1e-9  # that numpy takes for a number, half of it or five times as much


def unpack(values: Array, fmt: DataFormat, *, fp32_dest: bool) -> Array:
    """Values as the matrix unit reads them from L1: float32, cut to 11-bit significands; denormals are zero.

    ``values`` are exact in ``fmt``, the format of the buffer. With a 32-bit Dst (``fp32_dest``) float32 keeps 10 bits
    of its mantissa (TF32), otherwise 7.
    """
    bits, mask = _bits(values), ALL_BITS
    if fmt == FLOAT32:
        mask = TF32_MASK if fp32_dest else BFLOAT16_MASK
    twins = _loops(bits)
    if twins is None:
        return flushed(bits & mask).view(np.float32)
    out = np.empty(bits.size, np.int32)
    twins.cut(signed(bits.reshape(-1)), mask.view(np.int32), out)
    return out.view(np.float32).reshape(bits.shape)


def pack(dst: Array, fmt: DataFormat, *, fp32_dest: bool, relu: bool = False) -> Array:
    """Dst as the packer writes it to L1: float32 of the same shape, values exact in ``fmt``.

    Args:
        dst: [..., cols]; bfloat16 values if Dst is 16 bits wide. Block floats group 16 neighbors of the last axis.
        fmt: float32, bfloat16 or a block float.
        fp32_dest: Whether Dst is 32 bits wide.
        relu: Whether negative numbers become zero. That happens on the way in, so that a block float's shared exponent
            is the largest of the numbers that stay.

    Raises:
        ValueError: The packer does not write the format, or the last axis is no multiple of 16 for a block float.
    """
    if fmt == FLOAT32:
        packed = np.asarray(dst, np.float32)
        return np.maximum(packed, np.float32(0)) if relu else packed
    if fmt.is_block:
        return _share_exponents(_bits(dst), fmt, rounds_first=True, relu=relu)
    if fmt != BFLOAT16:
        raise ValueError(f"pack: the packer writes float32, bfloat16 and block floats, not {fmt}")
    return _to_bfloat16(_bits(dst), rounds=fp32_dest, relu=relu)


def tilize(values: Array, source: DataFormat, target: DataFormat, *, fp32_dest: bool, keeps_tf32: bool) -> Array:
    """Row-major values after tilizing through the matrix unit's operands, Dst and the packer: exact in ``target``.

    Args:
        values: [..., cols], exact in ``source``; for a block float as target, cols are those of the K block.
        source: Format of the sticks.
        target: Format of the tiles.
        fp32_dest: Whether Dst is 32 bits wide.
        keeps_tf32: Whether a 32-bit Dst is used as such on the way to a narrower format. Blackhole's fast tilize uses
            16 bits of it: float32 keeps 7 bits of mantissa instead of 10, and block floats go straight to the shared
            exponent, because the packer then reads bfloat16. It serves blocks of two tiles width and more
            (``ComputeSpec.fast_tilize_keeps_tf32``; tt-metal 0.81, checked against recorded runs).
    """
    if source == FLOAT32:
        wide = fp32_dest and (target == FLOAT32 or keeps_tf32)
        values = unpack(values, source, fp32_dest=wide)
    if target == FLOAT32:
        return np.asarray(values, np.float32)
    if target == BFLOAT16 and source != FLOAT32:
        return without_nan(_bits(values)).view(np.float32)
    if target.is_block and fp32_dest and not keeps_tf32:
        return share_exponents(values, target)
    return pack(values, target, fp32_dest=fp32_dest)


def share_exponents(values: Array, fmt: DataFormat) -> Array:
    """Values rounded once, half up and limited, under the largest exponent of 16 neighbors; denormals are zero.

    ``values`` are float32 [..., cols] of at most 11 significant bits; a block float of fewer than 7 magnitude bits
    loses the lower ones.
    """
    return _share_exponents(_bits(values), fmt, rounds_first=False, relu=False)


def accumulate_l1(stored: Array, packed: Array, fmt: DataFormat) -> Array:
    """L1 after the packer added ``packed`` to it: float32 or bfloat16, rounded to nearest even, denormals flushed."""
    if fmt not in (FLOAT32, BFLOAT16):
        raise ValueError(f"accumulate_l1: L1 adds float32 and bfloat16, not {fmt}")
    with np.errstate(over="ignore", invalid="ignore"):
        total = flushed(_bits(stored)).view(np.float32) + flushed(_bits(packed)).view(np.float32)
    bits = total.view(np.uint32)
    if fmt == BFLOAT16:  # the sum of two bfloat16 is exact in float32, or too lopsided to come near a tie
        bits = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & BFLOAT16_MASK
    return np.where(bits & EXPONENT_FIELD, bits, bits & SIGN).view(np.float32)


def add_bias(dst: Array, bias: Array, *, fp32_dest: bool) -> Array:
    """The matrix unit's element-wise addition, which is not a float addition: the new Dst, float32 [..., cols].

    The operand of smaller magnitude is shifted to the scale of the other's 11-bit significand, half up, without further
    guard bits; the sum of the two integers is exact in a 32-bit Dst and rounded half up to 8 bits in a 16-bit one.
    ``dst`` [..., cols] and ``bias`` [cols] are as ``unpack`` returns them.
    """
    left, right = _bits(dst), _bits(bias)
    twins = _loops(left) if right.shape in (left.shape, left.shape[-1:]) else None
    if twins is not None:
        out = np.empty(left.shape, np.int32)
        rows = (signed(bits.reshape(-1, max(left.shape[-1], 1))) for bits in (left, right))
        twins.add(*rows, fp32_dest, out.reshape(-1, max(left.shape[-1], 1)))
        return out.view(np.float32)
    exponents = np.maximum(_exponents(left), _exponents(right))
    wide = exponents.max(initial=0) > MAX_NARROW_EXPONENT
    total, addend = (
        _rounded(_widened(bits) if wide else bits.view(np.float32), exponents, OPERAND_FRACTION_BITS)
        for bits in (left, right)  # the larger one is a multiple of the unit already
    )
    total += addend
    with np.errstate(over="ignore"):
        bits = total.astype(np.float32, copy=False).view(np.uint32)
    if not fp32_dest:
        bits = (bits + np.uint32(0x8000)) & BFLOAT16_MASK
    return flushed(bits).view(np.float32)


def _bits(values: Array) -> Array:
    return np.ascontiguousarray(values, np.float32).view(np.uint32)


def flushed(bits: Array) -> Array:
    """Bit patterns with +0 for every zero and denormal.

    A mask instead of a choice: exponents of at least 1 reach the sign when all bits but that are added, and the sign
    fills the word.
    """
    mask = bits & EXPONENT_FIELD
    mask += ~SIGN
    signed = mask.view(np.int32)
    signed >>= 31
    mask &= bits
    return mask


def _exponents(bits: Array) -> Array:
    return ((bits & EXPONENT_FIELD) >> np.uint32(23)).view(np.int32)


def without_nan(bits: Array) -> Array:
    """Infinity for every NaN; the packer makes them so.

    Recorded of bfloat16 alone: `ttnn.max_pool2d` of a NaN, and a matmul of rows that a program tilized before.
    """
    magnitudes = bits & ~SIGN
    if magnitudes.max(initial=0) <= INFINITY:
        return bits
    return np.where(magnitudes > INFINITY, (bits & SIGN) | INFINITY, bits)


def _loops(bits: Array) -> Any:
    """The compiled twins of the functions below; None where numpy does the work."""
    if worth_loading("device.matrix_unit.packing_loops", bits.size * ELEMENT_SECONDS):
        return loops_of("device.matrix_unit.packing_loops")
    return None


def signed(bits: Array) -> Array:
    """Bit patterns as read-only int32, so that loops are compiled for one argument type."""
    array = bits.view(np.int32)
    array.flags.writeable = False
    return array


def _to_bfloat16(bits: Array, *, rounds: bool, relu: bool) -> Array:
    """bfloat16 values as float32, rounded half up where Dst is wider, NaN as infinity."""
    twins = _loops(bits)
    if twins is not None:
        out = np.empty(bits.size, np.int32)
        twins.to_bfloat16(signed(bits.reshape(-1)), rounds, relu, out)
        return out.view(np.float32).reshape(bits.shape)
    bits = without_nan(bits)
    if rounds:
        bits = (bits + np.uint32(0x8000)) & BFLOAT16_MASK
    packed = flushed(bits).view(np.float32)
    return np.maximum(packed, np.float32(0)) if relu else packed


def _widened(bits: Array) -> Array:
    """float64 values of bit patterns, with 255 as an ordinary exponent."""
    significands = ((bits & np.uint32(0x7FFFFF)) | np.uint32(0x800000)).astype(np.float64)
    values: Array = np.ldexp(significands, _exponents(bits) - 150)
    values[(bits & EXPONENT_FIELD) == 0] = 0.0
    return np.where(bits & SIGN, -values, values)


def _rounded(values: Array, exponents: Array, fraction_bits: int) -> Array:
    """Values rounded half up to multiples of 2**(exponents - 127 - fraction_bits); zeros are positive.

    ``values`` are float32 or float64 of few significant bits. ``exponents`` are int32, not smaller than those of the
    values, and within ``MAX_NARROW_EXPONENT`` for float32.
    """
    return _rounded_by(values, _magic(exponents, fraction_bits, values.dtype))


def _magic(exponents: Array, fraction_bits: int, dtype: Any) -> Array:
    """The numbers that round to multiples of 2**(exponents - 127 - fraction_bits) when added and subtracted again."""
    if dtype == np.float64:
        wide: Array = np.ldexp(1.5, exponents + (52 - 127 - fraction_bits))
        return wide
    magic: Array = (((exponents + (23 - fraction_bits)) << 23) | (1 << 22)).view(np.float32)
    return magic


def _rounded_by(values: Array, magic: Array) -> Array:
    """Values rounded by their `_magic`, half up."""
    rounded: Array = values * values.dtype.type(STRETCH) + magic
    rounded -= magic
    return rounded


def _share_exponents(bits: Array, fmt: DataFormat, *, rounds_first: bool, relu: bool) -> Array:
    """Magnitudes under the largest exponent of 16 neighbors, half up and limited; float32 values.

    ``bits`` [..., cols] have at most 11 significant bits, unless ``rounds_first`` rounds each to seven, half up. A
    block float of fewer than 7 magnitude bits loses the lower ones. ``relu`` acts before the exponent is chosen.
    """
    if bits.shape[-1] % GROUP:
        raise ValueError(
            f"pack: {fmt} shares exponents among {GROUP} neighbors, so the last axis must be a multiple of that, "
            f"not {bits.shape[-1]}; pad it to whole tiles"
        )
    twins, dropped = _loops(bits), BFLOAT8_MAGNITUDE_BITS - fmt.mantissa_bits
    if twins is not None:
        out = np.empty((bits.size // GROUP, GROUP), np.int32)
        twins.share_exponents(signed(bits.reshape(out.shape)), rounds_first, dropped, relu, out)
        return out.view(np.float32).reshape(bits.shape)
    bits = flushed(bits if not rounds_first else _seven_bits(bits))
    return _shared(np.where(bits & SIGN, np.uint32(0), bits) if relu else bits, dropped)


def _seven_bits(bits: Array) -> Array:
    """Bit patterns of seven significant bits, half up."""
    return (flushed(without_nan(bits)) + np.uint32(1 << 16)) & SEVEN_BITS_MASK


def _shared(bits: Array, dropped: int) -> Array:
    """`_share_exponents` of bit patterns without denormals; ``dropped`` low bits of a magnitude are cut."""
    groups = bits.reshape(-1, GROUP)
    exponents = (largest_exponents(groups) >> np.uint32(23)).view(np.int32)
    wide = exponents.max(initial=0) > MAX_NARROW_EXPONENT
    values = _widened(groups) if wide else groups.view(np.float32)
    values = _rounded_by(values, spread(_magic(exponents, BFLOAT8_FRACTION_BITS, values.dtype)))
    unit = np.ldexp(values.dtype.type(1), exponents - (EXPONENT_BIAS + BFLOAT8_FRACTION_BITS))
    limit = spread(unit * values.dtype.type((1 << BFLOAT8_MAGNITUDE_BITS) - 1))
    np.minimum(values, limit, out=values)
    np.maximum(values, np.negative(limit, out=limit), out=values)
    if dropped:
        units = spread(unit * values.dtype.type(1 << dropped))
        values = np.trunc(values / units) * units
        values += 0.0  # no negative zero
    with np.errstate(over="ignore"):
        return values.astype(np.float32, copy=False).reshape(bits.shape)


KEPT: Final = np.uint32(0xFFFFE000)  # sign, exponent and ten bits, as many as rounding looks at
STICKY: Final = np.uint32(0x00002000)  # the last of them, which stands for all that are cut


def typecast(values: Array, source: DataFormat, target: DataFormat) -> Array:
    """Values in another format, as the device converts them: the same shape, in storage of ``target``.

    ``values`` are exact in ``source``. Block floats group 16 neighbors of the last axis; zeros fill up the last group.
    For bfloat8_b the packer reads Dst unchanged (`bfp8_pack_precise` of tt-metal 0.81.1), so that there is one
    rounding, half up, directly to the shared exponent; for bfloat4_b it rounds and truncates as after a matmul.
    Recorded for bfloat16; float32 to block floats follows the same code without a recording.

    Raises:
        ArgumentError: Infinity or NaN for an integer format.
    """
    if not target.is_block or not source.is_float or values.ndim == 0:
        return quantize(values, target)
    *lead, columns = values.shape
    rows = values.reshape(prod(lead), columns)
    array = np.empty(rows.shape, target.storage)
    for part in parts_of(*rows.shape):
        array[part] = _packed(whole_groups(rows[part]), source, target)[:, :columns]
    return array.reshape(values.shape)


def _packed(values: Array, source: DataFormat, target: DataFormat) -> Array:
    """float32 values [rows, columns] in whole groups as a block float holds them, float32."""
    if target != BFLOAT8_B:
        return pack(values, target, fp32_dest=source == FLOAT32)
    return share_exponents(_shortened(values) if source == FLOAT32 else values, target)  # others are that short


def _shortened(values: Array) -> Array:
    """float32 values of 11 significant bits that round half up as the given ones do."""
    bits = values.view(np.uint32)
    return np.where(bits & ~KEPT, (bits & KEPT) | STICKY, bits).view(np.float32)
