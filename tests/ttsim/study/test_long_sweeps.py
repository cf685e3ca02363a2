"""A sweep of many points: its own work grows with their number, and so does its memory, by little a point."""

import gc
import tracemalloc
from cProfile import Profile
from itertools import count
from types import SimpleNamespace

import pytest

from ttsim.runtime.types.layer import Layer
from ttsim.study.evaluate import row_of
from ttsim.study.store import Verdict
from ttsim.study.sweep import sweep

FEW, MANY = 300, 1200
LAYER = Layer(in_channels=32, out_channels=32, input_height=4, input_width=4)


def long_sweep(path, points):
    return sweep(LAYER, vary={"in_channels": list(range(1, points + 1))}, file=path, processes=1)


@pytest.mark.slow
def test_work_and_memory_of_a_point_do_not_depend_on_their_number(monkeypatch, tmp_path):
    cycles = count(1)

    def row(point, **_):
        return row_of(point, verdict=Verdict.FITS, cycles=next(cycles), clock_hz=10**9)

    monkeypatch.setattr("ttsim.study.executor.evaluator", lambda: SimpleNamespace(row=row))
    long_sweep(tmp_path / "first", 10)  # what is made once
    calls, held = {}, {}
    for points in (FEW, MANY):
        gc.collect()
        profile = Profile(builtins=False)
        tracemalloc.start()
        result = profile.runcall(long_sweep, tmp_path / f"{points}", points)
        held[points] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        calls[points] = sum(entry.callcount for entry in profile.getstats())
        assert (tmp_path / f"{points}").read_bytes().count(b"\n") == points + 1
        del result
    assert calls[MANY] <= 1.01 * MANY / FEW * calls[FEW]
    assert held[MANY] - held[FEW] <= 800 * (MANY - FEW)  # bytes
