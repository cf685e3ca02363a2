"""What benchmarks measure, set beside torch, and hold to their limits."""

import importlib
import json
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from device.host.compiling import load_numba, numba_installed
from device.spec.device_spec import load_spec
from ops.passes.caches import PlanCache
from ops.planners.conv.arguments import SliceConfig, SliceType
from tools.bench import __main__ as bench, exact, layers, onednn, plans
from tools.bench.figure import Figure, all_locked, least_seconds, run_times
from tools.bench.layers import AGAIN, FIRST, GENERATIONS, NEW, REPORT, REPORT_AGAIN, REPORT_NEW, TORCH, call_seconds
from tools.machine import LOOPS
from tools.recorded.arguments import planner_arguments
from ttsim.runtime.types.layer import Layer
from ttsim.study.layers.read import DEFAULT_LAYERS, read_layers
from ttsim.study.layers.run import exact_output, make_inputs

ROOT = Path(__file__).resolve().parents[3]
LAYERS = {layer.name: layer for layer in read_layers(DEFAULT_LAYERS)}
MOST_OF_STORED = 4.8  # 3.1 with compiled loops and 4.0 with numpy's pieces; copies of all tensors in float32 add 2.0
CASE = {"name": "one", "H": 8, "W": 8, "in_channels": 32, "out_channels": 32, "kernel": 3, "stride": 2}


def figure(value, limit=None, **more):
    return Figure(
        **{"bench": "layers", "case": "up", "name": "first call", "unit": "s"} | more, value=value, limit=limit
    )


def test_limits_and_spreads():
    assert [figure(1.0, limit).within for limit in (None, 1.0, 0.9)] == [True, True, False]
    shown = run_times("b", "c", "n", [0.004, 0.001, 0.002])
    assert (shown.value, shown.median, shown.longest, shown.unit) == (1.0, 2.0, 4.0, "ms")


def test_works_take_turns_and_the_shortest_run_counts():
    order, clock, calls = [], iter(range(6)), []

    def work(name):
        order.append(name)
        return next(clock)

    assert all_locked({"a": lambda: work("a"), "b": lambda: work("b")}, 2) == {"a": [2, 4], "b": [3, 5]}
    assert order == ["a", "b"] * 3
    assert 0 <= least_seconds(lambda: calls.append(1), 4) < 1
    assert len(calls) == 4


@pytest.fixture
def command(monkeypatch, capsys):
    figures = [figure(2.0, unit="ms", median=2.25, longest=9.5), figure(3.0, 2.0, name="of torch", unit="x")]
    monkeypatch.setattr(bench, "BENCHES", {"layers": lambda repeats: iter(figures * repeats), "other": None})

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["bench", "--layers", "--repeats", "1", *words])
        bench.main()
        return capsys.readouterr().out

    return run


def test_the_command_prints_a_table_or_json_and_checks(command):
    text = command()
    assert all(words in text for words in ("3.000 x", "over", "2.000 ms", "2.250", "9.500"))
    printed = json.loads(command("--json"))
    assert [(row["within"], row["longest"]) for row in printed["figures"]] == [(True, 9.5), (False, None)]
    assert printed["processor"] == bench.processor() != ""
    with pytest.raises(SystemExit, match="1"):
        command("--check")


def test_planning_and_cycles_give_a_figure_for_every_layer():
    planning, cycles = list(layers.bench_planning(1)), list(layers.bench_cycles(1))
    assert (len(planning), len(cycles)) == (8, 3 * 9 * len(GENERATIONS))
    assert all(figure.unit == "ms" and figure.value > 0 for figure in planning + cycles)
    assert [(figure.case, figure.name) for figure in cycles if figure.limit] == [
        (f"{device}, median", name) for device in GENERATIONS for name in (REPORT_NEW, REPORT, REPORT_AGAIN)
    ]


@pytest.mark.parametrize("compared", [True, False])
def test_layers_are_set_beside_torch(monkeypatch, compared):
    seconds = {NEW: 0.008, FIRST: 0.006, AGAIN: 0.004}

    def taken(*_, new=False, again=False, **__):
        return seconds[NEW if new else AGAIN if again else FIRST]

    monkeypatch.setattr(layers, "call_seconds", taken)
    monkeypatch.setattr(layers, "torch", object() if compared else None)
    monkeypatch.setattr(layers, "torch_call", lambda *_: None)
    monkeypatch.setattr(layers, "least_seconds", lambda *_, **__: 0.002)
    figures = {(figure.case, figure.name): figure for figure in layers.bench_layers(1)}
    assert figures["all eight", FIRST].value == pytest.approx(8 * 6)
    ratios = {key: figure for key, figure in figures.items() if figure.unit == "x"}
    assert len(ratios) == (27 if compared else 0)
    for (_, name), ratio in ratios.items():
        assert ratio.value == pytest.approx(seconds[name.removesuffix(", of torch")] / 0.002)
        assert ratio.limit
    assert len({ratio.limit for ratio in ratios.values()}) == (6 if compared else 0)
    assert (("all eight", TORCH) in figures) is compared
    assert figures["vgg_unet.d1.up", AGAIN].longest == pytest.approx(4.0)


@pytest.mark.parametrize("compared", [True, False])
def test_every_direction_is_set_beside_torch_and_has_a_limit(monkeypatch, compared):
    took, directions, cases = {"ours": 0.003, "theirs": 0.002}, ("forward", "data", "weights"), len(onednn.CASES)
    works = [(name, "ours", "theirs" if compared else None) for name in directions]
    monkeypatch.setattr(onednn, "_works", lambda case, device: works)
    monkeypatch.setattr(onednn, "least_seconds", lambda work, repeats, *, clock: took[work])
    figures = {(figure.case, figure.name): figure for figure in onednn.bench_onednn(1)}
    times = [figure for figure in figures.values() if figure.unit == "ms"]
    assert len(times) == cases * len(directions) * (2 if compared else 1)
    assert figures["depthwise", "data"].value == figures["depthwise", "data"].median == pytest.approx(3)
    ratios = [figure for figure in figures.values() if figure.unit == "x"]
    assert len(ratios) == (cases * (len(directions) + 1) + 1 if compared else 0)
    assert all(figure.value == pytest.approx(1.5) for figure in ratios)
    assert sum(bool(figure.limit) for figure in ratios) == (cases * len(directions) + 1 if compared else 0)


def test_works_run_all_directions():
    with onednn.open_device(values="fast") as device:
        for direction, ours, theirs in onednn._works(onednn.Case("small", 1, (2, 2), 3, 2), device):
            assert direction in ("forward", "data", "weights")
            assert ours() is not None
            assert (theirs is None) is (onednn.torch is None)


def test_one_thread_is_timed_by_its_own_clock():
    assert layers.clock_of(1) is time.thread_time
    assert layers.clock_of(2) is time.perf_counter


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


def test_torch_computes_the_same():
    torch = pytest.importorskip("torch")
    layer = Layer(in_channels=8, out_channels=4, input_height=3, input_width=5, stride=(2, 2), padding=(1, 0))
    inputs = make_inputs(layer)
    output = layers.torch_call(layer, inputs)().permute(0, 2, 3, 1).numpy()
    assert torch.get_num_threads() >= 1
    assert abs(output - exact_output(layer, inputs)).max() < 1e-5


def test_all_loops_are_loaded():
    files = [file for package in ("device", "ops", "ttsim") for file in (ROOT / package).rglob("*.py")]
    modules = [file.relative_to(ROOT).with_suffix("") for file in files if "import called_with" in file.read_text()]
    assert {".".join(module.parts) for module in modules} == set(LOOPS)


def test_bytes_of_tensors():
    for dtype, of_a_tile in (("bfloat16", 2048), ("float32", 4096), ("bfloat8_b", 1088)):
        assert plans.stored_bytes(3 * 1024, dtype) == 3 * of_a_tile
    layer = Layer(in_channels=32, out_channels=16, input_height=2, input_width=2, input_dtype="bfloat8_b", bias=False)
    assert plans.tensor_bytes(layer, 1024) == 128 * 1088 / 1024 + 2 * 32 * 16 * 4 + 1088
    layer = LAYERS["vanilla_unet.upconv3"]
    assert (layer.input_dtype, layer.weights_dtype, layer.dtype) == ("bfloat8_b", "bfloat16", None)
    inputs, weights, outputs = 60 * 80 * 256, 256 * 128 * 2 * 2 + 128, 120 * 160 * 128
    assert plans.tensor_bytes(layer, outputs) == 1.0625 * inputs + 2 * weights + 1.0625 * outputs  # 1088 bytes a tile


def test_a_layer_holds_parts_not_copies_of_its_tensors():
    found = plans.measure_layer(LAYERS["vgg_unet.d3.up"])
    assert found["stored"] < found["peak"] < MOST_OF_STORED * found["stored"]


def test_an_import_keeps_its_limit_and_what_ran_before_does_not_count(monkeypatch):
    assert plans.statement_seconds("import ttsim", plans.ARRAYS, 7) <= plans.LIMIT_SECONDS
    work = "sum(range(5_000_000))"
    assert plans.statement_seconds("pass", work, 1) < 0.1 * plans.statement_seconds(work, None, 1)
    monkeypatch.setattr(plans, "statement_seconds", lambda *_: plans.LIMIT_SECONDS + 0.01)
    (limited,) = (figure for figure in plans.bench_imports(1) if figure.limit)
    assert (limited.case, limited.limit, limited.within) == ("import ttsim", plans.LIMIT_SECONDS, False)


@pytest.fixture(scope="module")
def calls():
    return list(plans.recorded_calls())[:20]


@pytest.mark.parametrize(
    ("changes", "group"),
    [
        ({}, "automatic slices"),
        ({"slice": ["H", 0]}, "automatic slices"),
        ({"slice": ["W", 2]}, "given slices"),
        ({"slice": ["H", 1]}, "one piece"),
        ({"slice": "l1_full"}, "one piece"),
        ({"input_memory": "l1"}, "one piece"),
        ({"kernel": 1, "stride": 1}, "1x1"),
    ],
)
def test_groups_of_plans(changes, group):
    assert plans.group_of(planner_arguments(CASE | changes)) == group


def test_figures_of_plans(calls, monkeypatch):
    monkeypatch.setattr(plans, "recorded_calls", lambda: iter(calls))
    figures = list(plans.bench_plans(1))
    mean = [figure.limit for figure in figures if (figure.case, figure.name) == ("20 calls, all", "mean")]
    assert mean == [plans.LIMIT_MS]
    assert all(figure.value > 0 for figure in figures if figure.unit == "ms")
    too_many = SliceConfig(slice_type=SliceType.DRAM_HEIGHT, num_slices=10_000)
    refused = replace(calls[0], arguments=replace(planner_arguments(CASE), slice_config=too_many))
    assert plans.plan_ms(refused, 1) > 0


@pytest.mark.slow
def test_planning_keeps_nothing(calls):
    plans.blocks_kept(calls, 10)  # until the interpreter has settled
    assert plans.blocks_kept(calls, 10) < 10 * len(calls) / 2


def test_numba_is_hidden_where_the_layers_run_without_it(monkeypatch, capsys):
    load_numba.cache_clear()
    monkeypatch.setitem(importlib.import_module("sys").modules, "numba", None)  # and given back afterwards
    seen = []

    def beside(name, works, turns, limits, limits_in_sum):
        seen.append((name, turns, numba_installed(), load_numba(), limits_in_sum))
        yield figure(2.0, 3.0)

    monkeypatch.setattr(exact, "beside_torch", beside)
    exact.main()
    load_numba.cache_clear()
    assert seen == [("exact", 1, False, None, {"without numba": 40.0})]
    (printed,) = json.loads(capsys.readouterr().out)
    assert Figure(**printed) == figure(2.0, 3.0)


def test_figures_without_numba_come_from_an_interpreter_of_their_own(monkeypatch):
    class Done:
        stdout = '[{"bench": "exact", "case": "c", "name": "n", "value": 1.5, "unit": "x"}]'

    commands = []
    monkeypatch.setattr(exact.subprocess, "run", lambda command, **_: commands.append(command) or Done())
    assert [figure.value for figure in exact.bench_without_numba()] == [1.5]
    assert commands[0][1:] == ["-m", "tools.bench.exact"]
