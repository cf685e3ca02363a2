"""One spatial axis of a frame: the inputs, the zeros between and around them, and the windows that slide over all that.

Window ``m`` makes output ``m``. Its taps lie at ``m * step + start + tap * spacing``, counted from the first input,
and inputs at every multiple of ``insertion``. Every convolution is of this kind: an ordinary one (step), a transposed
one (insertion), the gradients of either, and one output phase of a transposed one, which has neither: outputs that
meet inputs under the same taps, and inserted zeros under all others.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from math import gcd
from typing import Final

import numpy as np

from device.numbers.integers import Integers, div_up

MOST_KEPT: Final = 256  # axes whose margins are kept


class NoWindowError(ValueError):
    """No window fits a frame, as where a slice has no outputs of its own."""


def count_windows(length: int, reach: int, step: int) -> int:
    """Windows of ``reach`` + 1 positions, ``step`` apart, in so many positions; zero or less where none fits."""
    return (length - reach - 1) // step + 1


def frame_length(input_length: int, insertion: int, margins: int) -> int:
    """Positions of inputs ``insertion`` apart and of all zeros around them together."""
    return (input_length - 1) * insertion + 1 + margins


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameAxis:
    """One axis."""

    input_length: int
    # Zeros ahead of the first input. Negative, windows begin behind the first input (padding by more than the window of
    # a transposed convolution); the real library takes the whole frame for padding then: see `data`.
    before: int
    after: int  # Zeros behind the last input; negative cuts inputs off
    insertion: int = 1  # Distance between neighboring inputs; the positions in between are zeros
    trailing: int = 0  # Zeros behind those, the output padding of a transposed convolution
    taps: int  # Window positions; none in an output phase that meets no input
    # Distance from one tap to the next: negative if they run backwards; with 0 they all meet the same input
    spacing: int = 1
    step: int = 1  # Distance between neighboring windows; 1 for a transposed convolution
    first: int = 0  # Where the first output lies in the result
    distance: int = 1  # From one output to the next there
    length: int = field(init=False, repr=False, compare=False)  # Positions in the frame
    # Distance from the first to the last position of a window
    reach: int = field(init=False, repr=False, compare=False)
    outputs: int = field(init=False, repr=False, compare=False)  # Windows that fit, which is the output length
    # Positions that hold input for the real library: none with a negative ``before``, which its halo wraps
    data: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Derives the lengths, which are read often; refuses an axis in which no window fits."""
        if min(self.input_length, self.insertion, self.step, self.distance) < 1 or self.taps < 0:
            raise ValueError(
                "FrameAxis: input_length, insertion, step and distance must be at least 1, and taps at least 0, not "
                f"{(self.input_length, self.insertion, self.step, self.distance)} and {self.taps}"
            )
        before, insertion = self.before, self.insertion
        length = frame_length(self.input_length, insertion, before + self.after + self.trailing)
        reach = abs(self.spacing) * (self.taps - 1) if self.taps else 0
        if length <= reach:
            raise NoWindowError(
                f"FrameAxis: a window that spans {reach + 1} positions does not fit a frame of {length}; "
                "use less padding, a smaller kernel or a larger input"
            )
        object.__setattr__(self, "length", length)
        object.__setattr__(self, "reach", reach)
        object.__setattr__(self, "outputs", count_windows(length, reach, self.step))
        held = 0 if before < 0 else min(max(div_up(length - before, insertion), 0), self.input_length)
        object.__setattr__(self, "data", held)

    @property
    def start(self) -> int:
        """Where the first tap of the first window lies, counted from the first input."""
        return -self.before if self.spacing >= 0 else self.reach - self.before

    @property
    def last(self) -> int:
        """The last position that any window reaches, counted from the first input."""
        return (self.outputs - 1) * self.step + self.reach - self.before

    @property
    def places(self) -> slice:
        """Where the outputs lie in the result."""
        return slice(self.first, self.first + (self.outputs - 1) * self.distance + 1, self.distance)

    def data_before(self, positions: Integers) -> Integers:
        """Data positions below each of ``positions`` of the frame."""
        below = (positions + (self.insertion - 1 - self.before)) // self.insertion
        return np.minimum(np.maximum(below, 0), self.data)


def transposed_axis(
    *, input_length: int, kernel: int, stride: int, padding: tuple[int, int], output_padding: int, dilation: int
) -> FrameAxis:
    """The axis of a transposed convolution, run as a convolution of stride 1 with a mirrored kernel.

    ``padding`` is (before, after), as the user gave it.
    """
    reach = dilation * (kernel - 1)
    return FrameAxis(
        input_length=input_length,
        before=reach - padding[0],
        after=reach - padding[1],
        insertion=stride,
        trailing=output_padding,
        taps=kernel,
        spacing=dilation,
    )


def transposed_outputs(
    *, input_length: int, kernel: int, stride: int, padding: tuple[int, int], output_padding: int, dilation: int
) -> int:
    """Outputs of a `transposed_axis`; zero or less where padding leaves none, and there is no such axis."""
    reach = dilation * (kernel - 1)
    length = frame_length(input_length, stride, 2 * reach - sum(padding) + output_padding)
    return count_windows(length, reach, 1)


def convolution_axis(
    *, input_length: int, kernel: int, stride: int, padding: tuple[int, int], dilation: int
) -> FrameAxis:
    """The axis of an ordinary convolution; ``padding`` is (before, after)."""
    return FrameAxis(
        input_length=input_length, before=padding[0], after=padding[1], taps=kernel, spacing=dilation, step=stride
    )


def gradient_axis(
    *, output_length: int, kernel: int, stride: int, padding: tuple[int, int], output_padding: int, dilation: int
) -> FrameAxis:
    """The axis of the data gradient of a transposed convolution: an ordinary convolution of its output's gradient.

    Args:
        output_length: Positions of the transposed convolution's output, which are the inputs here.
        padding: Its padding, (before, after).
        output_padding: What was added to the output is padded that much less.
    """
    before, after = padding
    return convolution_axis(
        input_length=output_length,
        kernel=kernel,
        stride=stride,
        padding=(before, after - output_padding),
        dilation=dilation,
    )


def axis_of_windows(
    *,
    input_length: int,
    outputs: int,
    taps: int,
    start: int,
    spacing: int = 1,
    step: int = 1,
    insertion: int = 1,
    first: int = 0,
    distance: int = 1,
) -> FrameAxis:
    """The axis whose frame begins and ends with its windows, of which the first begins at ``start``.

    Args:
        input_length: As of the axis, like all that is not said here.
        start: Where the first tap of the first window lies, counted from the first input.
        spacing: From one tap to the next.
        step: From one window to the next.
        insertion: From one input to the next.
        first: Where the first output lies in the result.
        distance: From one output to the next there.
    """
    reach = spacing * (taps - 1) if taps else 0
    before = -min(start, start + reach)
    return FrameAxis(
        input_length=input_length,
        before=before,
        after=(outputs - 1) * step + abs(reach) - before - (input_length - 1) * insertion,
        insertion=insertion,
        taps=taps,
        spacing=spacing,
        step=step,
        first=first,
        distance=distance,
    )


def margins(axes: Iterable[FrameAxis]) -> tuple[int, int]:
    """Zeros that windows of some axes reach ahead of the same inputs and behind them, none of which are inserted."""
    with_taps = [axis for axis in axes if axis.taps]
    before = max((axis.before for axis in with_taps), default=0)
    after = max((axis.last - (axis.input_length - 1) for axis in with_taps), default=0)
    return max(0, before), max(0, after)


@dataclass(frozen=True, slots=True)
class OutputPhase:
    """Outputs that meet inputs under the same taps, and nothing but zeros under all others."""

    axis: FrameAxis  # Those outputs and taps, without zeros in between
    taps: range  # Which taps of the whole axis they are, in ascending order

    @property
    def starts(self) -> tuple[int, ...]:
        """The input that each tap meets under the first output; outside the inputs there are zeros."""
        start, spacing = self.axis.start, self.axis.spacing
        return tuple(start + tap * spacing for tap in range(self.axis.taps))


def output_phases(axis: FrameAxis, *, whole: bool = False) -> tuple[OutputPhase, ...]:
    """The output phases of an axis; together they hold every output once. Outputs without taps are zero.

    Args:
        whole: Keep taps that reach the inputs under none of their outputs, but padding alone, as in a narrow slice.
    """
    distance = _period(axis)
    return tuple(_phase(axis, first, distance, whole=whole) for first in range(min(distance, axis.outputs)))


@lru_cache(MOST_KEPT)
def phase_margins(axis: FrameAxis) -> tuple[int, int, bool]:
    """The `margins` of an axis phase by phase, and whether none of its outputs meets more than one tap."""
    phases = [phase.axis for phase in output_phases(axis)]
    return *margins(phases), all(one.taps < 2 for one in phases)


def count_met_taps(axis: FrameAxis) -> int:
    """Taps of all outputs together that meet an input or the zeros around: those of the `output_phases`."""
    distance = _period(axis)
    return sum(
        div_up(axis.outputs - first, distance) * len(_met_taps(axis, first, distance))
        for first in range(min(distance, axis.outputs))
    )


def _period(axis: FrameAxis) -> int:
    """How far outputs lie apart that meet inputs under the same taps."""
    return axis.insertion // gcd(axis.insertion, axis.step)


def tap_classes(axis: FrameAxis) -> tuple[range, ...]:
    """Taps that meet inputs together, by the first of each: those of all whole output phases, whatever is computed."""
    classes: dict[int, list[int]] = {}
    for tap in range(axis.taps):
        classes.setdefault(tap * axis.spacing % axis.insertion, []).append(tap)
    return tuple(_evenly(taps) for taps in classes.values())


def _evenly(taps: list[int]) -> range:
    """Some taps, of which there is one at least: those that meet inputs together lie evenly."""
    return range(taps[0], taps[-1] + 1, taps[1] - taps[0] if len(taps) > 1 else 1)


def _phase(axis: FrameAxis, first: int, distance: int, *, whole: bool) -> OutputPhase:
    """The outputs from ``first`` on, ``distance`` apart: so far that the same taps meet inputs again."""
    met = _met_taps(axis, first, distance, whole=whole)
    taps = _evenly(met) if met else range(0)
    dense = axis_of_windows(
        input_length=axis.input_length,
        outputs=div_up(axis.outputs - first, distance),
        taps=len(taps),
        start=(first * axis.step + axis.start + taps.start * axis.spacing) // axis.insertion,
        spacing=taps.step * axis.spacing // axis.insertion,
        step=axis.step * distance // axis.insertion,
        first=axis.first + first * axis.distance,
        distance=distance * axis.distance,
    )
    return OutputPhase(dense, taps)


def _met_taps(axis: FrameAxis, first: int, distance: int, *, whole: bool = False) -> list[int]:
    """The taps that meet inputs under these outputs; if whole, those as well that reach zeros around alone."""
    begin = first * axis.step + axis.start
    farthest = (div_up(axis.outputs - first, distance) - 1) * axis.step * distance // axis.insertion
    met = []
    for tap in range(axis.taps):
        start, between = divmod(begin + tap * axis.spacing, axis.insertion)
        if not between and (whole or (start < axis.input_length and start + farthest >= 0)):
            met.append(tap)
    return met


def index_of(taps: range) -> slice:
    """The slice that picks some taps from an array."""
    stop = taps[-1] + taps.step if taps else taps.start
    return slice(taps.start, None if stop < 0 else stop, taps.step)
