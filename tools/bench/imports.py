"""How long `import ttsim` takes in a fresh interpreter."""

import subprocess
import sys
from collections.abc import Iterator

from tools.bench.figure import Figure

LIMIT_SECONDS = 0.3
SCRIPT = "import time; start = time.perf_counter(); import {module}; print(time.perf_counter() - start)"


def import_seconds(module: str, repeats: int) -> float:
    """The shortest of several imports, each in an interpreter of its own."""

    def once() -> float:
        command = [sys.executable, "-c", SCRIPT.format(module=module)]
        return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    return min(once() for _ in range(repeats))


def bench_imports(repeats: int) -> Iterator[Figure]:
    """`import ttsim`, and numpy alone, which is most of it."""
    for module, limit in (("numpy", None), ("ttsim", LIMIT_SECONDS)):
        seconds = import_seconds(module, max(repeats, 5))
        yield Figure(bench="import", case=module, name="import", value=seconds, unit="s", limit=limit)
