"""What benchmarks measure, set beside torch, and hold to their limits."""

import json
import sys
import time
from functools import partial
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from device.spec.device_spec import load_spec
from ops.passes.caches import PlanCache
from tools.bench import __main__ as bench, exact, figure as figures_of, layers, networks, onednn, plans
from tools.bench.figure import TORCH, Figure, beside_torch, in_turns, least_seconds
from tools.bench.layers import AGAIN, FIRST, GENERATIONS, NEW, REPORT, REPORT_AGAIN, REPORT_NEW, call_seconds
from tools.machine import LOOPS
from tools.recorded import planner_arguments
from ttsim.study.layers.read import DEFAULT_LAYERS, read_layers
from ttsim.study.layers.run import make_inputs

ROOT = Path(__file__).resolve().parents[3]
LAYERS = {layer.name: layer for layer in read_layers(DEFAULT_LAYERS)}
MOST_OF_STORED = 4.8  # 3.1 with compiled loops and 4.0 with numpy's pieces; copies of all tensors in float32 add 2.0
CASE = {"name": "one", "H": 8, "W": 8, "in_channels": 32, "out_channels": 32, "kernel": 3, "stride": 2}


def test_limits_and_turns():
    assert [Figure("up", "call", 1.0, limit=limit).within for limit in (None, 1.0, 0.9)] == [True, True, False]
    order, clock, calls = [], iter([9, 9, 2, 3, 1, 5]), []

    def work(name):
        order.append(name)
        return next(clock)

    assert in_turns({"a": lambda: work("a"), "b": lambda: work("b")}, 2) == {"a": 1, "b": 3}
    assert order == ["a", "b"] * 3
    assert 0 <= least_seconds(lambda: calls.append(1), 4) < 1
    assert len(calls) == 4
    assert [figures_of.clock_of(count) for count in (1, 2)] == [time.thread_time, time.perf_counter]


@pytest.mark.parametrize("compared", [True, False])
def test_works_are_set_beside_torch(compared):
    seconds = {"a": 0.003, "b": 0.006} | ({TORCH: 0.002} if compared else {})
    figures = list(beside_torch("c", seconds, {"a": 1.2}))
    assert [(row.name, row.value) for row in figures[:2]] == [("a", 3.0), ("b", 6.0)]
    ratios = [(row.name, row.value, row.limit) for row in figures if row.unit == "x"]
    assert ratios == ([("a, of torch", 1.5, 1.2), ("b, of torch", 3.0, None)] if compared else [])


def test_the_command_prints_a_table_and_checks(monkeypatch, capsys):
    figures = [Figure("up", "first call", 2.0), Figure("up", "of torch", 3.0, "x", 2.0)]
    monkeypatch.setattr(bench, "BENCHES", {"layers": lambda repeats: iter(figures * repeats), "other": None})
    monkeypatch.setattr(sys, "argv", ["bench", "--layers", "--repeats", "1"])
    bench.main()
    monkeypatch.setattr(sys, "argv", ["bench", "--layers", "--repeats", "1", "--check"])
    with pytest.raises(SystemExit, match="1"):
        bench.main()
    printed = capsys.readouterr().out
    assert all(words in printed for words in ("3.000 x", "over", "2.000 ms"))


def test_layers_and_cycles_have_their_limits(monkeypatch):
    seconds = {NEW: 0.008, FIRST: 0.006, AGAIN: 0.004}

    def taken(*_, new=False, again=False, **__):
        return seconds[NEW if new else AGAIN if again else FIRST]

    stand_ins = {"call_seconds": taken, "make_inputs": lambda _: None, "torch": object()}
    stand_ins |= {"torch_call": lambda *_: None, "timed": lambda op: lambda: 0.002}
    for name, value in stand_ins.items():
        monkeypatch.setattr(layers, name, value)
    assert [row.value for row in layers.bench_planning(1)] == [8.0] * 8
    assert [(row.case, row.name, row.value) for row in layers.bench_cycles(1) if row.limit] == [
        (f"{device}, median", name, value)
        for device in GENERATIONS
        for name, value in ((REPORT_NEW, 8.0), (REPORT, 6.0), (REPORT_AGAIN, 4.0))
    ]
    ratios = {(row.case, row.name): row for row in layers.bench_layers(1) if row.unit == "x"}
    assert len(ratios) == 27
    for (_, name), ratio in ratios.items():
        assert ratio.value == pytest.approx(seconds[name.removesuffix(", of torch")] / 0.002)
        assert ratio.limit


def test_works_run_all_directions():
    with onednn.open_device(values="fast") as device:
        for direction, works in onednn.directions(onednn.Case("small", 1, (2, 2), 3, 2), device):
            assert direction in ("forward", "data", "weights")
            assert works[onednn.OURS]() is not None
            assert (TORCH in works) is (onednn.torch is not None)


def test_a_new_spec_finds_nothing_and_a_new_device_does(monkeypatch):
    spec = load_spec("wormhole_n150")
    assert len({layers.unseen(spec).name for _ in range(3)}) == 3
    assert layers.unseen(spec).replace(name=spec.name) == spec
    kept = PlanCache()
    monkeypatch.setattr("ttsim.runtime.device.plans_of_process", lambda: kept)
    layer = next(iter(LAYERS.values()))
    run = partial(call_seconds, layer, make_inputs(layer), layers.settings_of("off", cycles=True), read=False)
    run()
    steps = kept.steps
    run()
    assert kept.steps == steps
    run(new=True)
    assert kept.steps == 2 * steps


def test_all_loops_are_loaded():
    files = [file for package in ("device", "ops", "ttsim") for file in (ROOT / package).rglob("*.py")]
    modules = [file.relative_to(ROOT).with_suffix("") for file in files if "import called_with" in file.read_text()]
    assert {".".join(module.parts) for module in modules} == set(LOOPS)


def test_bytes_of_tensors_as_they_are_stored():
    inputs, weights, outputs = 60 * 80 * 256, 256 * 128 * 2 * 2 + 128, 120 * 160 * 128
    stored = 1.0625 * inputs + 2 * weights + 1.0625 * outputs  # 1088 bytes a tile
    assert plans.tensor_bytes(LAYERS["vanilla_unet.upconv3"], outputs) == stored


@pytest.mark.slow  # traces every allocation of a whole layer, twice
def test_a_layer_holds_parts_not_copies_of_its_tensors():
    found = plans.measure_layer(LAYERS["vgg_unet.d3.up"])
    assert found["stored"] < found["peak"] < MOST_OF_STORED * found["stored"]


def test_an_import_keeps_its_limit_and_what_ran_before_does_not_count(monkeypatch):
    assert plans.statement_seconds("import ttsim", plans.ARRAYS, 7) <= plans.LIMIT_SECONDS
    work = "sum(range(5_000_000))"
    assert plans.statement_seconds("pass", work, 1) < 0.1 * plans.statement_seconds(work, None, 1)
    monkeypatch.setattr(plans, "statement_seconds", lambda *_: plans.LIMIT_SECONDS + 0.01)
    (limited,) = (row for row in plans.bench_imports(1) if row.limit)
    assert (limited.case, limited.limit, limited.within) == ("import ttsim", plans.LIMIT_SECONDS, False)


@pytest.mark.parametrize(
    ("changes", "group"),
    [
        ({"slice": ["H", 0]}, "automatic slices"),
        ({"slice": ["W", 2]}, "given slices"),
        ({"slice": ["H", 1]}, "one piece"),
        ({"kernel": 1, "stride": 1}, "1x1"),
    ],
)
def test_groups_of_plans(changes, group):
    call = plans.Call(planner_arguments(CASE | changes), load_spec("wormhole_n150"), 1 << 20)
    call.plan()
    assert call.group == group


@pytest.mark.slow
def test_plans_give_figures_and_planning_keeps_nothing(monkeypatch):
    calls = list(islice(plans.recorded_calls(), 10))
    monkeypatch.setattr(plans, "recorded_calls", lambda: iter(calls))
    figures = list(plans.bench_plans(1))
    mean = [row.limit for row in figures if (row.case, row.name) == ("10 calls, all", "mean")]
    assert mean == [plans.LIMIT_MS]
    assert all(row.value > 0 for row in figures if row.unit == "ms")
    plans.blocks_kept(calls, 10)  # until the interpreter has settled
    assert plans.blocks_kept(calls, 40) < 40 * len(calls) / 2


def test_figures_come_from_another_interpreter(monkeypatch):
    printed = json.dumps([["up", "call", 2.0, "ms", 3.0]])
    monkeypatch.setattr(exact.subprocess, "run", lambda command, **_: SimpleNamespace(stdout=printed))
    assert list(exact.bench_without_numba()) == [Figure("up", "call", 2.0, limit=3.0)]


def test_networks_are_compared_with_torch():
    output = np.linspace(-1, 1, 64)
    assert networks.disagreement("one", output, output).within
    assert not networks.disagreement("one", output[::-1].astype(np.float32), output).within
