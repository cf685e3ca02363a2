"""Exact values: the eight layers with numba and in an interpreter without it, a whole call, and block products."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import astuple
from functools import partial
from itertools import product

import numpy as np

from device.host.compiling import numba_installed
from device.matrix_unit.blocks import Engine, block_product
from device.matrix_unit.exact import MatrixUnitMode
from tools.bench.figure import Figure, least_seconds
from tools.bench.layers import layers_beside_torch, settings_of
from tools.machine import load_loops
from ttsim.runtime.types.layer import Layer
from ttsim.study.layers.run import call, make_inputs, place

ROWS, DEPTH, COLS = 2048, 576, 128  # a K block of 64 channels and nine taps, no zeros among the activations
COMPILED_PS = 250.0  # 80 to 140 on one core
NUMPY_PS = 5000.0  # 1,600 to 3,300
CALL_LIMIT_S = 0.1
EXACT = "exact call"
LIMIT_OF_TORCH_IN_SUM = 2.3  # 1.8 on a quiet machine
WITHOUT_NUMBA = "without numba"
LIMIT_WITHOUT_NUMBA = 40.0  # of torch in sum; 27 to 31 on a quiet machine
TURNS_WITHOUT_NUMBA = 1  # of some ten seconds each


def multiply_add_ps(engine: Engine, mode: MatrixUnitMode, repeats: int, *, rows: int, threads: int) -> float:
    """Picoseconds of one multiply-add in one phase; the first call, which may compile, is not counted."""
    rng = np.random.default_rng(0)
    activations = rng.standard_normal((rows, DEPTH), np.float32)
    weights = rng.standard_normal((DEPTH, COLS), np.float32)
    op = partial(block_product, activations, weights, mode=mode, engine=engine, threads=threads)
    op()
    return least_seconds(op, repeats) / (rows * DEPTH * COLS * mode.fidelity_phases) * 1e12


def call_seconds(repeats: int) -> float:
    """Seconds of a whole exact call, 1x32x32x256 -> 128 channels, k2 s2, HiFi4; the first is not counted."""
    layer = Layer(name="exact", in_channels=256, out_channels=128, input_height=32, input_width=32, stride=(2, 2))
    op = partial(call, place(layer, make_inputs(layer), settings_of("exact", cycles=True)))
    op()
    return least_seconds(op, repeats)


def bench_without_numba() -> Iterator[Figure]:
    """The eight layers beside torch in an interpreter of its own, in which numba is hidden."""
    command = [sys.executable, "-m", "tools.bench.exact"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    yield from (Figure(*figure) for figure in json.loads(done.stdout))


def bench_exact(repeats: int) -> Iterator[Figure]:
    """The eight layers beside torch, with numba and without, and a whole call; then both engines on one product."""
    compiles = numba_installed()
    if compiles:
        load_loops()
        yield from layers_beside_torch("exact", {EXACT: {}}, repeats, {}, {EXACT: LIMIT_OF_TORCH_IN_SUM})
    yield from bench_without_numba()
    limit = CALL_LIMIT_S if compiles else None
    yield Figure("1x32x32x256 -> 128, k2 s2, HiFi4", "call", call_seconds(repeats), "s", limit)
    cases: list[tuple[Engine, int, int, float | None]] = [("numpy", ROWS // 16, 1, NUMPY_PS)]
    cases += [("compiled", ROWS, 1, COMPILED_PS), ("compiled", ROWS, 2, None)] if compiles else []
    for (engine, rows, threads, limit), fp32_dest, phases in product(cases, (False, True), (1, 4)):
        mode = MatrixUnitMode(fidelity_phases=phases, fp32_dest=fp32_dest, minus_one_quirk=True)
        case = f"{engine}, {threads} thread(s), {phases} phase(s), {32 if fp32_dest else 16}-bit Dst"
        value = multiply_add_ps(engine, mode, repeats, rows=rows, threads=threads)
        yield Figure(case, "multiply-add", value, "ps", limit)


def main() -> None:
    """Measures in this interpreter and prints the figures as JSON, for `bench_without_numba`."""
    sys.modules["numba"] = None  # type: ignore[assignment]  # an import of it fails from now on
    how, limits = {WITHOUT_NUMBA: dict[str, bool]()}, {WITHOUT_NUMBA: LIMIT_WITHOUT_NUMBA}
    figures = layers_beside_torch("exact", how, TURNS_WITHOUT_NUMBA, {}, limits)
    print(json.dumps([astuple(figure) for figure in figures]))


if __name__ == "__main__":
    main()
