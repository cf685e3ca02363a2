"""What the host does to arrays before it uploads them, as frozen values; `meaning` says what they mean."""

from dataclasses import dataclass

from device.plan import DeviceOp


@dataclass(frozen=True, slots=True)
class PrepareSticks(DeviceOp):
    """A tensor becomes one row of channels for every position; on the device it may be padded, split or transposed."""

    channels_last: bool  # It is [N, *spatial, C] already


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepareTaps(DeviceOp):
    """Weights become matrices, one for every tap of every group, in float32."""

    weights_format: str  # Order of the stored axes
    groups: int
    taps: tuple[range, ...]  # Which taps of every axis, in order
    towards_source: bool  # Matrices go from destination channels to source channels, not the other way


@dataclass(frozen=True, slots=True)
class PrepareBias(DeviceOp):
    """A bias becomes a row in float32."""
