"""What entries take: layers as `ttsim run` reports them, and scripts, each alone."""

import sys
from pathlib import Path

import pytest

import ttsim
from device.errors import DeviceError
from ops.op_models import load_spec
from ttsim.dropin.script import script_profiles
from ttsim.study.check.budgets import read_budgets
from ttsim.study.check.measure import measure
from ttsim.study.check.verdicts import Verdict, findings_of
from ttsim.study.layers.read import DEFAULT_LAYERS, read_layers
from ttsim.study.layers.run import Settings, run_layer

SCRIPT = """
import os
import sys
import ttnn
from part import side

os.chdir("..")
device = ttnn.open_device(device_id=0)
tensor = ttnn.zeros((side, side), layout=ttnn.TILE_LAYOUT, device=device)
print(sys.argv[1:], device.spec.name)
for argument in sys.argv[1:]:
    tensor = ttnn.relu(tensor)
ttnn.close_device(device)
"""


def measured(folder, text, **options):
    (folder / "b.toml").write_text(f'device = "n150"\n{text}')
    return measure(read_budgets(folder / "b.toml", **options).budgets, script_profiles, processes=1)


def test_a_layer_takes_what_run_reports(tmp_path):
    (one,) = measured(tmp_path, '[[budget]]\nlayer = "vgg_unet.d1.up"\ncycles = 1\n', changes=["dram.banks=6"])
    layer = next(layer for layer in read_layers(DEFAULT_LAYERS) if layer.name == "vgg_unet.d1.up")
    settings = Settings(spec=load_spec("wormhole_n150"), values="off", suggestions=False)
    summary = run_layer(layer, settings).summary
    assert one.report.device == "wormhole_n150, dram.banks=6"
    assert one.report.l1_peak_bytes == summary.l1.peak_total_bytes
    traffic = summary.cycles.total.traffic
    assert one.report.dram_bytes == traffic.dram_read_bytes + traffic.dram_written_bytes
    (plain,) = measured(tmp_path, '[[budget]]\nlayer = "vgg_unet.d1.up"\ncycles = 1\n')
    assert plain.report.cycles == summary.cycles.cycles
    assert plain.report.replay_nanoseconds == summary.cycles.launches.readings[0].total_nanoseconds
    assert plain.report.error_share == summary.cycles.total.error.share


WIDE = """[[budget]]
name = "{}"
layer = {{in_channels = 32, out_channels = 32, input_height = 8, input_width = 8, padding = [2, 2]}}
operations = 1
"""


def test_a_layer_runs_on_a_device_that_is_opened_as_the_entry_says(tmp_path):
    lenient = "strict = false\n"
    text = (
        WIDE.format("strict")
        + WIDE.format("lenient")
        + lenient
        + WIDE.format("small")
        + f"{lenient}l1_small_size = 0\n"
    )
    strict, lenient, small = measured(tmp_path, text)
    assert strict.error.startswith("conv_transpose2d: padding must not exceed")
    assert len(lenient.report.operations) == 5
    assert "L1_SMALL buffer" in small.error


CALL = """[[budget]]
op = "{}"
args = [{{"ttnn.TensorSpec" = {{shape = [1, 1, 64, 128], dtype = "ttnn.bfloat16", layout = "ttnn.TILE_LAYOUT"}}}}]
cycles = 1
"""


def test_a_call_takes_what_an_estimate_says(tmp_path):
    relu, halves = measured(tmp_path, CALL.format("relu") + CALL.format("matmul"))
    spec = ttsim.TensorSpec((1, 1, 64, 128), ttsim.bfloat16, ttsim.TILE_LAYOUT)
    with ttsim.open_device(spec="wormhole_n150", values="off") as device:
        estimate = ttsim.estimate_cycles(ttsim.relu, spec, device=device)
    assert (relu.report.cycles, relu.report.l1_peak_bytes) == (estimate.cycles, 2 * 2 * 2048)
    assert relu.report.dram_bytes == 2 * 64 * 128 * 2
    assert halves.report is None
    assert "matmul" in halves.error


def test_scripts_run_alone_and_leave_nothing_behind(tmp_path, capsys):
    for name, side in (("one", 32), ("two", 64)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "net.py").write_text(SCRIPT)
        (tmp_path / name / "part.py").write_text(f"side = {side}")
    entries = '[[budget]]\nscript = "{}/net.py"\narguments = {}\noperations = 1\n'
    folder = Path.cwd()
    one, two = measured(tmp_path, entries.format("one", ["a"]) + entries.format("two", ["a", "b"]), device="p150")
    assert [op.name for op in two.report.operations] == ["UnaryDeviceOperation"] * 2
    assert (one.report.dram_bytes, two.report.dram_bytes) == (2 * 2048, 2 * 4 * 2 * 2048)
    said = capsys.readouterr()
    assert said.err == "['a'] blackhole_p150\n['a', 'b'] blackhole_p150\n"
    assert said.out == ""
    assert Path.cwd() == folder
    assert not {"part", "ttnn"} & set(sys.modules)


OPEN = "import ttnn\ndevice = ttnn.open_device(device_id=0)\n"


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ("import ttnn\n\nttnn.nothing()\n", "line 3: AttributeError: module 'ttnn' has no"),
        ("raise SystemExit(3)\n", "line 1: SystemExit: 3"),
        ("raise SystemExit(0)\n", "the script made calls on 0 devices, and a budget is one device's; write"),
        (f"{OPEN}ttnn.allocate_tensor_on_device((1, 1, 32768, 32768), ttnn.bfloat16, ttnn.TILE_LAYOUT, device, "
         "ttnn.L1_MEMORY_CONFIG)\n", "line 3: Out of Memory: "),
    ],
)  # fmt: skip
def test_a_script_that_fails_is_an_entry_that_does_not_run(script, error, tmp_path):
    (tmp_path / "net.py").write_text(script)
    text = '[[budget]]\nscript = "net.py"\ncycles = 1\nl1_peak_bytes = 2\n'
    (only,) = measured(tmp_path, text)
    assert only.report is None
    assert only.error.startswith(error)
    assert "\n" not in only.error
    verdicts = [finding.verdict for finding in findings_of(read_budgets(tmp_path / "b.toml"), [only])]
    assert verdicts == [Verdict.DOES_NOT_RUN] * 2


@pytest.mark.slow
def test_a_process_that_dies_is_told_with_the_entry(tmp_path):
    (tmp_path / "net.py").write_text("import os\nos._exit(3)\n")
    (tmp_path / "b.toml").write_text('device = "n150"\n[[budget]]\nscript = "net.py"\ncycles = 1\n')
    with pytest.raises(DeviceError, match=r"^check: a process died while it measured 'net.py' or a budget behind it"):
        measure(read_budgets(tmp_path / "b.toml").budgets, script_profiles, processes=2)
