"""Two networks, operation by operation, and their sums beside measured times and targets."""

import sys
from dataclasses import replace

import pytest

from device.spec.device_spec import load_spec
from tools.validate.network import figures_of, main, run_network, sentences, time_network, totals
from tools.validate.network_walk import steps_of
from tools.validate.rows import MEASURED as DATA, read_rows

EVERY_LAYER = read_rows(DATA / "model_layers.csv")
EVERY_FLOW = read_rows(DATA / "model_flow.csv")
LAYERS, FLOW = ([row for row in rows if row["model"] == "vgg_unet"] for rows in (EVERY_LAYER, EVERY_FLOW))
OPERATIONS = read_rows(DATA / "model_ops.csv")


@pytest.fixture(scope="module")
def networks():
    steps, _ = steps_of("vgg_unet", LAYERS, FLOW)
    figures, _ = figures_of("vgg_unet", OPERATIONS)
    specs = {"n150": load_spec("wormhole_n150"), "p100": load_spec("blackhole_p100")}
    return {name: time_network("vgg_unet", spec, steps, figures) for name, spec in specs.items()}


def names(layer):
    return [kind.name for kind in layer.operations]


def by_layer(times):
    return {time.step.flow["layer"]: time for time in times if time.step.row is not None}


def test_every_layer_is_a_step_and_rows_of_one_file_only_are_listed():
    steps, unmatched = steps_of("vgg_unet", LAYERS, FLOW)
    assert not unmatched
    assert [step.row["layer"] for step in steps if step.row] == [row["layer"] for row in LAYERS]
    assert steps[-1].row is None
    assert all(None not in row for row in (*EVERY_LAYER, *EVERY_FLOW, *OPERATIONS))  # no field is cut at a comma
    layers = [row for row in LAYERS if row["layer"] != "out"] + [{**LAYERS[0], "layer": "new"}]
    steps, unmatched = steps_of("vgg_unet", layers, FLOW)
    assert [(row["layer"], reason) for row, reason in unmatched] == [
        ("new", "nothing says what its input is: it is not in the flow"),
        ("out", "the layers' file has no such layer"),
    ]
    assert len(steps) == len(FLOW) - 1


def test_figures_are_times_and_measurements_come_first():
    odd = {**OPERATIONS[0], "unit": "TFLOPS"}
    figures, unread = figures_of("vgg_unet", [*reversed(OPERATIONS), odd])
    assert [figure.measured for figure in figures] == [True, True, False, False, False, False]
    assert {figure.time_ns for figure in figures if figure.measured} == {3.2911e6, 2.5156e6}
    assert max(figure.time_ns for figure in figures if not figure.measured) == pytest.approx(1e9 / 290)
    assert unread == [(odd, "a figure in TFLOPS gives no time")]
    assert figures_of("vgg", OPERATIONS) == ([], [])


@pytest.mark.parametrize("device", ["n150", "p100"])
def test_every_layer_is_timed_on_the_shards_that_the_one_before_left(networks, device):
    """102 operations, a halo of 86 cores in d4.up of the P100A, nothing moved behind the pools.

    Release 0.81.1 runs 106 on an N150 (recorded), with d4.up in block shards; the profiles show height shards, as
    release a8c5af0f chooses by itself.
    """
    block = {"n150": "block 16", "p100": "block 20"}[device]
    assert by_layer(networks[device].times["0.81.1"])["d4.up"].scheme == block
    for release, times in networks[device].times.items():
        found, sums = by_layer(times), totals(times)
        assert len(found) == len(LAYERS)
        assert not [time.reason for time in times if time.reason]
        inherited = [name for name, layer in found.items() if layer.step.before[:1] != ("interleaved",)]
        for name in set(inherited) - {"d1.conv1", "d2.conv1", "out"}:
            assert [kind for kind in names(found[name]) if kind != "Move"] == ["Halo", "Conv2d"], name
        assert names(found["out"]) == ["Matmul"]
        assert "InterleavedToSharded" in names(found["d4.up"])
        assert found["b1_34"].scheme == "block 64"
        if release != "0.81.1":
            assert found["d4.up"].scheme == {"n150": "height 64", "p100": "height 86"}[device]
        assert sums.operations == pytest.approx(102, abs=6)
        assert all("Move" not in names(time) for time in times if time.step.before == ("pool",))


def test_the_sum_is_near_the_measured_time_and_older_software_is_slower(networks):
    network = networks["n150"]
    planned, measured = totals(network.times["0.81.1"]), totals(network.times["a8c5af0f"])
    assert measured.timed_ns == pytest.approx(network.measured.time_ns, rel=0.05)
    assert planned.timed_ns == pytest.approx(4.95e6, rel=0.05)  # in block shards, of which there is no measurement
    assert list(network.times) == ["0.81.1", "a8c5af0f"]
    _, release, older = networks["p100"].times.values()
    assert [names(layer) for layer in release] == [names(layer) for layer in older]
    assert all(a.time_ns <= b.time_ns for a, b in zip(release, older, strict=True))
    assert totals(release).timed_ns < totals(older).timed_ns
    assert 0.75 < totals(older).timed_ns / networks["p100"].measured.time_ns < 1
    (_, text, closing) = sentences(network)
    assert text.endswith("ms in 105 operations. 3.291 ms in 102 operations were measured.")
    assert closing.startswith("Only totals of this network are published")


def test_every_operation_of_vanilla_unet_is_timed_and_near_its_target():
    """The target is that of tt-metal's CI; the operations are those that the recorded network runs."""
    steps, unmatched = steps_of("vanilla_unet", EVERY_LAYER, EVERY_FLOW)
    figures, _ = figures_of("vanilla_unet", OPERATIONS)
    network = time_network("vanilla_unet", load_spec("wormhole_n150"), steps, figures)
    times = network.times["0.81.1"]
    sums = totals(times)
    assert (unmatched, sums.failed, sums.operations) == ([], 0, 89)
    assert sums.timed_ns == pytest.approx(1e9 / 201, rel=0.08)
    assert sum(len(time.operations) for time in times) == 58  # of the 23 convolutions
    assert "There is no measurement of this device." in sentences(network)[0]


def test_a_layer_that_can_not_be_planned_is_told_and_so_are_those_behind_it():
    steps, _ = steps_of("vgg_unet", LAYERS[:4], FLOW)
    steps[1] = replace(steps[1], row={**steps[1].row, "act_block_h": "33"})
    steps[3] = replace(steps[3], flow={**steps[3].flow, "before": "fold:2"})
    times = first, second, third, fourth = run_network(steps[:4], load_spec("wormhole_n150"))
    assert first.operations
    assert not first.reason
    assert second.reason.startswith("not planned: ")
    assert third.reason == "not planned: the layer before has no output"
    assert fourth.reason == "before it stands fold, which is not known"
    assert totals(times).failed == 3


def test_command(tmp_path, capsys, monkeypatch):
    layers = tmp_path / "layers.csv"
    text = (DATA / "model_layers.csv").read_text(encoding="utf-8")
    layers.write_text(text.replace("vgg_unet,d4.conv2,1,64", "vgg_unet,d4.conv2,1,65"), encoding="utf-8")
    words = ["network", "--device", "n150", "--layers", str(layers)]
    monkeypatch.setattr(sys, "argv", words)
    main()
    printed = capsys.readouterr().out
    for part in (
        *("of d4.up: a profile", "block 16", "not timed", "n150, d4.conv2", "too low: 3"),
        *("the sum beside the whole network", "measured, N150"),
    ):
        assert part in printed
