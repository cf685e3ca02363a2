"""Which positions of an image a patch holds, along one spatial axis.

A *frame* holds the image with zeros between its positions and around it. Output ``m`` meets, under tap ``j``, frame
position ``m * step + start + j * spacing``. Every convolution is of this kind: a strided one (step), a transposed one
(insertion), and one output phase of a transposed one, which has neither.
"""

from dataclasses import dataclass
from math import gcd

from device.numbers.integers import div_up


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchAxis:
    """One axis.

    Attributes:
        input_size: Positions of the image.
        outputs: Positions that are computed.
        taps: Positions of a patch.
        start: Frame position of the first tap under the first output.
        spacing: From one tap to the next; negative if taps run backwards.
        step: From one output to the next.
        insertion: From one image position to the next in the frame.
        first: Where the first output lies in the result.
        distance: From one output to the next there.
    """

    input_size: int
    outputs: int
    taps: int
    start: int
    spacing: int
    step: int = 1
    insertion: int = 1
    first: int = 0
    distance: int = 1

    @property
    def low(self) -> int:
        """Lowest frame position that any patch holds."""
        return self.start + min(0, (self.taps - 1) * self.spacing)

    @property
    def high(self) -> int:
        """Highest frame position that any patch holds."""
        return self.start + max(0, (self.taps - 1) * self.spacing) + (self.outputs - 1) * self.step


@dataclass(frozen=True, slots=True)
class DensePhase:
    """Outputs that meet image positions under the same taps, and nothing but zeros under all others.

    Attributes:
        axis: Those outputs and taps, without zeros in between.
        taps: Which taps of the whole axis they are.
    """

    axis: PatchAxis
    taps: range


def dense_phases(axis: PatchAxis) -> tuple[DensePhase, ...]:
    """The outputs of an axis by the taps under which they meet the image; together they hold every output once.

    Taps that reach the image under no output of a phase are left out. A phase without taps is zero.
    """
    distance = axis.insertion // gcd(axis.insertion, axis.step)
    return tuple(_phase(axis, first, distance) for first in range(min(distance, axis.outputs)))


def _phase(axis: PatchAxis, first: int, distance: int) -> DensePhase:
    count = div_up(axis.outputs - first, distance)
    step = axis.step * distance // axis.insertion
    met: list[int] = []
    for tap in range(axis.taps):
        start, between = divmod(first * axis.step + axis.start + tap * axis.spacing, axis.insertion)
        if not between and start < axis.input_size and start + (count - 1) * step >= 0:
            met.append(tap)
    apart = met[1] - met[0] if len(met) > 1 else 1
    taps = range(met[0], met[-1] + 1, apart) if met else range(0)
    dense = PatchAxis(
        input_size=axis.input_size,
        outputs=count,
        taps=len(taps),
        start=(first * axis.step + axis.start + taps.start * axis.spacing) // axis.insertion,
        spacing=apart * axis.spacing // axis.insertion,
        step=step,
        first=axis.first + first * axis.distance,
        distance=distance * axis.distance,
    )
    return DensePhase(dense, taps)


def index_of(numbers: range) -> slice:
    """The slice that picks a range of indices from an array."""
    stop = numbers[-1] + numbers.step if numbers else numbers.start
    return slice(numbers.start, None if stop < 0 else stop, numbers.step)
