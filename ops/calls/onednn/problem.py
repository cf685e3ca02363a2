"""One transposed convolution in any number of dimensions, validated: what all three directions are planned from."""

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from device.numbers.formats import DataFormat
from ops.definition.geometry import Geometry
from ops.programs.patch_matmul.slicing import ALL_PHASES, Precision, Slicing, slicing_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Deconvolution:
    """A transposed convolution; source and destination are always those of the forward operation."""

    geometry: Geometry  # Its axes, with all padding resolved: the output size is that of the destination
    batch: int
    in_channels: int  # I, of the source
    out_channels: int  # O, of the destination
    groups: int  # Groups; they divide both
    data_format: DataFormat  # Type of all tensors
    out_format: DataFormat | None = None  # Type of the destination, if it is another one
    precision: Precision = Precision.IEEE  # What results should be like
    fidelity_phases: int = ALL_PHASES  # Fidelity phases, where precision is that of the device
    channels_last: bool = True  # Tensors are [N, *spatial, C], not [N, C, *spatial]
    weights_format: str = "XOI"  # Order of the axes of the weights: "IOX", "XOI", "OIX" or "XIO"

    @property
    def slicing(self) -> Slicing:
        """How its numbers are multiplied."""
        return slicing_of(self.data_format, self.precision, fidelity_phases=self.fidelity_phases)

    @property
    def host_type(self) -> np.dtype[Any]:
        """Numpy type of the caller's tensors and of the result."""
        wide = self.precision is Precision.FLOAT64
        return np.dtype(np.float64) if wide else self.data_format.storage

    @property
    def dst_format(self) -> DataFormat:
        """Type of the destination."""
        return self.out_format or self.data_format

    @property
    def useful_flops(self) -> int:
        """Multiplications and additions of the definition, the same in all three directions."""
        met = prod(sum(axis.reach(tap).inputs for tap in range(axis.kernel)) for axis in self.geometry.axes)
        return 2 * self.batch * self.in_channels * (self.out_channels // self.groups) * met

    @property
    def src_shape(self) -> tuple[int, ...]:
        """Shape of the source, in the caller's order."""
        return ordered(self.batch, self.in_channels, self.geometry.input_shape, channels_last=self.channels_last)

    @property
    def dst_shape(self) -> tuple[int, ...]:
        """Shape of the destination, in the caller's order."""
        return ordered(self.batch, self.out_channels, self.geometry.output_shape, channels_last=self.channels_last)


def ordered(batch: int, channels: int, spatial: tuple[int, ...], *, channels_last: bool) -> tuple[int, ...]:
    """A shape as [N, *spatial, C] or [N, C, *spatial]."""
    return (batch, *spatial, channels) if channels_last else (batch, channels, *spatial)
