"""What a benchmark gives: figures with their limits, and the helpers that measure them, torch beside them."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

TORCH = "torch"
torch: Any = import_module("torch") if find_spec("torch") else None


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure."""

    case: str  # What was measured, for example a layer
    name: str
    value: float  # The figure; of several runs the shortest
    unit: str = "ms"  # Of the value: "ms", "s", "x" (a ratio), "MiB"
    limit: float | None = None  # The most it may be; None where nothing is asked of it

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


def in_turns(ops: Mapping[str, Callable[[], float]], repeats: int, *, pause_seconds: float = 0.0) -> dict[str, float]:
    """The shortest seconds of several works that take turns, so that what disturbs one of them disturbs all.

    Each work returns the seconds of it that count. One turn warms up before the ``repeats`` turns that count. Before
    each work is a pause: threads of some libraries spin for milliseconds afterwards, on the core that the next work
    needs.
    """
    seconds = dict.fromkeys(ops, float("inf"))
    for turn in range(repeats + 1):
        for name, op in ops.items():
            time.sleep(pause_seconds)
            taken = op()
            seconds[name] = min(seconds[name], taken) if turn else float("inf")
    return seconds


def beside_torch(case: str, seconds: Mapping[str, float], limits: Mapping[str, float]) -> Iterator[Figure]:
    """The times of works and, with torch among them, how many times as long as torch they take."""
    for name, taken in seconds.items():
        yield Figure(case, name, 1e3 * taken)
    for name in seconds if TORCH in seconds else ():
        if name != TORCH:
            yield Figure(case, f"{name}, of torch", seconds[name] / seconds[TORCH], "x", limits.get(name))
