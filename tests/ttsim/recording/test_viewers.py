"""What tt-perf-report and ttnn-visualizer themselves make of our files.

They need an environment of their own, for they pin what they use (`pip install ttnn-visualizer` brings both);
TTSIM_VIEWERS names its folder.
"""

import json
import os
import re
import subprocess
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import numpy as np
import pytest

import ttsim as ttnn
from tests.ttsim.recording.calls import conv

HOME = os.environ.get("TTSIM_VIEWERS", "")
pytestmark = [
    pytest.mark.viewers,
    pytest.mark.skipif(not HOME, reason="TTSIM_VIEWERS names no environment with tt-perf-report and ttnn-visualizer"),
]
AS_THE_PAGE_READS = re.compile(r'File\s+"(?:.+/)?([^/]+)",\s+line\s+(\d+)')  # in the page's own program
ROUTES = Path(__file__).with_name("viewer_routes.py")


def up(device, x, channels, side):
    return conv(device, size=side, channels=(channels, 32), input_tensor=x)


def call(device):
    """One layer."""
    x = ttnn.Tensor(np.zeros((1, 1, 256, 32), np.float32), ttnn.bfloat16).to(device)
    return up(device, x, 32, 16)


def network(device):
    """Three layers with a sum, a pool and a concatenation between them."""
    first = ttnn.relu(up(device, ttnn.Tensor(np.zeros((1, 1, 256, 64), np.float32), ttnn.bfloat16).to(device), 64, 16))
    first = ttnn.to_memory_config(ttnn.add(first, first), ttnn.DRAM_MEMORY_CONFIG)
    pooled = ttnn.max_pool2d(
        ttnn.to_layout(first, ttnn.ROW_MAJOR_LAYOUT), batch_size=1, input_h=32, input_w=32, channels=32,
        kernel_size=[2, 2], stride=[2, 2], padding=[0, 0], dilation=[1, 1])  # fmt: skip
    second = up(device, ttnn.to_memory_config(pooled, ttnn.DRAM_MEMORY_CONFIG), 32, 16)
    both = ttnn.concat([first, ttnn.to_memory_config(second, ttnn.DRAM_MEMORY_CONFIG)], dim=3)
    return up(device, both, 64, 32)


@contextmanager
def served(scratch):
    """A function that asks the visualizer's server for what one of its tools says."""
    variables = dict.fromkeys(("APP_DATA_DIRECTORY", "REPORT_DATA_DIRECTORY"), str(scratch))
    server = subprocess.Popen(
        [Path(HOME) / "bin" / "ttnn-visualizer-mcp"], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, env=os.environ | variables | {"USAGE_RECORDING_DISABLED": "true"})  # fmt: skip
    numbers = count(1)

    def ask(method, params):
        request = {"jsonrpc": "2.0", "id": next(numbers), "method": method, "params": params}
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        return json.loads(server.stdout.readline())["result"]

    with server:
        about = {"name": "test", "version": "0"}
        ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about})
        yield lambda name, **options: json.loads(
            ask("tools/call", {"name": name, "arguments": options})["content"][0]["text"]
        )
        server.stdin.close()


@pytest.fixture(scope="module", params=[(call, 1), (network, 3)], ids=["call", "network"])
def saved(request, tmp_path_factory):
    """A folder with a report, the report on its cycles, and how many convolutions it has."""
    run, convolutions = request.param
    folder = tmp_path_factory.mktemp("report")
    with ttnn.open_device(l1_small_size=32768, values="off") as device, ttnn.profile(device) as profile:
        kept = run(device)
        ttnn.save_report(folder, profile)
        del kept
    return folder, profile.report(), convolutions


UNKNOWN = "Warning: Unclassified operation 'UntilizeCodegenDeviceOperation' found."  # as on a card


def test_the_performance_report_shows_flops(saved):
    folder, _, convolutions = saved
    (results,) = folder.glob("generated/profiler/reports/report/ops_perf_results_*.csv")
    tool = Path(HOME) / "bin" / "tt-perf-report"
    result = subprocess.run([tool, "--no-color", "--no-advice", results], capture_output=True, text=True, check=True)
    shown = result.stdout + result.stderr
    assert [line for line in shown.splitlines() if "warning" in line.lower() and not line.startswith(UNKNOWN)] == []
    rows = [line for line in result.stdout.splitlines() if re.match(r" *\d+ +\d+\.\d %.* Conv2dDeviceOperation", line)]
    assert len(rows) == convolutions
    assert all(re.search(r"\d\.\d TFLOPs +\d+\.\d %  HiFi4", row) for row in rows)


def test_the_visualizer_answers_all_its_routes(saved, tmp_path):
    folder, report, _ = saved
    generated = folder / "generated"
    paths = [generated / "ttnn" / "reports" / "report", generated / "profiler" / "reports" / "report", tmp_path]
    result = subprocess.run(
        [Path(HOME) / "bin" / "python", "-W", "ignore", ROUTES, *paths], capture_output=True, text=True, check=True
    )
    found = json.loads(result.stdout)
    assert {route: status for route, status in found["routes"].items() if status != 200} == {}
    assert [one["name"] for one in found["operations"]] == [one.name for one in report.calls]
    for one in found["operations"]:
        name, line = AS_THE_PAGE_READS.search(one["stack_trace"]).groups()
        shown = found["sources"][str(one["stack_trace_source_file_id"])].splitlines()[int(line) - 1]
        assert "/" not in name
        assert "ttnn." in shown
    counts = {int(row["global_call_count"]) for row in found["report"]}
    assert {entry["global_call_count"] for entry in found["npe"]} <= counts  # whose rows have a button for them
    device_time = sum(float(one["device_time"]) for one in found["report"])  # in microseconds
    assert device_time == pytest.approx(report.nanoseconds / 1e3, abs=1e-3 * len(report.operations))


def test_its_server_links_both_halves(saved, tmp_path):
    folder, report, _ = saved
    generated = folder / "generated"
    with served(tmp_path) as tool:
        loaded = tool(
            "load_report",
            profiler_path=str(generated / "ttnn" / "reports" / "report"),
            performance_path=str(generated / "profiler" / "reports" / "report"),
        )
        assert loaded["unanswerable"] == []
        top = tool("top_ops", handle=loaded["handle"], limit=100)
    assert top["operation_link"]["status"] == "linked"
    assert top["op_count"] == len(report.operations)
