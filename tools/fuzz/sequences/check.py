"""The trial of a seed and an index: one sequence of calls."""

import time
from collections import Counter

from tools.fuzz.finding import Finding
from tools.fuzz.sequences.running import Record, run
from tools.fuzz.sequences.shrinking import shrunk

LENGTH = 20  # steps of a sequence


def check(seed: int, index: int) -> Finding:
    """Makes a sequence; a fault is shown by the shortest script that was found."""
    begun = time.perf_counter()
    outcome = run(Record((seed, index)), LENGTH)
    seconds = time.perf_counter() - begun
    if outcome.fault is None:
        return Finding(outcome="right", calls=outcome.counts, seconds=seconds)
    found = shrunk(outcome, lambda record: run(record, LENGTH))
    return Finding(
        outcome="fault", text=str(found.fault), again=found.script, calls=outcome.counts + Counter(), seconds=seconds
    )
