"""What a halo computes, as data for the readings of values and of cycles."""

from dataclasses import dataclass

from device.numbers.formats import DataFormat
from ops.frame.frame import Frame


@dataclass(frozen=True, slots=True, kw_only=True)
class HaloWork:
    """One halo program: sticks are copied into the frame, tiles are untilized on the way.

    Attributes:
        frame: The frame.
        in_format: Format of the input.
        tiled: The input is in tiles.
        fp32_dest: Dst is 32 bits wide, which decides what untilizing leaves of a float32.
    """

    frame: Frame
    in_format: DataFormat
    tiled: bool
    fp32_dest: bool
