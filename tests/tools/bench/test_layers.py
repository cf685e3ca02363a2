import time
from functools import partial

import pytest

from device.spec.device_spec import load_spec
from ops.passes.caches import PlanCache
from tools.bench import layers
from tools.bench.layers import (
    AGAIN,
    FIRST,
    GENERATIONS,
    NEW,
    REPORT,
    REPORT_AGAIN,
    REPORT_NEW,
    TORCH,
    bench_cycles,
    bench_layers,
    call_seconds,
    clock_of,
    settings_of,
    unseen,
)
from ttsim.study.layers.read import DEFAULT_LAYERS, read_layers
from ttsim.study.layers.run import make_inputs


def test_a_figure_for_every_layer_and_a_median_with_a_limit():
    figures = list(bench_cycles(1))
    assert len(figures) == 3 * 9 * len(GENERATIONS)
    assert all(figure.unit == "ms" and figure.value > 0 for figure in figures)
    assert [(figure.case, figure.name) for figure in figures if figure.limit] == [
        (f"{device}, median", name) for device in GENERATIONS for name in (REPORT_NEW, REPORT, REPORT_AGAIN)
    ]


@pytest.mark.parametrize("compared", [True, False])
def test_both_calls_are_set_beside_torch(monkeypatch, compared):
    seconds = {NEW: 0.008, FIRST: 0.006, AGAIN: 0.004}
    monkeypatch.setattr(
        layers,
        "call_seconds",
        lambda *_, new=False, again=False, **__: seconds[NEW if new else AGAIN if again else FIRST],
    )
    monkeypatch.setattr(layers, "torch", object() if compared else None)
    monkeypatch.setattr(layers, "torch_call", lambda *_: None)
    monkeypatch.setattr(layers, "least_seconds", lambda *_, **__: 0.002)
    figures = {(figure.case, figure.name): figure for figure in bench_layers(1)}
    assert figures["all eight", FIRST].value == pytest.approx(8 * 6)
    ratios = {key: figure.value for key, figure in figures.items() if figure.unit == "x"}
    assert len(ratios) == (27 if compared else 0)
    for (_, name), ratio in ratios.items():
        assert ratio == pytest.approx(seconds[name.removesuffix(", of torch")] / 0.002)
    assert all(figure.limit for figure in figures.values() if figure.unit == "x")
    assert (("all eight", TORCH) in figures) is compared
    limits = {key: figure.limit for key, figure in figures.items() if figure.unit == "x"}
    assert len(set(limits.values())) == (6 if compared else 0)
    assert figures["vgg_unet.d1.up", AGAIN].longest == pytest.approx(4.0)


def test_one_thread_is_timed_by_its_own_clock():
    assert clock_of(1) is time.thread_time
    assert clock_of(2) is time.perf_counter


def test_a_new_spec_is_the_same_under_another_name():
    spec = load_spec("wormhole_n150")
    names = {unseen(spec).name for _ in range(3)}
    assert len(names) == 3
    assert unseen(spec).replace(name=spec.name) == spec


def test_a_new_spec_finds_nothing_and_a_new_device_does(monkeypatch):
    kept = PlanCache()
    monkeypatch.setattr("ttsim.runtime.device.plans_of_process", lambda: kept)
    layer = read_layers(DEFAULT_LAYERS)[0]
    one = partial(call_seconds, layer, make_inputs(layer), settings_of("off", cycles=True), read=False)
    one()
    steps = kept.steps
    one()
    assert kept.steps == steps
    one(new=True)
    assert kept.steps == 2 * steps
