"""What a halo computes, as data for the readings of values and of cycles."""

from dataclasses import dataclass

from device.plan import Work
from ops.programs.halo.plan import HaloPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class HaloWork(Work):
    """One halo program: sticks are copied into the frame, tiles are untilized on the way.

    Attributes:
        plan: The halo as it was planned; it is compared by its arguments, from which all else follows.
        fp32_dest: Dst is 32 bits wide, which decides what untilizing leaves of a float32.
    """

    plan: HaloPlan
    fp32_dest: bool
