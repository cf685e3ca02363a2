"""What a benchmark gives: figures with their limits, and the helpers that measure them."""

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured figure.

    Attributes:
        bench: The benchmark it belongs to.
        case: What was measured, for example a layer.
        name: Which figure of it.
        value: The figure.
        unit: Of the value: "ms", "s", "x" (a ratio), "MiB".
        limit: The most it may be; None where nothing is asked of it.
    """

    bench: str
    case: str
    name: str
    value: float
    unit: str
    limit: float | None = None

    @property
    def within(self) -> bool:
        """Whether it keeps its limit."""
        return self.limit is None or self.value <= self.limit


def least_seconds(work: Callable[[], object], repeats: int) -> float:
    """The shortest of several runs: what the work takes when nothing else disturbs it."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best
