"""What newcomers do, from the documentation alone: a folder of their own, the command line, and what they want to see.

The journeys: a first layer; a U-Net's decoder, with `exec` and `pytest`; the files of a report; a layer that is made to
fit; tuning; an edited machine; a sweep; a design; training; oneDNN's operations; a notebook; a report for viewers; a
script that runs out of memory; a comparison. Those that take longer than a second are slow.
"""

import csv
import gzip
import json
import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from ttsim.__main__ import main

ROOT = Path(__file__).resolve().parents[2]
UP = ("--shape", "1,24,24,64", "--out-channels", "32", "--kernel-size", "2", "--stride", "2", "--values", "off")
LAYER = UP[:-2]
RUN = ("run", *UP, "--no-suggestions")
LARGE = ("--shape", "1,200,320,64", *LAYER[2:], "--input-memory", "l1")


IN_PROCESSES = ("exec", "pytest")  # commands that change the process in which a script runs


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The newcomer's folder, which is empty, and environment."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("TTSIM_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def run(*command, code=0):
    """What a command prints, with errors if it fails; its exit code is held."""
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr if code else done.stdout


def ttsim(*arguments, code=0):
    """What a command of ttsim prints, as `run`; scripts run in interpreters of their own."""
    if arguments[0] in IN_PROCESSES:
        return run("-m", "ttsim", *arguments, code=code)
    with redirect_stdout(StringIO()) as printed, redirect_stderr(StringIO()) as errors:
        assert main(list(arguments)) == code, errors.getvalue()
    return printed.getvalue() + errors.getvalue() if code else printed.getvalue()


def written(name, text):
    Path(name).write_text(text, encoding="utf-8")
    return name


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def cycles_of(report):
    (layer,) = json.loads(report)["layers"]
    return layer["summary"]["cycles"]["total"]["cycles"]


def test_a_first_layer(folder):
    """A layer of one's own sizes agrees with numpy, and the report says where its time goes."""
    script = written(
        "first.py",
        """
import numpy as np
import ttsim as ttnn

device = ttnn.open_device(device_id=0, l1_small_size=32768, spec="wormhole_n150")
image, kernel = np.ones((1, 8, 12, 32), np.float32), np.full((32, 8, 2, 2), 0.5, np.float32)
with ttnn.profile(device) as profile:
    output, size = ttnn.conv_transpose2d(
        input_tensor=ttnn.Tensor(image, ttnn.bfloat16).to(device), weight_tensor=ttnn.Tensor(kernel, ttnn.bfloat16),
        device=device, in_channels=32, out_channels=8, batch_size=1, input_height=8, input_width=12,
        kernel_size=(2, 2), stride=(2, 2), return_output_dim=True)
print(size, bool((output.to_numpy() == 16).all()))
print(profile.report().table(100))
ttnn.close_device(device)
""",
    )
    lines = run(script).splitlines()
    assert lines[0] == "(16, 24) True"
    assert re.match(r"wormhole_n150: [\d,]+ cycles", lines[1])
    assert any(line.startswith("Conv2dDeviceOperation") for line in lines)


DECODER = """
import sys
import numpy as np
import ttnn

def step(device, image, skip, place):
    weights = ttnn.Tensor(np.full((64, 32, 2, 2), 0.01, np.float32), ttnn.bfloat16)
    up = ttnn.conv_transpose2d(
        input_tensor=image, weight_tensor=weights, device=device, in_channels=64, out_channels=32, batch_size=1,
        input_height=8, input_width=8, kernel_size=(2, 2), stride=(2, 2))
    up = ttnn.to_memory_config(ttnn.to_layout(up, ttnn.ROW_MAJOR_LAYOUT), place)
    return ttnn.concat([up, skip], dim=3)

def main(device, place=ttnn.DRAM_MEMORY_CONFIG):
    image = ttnn.Tensor(np.ones((1, 1, 64, 64), np.float32), ttnn.bfloat16).to(device, place)
    skip = ttnn.Tensor(np.ones((1, 1, 256, 32), np.float32), ttnn.bfloat16).to(device, place)
    return step(device, image, skip, place)

if __name__ == "__main__":
    device = ttnn.open_device(device_id=0, l1_small_size=32768)
    print(main(device, ttnn.L1_MEMORY_CONFIG if "l1" in sys.argv else ttnn.DRAM_MEMORY_CONFIG).shape)
    ttnn.close_device(device)
"""


@pytest.mark.slow
def test_a_decoder_runs_unchanged_and_is_compared_with_itself(folder):
    """As a script, with a report whose operations stand by their lines, and as tests with the fixture of tt-metal."""
    written("decoder.py", DECODER)
    assert ttsim("exec", "--report", "dram", "decoder.py") == "Shape([1, 1, 256, 64])\n"
    ttsim("exec", "--report", "l1", "decoder.py", "l1")
    lines = Path("dram/network0.txt").read_text().splitlines()
    assert [line for line in lines if "ConcatDeviceOperation" in line and "decoder.py:" in line]
    assert "kind" in ttsim("compare", "dram/network0.json", "l1/network0.json")


@pytest.mark.slow
def test_a_decoder_is_tested_with_pytest(folder):
    written("decoder.py", DECODER)
    written(
        "test_decoder.py",
        """
import pytest
import ttnn
from decoder import main

@pytest.mark.parametrize("device_params", [{"l1_small_size": 32768}], indirect=True)
def test_sizes(device):
    assert list(main(device).shape) == [1, 1, 256, 64]
""",
    )
    assert "1 passed" in ttsim("pytest", "-q", "test_decoder.py")


@pytest.mark.slow
def test_the_files_of_a_report(folder):
    """A page, all figures as JSON, a table as a profiler writes it, and a timeline for Perfetto agree."""
    cycles = cycles_of(ttsim(*RUN, "--html", "page.html", "--report", "out", "--json"))
    assert re.search(f"{cycles}|{cycles:,}", Path("page.html").read_text())
    assert json.loads(Path("out/conv_transpose2d.json").read_text())["cycles"]["total"]["cycles"] == cycles
    (table,) = Path("out").glob("generated/profiler/reports/*/ops_perf_results_*.csv")
    rows = rows_of(table)
    assert sum(int(row["DEVICE KERNEL DURATION [ns]"]) for row in rows) == cycles  # the clock has 1 GHz
    trace = json.loads(gzip.decompress(Path("out/conv_transpose2d.trace.json.gz").read_bytes()))
    whole = [event for event in trace["traceEvents"] if event.get("cat") == "operation" and event["pid"] == 0]
    assert [event["name"] for event in whole] == [row["OP CODE"] for row in rows]
    assert sum(event["args"]["cycles"] for event in whole) == cycles


@pytest.mark.slow
def test_a_layer_is_made_to_fit(folder):
    """The verdict names what fills L1 and what fits; the first change that is suggested fits."""
    verdict = ttsim("run", *LARGE, "--values", "off", code=1)
    assert "which is beyond max L1 size" in verdict
    assert "circular buffer 'act_tilized'" in verdict
    (height,) = re.findall(r"^  conv_config=ttnn\.Conv2dConfig\((act_block_h_override=\d+)\)$", verdict, re.MULTILINE)
    assert "headroom" in ttsim("run", *LARGE, "--values", "off", "--no-suggestions", "--config", height)


@pytest.mark.slow
def test_a_layer_is_tuned(folder):
    """The config that the tuner prints, pasted into a script, takes the cycles that the tuner prints."""
    text = ttsim("tune", *LAYER, "--no-bias", "--effort", "20", "--keep", "core_grid")
    ((found, arguments),) = re.findall(r"the best found: ([\d,]+) cycles[^\n]*\n[^\n]*\n  ([^\n]+)", text)
    script = written(
        "tuned.py",
        f"""
import ttsim as ttnn

with ttnn.open_device(l1_small_size=32768, spec="wormhole_n150", values="off") as device:
    report = ttnn.estimate_cycles(
        ttnn.conv_transpose2d, device=device, in_channels=64, out_channels=32, batch_size=1, input_height=24,
        input_width=24, kernel_size=(2, 2), stride=(2, 2),
        input_tensor=ttnn.TensorDescription((1, 1, 24 * 24, 64), memory_config=ttnn.DRAM_MEMORY_CONFIG),
        weight_tensor=ttnn.TensorDescription((64, 32, 2, 2)),
        {arguments})
    print(f"{{report.cycles:,}}")
""",
    )
    assert run(script) == f"{found}\n"


@pytest.mark.slow
def test_a_machine_is_edited(folder):
    """By text and by a file; the name says what is changed, and the layer takes another time."""
    written("half.toml", 'extends = "wormhole_n150"\nname = "half"\n[grid]\ncols = 4\n')
    differing = ttsim("devices", "wormhole_n150", "half.toml")
    assert re.search(r"cols +cores +8 +4", differing)
    times = []
    for flags, name in ((["--device", "half.toml"], "half"), (["--set", "grid=4x8"], "wormhole_n150, grid=4x8")):
        shown = ttsim(*RUN, *flags)
        assert re.search(f"device +{name}\n", shown)
        times += re.findall(r"^cycles +([\d,]+) in", shown, re.MULTILINE)
    assert len(times) == 2
    assert len(set(times)) == 1


@pytest.mark.slow
def test_a_sweep_is_run_and_goes_on(folder):
    """The fastest config stands beside the layer's own; the same command finds its rows again."""
    vary = ("--config", "act_block_h_override=32", "--vary", "shard_layout=HEIGHT_SHARDED,BLOCK_SHARDED")
    command = ("sweep", *LAYER, *vary, "--file", "rows.jsonl", "--csv", "rows.csv", "--html", "page.html")
    table = ttsim(*command)
    head, line, total = table.splitlines()
    assert "as given" in head
    assert "shard_layout=" in line or "as given" in line
    assert total.startswith("3 points")
    rows = rows_of("rows.csv")
    assert [row["given"] for row in rows].count("True") == 1
    before = Path("rows.jsonl").read_bytes()
    assert ttsim(*command) == table
    assert Path("rows.jsonl").read_bytes() == before
    assert "act_block_h_override" in Path("page.html").read_text()


@pytest.mark.slow
def test_a_machine_is_designed(folder):
    """The front of time and area; with tuned configs no machine is slower."""
    text = """
[space]
grid = ["4x4", "8x8"]
[costs]
area = "grid.cols * grid.rows * (1 + l1.bytes / 2**20)"
[[layer]]
name = "up"
in_channels = 64
out_channels = 32
input_height = 16
input_width = 16
kernel_size = 2
stride = 2
config = {shard_layout = "WIDTH_SHARDED"}
"""
    tables = []
    for name, tune in (("given", "tune = false\n"), ("tuned", "")):
        shown = ttsim("design", written(f"{name}.toml", tune + text), "--csv", f"{name}.csv", "--processes", "1")
        assert "Pareto front" in shown
        tables.append(rows_of(f"{name}.csv"))
    times = [[float(row["nanoseconds"] or "inf") for row in table] for table in tables]
    assert all(tuned <= given for given, tuned in zip(*times, strict=True))
    assert min(times[1]) < min(times[0])


@pytest.mark.slow
def test_a_layer_is_trained(folder):
    """A layer of torch learns on the device, and its gradients are those of torch."""
    pytest.importorskip("torch")
    script = written(
        "train.py",
        """
import torch
import ttsim
from ttsim.torch import ConvTranspose2d

torch.manual_seed(1)
with ttsim.open_device(spec="wormhole_n150", values="fast") as device:
    layer = ConvTranspose2d(2, 3, 2, stride=2, simulator=device)
    plain = torch.nn.ConvTranspose2d(2, 3, 2, stride=2)
    plain.load_state_dict(layer.state_dict())
    source, target = torch.randn(1, 2, 4, 4), torch.randn(1, 3, 8, 8)
    losses = []
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.5)
    for _ in range(4):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(layer(source), target)
        loss.backward()
        if not losses:
            torch.nn.functional.mse_loss(plain(source), target).backward()
            print(torch.allclose(layer.weight.grad, plain.weight.grad, atol=1e-5))
        optimizer.step()
        losses.append(loss.item())
    print(losses == sorted(losses, reverse=True))
""",
    )
    assert run(script) == "True\nTrue\n"


def test_onednns_operations(folder):
    """The forward operation and the gradient of its source, which is its transpose."""
    script = written(
        "onednn.py",
        """
import numpy as np
from ttsim import onednn

rng = np.random.default_rng(3)
src = rng.standard_normal((1, 4, 4, 8), dtype=np.float32)
weights = rng.standard_normal((2, 2, 4, 8), dtype=np.float32)
how = dict(
    strides=[2, 2], pads_begin=[0, 0], pads_end=[0, 0], dilations=[1, 1], data_format="NXC", weights_format="XOI")
dst = onednn.conv_transpose(src, weights, **how)
expected = np.einsum("nijc,aboc->niajbo", src.astype(float), weights).reshape(1, 8, 8, 4)
print(dst.shape, np.allclose(dst, expected, atol=1e-4))
back = onednn.conv_transpose_backward_data(dst, weights, **how)
print(np.isclose((dst.astype(float) ** 2).sum(), (src.astype(float) * back).sum(), rtol=1e-4))
""",
    )
    assert run(script) == "(1, 8, 8, 4) True\nTrue\n"


@pytest.mark.slow
def test_a_notebook(folder):
    """The cells of the first tutorial's notebook run in order, and a profile at the end of a cell shows a page."""
    cells = json.loads((ROOT / "docs" / "tutorials" / "1-first-layer.ipynb").read_text())["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    python = [cell for cell in code if not cell.startswith(("!", "%"))]
    shown = written("cells.py", "\n".join([*python[:-1], "print(profile._repr_html_())", python[-1]]))
    frame = run(shown)
    assert "correlation 0.99999" in frame
    assert "<iframe" in frame
    assert "Conv2dDeviceOperation" in frame


@pytest.mark.slow
def test_a_report_for_viewers(folder):
    """A folder like tt-metal's: operations by name and line, with their source, a cluster, and their transfers."""
    written("decoder.py", DECODER)
    ttsim("exec", "--values", "off", "--report", "out", "decoder.py")
    (memory,), (times,) = (list(Path("out/generated").glob(f"{kind}/reports/*/")) for kind in ("ttnn", "profiler"))
    assert (memory / "cluster_descriptor.yaml").read_text().startswith("arch:\n  0: wormhole_b0\n")
    with closing(sqlite3.connect(memory / "db.sqlite")) as database:
        query = """SELECT name, stack_trace, contents FROM operations JOIN stack_traces USING (operation_id)
                   JOIN source_files ON source_files.id = source_file_id ORDER BY operation_id"""
        rows = database.execute(query).fetchall()
    assert [name for name, *_ in rows] == ["ttnn.conv_transpose2d", "ttnn.to_layout", "ttnn.concat"]
    assert all(text == DECODER and 'File "./decoder.py", line ' in trace for _, trace, text in rows)
    manifest = json.loads((times / "npe_viz" / "manifest.json").read_text())
    assert all((times / "npe_viz" / entry["file"]).exists() for entry in manifest)


def test_a_script_that_runs_out_of_memory(folder):
    """The error begins as the real library's, stands at the script's line, and says what fits."""
    written(
        "large.py",
        """
import ttnn

device = ttnn.open_device(device_id=0, l1_small_size=32768)
image = ttnn.zeros((1, 1, 200 * 320, 64), ttnn.bfloat16, ttnn.ROW_MAJOR_LAYOUT, device, ttnn.L1_MEMORY_CONFIG)
output = ttnn.conv_transpose2d(
    input_tensor=image, weight_tensor=ttnn.zeros((64, 32, 2, 2), ttnn.bfloat16), device=device, in_channels=64,
    out_channels=32, batch_size=1, input_height=200, input_width=320, kernel_size=(2, 2), stride=(2, 2))
""",
    )
    error = ttsim("exec", "--values", "off", "large.py", code=1)
    assert "Statically allocated circular buffers on core range [0-0 - 7-7] grow to 2162080 B" in error
    assert 'large.py", line 6' in error
    assert error.count("  File ") == 1  # nothing inside ttsim
    assert "What fits, each simulated on this device as it is now" in error
    assert "act_block_h_override=1024" in error


@pytest.mark.slow
def test_two_reports_are_compared(folder):
    """The change that helped, and by how much; a limit for CI; and the table that a card's profiler would write."""
    for name, layout in (("block", "BLOCK_SHARDED"), ("height", "HEIGHT_SHARDED")):
        written(f"{name}.json", ttsim(*RUN, "--config", f"shard_layout={layout}", "--report", name, "--json"))
    (table,) = Path("height").glob("generated/profiler/reports/*/ops_perf_results_*.csv")
    text = ttsim("compare", "block.json", str(table))
    before, after = map(float, re.match(r"([\d.]+) us -> ([\d.]+) us", text).groups())
    assert after < before
    assert "Conv2dDeviceOperation" in text
    slower = ttsim("compare", "height.json", "block.json", "--fail-over", "5%", code=1)
    assert "takes longer by more than 5 %" in slower
