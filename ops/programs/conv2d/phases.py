"""Which inputs a kernel tap meets, when most of the frame is zeros.

Along one axis the outputs fall into phases: outputs of one phase meet inputs under the same taps, and inserted zeros
under all others. Leaving those zeros out changes no bit of the result (docs/values.md, Zeros), and saves the square
of the stride in work.
"""

from dataclasses import dataclass
from math import gcd

from ops.programs.halo.frame import FrameAxis


@dataclass(frozen=True, slots=True)
class PhaseTap:
    """A tap of a phase: output `first + m * distance` meets input `start + m * stride` under it.

    Attributes:
        tap: Position in the kernel.
        start: Input of the phase's first output; may lie outside the input, where there are zeros.
    """

    tap: int
    start: int


@dataclass(frozen=True, slots=True)
class OutputPhase:
    """Outputs that meet inputs under the same taps.

    Attributes:
        first: The first output.
        distance: From one output to the next.
        count: Outputs.
        stride: From the input of one output to that of the next.
        taps: In ascending order.
    """

    first: int
    distance: int
    count: int
    stride: int
    taps: tuple[PhaseTap, ...]


def output_phases(axis: FrameAxis) -> tuple[OutputPhase, ...]:
    """The phases of one axis of the frame; together they hold every output once."""
    distance = axis.insertion // gcd(axis.insertion, axis.step)
    stride = axis.step * distance // axis.insertion
    phases = []
    for first in range(min(distance, axis.outputs)):
        count = (axis.outputs - first - 1) // distance + 1
        taps = []
        for tap in range(axis.kernel):
            start, inserted = divmod(first * axis.step + tap * axis.dilation - axis.before, axis.insertion)
            meets_input = start <= axis.input_length - 1 and start + (count - 1) * stride >= 0
            if axis.before >= 0 and not inserted and meets_input:
                taps.append(PhaseTap(tap, start))
        phases.append(OutputPhase(first, distance, count, stride, tuple(taps)))
    return tuple(phases)
