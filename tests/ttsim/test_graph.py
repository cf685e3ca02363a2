"""Captures as text and as levelized graphs, as far as the approved answers to calls do not hold them."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import ttsim
import ttsim as ttnn
from device.errors import CircularBufferError
from device.plan import usage_per_core
from tests.ttsim.api.calls import conv, put
from ttsim import graph
from ttsim.runtime import session
from ttsim.runtime.device import Device


@pytest.fixture
def device() -> Device:
    return ttsim.open_device()


def tensor(device: Device, rows: int = 4) -> ttsim.Tensor:
    return ttsim.Tensor(np.ones((1, 1, rows, 32), np.float32)).to(device, ttsim.L1_MEMORY_CONFIG)


def test_nodes_have_the_real_librarys_form(device: Device) -> None:
    graph.begin_graph_capture(graph.RunMode.NORMAL)
    result = tensor(device)
    address = result.buffer_address()
    result.deallocate()
    trace = graph.end_graph_capture()
    kinds = (
        "tensor buffer buffer_allocate function_end tensor function_start buffer_deallocate function_end capture_end"
    )
    assert [node["node_type"] for node in trace] == ["capture_start", "function_start", *kinds.split()]
    assert [node["counter"] for node in trace] == list(range(11))
    assert [node["connections"] for node in trace] == [
        [1, 7], [3, 4, 5], [1], [6], [3], [6, 7], [], [8, 9], [3], [10], [],
    ]  # fmt: skip
    assert [node["stacking_level"] for node in trace] == [0, *[1] * 9, 0]
    assert trace[4]["params"] == {
        "address": address, "buffer_type": 1, "device_id": 1, "layout": "INTERLEAVED", "max_size_per_bank": 128,
        "num_cores": 0, "page_size": 128, "size": 512, "type": "L1",
    }  # fmt: skip
    assert graph.extract_calltrace(trace) == ["Tensor::to_device", "Tensor::deallocate"]


def test_peaks_read_from_nodes_are_those_of_the_events(device: Device) -> None:
    graph.begin_graph_capture()
    events = session.current().captures[-1].events
    kept = [tensor(device, rows) for rows in (4, 100, 7)]
    kept.pop(1).deallocate()
    kept.append(tensor(device, 300))
    trace = graph.end_graph_capture()
    usage = graph.extract_resource_usage_per_core(trace)
    assert usage == usage_per_core(events)
    assert usage.peak_l1 > 0
    assert graph.extract_peak_L1_memory_usage(trace) == (4 + 7 + 300) * 128


def test_captures_nest_and_end(device: Device) -> None:
    assert not graph.is_graph_capture_active()
    graph.begin_graph_capture()
    first = tensor(device)
    graph.begin_graph_capture(graph.RunMode.NO_DISPATCH)
    second = tensor(device)
    inner = graph.end_graph_capture()
    assert graph.is_graph_capture_active()
    outer = graph.end_graph_capture()
    third = tensor(device)
    allocations = [sum(node["node_type"] == "buffer_allocate" for node in trace) for trace in (outer, inner)]
    assert allocations == [2, 1]
    assert device.machine.recorders == []
    assert graph.end_graph_capture() == []
    assert all(one.is_allocated() for one in (first, second, third))
    assert [one.buffer_address() > 0 for one in (first, second, third)] == [True, False, True]


def test_other_threads_are_not_captured(device: Device) -> None:
    graph.begin_graph_capture()
    with ThreadPoolExecutor() as pool:
        assert not pool.submit(graph.is_graph_capture_active).result()
        pool.submit(lambda: tensor(device).deallocate()).result()
    assert len(graph.end_graph_capture()) == 2


def test_garbage_of_other_devices_is_not_captured(device: Device) -> None:
    rest = [tensor(ttsim.open_device())]
    graph.begin_graph_capture()
    result = tensor(device)
    rest.clear()
    own = [tensor(device)]
    own.clear()
    names = graph.extract_calltrace(graph.end_graph_capture())
    assert names == ["Tensor::to_device", "Tensor::to_device", "Tensor::deallocate"]
    assert result.is_allocated()


def test_a_refused_operation_is_aborted() -> None:
    device = ttsim.open_device(values="off", l1_small_size=32768)
    image, full = put(device, "1x1x65536x32"), ttsim.Conv2dL1FullSliceConfig
    graph.begin_graph_capture()
    with pytest.raises(CircularBufferError):
        conv(device, (256, 256), (32, 32), (3, 3), input_tensor=image, dram_slice_config=full)
    trace = graph.end_graph_capture()
    starts, ends = (
        [node["params"] for node in trace if node["node_type"] == f"function_{kind}"] for kind in ("start", "end")
    )
    assert {end["name"] for end in ends if end.get("aborted") == "true"} == {"Conv2dDeviceOperation"}
    assert len(starts) == len(ends)
    starts = [start["name"] for start in starts]
    last = len(starts) - starts[::-1].index("Conv2dDeviceOperation")
    # Seen on the real library: index tensors, then the output, then what the call had made before, the latest first.
    assert starts[last:] == [
        "tt::tt_metal::create_device_tensor", "Tensor::to_device", *["Tensor::deallocate"] * 5,
    ]  # fmt: skip
    freed = [node["params"] for node in trace if node["node_type"] == "buffer_deallocate"][-5:]
    assert [(buffer["type"], buffer["buffer_type"]) for buffer in freed] == [
        ("L1", 3), ("L1", 1), ("L1", 1), ("DRAM", 0), ("L1", 1),
    ]  # fmt: skip


def test_what_the_last_device_operation_made_is_the_output_of_a_capture(device: Device) -> None:
    x = ttsim.Tensor(np.ones((1, 1, 64, 64), np.float32), ttsim.bfloat16).to(ttsim.TILE_LAYOUT).to(device)
    graph.begin_graph_capture()
    output = ttsim.relu(ttsim.add(x, x), memory_config=ttsim.L1_MEMORY_CONFIG)
    trace = graph.end_graph_capture()
    (counter,) = graph.extract_output_tensors(trace)
    assert trace[counter]["params"]["address"] == output.buffer_address()
    assert trace[counter]["params"]["dtype"] == "DataType::BFLOAT16"
    assert trace[counter - 1]["params"]["name"] == "UnaryDeviceOperation"
    (info,) = graph.extract_output_info(trace)
    assert repr(info) == "TensorInfo(shape=Shape([1, 1, 64, 64]), size=8192, type=L1)"
    assert graph.count_intermediate_and_output_tensors(trace) == (0, 1)


def test_a_capture_without_device_operations_has_no_output(device: Device) -> None:
    before = tensor(device)
    graph.begin_graph_capture()
    before.deallocate()
    trace = graph.end_graph_capture()
    with pytest.raises(ttsim.DeviceError, match=r"^No function_end node with tensor connections found in the trace"):
        graph.extract_output_info(trace)
    with pytest.raises(ttsim.ArgumentTypeError, match="extract_output_tensors: trace must be a list of nodes"):
        graph.extract_output_tensors(None)  # type: ignore[arg-type]


def node(counter, kind, level, leads_to=(), read=(), arguments=(), **params):
    return {
        "counter": counter, "node_type": kind, "stacking_level": level, "connections": list(leads_to),
        "input_tensors": list(read), "arguments": list(arguments), "params": params,
    }  # fmt: skip


def test_what_flows_goes_from_the_outermost_maker_to_every_reader_once():
    trace = [
        node(0, "capture_start", 0, [1, 7]),
        node(1, "function_start", 1, [2, 5], name="outer"),
        node(2, "function_start", 2, [3], name="inner"),
        node(3, "function_end", 2, [4], name="inner"),
        node(4, "tensor", 2, [7, 7], tensor_id=1, shape="Shape([2])"),
        node(5, "function_end", 1, [4, 7], name="outer"),
        node(6, "buffer", 1),
        node(7, "function_start", 1, [8], read=[4, 4], arguments=["Tensor(a)", "Tensor(b)"], name="reader"),
        node(8, "function_end", 1, [9], name="reader"),
        node(9, "capture_end", 0),
    ]
    keys = ("name", "in_edges", "out_edges", "internals", "output_info")
    assert [tuple(vertex[key] for key in keys) for vertex in ttnn.graph.extract_levelized_graph(trace, 2)] == [
        ("outer", [], [2], [1], ["Tensor(a)"]),
        ("inner", [], [], [], []),
        ("reader", [0, 0], [], [], []),
    ]
    assert len(ttnn.graph.extract_levelized_graph(trace)) == 2


def test_what_is_no_capture_is_refused():
    assert ttnn.graph.extract_levelized_graph([]) == []
    for trace in (None, 3, [{}], [{"node_type": "function_start"}], [node(0, "function_start", 1, name="open")]):
        with pytest.raises(ttnn.ArgumentTypeError, match="extract_levelized_graph: trace must be a list of nodes"):
            ttnn.graph.extract_levelized_graph(trace)
    with pytest.raises(ttnn.ArgumentError, match="max_level must be at least 0, not -1; 1 is usual"):
        ttnn.graph.extract_levelized_graph([], -1)


def test_lines_of_a_capture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ttnn.open_device(values="off") as device:
        a = ttnn.Tensor(np.zeros((32, 32), np.float32), ttnn.bfloat16, device, ttnn.TILE_LAYOUT)
        ttnn.graph.begin_graph_capture()
        ttnn.matmul(a, a)
        nodes = ttnn.graph.end_graph_capture_to_file(tmp_path / "reports" / "capture.json")
    assert len(json.loads((tmp_path / "reports" / "capture.json").read_text())["graph"]) == len(nodes)
    ttnn.graph.pretty_print(nodes)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{'Capture Start':50}"
    assert lines[1] == f"{'Function Start: ttnn.matmul':50}"
    assert f"    {'Function Start: MatmulDeviceOperation':46}" in lines
    assert f"{'Function End:   ttnn.matmul':50}" in lines
    with pytest.raises(TypeError, match="pretty_format: trace must be a list of nodes"):
        ttnn.graph.pretty_format([1])  # type: ignore[list-item]
