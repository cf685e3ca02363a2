"""What a benchmark gives: figures with their limits, and the helpers that measure them."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured figure."""

    bench: str  # The benchmark it belongs to
    case: str  # What was measured, for example a layer
    name: str
    value: float  # The figure; of several runs the shortest
    unit: str  # Of the value: "ms", "s", "x" (a ratio), "MiB"
    limit: float | None = None  # The most it may be; None where nothing is asked of it
    median: float | None = None  # The middle of the runs; None where only the shortest is kept
    longest: float | None = None  # The longest of the runs; likewise

    @property
    def within(self) -> bool:
        """Whether it keeps its limit."""
        return self.limit is None or self.value <= self.limit


def least_seconds(op: Callable[[], object], repeats: int, *, clock: Callable[[], float] = time.perf_counter) -> float:
    """The shortest of several runs: what the work takes when nothing else disturbs it."""
    best = float("inf")
    for _ in range(repeats):
        start = clock()
        op()
        best = min(best, clock() - start)
    return best


def run_times(bench: str, case: str, name: str, seconds: Sequence[float]) -> Figure:
    """The shortest, the middle and the longest of some runs, in ms."""
    shortest, middle, longest = (1e3 * of(seconds) for of in (min, median, max))
    return Figure(bench=bench, case=case, name=name, value=shortest, unit="ms", median=middle, longest=longest)


def all_locked(
    ops: Mapping[str, Callable[[], float]], repeats: int, *, pause_seconds: float = 0.0
) -> dict[str, list[float]]:
    """Seconds of several works that take turns, so that what disturbs one of them disturbs all.

    Each work returns the seconds of it that count. One turn warms up before the ``repeats`` turns that count. Before
    each work is a pause: threads of some libraries spin for milliseconds afterwards, on the core that the next work
    needs.
    """
    seconds: dict[str, list[float]] = {name: [] for name in ops}
    for turn in range(repeats + 1):
        for name, op in ops.items():
            time.sleep(pause_seconds)
            taken = op()
            if turn:
                seconds[name].append(taken)
    return seconds
