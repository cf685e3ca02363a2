"""Captures as text and as levelized graphs, as far as the approved answers to calls do not hold them."""

import json
from pathlib import Path

import numpy as np
import pytest

import ttsim as ttnn


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
