"""Processor time of `import ttsim` in a fresh interpreter, and of what a first call loads."""

import subprocess
import sys
from collections.abc import Iterator

from tools.bench.figure import Figure

LIMIT_SECONDS = 0.15
ARRAYS = "import numpy, ml_dtypes"  # what every script loads anyway
SCRIPT = "import time{before}; start = time.process_time(); {statement}; print(time.process_time() - start)"
CASES = (
    (ARRAYS, None, None),
    ("import ttsim", ARRAYS, LIMIT_SECONDS),
    ("import ttsim; ttsim.conv_transpose2d", ARRAYS, None),
    ("from ttsim import *", ARRAYS, None),
)


def statement_seconds(statement: str, before: str | None, repeats: int) -> float:
    """Processor time of the shortest of several runs of a statement, each in an interpreter of its own.

    Args:
        statement: What is measured.
        before: What has run already.
        repeats: How many runs.
    """
    script = SCRIPT.format(statement=statement, before=f"; {before}" if before else "")

    def once() -> float:
        return float(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout)

    return min(once() for _ in range(repeats))


def bench_imports(repeats: int) -> Iterator[Figure]:
    """What numpy and ml_dtypes take, and what ttsim adds to them."""
    for statement, before, limit in CASES:
        seconds = statement_seconds(statement, before, max(repeats, 7))
        name = "import" if before is None else "above numpy and ml_dtypes"
        yield Figure(bench="import", case=statement, name=name, value=seconds, unit="s", limit=limit)
