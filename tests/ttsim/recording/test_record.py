"""The record of a profile: everything once, in order, and with the figures of its reports."""

import pytest

import ttsim as ttnn
from tests.ttsim.recording.calls import opened, options, tensor
from ttsim.recording.saving import record_of, report_files


@pytest.fixture(scope="module")
def record():
    with ttnn.open_device(l1_small_size=32768, values="off") as device, ttnn.profile(device) as profile:
        x = tensor(device, 1, 1, 32, 32, memory=ttnn.L1_MEMORY_CONFIG)
        y = ttnn.relu(x)
        ttnn.add_(x, y)
        return record_of(profile, "r")


def test_tensors_go_from_call_to_call(record):
    relu, add = record.calls
    assert add.inputs == (*relu.inputs, *relu.outputs)
    assert add.outputs == relu.inputs  # added in place
    assert {*relu.inputs, *relu.outputs} == set(record.tensors.values())
    assert [name for name, _ in add.arguments] == ["0", "1"]
    first, second = record.operations
    assert (second.output,) == first.inputs
    assert all(call.where.startswith("test_record.py:") for call in record.calls)


@pytest.mark.parametrize("mode", ttnn.graph.RunMode)
def test_durations_are_those_of_a_capture(mode):
    def taken(nodes):
        ends = (node for node in nodes if node["node_type"] == "function_end")
        return {node["params"]["name"]: node["duration_ns"] for node in ends if "duration_ns" in node}

    with opened() as device, ttnn.profile(device) as profile:
        given = options(device, channels=(64, 32), memory=ttnn.DRAM_MEMORY_CONFIG)
        ttnn.graph.begin_graph_capture(mode)
        ttnn.conv_transpose2d(device=device, **given)
        trace = ttnn.graph.end_graph_capture()
    if mode is ttnn.graph.RunMode.NO_DISPATCH:
        assert taken(trace) == {}  # nothing runs
        return
    (call,) = record_of(profile, "x").calls
    assert taken(trace) == taken(call.nodes)
    assert taken(trace)["ttnn.conv_transpose2d"] == call.nanoseconds > 0


def test_what_reads_no_tensor_is_told_like_others():
    with ttnn.open_device(values="off") as device, ttnn.profile(device) as profile:
        assert record_of(profile, "r").calls == ()
        x = ttnn.rand((1, 1, 32, 32), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
        ttnn.relu(x)
        result = record_of(profile, "r")
    (random, relu), (first, second) = result.operations, result.calls
    assert (random.inputs, random.output) == ((), relu.inputs[0])
    assert (first.inputs, first.outputs) == ((), second.inputs)
    report_files(profile, "r")


def test_a_call_that_does_not_fit_stands_between_the_others():
    with ttnn.open_device(spec="wormhole_n150", values="off") as device, ttnn.profile(device) as profile:
        x = tensor(device, 1, 1, 8192, 8192)
        small = tensor(device, 1, 1, 32, 32)
        ttnn.relu(small)
        with pytest.raises(ttnn.OutOfMemoryError) as raised:
            ttnn.to_memory_config(x, ttnn.L1_MEMORY_CONFIG)
        ttnn.relu(small)
        result = record_of(profile, "r")
    first, failed, last = result.calls
    assert [call.number for call in result.calls] == [1, 2, 3]
    assert failed.error
    assert failed.error in str(raised.value)
    assert (first.error, last.error, failed.outputs, failed.nanoseconds) == ("", "", (), 0)
    assert len(result.operations) == len(result.network.operations) == 2
    assert [(node["node_type"], node["params"]) for node in failed.nodes[1:-1]] == [
        ("function_start", {"inputs": "0", "name": "ttnn.to_memory_config"}),
        ("function_start", {"inputs": "0", "name": "CopyDeviceOperation"}),
        ("function_end", {"aborted": "true", "name": "CopyDeviceOperation"}),
        ("function_end", {"aborted": "true", "name": "ttnn.to_memory_config"}),
    ]
    assert {one.name for one in failed.living} == {"tensor"}
