"""The device operations of the patch programs, as frozen records; `model` lists their models.

All tensors are sticks in DRAM: one row of channels for every position of an image. Arrays have the same values without
padding: images [N, *spatial, C], weights [groups, *taps, in, out] with the channels of one group.
"""

from dataclasses import dataclass
from enum import Enum
from functools import cache
from math import prod
from typing import Final

import numpy as np

from device.matrix_unit.arithmetic import cut
from device.memory.memory_config import TILE
from device.numbers.formats import BFLOAT16, FLOAT32, Array, DataFormat, div_up, round_up
from device.plan import DeviceOp
from ops.programs.matmul.op import MatmulOp
from ops.window import PaddedAxis

IN0_BITS: Final = 7  # of a significand that the first fidelity phase takes of the first operand
IN1_BITS: Final = 5  # and of the second
ALL_PHASES: Final = 4  # HiFi4
FEWEST_FOR_TF32: Final = 3  # fidelity phases that multiply all bits of the first operand

# Masks of what is left of a float32's mantissa: TF32 has ten bits
TF32, NINE_BITS, SIX_BITS, FOUR_BITS = (-1 << dropped for dropped in (13, 14, 17, 19))


class Precision(Enum):
    """The accuracy of results."""

    IEEE = "ieee"  # As if computed in float32 and rounded once
    DEVICE = "device"  # One pass of the matrix unit, which cuts float32 to TF32
    FLOAT64 = "float64"  # As computed in float64, which no device does: for tests. Planned as IEEE is for float32.


@dataclass(frozen=True, slots=True, kw_only=True)
class Slicing:
    """How two operands are multiplied."""

    part_format: DataFormat  # Format of an operand, or of one slice of it
    in0_slices: int = 1  # Slices of the first operand; 1 if it is whole
    in1_slices: int = 1  # Slices of the second operand
    passes: tuple[tuple[int, int], ...] = ((0, 0),)  # Which slices are multiplied, in order
    fidelity_phases: int = ALL_PHASES  # Fidelity phases of every pass


# Bits below the largest products that results are to have: those of the format, and some against false roundings.
SINGLE_BITS: Final = 25
HALF_BITS: Final = 18


@cache
def slicing_of(data_format: DataFormat, precision: Precision, *, fidelity_phases: int = ALL_PHASES) -> Slicing:
    """How operands of float32, float16 or bfloat16 are multiplied; a single pass has `fidelity_phases`."""
    if precision is Precision.DEVICE:
        return Slicing(part_format=data_format, fidelity_phases=fidelity_phases)
    wanted = SINGLE_BITS if data_format == FLOAT32 else HALF_BITS
    depths = {(i, j): i * IN0_BITS + j * IN1_BITS for i in range(wanted) for j in range(wanted)}  # of a pass, in bits
    passes = sorted((pair for pair, depth in depths.items() if depth < wanted), key=lambda pair: -depths[pair])
    in0_slices, in1_slices = (1 + max(numbers) for numbers in zip(*passes, strict=True))
    return Slicing(
        part_format=BFLOAT16, in0_slices=in0_slices, in1_slices=in1_slices, passes=tuple(passes), fidelity_phases=1
    )


def grid_exponent(values: Array) -> int:
    """The exponent of the largest finite number of a tensor, where the tensor's grid begins."""
    finite = np.abs(values, where=np.isfinite(values), out=np.zeros(values.shape, np.float32))
    return int(np.frexp(finite.max(initial=0.0))[1]) - 1


def slices(values: Array, count: int, bits: int, exponent: int) -> tuple[Array, ...]:
    """float32 values as sums of `count` slices, largest first, each exact in bfloat16; 1 leaves the values whole.

    The exponent is the grid's (`grid_exponent` of the whole tensor). An infinity or a NaN is only in the first slice.
    """
    if count == 1:
        return (values,)
    result = []
    rest, finite = values.astype(np.float64), np.isfinite(values)
    for number in range(1, count + 1):
        unit = 2.0 ** (exponent + 1 - number * bits)
        with np.errstate(invalid="ignore"):
            part = np.trunc(rest / unit) * unit
            rest = np.where(finite, rest - part, 0.0)
        result.append(part.astype(np.float32))
    return tuple(result)


def multiplied_whole(values: Array, slicing: Slicing, *, weights_side: bool) -> Array:
    """The part of an operand that all passes together use: all, or in a single pass what the matrix unit keeps.

    The second operand keeps nine bits of the mantissa, or four in one fidelity phase; the first keeps ten, or six in
    one or two phases. Three phases count as four: they omit only products of the lowest bits.
    """
    if len(slicing.passes) > 1:
        return values
    mask = -1
    if slicing.fidelity_phases < (2 if weights_side else FEWEST_FOR_TF32):
        mask = FOUR_BITS if weights_side else SIX_BITS
    elif slicing.part_format == FLOAT32 or (weights_side and slicing.part_format != BFLOAT16):
        mask = NINE_BITS if weights_side else TF32
    return values if mask == -1 else cut(values.copy(), mask)


HALF = 16  # channels of a tap are padded to this, so that taps never share a step of the matrix unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Patches:
    """Patches of an image."""

    batch: int
    axes: tuple[PaddedAxis, ...]  # Spatial axes, slowest first
    channels: int
    groups: int  # Groups they fall into
    bundles: int  # Groups are multiplied in this many bundles of several, each filled up with zeros to a dense matrix

    @property
    def rows(self) -> int:
        """Patches of all images."""
        return self.batch * prod(axis.outputs for axis in self.axes)

    @property
    def taps(self) -> tuple[int, ...]:
        """Positions of a patch on every axis."""
        return tuple(axis.kernel for axis in self.axes)

    @property
    def tap_count(self) -> int:
        """Positions of a patch."""
        return prod(self.taps)

    @property
    def tap_columns(self) -> int:
        """Columns of one tap of one bundle."""
        return round_up(self.channels // self.bundles, HALF)

    @property
    def column_tiles(self) -> int:
        """Width of the patches of one bundle."""
        return div_up(self.tap_count * self.tap_columns, TILE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchMatmul(DeviceOp):
    """Patches times weights, written to their sticks of the result."""

    patches: Patches  # The first operand
    out_channels: int
    out_shape: tuple[int, ...]  # Spatial sizes of the result; the axes say which of its positions are written
    slicing: Slicing  # How numbers are multiplied
    matmul: MatmulOp  # The matmul of one bundle, all passes one after the other along K
    bias: bool  # A row is added in float32 before the one rounding
    out_format: DataFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class FillRows(DeviceOp):
    """Positions of a result that meet no input: the bias, or zero."""

    batch: int
    axes: tuple[PaddedAxis, ...]
    out_channels: int
    out_shape: tuple[int, ...]  # Spatial sizes of the result
    bias: bool  # The bias is written, not zero
    out_format: DataFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class PixelMatmul(DeviceOp):
    """Channels of one image times patches of another, summed over all positions of both."""

    patches: Patches  # The second operand: one patch for every position of the first image
    channels: int  # Channels of the first image, a matrix of channels and positions on the device
    sections: int  # Number of bands of cores that share the positions; each band computes a separate sum
    slicing: Slicing  # How numbers are multiplied
    matmul: MatmulOp  # The matmul of one bundle in one band, all passes one after the other along K
    out_format: DataFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class SumSections(DeviceOp):
    """The sums of all bands are added up in float32, and rounded once."""

    sections: int
    rows: int
    columns: int
    out_format: DataFormat


@dataclass(frozen=True, slots=True)
class PrepareSticks(DeviceOp):
    """A tensor becomes one row of channels for every position; on the device it may be padded, split or transposed."""

    channels_last: bool  # It is [N, *spatial, C] already


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepareTaps(DeviceOp):
    """Converts weights to matrices, one for every tap of every group, in float32."""

    weights_format: str  # Order of the stored axes
    groups: int
    taps: tuple[range, ...]  # Which taps of every axis, in order
    towards_source: bool  # Matrices go from destination channels to source channels, not the other way


@dataclass(frozen=True, slots=True)
class PrepareBias(DeviceOp):
    """A bias becomes a row in float32."""
