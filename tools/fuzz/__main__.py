"""Make random trials, and list those of which something does not hold.

usage: python -m tools.fuzz [--kind KIND ...] [--seed N] [--count N] [--first N] [--jobs N] [--real FOLDER]

Kinds: convolutions on strict devices (calls, the usual kind, and exact, the same with exact values), odd arguments of
public functions, damaged files (specs, layers, rows), interrupts, threads on one device, sequences of 20 calls of all
exported operations on one device, bounds: calls on invented machines, none faster than a resource, tuner: searches held
against every call of their space (about a minute each), machines: layers designed on random machines, held against
`tune` and against machines with less (half a minute each), and values: single calls of all these operations in turn,
each with exact and with fast values, compared with float64 within the roundings of their data types; beside the real
library in the folder of --real: constraints, queries of single calls, and chains, queries on the state that earlier
calls left. Every fault is printed with its seed, its index and what makes it happen again (a sequence is shortened
first); exit status 1 if there is any.
"""

import gc
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Final

from tools.command import run_tool, tool_parser
from tools.fuzz import arguments, bounds, files, interrupts, machines, queries, sequences, tuner, values
from tools.fuzz.finding import Finding
from tools.fuzz.real_library import is_there

KINDS: Final[Mapping[str, Callable[[int, int], Finding]]] = {
    **{kind: partial(sequences.check, kind=kind) for kind in sequences.LENGTHS},
    "values": values.check,
    "bounds": bounds.check,
    "tuner": tuner.check,
    "machines": machines.check,
    "arguments": arguments.check,
    "specs": files.check_spec,
    "layers": files.check_layers,
    "rows": files.check_rows,
    "interrupts": interrupts.check,
    "threads": interrupts.check_threads,
}
# Kinds that ask the real library, whose folder they take
REAL_KINDS: Final[Mapping[str, Callable[..., Finding]]] = {
    "constraints": queries.check_call,
    "chains": queries.check_chain,
}


def main(argv: list[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    parser, kinds = tool_parser("tools.fuzz", __doc__), [*KINDS, *REAL_KINDS]
    parser.add_argument("--kind", nargs="+", choices=kinds, default=["calls"], metavar="KIND", help=", ".join(kinds))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=300, help="trials of each kind")
    parser.add_argument("--first", type=int, default=0, help="index of the first trial")
    parser.add_argument("--jobs", type=int, default=1, help="processes, of low priority if there are several")
    parser.add_argument("--real", default="", metavar="FOLDER", help="of the real library, for constraints and chains")
    options = parser.parse_args(argv)
    indices = range(options.first, options.first + options.count)
    return max(run_kind(kind, options.seed, indices, options.jobs, options.real) for kind in options.kind)


def _begin(priority: int = 0) -> None:
    os.nice(priority)
    gc.freeze()  # collections look only at what trials make


def _trial(kind: str, seed: int, real: str, index: int) -> tuple[Finding, float]:
    """A trial, and how many seconds it took."""
    begun = time.perf_counter()
    finding = REAL_KINDS[kind](seed, index, real=real) if kind in REAL_KINDS else KINDS[kind](seed, index)
    return finding, time.perf_counter() - begun


def _trials(kind: str, seed: int, indices: range, jobs: int, real: str) -> Iterator[tuple[Finding, float]]:
    """Trials in order, several at a time."""
    trial = partial(_trial, kind, seed, real)
    if jobs == 1:
        _begin()
        yield from map(trial, indices)
        return
    with ProcessPoolExecutor(jobs, initializer=partial(_begin, 10)) as pool:
        yield from pool.map(trial, indices, chunksize=8)


def run_kind(kind: str, seed: int, indices: range, jobs: int = 1, real: str = "") -> int:
    """Makes trials of a kind and sums them up; returns 1 if something does not hold, else 0."""
    if kind in REAL_KINDS and not is_there(real):
        print(
            f"{kind}: skipped, {real} holds no real library" if real else f"{kind}: skipped, give its folder by --real"
        )
        return 0
    outcomes: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    slowest = 0.0
    for index, (finding, seconds) in zip(indices, _trials(kind, seed, indices, jobs, real), strict=True):
        slowest = max(slowest, seconds)
        outcomes[finding.outcome] += 1
        calls += finding.calls
        if finding.outcome == "fault":
            print(f"{kind}, seed {seed}, index {index}: {finding.text}\n{finding.again}", flush=True)
    faults = outcomes.pop("fault", 0)
    text = ", ".join(f"{name} {number}" for name, number in sorted(outcomes.items()))
    if calls:
        text += f" ({calls.total():,} calls: " + ", ".join(f"{name} {calls[name]:,}" for name in sorted(calls)) + ")"
    text += f", fault {faults}; the slowest took {slowest:.1f} s"
    print(f"{kind}, seed {seed}: {len(indices)} trials: {text}", flush=True)
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(run_tool("tools.fuzz", main))
