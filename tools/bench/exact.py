"""Speed of exact block products: what a multiply-add takes in each fidelity phase."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from device.matrix_unit import MatrixUnitMode
from device.matrix_unit_blocks import Engine, block_product, compiled_engine_available
from tools.bench.figure import Figure, least_seconds

ROWS, DEPTH, COLS = 2048, 576, 128  # a K block of 64 channels and nine taps, no zeros among the activations
COMPILED_PS = 1000 / 1.2  # 1.2 G multiply-adds a second on one core
NUMPY_PS = 1000 / 0.12


def multiply_add_ps(engine: Engine, mode: MatrixUnitMode, repeats: int, *, rows: int, threads: int) -> float:
    """Picoseconds of one multiply-add in one phase; the first call, which may compile, is not counted."""
    rng = np.random.default_rng(0)
    activations = rng.standard_normal((rows, DEPTH), np.float32)
    weights = rng.standard_normal((DEPTH, COLS), np.float32)
    work = partial(block_product, activations, weights, mode=mode, engine=engine, threads=threads)
    work()
    return least_seconds(work, repeats) / (rows * DEPTH * COLS * mode.phases) * 1e12


def bench_exact(repeats: int) -> Iterator[Figure]:
    """Both engines, for the widths of Dst and the least and most phases."""
    cases: list[tuple[Engine, int, int, float | None]] = [("numpy", ROWS // 16, 1, NUMPY_PS)]
    if compiled_engine_available():
        cases += [("compiled", ROWS, 1, COMPILED_PS), ("compiled", ROWS, 2, None)]
    for engine, rows, threads, limit in cases:
        for fp32_dest in (False, True):
            for phases in (1, 4):
                mode = MatrixUnitMode(phases=phases, fp32_dest=fp32_dest, minus_one_quirk=True)
                case = f"{engine}, {threads} thread(s), {phases} phase(s), {32 if fp32_dest else 16}-bit Dst"
                value = multiply_add_ps(engine, mode, repeats, rows=rows, threads=threads)
                yield Figure(bench="exact", case=case, name="multiply-add", value=value, unit="ps", limit=limit)
