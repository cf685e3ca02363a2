"""The readable reference of one instruction of the matrix unit, bit by bit.

One step adds 16 products to every element of Dst, in integers, with the hardware's roundings. This module defines the
operands inside the unit for all engines. The fast engines (``device.matrix_unit.blocks``,
``device.matrix_unit.compiled``) give the same bits and run under the same tests; operations use
``device.matrix_unit.blocks``. Rules: Tenstorrent's ISA documentation (MVMUL, SrcA, SrcB, Dst) and its open functional
simulator, checked against 2,000 recorded instructions.

A number is a float32 bit pattern: sign, 8-bit exponent, mantissa. An exponent of 0 reads as zero, and an exponent of
255 is an ordinary exponent while inside the unit.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from device.spec.device_spec import DeviceSpec, catalog_name, catalog_names, load_spec

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

STEP_DEPTH: Final = 16  # products a step adds to one element of Dst
GROUP_DEPTH: Final = 8  # of which these are summed apart
EXPONENT_BIAS: Final = 127
EXPONENT_MAX: Final = 255
GUARD_BITS: Final = 13  # that lift it to the scale of a 24-bit significand
DST_BITS: Final = 24  # of a significand in a 32-bit Dst
DST16_BITS: Final = 8  # of a significand in a 16-bit Dst
MAX_PRODUCT_SHIFT: Final = 30
MAX_TERM_SHIFT: Final = 31
MINUS_ONE_EXCESS: Final = 27  # places of normalization that go missing


class Phase(NamedTuple):
    """Which parts of the significands a fidelity phase multiplies."""

    low_weight: bool
    low_activation: bool

    @property
    def lowered_by(self) -> int:
        """The reduction of a product's exponent by the position of its parts."""
        return 5 * self.low_weight + 7 * self.low_activation


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixUnitMode:
    """How the matrix unit is set up for an operation."""

    fidelity_phases: int  # Fidelity phases that run: 1 for LoFi, 2, 3, 4 for HiFi2, HiFi3, HiFi4
    fp32_dest: bool  # Whether Dst keeps 32 bits of a number; otherwise 16 (bfloat16)
    minus_one_quirk: bool  # Whether a sum of exactly -1 unit is normalized wrongly (a figure of the device)

    def __post_init__(self) -> None:
        """Refuses a number of fidelity phases that does not exist."""
        if self.fidelity_phases not in (1, 2, 3, 4):
            raise ValueError(
                f"fidelity_phases must be 1 (LoFi), 2 (HiFi2), 3 (HiFi3) or 4 (HiFi4), not {self.fidelity_phases!r}"
            )


class _Term(NamedTuple):
    """One addend of the accumulation: a significand on the scale of 24 bits."""

    exponent: Array
    magnitude: Array
    negative: Array


def phase_of(number: int) -> Phase:
    """The parts that fidelity phase 0, 1, 2 or 3 multiplies."""
    return Phase(low_weight=bool(number & 1), low_activation=bool(number & 2))


def mvmul(src_a: Array, src_b: Array, dst: Array, *, phase: int, fp32_dest: bool, arch: str | DeviceSpec) -> Array:
    """One MVMUL instruction: ``dst + src_b @ src_a``, the new Dst, uint32 [8, 16].

    Args:
        src_a: uint32 [16, 16] bit patterns of the weights; 10 bits of the mantissa are used.
        src_b: uint32 [8, 16], activations.
        dst: uint32 [8, 16].
        phase: Fidelity phase, 0 to 3.
        fp32_dest: Whether Dst keeps 32 bits of a number, otherwise 16.
        arch: "wormhole_b0" or "blackhole"; or a device: its spec, its name in the catalog, or its TOML file.

    Raises:
        ValueError: A shape, the fidelity phase or the architecture is none of these.
    """
    for name, array, shape in (("src_a", src_a, (16, 16)), ("src_b", src_b, (8, 16)), ("dst", dst, (8, 16))):
        if np.shape(array) != shape or np.asarray(array).dtype != np.uint32:
            text = f"{np.asarray(array).dtype} {list(np.shape(array))}"
            raise ValueError(f"mvmul: {name} must be bit patterns, uint32 {list(shape)}, not {text}")
    if phase not in (0, 1, 2, 3):
        raise ValueError(f"mvmul: phase must be 0, 1, 2 or 3, not {phase!r}")
    quirk = _minus_one_quirk(arch)
    return accumulate_step(src_b, src_a, dst, phase=phase_of(phase), fp32_dest=fp32_dest, minus_one_quirk=quirk)


def accumulate_step(
    activations: Array, weights: Array, dst: Array, *, phase: Phase, fp32_dest: bool, minus_one_quirk: bool
) -> Array:
    """One step for any number of rows and columns: the new Dst, uint32 [rows, cols].

    ``activations`` are uint32 [rows, 16], ``weights`` uint32 [16, cols]; ``minus_one_quirk`` is that of
    ``MatrixUnitMode``.
    """
    halves = (slice(0, GROUP_DEPTH), slice(GROUP_DEPTH, STEP_DEPTH))
    sums = tuple(_sum_of_products(activations[:, half, None], weights[None, half], phase) for half in halves)
    return _added_to_dst(sums, dst, fp32_dest=fp32_dest, minus_one_quirk=minus_one_quirk)


def multiplied_elements(left: Array, right: Array, *, fp32_dest: bool, minus_one_quirk: bool) -> Array:
    """The element-wise product in all four fidelity phases, accumulated in Dst.

    Operands are uint32 bit patterns of one shape: ``left`` is in SrcA, ``right`` in SrcB. ``minus_one_quirk`` is that
    of ``MatrixUnitMode``.
    """
    mode = MatrixUnitMode(fidelity_phases=4, fp32_dest=fp32_dest, minus_one_quirk=minus_one_quirk)
    return weighted_sums(right.reshape(-1, 1), left.reshape(-1, 1, 1), mode=mode).reshape(left.shape)


def weighted_sums(factors: Array, rows: Array, *, mode: MatrixUnitMode) -> Array:
    """A sum of few rows for each of many results, each row times a factor, phase by phase: the Dst, uint32 [N, cols].

    ``factors`` are uint32 bit patterns [N, rows] in SrcB, ``rows`` those [N, rows, cols] in SrcA; at most
    ``GROUP_DEPTH`` rows.
    """
    dst = np.zeros((rows.shape[0], rows.shape[2]), np.uint32)
    for number in range(mode.fidelity_phases):
        total = _sum_of_products(factors[:, :, None], rows, phase_of(number))
        dst = _added_to_dst((total,), dst, fp32_dest=mode.fp32_dest, minus_one_quirk=mode.minus_one_quirk)
    return dst


def _minus_one_quirk(arch: str | DeviceSpec) -> bool:
    """The quirk of an architecture in the catalog, or of a device."""
    quirks = _minus_one_quirks()
    if isinstance(arch, str) and arch in quirks:
        return quirks[arch]
    if isinstance(arch, DeviceSpec) or catalog_name(str(arch)) or str(arch).endswith(".toml"):
        return load_spec(arch).compute.minus_one_quirk
    known = ", ".join(map(repr, quirks))
    raise ValueError(f"mvmul: arch must be one of {known}, or a device (its spec, name or TOML file), not {arch!r}")


@cache
def _minus_one_quirks() -> Mapping[str, bool]:
    specs = map(load_spec, catalog_names())
    return MappingProxyType({spec.arch: spec.compute.minus_one_quirk for spec in specs})


def _fields(bits: Array) -> tuple[Array, Array, Array]:
    """Sign, exponent and mantissa field (23 bits) of bit patterns."""
    wide = bits.astype(np.int64)
    return wide >> 31 != 0, (wide >> 23) & 0xFF, wide & 0x7FFFFF


def _significands(bits: Array) -> tuple[Array, Array, Array]:
    """Sign, exponent and 11-bit significand (hidden bit included) of operands."""
    negative, exponent, mantissa = _fields(bits)
    return negative, exponent, (mantissa >> 13) | (1 << 10)


def _sum_of_products(activations: Array, weights: Array, phase: Phase) -> _Term:
    """Products along the second of three axes, aligned to the largest of their exponents and added."""
    negative_b, exponent_b, significand_b = _significands(activations)
    negative_a, exponent_a, significand_a = _significands(weights)
    part_a = (significand_a >> 1) & 31 if phase.low_weight else significand_a >> 6
    part_b = (significand_b & 15) << 3 if phase.low_activation else significand_b >> 4
    present = (exponent_a != 0) & (exponent_b != 0)
    product = np.where(present, part_a * part_b, 0)
    exponent = np.where(present, exponent_a + exponent_b - EXPONENT_BIAS - phase.lowered_by, 0)
    largest = exponent.max(axis=1)
    shift = np.minimum(largest[:, None] - exponent, MAX_PRODUCT_SHIFT)
    aligned = ((product << 1) + (1 << shift)) >> (shift + 1)
    total = np.where(negative_a != negative_b, -aligned, aligned).sum(axis=1)
    total = np.where(largest > 0, total, 0)
    return _Term(np.maximum(largest, 0), np.abs(total) << GUARD_BITS, total < 0)


def _added_to_dst(sums: tuple[_Term, ...], dst: Array, *, fp32_dest: bool, minus_one_quirk: bool) -> Array:
    """The new Dst: sums of products and Dst, aligned to the largest exponent and added."""
    old = _read_dst(dst)
    exponent = old.exponent
    for product_sum in sums:
        exponent = np.maximum(exponent, product_sum.exponent)
    total = np.zeros(dst.shape, np.int64)
    for term, half_down in (
        *((product_sum, product_sum.negative) for product_sum in sums),
        (old, np.zeros_like(old.negative)),
    ):
        magnitude = _align(term.magnitude, exponent - term.exponent, half_down)
        if not fp32_dest:
            magnitude = _shift_right(magnitude, GUARD_BITS, half_down) << GUARD_BITS
        total += np.where(term.negative, -magnitude, magnitude)
    return _normalize(total, exponent, fp32_dest=fp32_dest, minus_one_quirk=minus_one_quirk)


def _read_dst(dst: Array) -> _Term:
    negative, exponent, mantissa = _fields(dst)
    return _Term(exponent, np.where(exponent > 0, mantissa | (1 << 23), 0), negative)


def _shift_right(magnitude: Array, shift: Array | int, half_down: Array) -> Array:
    """Shift by at least one place, rounding half up, or half down where ``half_down``."""
    shifted: Array = (magnitude + (1 << (np.asarray(shift) - 1)) - half_down) >> shift
    return shifted


def _align(magnitude: Array, shift: Array, half_down: Array) -> Array:
    """A significand brought to an exponent larger by ``shift``."""
    moved = _shift_right(magnitude, np.clip(shift, 1, MAX_TERM_SHIFT), half_down)
    return np.where(shift == 0, magnitude, np.where(shift >= MAX_TERM_SHIFT, 0, moved))


def _normalize(total: Array, exponent: Array, *, fp32_dest: bool, minus_one_quirk: bool) -> Array:
    """A sum of significands as a bit pattern; rounding is half up on the magnitude."""
    magnitude = np.abs(total)
    width = np.frexp(magnitude.astype(np.float64))[1].astype(np.int64)  # bits in use; exact, sums are below 2**31
    excess = width - (DST_BITS if fp32_dest else DST16_BITS)
    rounded = np.where(
        excess > 0,
        _shift_right(magnitude, np.maximum(excess, 1), np.zeros_like(total)),
        magnitude << np.maximum(-excess, 0),
    )
    significand = rounded if fp32_dest else rounded << (DST_BITS - DST16_BITS)
    carried = significand >> DST_BITS
    new_exponent = exponent + width - DST_BITS + carried
    if minus_one_quirk:
        new_exponent += np.where(total == -1, MINUS_ONE_EXCESS, 0)
    mantissa = (significand >> carried) & 0x7FFFFF
    bits = np.where(new_exponent >= EXPONENT_MAX, EXPONENT_MAX << 23, (new_exponent << 23) | mantissa)
    bits = np.where((exponent <= 0) | (total == 0) | (new_exponent <= 0), 0, bits | np.where(total < 0, 1 << 31, 0))
    return bits.astype(np.uint32)


WEIGHT_MASK: Final = 0xFFFFC000  # sign, exponent and the nine mantissa bits that some fidelity phase uses
WEIGHT_HIGH_MASK: Final = 0xFFF80000  # and four
ACTIVATION_MASK: Final = 0xFFFFE000  # ten mantissa bits
ACTIVATION_HIGH_MASK: Final = 0xFFFE0000  # and six
ACTIVATION_STRETCH: Final = 1.0 + 2.0**-13
WEIGHT_SCALE_EXPONENT: Final = 15
ABSENT_EXPONENT: Final = -8192  # of a zero operand: any sum with it is below every real one
# Bit pattern of an accumulator's start without X: exponent field 127 + 23 - 137 + 15 = 28, mantissa 1.5.
ANCHOR_BITS: Final = (28 << 23) | (1 << 22)
MAX_WEIGHT_EXPONENT: Final = 254 - WEIGHT_SCALE_EXPONENT
MAX_ACTIVATION_EXPONENT: Final = 254
MAX_EXPONENT_SUM: Final = 254 - 28 + 127


class Parts(NamedTuple):
    """Operands split into the parts that fidelity phases multiply."""

    high: Array  # float32, for the fidelity phases that take the high part
    low: Array  # float32, for the others
    exponents: Array  # int16, ``ABSENT_EXPONENT`` where the operand is zero


def weight_parts(bits: Array) -> Parts:
    """Parts of weights, scaled; ``bits`` is uint32 of any shape, exponents at most ``MAX_WEIGHT_EXPONENT``."""
    return _split(bits, WEIGHT_MASK, WEIGHT_HIGH_MASK, 2.0**WEIGHT_SCALE_EXPONENT)


def activation_parts(bits: Array) -> Parts:
    """Parts of activations, stretched; ``bits`` is uint32 of any shape, exponents at most 254."""
    return _split(bits, ACTIVATION_MASK, ACTIVATION_HIGH_MASK, ACTIVATION_STRETCH)


def largest_exponent(bits: Array) -> int:
    """Largest exponent field among bit patterns, 0 if there are none."""
    return int((bits & np.uint32(0x7FFFFFFF)).max(initial=0)) >> 23


def in_range(weight_exponent: int, activation_exponent: int) -> bool:
    """Whether operands with these largest exponents may be computed in float32."""
    return (
        weight_exponent <= MAX_WEIGHT_EXPONENT
        and activation_exponent <= MAX_ACTIVATION_EXPONENT
        and weight_exponent + activation_exponent <= MAX_EXPONENT_SUM
    )


def _split(bits: Array, mask: int, high_mask: int, factor: float) -> Parts:
    exponents = ((bits >> np.uint32(23)) & np.uint32(0xFF)).astype(np.int16)
    absent = exponents == 0
    cut = np.where(absent, np.uint32(0), bits & np.uint32(mask))
    high = (cut & np.uint32(high_mask)).view(np.float32)
    low = cut.view(np.float32) - high
    scale = np.float32(factor)
    return Parts(high * scale, low * scale, np.where(absent, np.int16(ABSENT_EXPONENT), exponents))
