import json
from pathlib import Path

import numpy as np
import pytest

import ttsim


def test_lines_of_a_capture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ttsim.open_device(values="off") as device:
        a = ttsim.Tensor(np.zeros((32, 32), np.float32), ttsim.bfloat16, device, ttsim.TILE_LAYOUT)
        ttsim.graph.begin_graph_capture()
        ttsim.matmul(a, a)
        nodes = ttsim.graph.end_graph_capture_to_file(tmp_path / "reports" / "capture.json")
    assert len(json.loads((tmp_path / "reports" / "capture.json").read_text())["graph"]) == len(nodes)
    ttsim.graph.pretty_print(nodes)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{'Capture Start':50}"
    assert lines[1] == f"{'Function Start: ttnn.matmul':50}"
    assert f"    {'Function Start: MatmulDeviceOperation':46}" in lines
    assert f"{'Function End:   ttnn.matmul':50}" in lines
    with pytest.raises(TypeError, match="pretty_format: trace must be a list of nodes"):
        ttsim.graph.pretty_format([1])  # type: ignore[list-item]
