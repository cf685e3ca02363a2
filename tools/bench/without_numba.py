"""Exact values where numba is not installed: the eight layers in an interpreter of its own, in which it is hidden."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial

from tools.bench.figure import Figure
from tools.bench.layers import beside_torch, call_seconds, settings_of
from ttsim.runtime.types.layer import Layer
from ttsim.study.layers.run import Inputs

CALL = "without numba"
LIMIT_OF_TORCH_IN_SUM = 40.0  # 27 to 31 on a quiet machine
TURNS = 1  # of some ten seconds each


def bench_without_numba() -> Iterator[Figure]:
    """The eight layers beside torch, each once after a warm-up."""
    command = [sys.executable, "-m", "tools.bench.without_numba"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    for figure in json.loads(done.stdout):
        yield Figure(**figure)


def main() -> None:
    """Measure in this interpreter and print the figures as JSON, for `bench_without_numba`."""
    sys.modules["numba"] = None  # type: ignore[assignment]  # an import of it fails from now on
    settings = settings_of("exact", cycles=True)

    def ops(layer: Layer, inputs: Inputs) -> dict[str, Callable[[], float]]:
        return {CALL: partial(call_seconds, layer, inputs, settings, read=True)}

    figures = beside_torch("exact", ops, TURNS, {}, {CALL: LIMIT_OF_TORCH_IN_SUM})
    print(json.dumps([asdict(figure) for figure in figures]))


if __name__ == "__main__":
    main()
