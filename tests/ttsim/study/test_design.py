"""Points that cannot differ are evaluated once, and give what they would give by themselves."""

import json
import pickle
from concurrent.futures import BrokenExecutor, Future
from contextlib import nullcontext
from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import pytest

import ttsim
from device.errors import ArgumentError, DeviceError
from ops.sensitivity.changes import changed, formula, load_spec
from ttsim.runtime.types.layer import Layer
from ttsim.study.design import design
from ttsim.study.evaluate import Evaluator, Point
from ttsim.study.executor import InProcess, Workers
from ttsim.study.layers.run import Settings, planned
from ttsim.study.machine_rows import READ, rows_of
from ttsim.study.networks.judge import network_row
from ttsim.study.networks.recorder import Recorder
from ttsim.study.networks.replay import read_network
from ttsim.study.space import Design, DesignAxis, read_design
from ttsim.study.tune.tune import tune

SPEC = load_spec("wormhole_n150")
evaluate = Evaluator().row
SMALL = Layer(name="small", in_channels=32, out_channels=32, input_height=8, input_width=8)


def machines_of(*axes):
    """The machines of a space, in order."""
    for values in product(*(axis.values for axis in axes)):
        named = dict(zip((axis.name for axis in axes), values, strict=True))
        yield changed(SPEC, [f"{name}={value}" for name, value in named.items()]), named


WRITE = DesignAxis(name="dispatch_costs.write_cycles", values=("1490", "2000"))


@pytest.mark.parametrize(
    ("sizes", "axes", "read", "evaluated"),
    [
        ({}, ("8x8", "2x1"), {"grid", "l1.bytes"}, 6),
        ({"input_height": 64}, ("8x8", "2x1"), {"grid", "l1.bytes"}, 6),
        ({"input_height": 100_000, "input_width": 100_000}, (), set(), 1),  # its error names its own device
    ],
)
def test_every_row_is_that_of_its_own_point(sizes, axes, read, evaluated):
    memories = DesignAxis(name="l1.bytes", values=("1464KiB", "192KiB", "160KiB"))
    varied = (DesignAxis(name="grid", values=axes), memories, WRITE) if axes else (WRITE,)
    layer, machines = replace(SMALL, **sizes), list(machines_of(*varied))
    found = rows_of(layer, machines, varied, tune=False)
    for row, (spec, _) in zip(found.rows, machines, strict=True):
        inputs = {name: value for name, value in row.inputs.items() if name != READ}
        assert replace(row, key="", inputs=inputs) == replace(evaluate(Point(layer=layer, spec=spec)), key="")
    assert (found.read & {"grid", "l1.bytes"}, found.evaluated) == (read, evaluated)


LAYER = Layer(name="one", in_channels=64, out_channels=32, input_height=16, input_width=16, input_memory="l1")
AXES = (
    DesignAxis(name="clock_hz", values=("1GHz", "2GHz")),
    DesignAxis(name="l1.bytes", values=("64KiB", "128KiB", "1464KiB")),
    WRITE,
)
SPACE = Design(
    base=SPEC,
    axes=AXES,
    costs={"area": formula("clock_hz / 1e9 + l1.bytes / 2**20", ["clock_hz", "l1.bytes"])},
    layers=(LAYER, replace(LAYER, name="two", input_height=32)),
    tune=False,
)


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    return tmp_path_factory.mktemp("design") / "rows.jsonl"


@pytest.fixture(scope="module")
def found(rows):
    return design(SPACE, rows=rows)


def test_every_machine_has_the_times_of_its_layers(found):
    assert len(found.points) == 12
    for point in found.points:
        if not point.device:
            assert point.values["l1.bytes"] == "64KiB"
            assert point.reason.startswith("l1: bytes must be above base_bytes")
            assert (point.nanoseconds, point.layers) == (None, ())
            continue
        rows = [evaluate(Point(layer=layer, spec=load_spec(point.device))) for layer in SPACE.layers]
        assert [layer.verdict for layer in point.layers] == [row.verdict.value for row in rows]
        runs = all(row.cycles is not None for row in rows)
        times = [row.cycles / row.clock_hz * 1e9 for row in rows] if runs else []
        assert point.nanoseconds == (pytest.approx(sum(times)) if runs else None)
        assert bool(point.reason) != runs
        size = {"128KiB": 128 / 1024, "1464KiB": 1464 / 1024}[point.values["l1.bytes"]]
        assert point.costs == {"area": {"1GHz": 1, "2GHz": 2}[point.values["clock_hz"]] + size}


def test_the_front_is_what_no_other_machine_is_better_than(found):
    aims = {at: (one.nanoseconds, one.costs["area"]) for at, one in enumerate(found.points) if one.nanoseconds}
    best = [
        at
        for at, (time, area) in aims.items()
        if not any(t <= time and a <= area and (t, a) != (time, area) for t, a in aims.values())
    ]
    alike = {at: sum(aim == aims[at] for aim in aims.values()) - 1 for at in found.front}
    assert set(found.front) <= set(best)
    assert {aims[at] for at in best} == {aims[at] for at in found.front}
    assert list(found.front) == sorted(found.front, key=lambda at: aims[at])
    assert found.alike == tuple(alike[at] for at in found.front) == (1, 1)


def test_what_fields_mean(found):
    clock, size, write = found.axes
    assert clock.moves_share == pytest.approx(1, rel=0.2)  # nearly all of it is on the cores' clock
    assert (size.moves_share, size.decides, size.priced) == (None, True, True)
    assert (write.read, write.moves_share, write.priced) == (False, 0.0, False)
    assert found.sensitivity[0].figure == "clock_hz"


def test_what_is_printed(found):
    text = str(found)
    for shown in (
        "Design around wormhole_n150: 12 machines, 2 layers; 4 machines run all of them.",
        "dispatch_costs.write_cycles: no layer reads it; its values (2) were collapsed",
        "l1.bytes: decides whether layers fit",
        "clock_hz: moves time by up to ",
        "4 x l1: bytes must be above base_bytes",
        ", not varied here",
    ):
        assert shown in text, text
    assert repr(found) == f"<DesignResult: {text.splitlines()[0]}>"
    assert found._repr_html_().count("<tr>") == 1 + len(found.front)
    heading = next(line for line in text.splitlines() if "alike" in line)
    assert heading.split() == ["clock_hz", "l1.bytes", "time", "error", "area", "alike"]
    assert json.loads(found.to_json())["front"] == list(found.front)


def test_a_table_of_all_machines(found):
    lines = found.to_csv().splitlines()
    assert lines[0] == (
        "clock_hz,l1.bytes,dispatch_costs.write_cycles,cost.area,nanoseconds,given_nanoseconds,cycles_error_share,"
        "untimed_operations,area_mm2,energy_joules,average_watts,energy_delay_joule_seconds,device,reason,front"
    )
    assert len(lines) == 13
    first, last = found.records()[0], found.records()[-1]
    assert (first["l1.bytes"], first["cost.area"], first["device"], first["front"]) == ("64KiB", None, "", False)
    assert (last["cost.area"], last["nanoseconds"]) == (2 + 1464 / 1024, found.points[-1].nanoseconds)
    assert sum(record["front"] for record in found.records()) == len(found.front)


def test_each_layer_is_tuned_on_each_machine(monkeypatch):
    """A config is found where the layer's own does not fit, as by a search on that machine."""
    layer = replace(LAYER, stride=(2, 2), config={"shard_layout": "WIDTH_SHARDED"})
    axes = (DesignAxis(name="l1.bytes", values=("256KiB", "1464KiB")), WRITE)
    base = changed(SPEC, ["grid=2x4"])
    given, tuned = (
        design(Design(base=base, axes=axes, costs={}, layers=(layer,), tune=tune)) for tune in (False, True)
    )
    assert [point.layers[0].verdict for point in given.points] == ["does not fit"] * 2 + ["fits"] * 2
    assert (given.looked, tuned.looked, given.tuned, tuned.tuned) == (2, 2, False, True)
    with planned(layer, Settings(spec=load_spec(tuned.points[1].device))) as (device, arguments):
        best = tune(ttsim.conv_transpose2d, device=device, **arguments).best
    for point in tuned.points[:2]:
        (outcome,) = point.layers
        assert (outcome.verdict, outcome.cycles, outcome.arguments) == ("fits", best.cycles, best.arguments)
        assert (outcome.given_nanoseconds, point.given_nanoseconds) == (None, None)
    assert tuned.points[3].given_nanoseconds == given.points[3].given_nanoseconds == given.points[3].nanoseconds
    assert tuned.points[3].nanoseconds < given.points[3].nanoseconds
    assert str(given).endswith("fit where its own config does not.")
    heading = next(line for line in str(tuned).splitlines() if "alike" in line)
    assert heading.split() == ["l1.bytes", "time", "as", "given", "error", "alike"]
    assert "as given" not in str(given)
    assert f"  one: {tuned.points[tuned.front[0]].layers[0].arguments}" == str(tuned).splitlines()[-1]
    slower = replace(best, cycles=10**9)
    monkeypatch.setattr("ttsim.study.evaluate._fastest", lambda _: SimpleNamespace(best=slower, untried=0))
    again = design(Design(base=base, axes=axes, costs={}, layers=(layer,), tune=True))
    assert [point.layers[0].arguments for point in again.points] == [best.arguments] * 2 + [""] * 2


def test_what_no_config_makes_fit_says_so():
    axes = (DesignAxis(name="l1.bytes", values=("160KiB",)),)
    (point,) = design(Design(base=SPEC, axes=axes, costs={}, layers=(replace(LAYER, in_channels=4096),))).points
    (layer,) = point.layers
    first, second, *_ = layer.error.splitlines()
    assert layer.verdict == "does not fit"
    assert second == f"no config of one that was tried fits {point.device}"
    assert point.reason == f"one does not fit: {first}"


def test_layers_count_as_often_as_a_network_runs_them(found):
    often = design(replace(SPACE, counts={"two": 3}))
    for once, point in zip(found.points, often.points, strict=True):
        assert [layer.count for layer in point.layers] == ([1, 3] if point.device else [])
        if once.nanoseconds is not None:
            one, two = (outcome.nanoseconds for outcome in once.layers)
            assert point.nanoseconds == pytest.approx(one + 3 * two)
            shares = [outcome.cycles_error_share for outcome in once.layers]
            share = (shares[0] * one + shares[1] * 3 * two) / (one + 3 * two)
            assert point.cycles_error_share == pytest.approx(share)


def test_other_processes_give_the_same_and_are_watched(found, monkeypatch):
    tasks = []

    class Elsewhere(InProcess):
        def submit(self, fn, /, *args, **kwargs):
            if fn is rows_of:
                tasks.append((args[0].name, len(args[1])))
            return super().submit(*pickle.loads(pickle.dumps((fn, *args))), **kwargs)

    text = []

    def watch(layers):
        text.append(layers)
        return lambda: text.append("done")

    team = nullcontext(Workers(start=Elsewhere, slots=2, where="elsewhere"))
    monkeypatch.setattr("ttsim.study.design.workers", lambda **_: team)
    assert design(SPACE, watch=watch).to_json() == found.to_json()
    assert text == [2, "done", "done"]
    assert len(tasks) == found.looked
    assert tasks[:4] == 2 * [("one", 1), ("two", 1)]  # one machine after the other, so that both processes end together


def test_a_process_that_dies_is_an_error(monkeypatch):
    class Dead(InProcess):
        def submit(self, *_, **__):
            future = Future()
            future.set_exception(BrokenExecutor("gone"))
            return future

    team = nullcontext(Workers(start=Dead, slots=2, where="in 2 processes"))
    monkeypatch.setattr("ttsim.study.design.workers", lambda **_: team)
    with pytest.raises(DeviceError, match=r"^design: a process that worked in 2 processes died \(gone\)"):
        design(SPACE)


def test_a_cost_without_a_value_is_refused():
    costs = {"area": formula("1 / (l1.bytes - 131072)", ["l1.bytes"])}
    with pytest.raises(ArgumentError, match=r"^design: costs\.area: .* cannot be worked out: float division by zero"):
        ttsim.design(replace(SPACE, costs=costs))
    with pytest.raises(ArgumentError, match="give the path of a TOML file, not 3"):
        ttsim.design(3)


def test_machines_are_judged_by_a_recorded_network(tmp_path):
    """Its calls run on each machine; equal rows are shared where all that is read agrees."""
    with ttsim.open_device(values="off") as device:
        recorder = Recorder(device)
        tensor = ttsim.zeros((1, 1, 4096, 512), layout=ttsim.TILE_LAYOUT, device=device)
        ttsim.relu(ttsim.relu(tensor, memory_config=ttsim.L1_MEMORY_CONFIG))
    (tmp_path / "net.jsonl").write_text(recorder.text())
    path = tmp_path / "design.toml"
    path.write_text(
        'networks = ["net.jsonl"]\n[counts]\nnet = 3\n'
        '[space]\ngrid = ["8x8", "2x1"]\n"dispatch_costs.write_cycles" = [1490, 2000]\n'
    )
    result = design(path)
    network = read_network(tmp_path / "net.jsonl")
    assert result.layers == ("net",)
    assert result.looked == 2
    first, alike, small, _ = result.points
    row = network_row(network, SPEC, tune=False)
    assert (first.nanoseconds, alike.nanoseconds) == (3 * row.nanoseconds, first.nanoseconds)
    l1_bytes = 2 * 4096 * 512 * 2 // 64 + 4 * 2048  # two tensors on 64 cores, and 2 circular buffers of 2 tiles
    assert (first.layers[0].bound_by, first.layers[0].l1_peak_bytes) == (row.bound_by, l1_bytes)
    assert small.reason.startswith("net does not fit: Out of Memory: Not enough space to allocate 4194304 B L1 buffer")
    assert f"  net: {row.bound_by}; L1 of a core at most {row.l1_peak_bytes:,} B" in str(result)
    assert {sensitivity.figure for sensitivity in result.sensitivity} >= {"clock_hz"}
    path.write_text('networks = "net.jsonl"\n[space]\nclock_hz = [1]\n')
    with pytest.raises(ArgumentError, match="networks must be a list of files"):
        read_design(path)


def test_costs_may_name_area_and_energy(tmp_path):
    path = tmp_path / "machines.toml"
    path.write_text("""
tune = false
[device]
base = "wormhole_n150"
[space]
"dram.banks" = [6, 12]
[costs]
area = "area_mm2"
energy = "1e6 * energy_joules"
product = "energy_delay_joule_seconds"
[counts]
small = 3
[[layer]]
name = "small"
in_channels = 32
out_channels = 16
input_height = 8
input_width = 8
stride = 2
""")
    result = design(path)
    few, many = result.points
    assert many.area_mm2 - few.area_mm2 == pytest.approx(6 * 5)  # mm2 of a bank
    for point in result.points:
        assert point.costs["area"] == point.area_mm2
        assert point.costs["energy"] == 1e6 * point.energy_joules
        assert point.energy_joules == 3 * point.layers[0].energy_femtojoules / 10**15
        assert point.costs["product"] == pytest.approx(point.energy_joules * point.nanoseconds / 1e9)
        assert point.average_watts == pytest.approx(point.energy_joules / point.nanoseconds * 1e9)
    (record, _) = ttsim.sweep(read_design(path).layers, devices=["n150, dram.banks=6", "n150"], tune=False).records()
    assert record["energy_joules"] == few.layers[0].energy_femtojoules / 10**15
    assert record["average_watts"] == pytest.approx(few.average_watts)


def test_rows_in_a_file_are_not_computed_again(found, rows, tmp_path, monkeypatch):
    path = tmp_path / "rows.jsonl"
    lines = rows.read_bytes().splitlines(keepends=True)
    assert len(lines) == 1 + found.looked
    path.write_bytes(b"".join(lines[:-2]) + lines[-2][:9])  # a killed process leaves an unfinished line
    again, evaluated = Evaluator.row, []
    monkeypatch.setattr(
        Evaluator, "row", lambda self, *given, **named: evaluated.append(1) or again(self, *given, **named)
    )
    assert design(SPACE, rows=path).to_json() == found.to_json()
    assert len(evaluated) == 2


def test_an_optimizer_looks_at_some_machines(found):
    pytest.importorskip("optuna")
    some = design(SPACE, evaluations=3, seed=1)
    looked = [point for point in some.points if point.device and point.reason != "not looked at"]
    assert len(looked) == 3
    assert all(point in found.points for point in looked)
    assert some.convergence == (1.0,)
    assert "An optimizer looked at 3 machines" in str(some)
