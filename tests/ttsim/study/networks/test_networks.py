"""Recorded networks: what a file holds, that a replay does what the script did, and what cannot be recorded."""

import json
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import ttsim as ttnn
from ops.sensitivity.changes import load_spec
from ttsim.__main__ import main
from ttsim.dropin.finder import ttnn_is_ttsim
from ttsim.dropin.script import listened, watched
from ttsim.study.front_details import calls_on
from ttsim.study.networks.judge import network_row
from ttsim.study.networks.recorder import Recorder, text_of
from ttsim.study.networks.replay import read_network, replay, replayed
from ttsim.study.store import Row, Verdict
from ttsim.study.tune.network import tune_network

UNET = Path(__file__).parents[3] / "data" / "unet.py"
PREFIX = '{"ttsim_network":1,"device":"wormhole_n150","l1_small_size":0,"strict":true}\n'


@pytest.fixture
def device():
    with ttnn.open_device(values="off", l1_small_size=32768) as opened:
        yield opened


def steps(recorder: Recorder) -> list[dict[str, object]]:
    """The steps of a file, without lines of scripts."""
    _, *read = map(json.loads, recorder.text().splitlines())
    return [{name: value for name, value in step.items() if name != "lines"} for step in read]


def test_a_replay_of_a_u_net_gives_the_report_of_its_script(tmp_path, monkeypatch):
    """All figures, names of lines and buffers among them, so that memory lies as it lay."""
    monkeypatch.setenv("TTSIM_VALUES", "off")
    with ttnn_is_ttsim(), watched() as profiles, listened(Recorder) as recorders:
        runpy.run_path(str(UNET), run_name="__main__")
    path = tmp_path / "unet.jsonl"
    path.write_text(text_of(recorders))
    network = read_network(path)
    assert (network.name, network.calls) == ("unet", 43)
    assert replayed(network, profiles[0].device.spec).network().to_json() == profiles[0].network().to_json()


def test_what_a_file_holds(device):
    recorder = Recorder(device)
    rows = ttnn.zeros((1, 1, 32, 64), device=device)
    tiles = ttnn.to_layout(rows, ttnn.TILE_LAYOUT)
    ttnn.deallocate(rows)
    ttnn.concat([tiles, tiles], dim=3, memory_config=ttnn.L1_MEMORY_CONFIG)
    dram = "ttnn.DRAM_MEMORY_CONFIG"
    shape = {
        "shape": [1, 1, 32, 64],
        "dtype": "ttnn.bfloat16",
        "layout": "ttnn.Layout.ROW_MAJOR",
        "memory_config": dram,
    }
    place = {"dim": 3, "memory_config": "ttnn.L1_MEMORY_CONFIG"}
    assert steps(recorder) == [
        {"tensor": 0, "spec": shape},
        {"call": "to_layout", "args": [{"tensor": 0}, "ttnn.Layout.TILE"], "kwargs": {}, "gives": [1]},
        {"free": [0]},
        {"call": "concat", "args": [[{"tensor": 1}, {"tensor": 1}]], "kwargs": place, "gives": [2]},
    ]


def test_failed_calls_and_queries_leave_no_step(device):
    recorder = Recorder(device)
    tensor = ttnn.zeros((32, 32), layout=ttnn.TILE_LAYOUT, device=device)
    with pytest.raises(ttnn.TTSimError):
        ttnn.permute(tensor, (0, 5))
    ttnn.estimate_cycles(ttnn.relu, tensor, device=device)
    ttnn.graph.query_op_constraints(ttnn.relu, device, tensor)
    assert [list(step) for step in steps(recorder)] == [["tensor", "spec"]]


def test_prepared_weights_and_views_are_made_again(device, tmp_path):
    recorder = Recorder(device)
    weight = ttnn.from_torch(np.zeros((32, 32, 3, 3), np.float32), ttnn.bfloat16)
    image = ttnn.zeros((1, 1, 64, 32), layout=ttnn.TILE_LAYOUT, device=device)
    sizes = {"in_channels": 32, "out_channels": 32, "batch_size": 1, "input_height": 8, "input_width": 8,
             "kernel_size": (3, 3), "padding": (1, 1), "device": device}  # fmt: skip
    prepared = ttnn.prepare_conv_weights(
        weight_tensor=weight, input_memory_config=image.memory_config(), input_layout=image.layout,
        weights_format="OIHW", has_bias=False, groups=1, dilation=(1, 1), stride=(1, 1), input_dtype=ttnn.bfloat16,
        **sizes,
    )  # fmt: skip
    with ttnn.profile(device) as profile:
        there = ttnn.to_device(prepared, device)
        for weights in (prepared, there):
            output = ttnn.conv2d(input_tensor=image, weight_tensor=weights, **sizes)
        ttnn.reshape(output, (1, 8, 8, 32))
    path = tmp_path / "net.jsonl"
    path.write_text(recorder.text())
    again = replayed(read_network(path), device.spec).network()
    assert [(op.name, op.cycles) for op in again.operations][-len(profile.network().operations) :] == [
        (op.name, op.cycles) for op in profile.network().operations
    ]


def test_a_row_says_what_binds_and_why_a_network_does_not_run(tmp_path):
    path = tmp_path / "net.jsonl"
    with ttnn.open_device(values="off") as device:
        recorder = Recorder(device)
        tensor = ttnn.zeros((1, 1, 4096, 512), layout=ttnn.TILE_LAYOUT, device=device)
        ttnn.relu(tensor, memory_config=ttnn.L1_MEMORY_CONFIG)
    path.write_text(recorder.text())
    network = read_network(path)
    row = network_row(network, load_spec("n150"), tune=True)
    assert (row.verdict, row.given_cycles, row.untimed_operations) == (Verdict.FITS, row.cycles, 0)
    assert row.bound_by.endswith(" 100.0 %")
    assert row.l1_peak_bytes == 4096 * 512 * 2 // 64 + 4 * 2048  # shards of 64 cores, and 2 circular buffers of 2 tiles
    small = network_row(network, load_spec("n150, grid=2x1"), tune=False)
    first, *_, last = small.error.splitlines()
    assert small.verdict is Verdict.DOES_NOT_FIT
    assert first.startswith("Out of Memory: Not enough space to allocate 4194304 B L1 buffer")
    assert re.fullmatch(r"line 3 of net: relu \(test_networks.py:[0-9]+\)", last)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is no recorded network of format 1"),
        ('{"ttsim_network":2}\n', "is no recorded network of format 1"),
        ('{"ttsim_network":1}\n', "its first line lacks device, l1_small_size or strict"),
        (PREFIX + "{}\n", "line 2 is no step of a recorded network"),
        (PREFIX + "[\n", "line 2 is no step of a recorded network"),
    ],
)
def test_other_files_are_refused(tmp_path, text, told):
    path = tmp_path / "net.jsonl"
    path.write_text(text)
    with pytest.raises(ttnn.ArgumentError, match=told):
        read_network(path)


@pytest.mark.parametrize(
    "step",
    [
        '{"call":"relu","args":[{"tensor":7}],"kwargs":{},"gives":[],"lines":[]}',
        '{"call":"relu"}',
        '{"call":"open_device","args":[],"kwargs":{},"gives":[],"lines":[]}',
        '{"tensor":0,"spec":{}}',
        '{"free":[3]}',
    ],
)
def test_steps_that_are_none_become_a_row(tmp_path, step):
    path = tmp_path / "net.jsonl"
    path.write_text(PREFIX + step + "\n")
    row = network_row(read_network(path), load_spec("n150"), tune=False)
    assert row.verdict is Verdict.REFUSED
    assert "line 2 of net" in row.error


def test_the_command_records_what_one_device_does(tmp_path, capsys):
    script, path = tmp_path / "script.py", tmp_path / "net.jsonl"
    open_one = "import ttnn\nwith ttnn.open_device() as device:\n    ttnn.ones((32, 32), device=device)\n"
    script.write_text(open_one)
    assert main(["exec", "--values", "off", "--record", str(path), str(script)]) == 0
    assert read_network(path).steps[0]["tensor"] == 0
    script.write_text(2 * open_one)
    assert main(["exec", "--values", "off", "--record", str(path), str(script)]) == 2
    assert "2 devices made calls" in capsys.readouterr().err


def test_what_becomes_of_the_program_cache_is_told_before_the_next_call(device, tmp_path):
    recorder = Recorder(device)
    tensor = ttnn.zeros((32, 32), layout=ttnn.TILE_LAYOUT, device=device)
    ttnn.relu(tensor)
    device.disable_and_clear_program_cache()
    ttnn.relu(tensor)
    device.enable_program_cache()
    ttnn.relu(tensor)
    ttnn.relu(tensor)
    told = [step.get("programs", step.get("call")) for step in steps(recorder) if "free" not in step][1:]
    assert told == ["relu", "cleared", "not kept", "relu", "kept", "relu", "relu"]
    path = tmp_path / "net.jsonl"
    path.write_text(recorder.text())
    assert [op.cached for op in replayed(read_network(path), device.spec).runs()] == [False, False, False, True]


def test_a_tuned_row_is_that_of_a_replay_with_the_found_configs(device, tmp_path, monkeypatch):
    """The output comes back to where it was; a replay that fails leaves the row of the recorded configs."""
    recorder, path = Recorder(device), tmp_path / "net.jsonl"
    output = ttnn.conv2d(
        input_tensor=ttnn.zeros((1, 1, 4096, 32), layout=ttnn.TILE_LAYOUT, device=device),
        weight_tensor=ttnn.from_torch(np.zeros((32, 32, 3, 3), np.float32), ttnn.bfloat16), device=device,
        in_channels=32, out_channels=32, batch_size=1, input_height=64, input_width=64, kernel_size=(3, 3),
        conv_config=ttnn.Conv2dConfig(shard_layout=ttnn.TensorMemoryLayout.BLOCK_SHARDED),
    )  # fmt: skip
    ttnn.relu(output)
    path.write_text(recorder.text())
    network, found = read_network(path), []
    monkeypatch.setattr("ttsim.study.networks.judge.replay", lambda *given: found.append(replay(*given)) or found[-1])
    row = network_row(network, device.spec, tune=True)
    first, again = (each.profile for each in found)
    assert (row.given_cycles, row.arguments) == (first.network().cycles, "1 of 1 convolutions")
    assert row.cycles == again.network().cycles < row.given_cycles
    assert row.l1_peak_bytes == max(op.l1_bytes for op in again.runs())
    monkeypatch.setattr("ttsim.study.networks.judge.tune_network", None)  # the row has the configs that were found
    read = Row.from_dict(json.loads(json.dumps(row.to_dict())))
    assert read == row
    assert [call.plan for call in calls_on(network, device.spec, read)] == [call.plan for call in again.ran]
    assert [call.plan for call in calls_on(network, device.spec)] == [call.plan for call in first.ran]
    figures = ("bound_by", "dram_read_bytes", "action_femtojoules", "cycles_error_share")
    assert all(getattr(row, name) is not None for name in figures)
    results = [[tensor.spec for _, tensor in profile.ran[-1].inputs] for profile in (first, again)]
    assert results[0] == results[1]

    def failing(network, spec, changes=None):
        if changes:
            raise ttnn.DeviceError("no room")
        return replay(network, spec)

    monkeypatch.setattr("ttsim.study.networks.judge.tune_network", tune_network)
    monkeypatch.setattr("ttsim.study.networks.judge.replay", failing)
    row = network_row(network, device.spec, tune=True)
    assert (row.cycles, row.given_cycles, row.arguments) == (row.cycles, row.cycles, "")
    assert row.action_femtojoules == network_row(network, device.spec, tune=False).action_femtojoules
