"""Which inputs a tap meets, when most of a frame is zeros.

Along one axis the outputs fall into *output phases*: those of one meet inputs under the same taps, and inserted zeros
under all others. Leaving those zeros out changes no bit of a result, and saves the square of the stride in work.
"""

from dataclasses import dataclass
from math import gcd

from device.numbers.integers import div_up
from ops.frame.axis import FrameAxis, axis_of_windows


@dataclass(frozen=True, slots=True)
class OutputPhase:
    """Outputs that meet inputs under the same taps, and nothing but zeros under all others.

    Attributes:
        axis: Those outputs and taps, without zeros in between.
        taps: Which taps of the whole axis they are, in ascending order.
    """

    axis: FrameAxis
    taps: range

    @property
    def starts(self) -> tuple[int, ...]:
        """The input that each tap meets under the first output; outside the inputs there are zeros."""
        start, spacing = self.axis.start, self.axis.spacing
        return tuple(start + tap * spacing for tap in range(self.axis.taps))


def output_phases(axis: FrameAxis) -> tuple[OutputPhase, ...]:
    """The output phases of an axis; together they hold every output once.

    Taps that reach the inputs under none of their outputs are left out. Outputs without taps are zero.
    """
    distance = axis.insertion // gcd(axis.insertion, axis.step)
    return tuple(_phase(axis, first, distance) for first in range(min(distance, axis.outputs)))


def _phase(axis: FrameAxis, first: int, distance: int) -> OutputPhase:
    """The outputs from ``first`` on, ``distance`` apart: so far that the same taps meet inputs again."""
    outputs = div_up(axis.outputs - first, distance)
    step = axis.step * distance // axis.insertion
    begin = first * axis.step + axis.start
    met = []
    for tap in range(axis.taps):
        start, between = divmod(begin + tap * axis.spacing, axis.insertion)
        if not between and start < axis.input_length and start + (outputs - 1) * step >= 0:
            met.append(tap)
    apart = met[1] - met[0] if len(met) > 1 else 1  # the taps that meet inputs lie evenly
    taps = range(met[0], met[-1] + 1, apart) if met else range(0)
    dense = axis_of_windows(
        input_length=axis.input_length,
        outputs=outputs,
        taps=len(taps),
        start=(begin + taps.start * axis.spacing) // axis.insertion,
        spacing=apart * axis.spacing // axis.insertion,
        step=step,
        first=axis.first + first * axis.distance,
        distance=distance * axis.distance,
    )
    return OutputPhase(dense, taps)


def index_of(taps: range) -> slice:
    """The slice that picks some taps from an array."""
    stop = taps[-1] + taps.step if taps else taps.start
    return slice(taps.start, None if stop < 0 else stop, taps.step)
