"""What the patch programs compute, as frozen values; `meaning` says what they mean.

All tensors are sticks in DRAM: one row of channels for every position of an image. Arrays are the same numbers without
padding: images [N, *spatial, C], weights [groups, *taps, in, out] with the channels of one group.
"""

from dataclasses import dataclass

from device.memory.memory_config import TILE
from device.numbers.block_floats import div_up, round_up
from device.numbers.formats import DataFormat
from device.plan import DeviceOp
from ops.programs.matmul.op import MatmulOp
from ops.programs.patch_matmul.slicing import Slicing
from ops.window import PaddedAxis

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
        rows = self.batch
        for axis in self.axes:
            rows *= axis.outputs
        return rows

    @property
    def taps(self) -> tuple[int, ...]:
        """Positions of a patch on every axis."""
        return tuple(axis.kernel for axis in self.axes)

    @property
    def tap_count(self) -> int:
        """Positions of a patch."""
        count = 1
        for axis in self.axes:
            count *= axis.kernel
        return count

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
    """Patches times weights, written to their places among the sticks of the result."""

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
    """Channels of one image against patches of another, summed over all positions of both."""

    patches: Patches  # The second operand: one patch for every position of the first image
    channels: int  # Channels of the first image, which lies on the device as a matrix of channels and positions
    sections: int  # The positions are dealt to this many bands of cores, each of which makes a sum of its own
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
