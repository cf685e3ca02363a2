"""What a benchmark gives: figures with their limits, and the helpers that measure them, torch beside them."""

import os
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from statistics import median
from typing import Any

TORCH = "torch"
torch: Any = import_module("torch") if find_spec("torch") else None


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


def threads() -> int:
    """Threads that numpy's BLAS uses here, and torch is told to use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def clock_of(working: int) -> Callable[[], float]:
    """What so many threads are timed by: of one, its own time counts, whatever else the machine does meanwhile."""
    return time.thread_time if working == 1 else time.perf_counter


def least_seconds(op: Callable[[], object], repeats: int, *, clock: Callable[[], float] = time.perf_counter) -> float:
    """The shortest of several runs: what the work takes when nothing else disturbs it."""
    best = float("inf")
    for _ in range(repeats):
        start = clock()
        op()
        best = min(best, clock() - start)
    return best


def timed(op: Callable[[], object]) -> Callable[[], float]:
    """A work that returns its seconds; on one thread in its own processor time."""
    return partial(least_seconds, op, 1, clock=clock_of(threads()))


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


def race(
    bench: str,
    case: str,
    ops: Mapping[str, Callable[[], float]],
    repeats: int,
    limits: Mapping[str, float],
    totals: MutableMapping[str, float],
    *,
    names: Mapping[str, str] | None = None,
    ratio: str = "{}, of torch",
    pause_seconds: float = 0.0,
) -> Iterator[Figure]:
    """What works take in turns and, with torch among them, how many times as long as torch; adds to the totals.

    ``names`` are the figures' names of works that are not called like their work; ``ratio`` names the ratios.
    """
    shortest = {}
    for name, seconds in all_locked(ops, repeats, pause_seconds=pause_seconds).items():
        shortest[name] = min(seconds)
        totals[name] = totals.get(name, 0.0) + min(seconds)
        yield run_times(bench, case, (names or {}).get(name, name), seconds)
    yield from of_torch(bench, case, shortest, limits, ratio)


def of_torch(
    bench: str, case: str, seconds: Mapping[str, float], limits: Mapping[str, float], ratio: str = "{}, of torch"
) -> Iterator[Figure]:
    """How many times torch's seconds the others take."""
    for name in seconds if TORCH in seconds else ():
        if name != TORCH:
            value = seconds[name] / seconds[TORCH]
            yield Figure(bench=bench, case=case, name=ratio.format(name), value=value, unit="x", limit=limits.get(name))
