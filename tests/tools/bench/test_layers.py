import time

import pytest

from tools.bench import layers
from tools.bench.layers import (
    AGAIN,
    FIRST,
    GENERATIONS,
    REPORT,
    REPORT_AGAIN,
    TORCH,
    bench_cycles,
    bench_layers,
    clock_of,
)


def test_a_figure_for_every_layer_and_a_median_with_a_limit():
    figures = list(bench_cycles(1))
    assert len(figures) == 2 * 9 * len(GENERATIONS)
    assert all(figure.unit == "ms" and figure.value > 0 for figure in figures)
    assert [(figure.case, figure.name) for figure in figures if figure.limit] == [
        (f"{device}, median", name) for device in GENERATIONS for name in (REPORT, REPORT_AGAIN)
    ]


@pytest.mark.parametrize("compared", [True, False])
def test_both_calls_are_set_beside_torch(monkeypatch, compared):
    seconds = {"fresh": 0.006, "again": 0.004}
    monkeypatch.setattr(layers, "call_seconds", lambda *_, again=False, **__: seconds["again" if again else "fresh"])
    monkeypatch.setattr(layers, "torch", object() if compared else None)
    monkeypatch.setattr(layers, "torch_call", lambda *_: None)
    monkeypatch.setattr(layers, "least_seconds", lambda *_, **__: 0.002)
    figures = {(figure.case, figure.name): figure for figure in bench_layers(1)}
    assert figures["all eight", FIRST].value == pytest.approx(8 * 6)
    ratios = {key: figure.value for key, figure in figures.items() if figure.unit == "x"}
    assert len(ratios) == (18 if compared else 0)
    assert all(ratio == pytest.approx(3 if name.startswith(FIRST) else 2) for (_, name), ratio in ratios.items())
    assert all(figure.limit for figure in figures.values() if figure.unit == "x")
    assert (("all eight", TORCH) in figures) is compared
    limits = {key: figure.limit for key, figure in figures.items() if figure.unit == "x"}
    assert len(set(limits.values())) == (4 if compared else 0)
    assert figures["vgg_unet.d1.up", AGAIN].longest == pytest.approx(4.0)


def test_one_thread_is_timed_by_its_own_clock():
    assert clock_of(1) is time.thread_time
    assert clock_of(2) is time.perf_counter
