"""Where a value lies on an axis, and which values an axis names."""

from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Final

STEPS: Final = (1, 2, 5, 10)
MOST_TICKS: Final = 6
WIDE: Final = 50  # times as much at the upper end as at the lower one: then each power of ten takes as much room


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """An axis from one value to another; between, values lie evenly or, on a logarithmic one, their ratios do."""

    low: float  # At its beginning
    high: float  # At its end; above the beginning
    logarithmic: bool = False  # Whether ratios lie evenly

    def share(self, value: float) -> float:
        """How far along the axis a value lies, 0 to 1."""
        if self.logarithmic:
            return (log10(value) - log10(self.low)) / (log10(self.high) - log10(self.low))
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """Round values on the axis."""
        if not self.logarithmic:
            step = _step((self.high - self.low) / MOST_TICKS)
            return [step * at for at in range(ceil(self.low / step - 1e-9), floor(self.high / step + 1e-9) + 1)]
        powers = range(floor(log10(self.low)), ceil(log10(self.high)) + 1)
        found = [factor * 10.0**power for power in powers for factor in STEPS[:-1]]
        inside = [value for value in found if self.low * (1 - 1e-9) <= value <= self.high * (1 + 1e-9)]
        whole = [value for value in inside if round(log10(value), 9).is_integer()]
        return whole if len(inside) > 2 * MOST_TICKS else inside


def scale_of(values: list[float], *, from_zero: bool = False) -> Scale:
    """An axis on which some values fit, with round ends; logarithmic where they are positive and far apart.

    Args:
        values: At least one, finite.
        from_zero: Begin at 0, as bars do; then it is not logarithmic.
    """
    low, high = min(values), max(values)
    if from_zero:
        low = min(low, 0.0)
    elif low > 0 and high / low > WIDE:
        return Scale(low=_below(low), high=_step(high), logarithmic=True)
    if low == high:
        room = abs(low) / 2 or 1.0
        low, high = (low, high + room) if from_zero else (low - room, high + room)
    step = _step((high - low) / MOST_TICKS)
    return Scale(low=step * floor(low / step + 1e-9), high=step * ceil(high / step - 1e-9))


def number(value: float) -> str:
    """A value as an axis names it: 1,200 or 0.05 or 3.5M."""
    size = abs(value)
    for least, factor, prefix in ((1e9, 1e9, "G"), (1e6, 1e6, "M")):
        if size >= least:
            return f"{value / factor:.4g}{prefix}"
    return f"{value:,.0f}" if size >= 1000 else f"{value:.4g}"


def _step(size: float) -> float:
    """The least 1, 2 or 5 times a power of ten that is at least so much."""
    power = 10.0 ** floor(log10(size))
    return power * next(factor for factor in STEPS if factor * power >= size * (1 - 1e-9))


def _below(value: float) -> float:
    """The greatest 1, 2 or 5 times a power of ten that is at most so much."""
    power = 10.0 ** floor(log10(value))
    return power * max(factor for factor in STEPS if factor * power <= value * (1 + 1e-9))
