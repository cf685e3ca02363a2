"""The drop-in: how scripts run and what they report, what a command chooses for them, and where they find ttnn."""

import importlib
import json
import os
import sqlite3
import sys
from collections import OrderedDict
from contextlib import closing
from pathlib import Path
from types import ModuleType

import pytest

import ttsim
from device.errors import SpecError
from ttsim.__main__ import build_parser, main
from ttsim.dropin.choices import chosen
from ttsim.dropin.finder import Face, ttnn_is_ttsim
from ttsim.runtime.settings import SPEC_VARIABLE, VALUES_VARIABLE

CALL = """
import sys
import numpy as np
import ttnn
from ttnn.operations.conv2d import Conv2dConfig
device = ttnn.open_device(device_id=0, l1_small_size=32768)
x = ttnn.Tensor(np.zeros((1, 1, 16, 32), np.float32), ttnn.bfloat16).to(device)
w = ttnn.Tensor(np.zeros((32, 32, 2, 2), np.float32), ttnn.bfloat16)
ttnn.conv_transpose2d(input_tensor=x, weight_tensor=w, device=device, in_channels=32, out_channels=32, batch_size=1,
                      input_height=4, input_width=4, kernel_size=(2, 2), stride=(2, 2))
print(device.spec.name, device.values, device.strict, sys.argv[1:], __name__)
"""


def test_a_script_runs_unchanged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "script.py"
    script.write_text(CALL)
    flags = ["--device", "blackhole_p150", "--values", "off", "--no-strict", "--report", str(tmp_path / "report")]
    assert main(["exec", *flags, str(script), "--its", "own"]) == 0
    shown = capsys.readouterr()
    assert shown.out == "blackhole_p150 off False ['--its', 'own'] __main__\n"
    text = " ".join(shown.err.split())
    (call,) = json.loads((tmp_path / "report" / "device0.json").read_text())["calls"]
    assert call["total"]["cycles"] > 0
    assert "blackhole_p150" in (tmp_path / "report" / "device0.txt").read_text()
    network = json.loads((tmp_path / "report" / "network0.json").read_text())
    assert network["cycles"] == call["total"]["cycles"]
    assert text.startswith(f"device0 in '{tmp_path / 'report'}': blackhole_p150: {network['cycles']:,} cycles, ")
    assert [one["name"] for one in network["layers"]] == ["script.py:9"]
    page = (tmp_path / "report" / "report0.html").read_text()
    assert "HaloDeviceOperation" in page
    assert "calls tried on the model" in page
    assert (tmp_path / "report" / "report0.trace.json.gz").stat().st_size < 100_000
    assert "L1 is fullest in #" in (tmp_path / "report" / "network0.txt").read_text()
    assert json.loads((tmp_path / "report" / "report0.json").read_text())["network"] == network
    assert (tmp_path / "report" / "generated" / "ttnn" / "reports" / "report0" / "db.sqlite").exists()


@pytest.mark.skipif(os.name == "nt", reason="names of files are narrower there")
def test_a_script_whose_name_means_harm_is_told_without(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is what a file gets as narrow as a terminal that is there."""
    monkeypatch.setattr("ttsim.report.formatting.shutil.get_terminal_size", lambda: os.terminal_size((80, 24)))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    script = tmp_path / "a, 'b'\n\x1b[31m\"<c>.py"
    script.write_text(CALL)
    assert main(["exec", "--values", "off", "--report", str(tmp_path / "r, '\n\""), str(script)]) == 0
    report = tmp_path / "r, '\n\""
    with closing(sqlite3.connect(report / "generated" / "ttnn" / "reports" / "report0" / "db.sqlite")) as db:
        ((told,),) = db.execute("SELECT stack_trace FROM stack_traces").fetchall()
    assert told.startswith('File "./a, \'b\'\\n\\x1b[31m"<c>.py", line 9, in <module>\n  ttnn.conv_transpose2d(')
    results = report / "generated" / "profiler" / "reports" / "report0" / "ops_perf_results_report0.csv"
    assert "\x1b" not in results.read_text()
    tables = [(report / name).read_text() for name in ("device0.txt", "network0.txt")]
    assert all(max(map(len, text.splitlines())) > 100 and "\x1b" not in text for text in tables)
    assert "\\'\\n\"': wormhole_n150: " in " ".join(capsys.readouterr().err.split())


def test_paths_are_relative_to_the_folder_at_the_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "script.py").write_text(f"import os\nos.chdir('elsewhere')\n{CALL}\nttnn.relu(1)\n")
    monkeypatch.chdir(tmp_path)
    assert main(["exec", "--values", "off", "--report", "report", "script.py"]) == 1
    network = json.loads((tmp_path / "report" / "network0.json").read_text())
    assert [layer["name"] for layer in network["layers"]] == ["script.py:11"]
    lines = capsys.readouterr().err.splitlines()
    at = lines.index(f'  File "{tmp_path / "script.py"}", line 15, in <module>')
    assert lines[at + 1] == "    ttnn.relu(1)"


@pytest.mark.skipif(os.name == "nt", reason="names of files are narrower there")
def test_what_a_script_raises_steers_no_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "a\x1b[31m\u202e.py"
    script.write_text('def f():\n    raise ValueError("\\x1b[2J",\t1)\nf()\n')
    assert main(["exec", str(script)]) == 1
    text = capsys.readouterr().err
    assert not set(text) & set("\x1b\u202e")
    assert "a\\x1b[31m\\u202e.py" in text
    assert '    raise ValueError("\\x1b[2J",\t1)\n' in text


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("ttnn.no_such_name", "AttributeError: module 'ttnn' has no attribute 'no_such_name': "),
        ("ttnn.generic_op([])", "ttsim.NotSimulatedError: generic_op: ttsim does not simulate it; "),
        ("ttnn.relu(1)", "ttsim.ArgumentTypeError: ttnn.relu(): incompatible function arguments."),
        ("ttnn.open_device(grid=1)", "TypeError: open_device() got an unexpected keyword argument 'grid'"),
        ("import ttnn.nonsense", "ModuleNotFoundError: ttsim has nothing of the module ttnn.nonsense; it has "),
        ("ttnn.to_device(1)", "TypeError: to_device() missing 1 required positional argument: 'device'"),
    ],
)
def test_what_a_script_raises_is_shown_from_its_own_line_on(
    line: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"import ttnn\n{line}\n")
    assert main(["exec", str(script)]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert [text for text in lines if text.startswith("  File ")] == [f'  File "{script}", line 2, in <module>']
    assert any(text.startswith(message) for text in lines[3:5])


def test_a_flag_shows_the_frames_inside_ttsim(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "script.py"
    script.write_text("import ttnn\nttnn.relu(1)\n")
    assert main(["exec", "--traceback", str(script)]) == 1
    text = capsys.readouterr().err
    assert "script.py" in text
    assert "types/call.py" in text


@pytest.mark.parametrize(
    ("file", "line", "text"),
    [
        ("device.py", "import device; device.mine", "AttributeError: module 'device' has no attribute 'mine': "),
        ("device.py", "from device import mine", "ImportError: cannot import name 'mine' from 'device': "),
        ("ops/mine.py", "import ops.mine", "ModuleNotFoundError: No module named 'ops.mine': "),
        ("ttsim.py", "import ttsim; ttsim.mine", "AttributeError: module 'ttsim' has no attribute 'mine': "),
    ],
)
def test_a_module_of_the_script_that_ttsim_shadows_is_named(
    file: str, line: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ops").mkdir()
    (tmp_path / file).write_text("mine = 1\n")
    (tmp_path / "script.py").write_text(line)
    assert main(["exec", str(tmp_path / "script.py")]) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    package = file.partition("/")[0]
    assert last.startswith(f"{text}{tmp_path / package} is not imported, because {package.partition('.')[0]!r} is a ")


@pytest.mark.filterwarnings("ignore:values are off")
def test_a_script_without_values_goes_on_until_numbers_decide(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    script = tmp_path / "script.py"
    script.write_text(
        "import ttnn, torch\ndevice = ttnn.open_device()\n"
        "x = ttnn.relu(ttnn.from_torch(torch.ones(32, 32), ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device))\n"
        "y = ttnn.to_torch(x).float() - 1\nprint(y.shape)\nassert y.abs().max() < 0.1\n"
    )
    assert main(["exec", "--values", "off", str(script)]) == 1
    text = capsys.readouterr()
    assert text.out == "torch.Size([32, 32])\n"
    assert [line for line in text.err.splitlines() if line.startswith("  File")] == [
        f'  File "{script}", line 6, in <module>'
    ]
    assert text.err.splitlines()[-1].startswith("ttsim.DeviceError: values are off, so the numbers ")


def test_a_script_that_is_not_there_is_told_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["exec", str(tmp_path / "none.py")]) == 2
    assert "none.py" in capsys.readouterr().err


def choices(*words: str) -> dict[str, str]:
    return chosen(build_parser().parse_args(["exec", *words, "script.py"]))


def test_flags_become_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SPEC_VARIABLE, "blackhole_p100")
    assert choices() == {}
    assert choices("--device", "wormhole_n150", "--values", "off") == {
        SPEC_VARIABLE: "wormhole_n150",
        VALUES_VARIABLE: "off",
    }


def test_a_device_file_is_found_from_every_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text('extends = "n150"\nname = "mine"\n')
    path = tmp_path / "mine.toml"
    assert choices("--device", "mine.toml", "--set", "grid=9x7") == {SPEC_VARIABLE: f"{path}, grid=9x7"}


def test_changes_stand_behind_the_device_or_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SPEC_VARIABLE, "blackhole_p100, dram.banks=4")
    changes = ("--set", "grid=9x7", "--set", "l1.bytes=1MiB")
    assert choices(*changes) == {SPEC_VARIABLE: "blackhole_p100, dram.banks=4, grid=9x7, l1.bytes=1MiB"}
    assert choices("--device", "wormhole_n150", *changes) == {SPEC_VARIABLE: "wormhole_n150, grid=9x7, l1.bytes=1MiB"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("dram.banks", "a change is FIELD=VALUE, not 'dram.banks'"),
        ("dram.bank=3", "unknown field 'dram.bank', did you mean 'dram.banks'"),
    ],
)
def test_a_wrong_change_is_told_before_anything_runs(
    change: str, message: str, tmp_path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SpecError, match=message):
        choices("--set", change)
    (tmp_path / "script.py").write_text("print('ran')\n", encoding="utf-8")
    assert main(["exec", "--set", change, str(tmp_path / "script.py")]) == 2
    text = capsys.readouterr()
    assert text.err.startswith(f"ttsim: {message}")
    assert text.out == ""


def test_a_script_runs_on_the_changed_device(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "script.py"
    script.write_text("import ttnn\nprint(ttnn.open_device(device_id=0))\n", encoding="utf-8")
    assert main(["exec", "--device", "wormhole_n150", "--set", "grid=9x7", str(script)]) == 0
    assert "wormhole_n150, grid=9x7, 9x7 cores" in capsys.readouterr().out


def test_ttnn_is_ttsim_inside_and_nothing_outside() -> None:
    with ttnn_is_ttsim():
        ttnn = importlib.import_module("ttnn")
        assert ttnn.conv_transpose2d is ttsim.conv_transpose2d
        assert {"conv2d", "bfloat16"} <= set(dir(ttnn))
    assert "ttnn" not in sys.modules
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("ttnn")


def test_names_are_found_in_the_modules_where_the_real_library_has_them() -> None:
    with ttnn_is_ttsim():
        assert importlib.import_module("ttnn.operations.conv2d").Conv2dConfig is ttsim.Conv2dConfig
        assert importlib.import_module("ttnn.device").is_blackhole is ttsim.device.is_blackhole
        assert importlib.import_module("ttnn.graph").begin_graph_capture is ttsim.graph.begin_graph_capture
        assert importlib.import_module("ttnn")._ttnn.multi_device.MeshDevice is ttsim.MeshDevice


def test_a_module_that_ttsim_has_nothing_of_is_told() -> None:
    with (
        ttnn_is_ttsim(),
        pytest.raises(ModuleNotFoundError, match=r"nothing of the module ttnn\.nonsense; it has .*graph"),
    ):
        importlib.import_module("ttnn.nonsense")


def test_what_is_assigned_is_assigned_to_ttsim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ttsim, "TILE_SIZE", 32)
    with ttnn_is_ttsim():
        ttnn = importlib.import_module("ttnn")
        ttnn.TILE_SIZE = 16
        assert ttsim.TILE_SIZE == ttnn.TILE_SIZE == 16


def test_names_that_ttsim_has_elsewhere_or_other_releases_have() -> None:
    with ttnn_is_ttsim():
        ttnn = importlib.import_module("ttnn")
        assert importlib.import_module("ttnn.types").BlackholeComputeKernelConfig is ttsim.WormholeComputeKernelConfig
        dot_access = importlib.import_module("ttnn.dot_access")
        assert dot_access.DotAccessDict(a=1).a == 1
        kept = OrderedDict(c=2)
        dotted = dot_access.make_dot_access_dict({"a": {"b": 1}, "kept": kept}, ignore_types=OrderedDict)
        assert dotted.a.b == 1
        assert dotted.kept is kept
        assert dot_access.make_dot_access_dict(dotted) is dotted
        assert ttnn.pad_to_tile_shape([1, 3, 49, 96]) == [1, 3, 64, 96]
        assert ttnn.ttnn is ttnn
        ttnn.device.EnablePersistentKernelCache()
        ttnn.device.DisablePersistentKernelCache()
        importlib.import_module("ttnn.torch_tracer")


def test_names_of_ttnn_that_are_not_simulated_refuse_to_be_called() -> None:
    """They can be imported and mentioned, as in annotations; a constant or a module of ttnn is missing."""
    with ttnn_is_ttsim():
        ttnn = importlib.import_module("ttnn")
        assert isinstance(ttnn.CBDescriptor, type)
        with pytest.raises(
            ttsim.NotSimulatedError, match=r"^CBDescriptor: ttsim does not simulate it; compute it on the"
        ):
            ttnn.CBDescriptor(1, size=2)
        for name, function in (
            ("transformer.chunked_scaled_dot_product_attention", ttnn.transformer.chunked_scaled_dot_product_attention),
            ("experimental.rotary_embedding_llama_fused_qk", ttnn.experimental.rotary_embedding_llama_fused_qk),
        ):
            with pytest.raises(ttsim.NotSimulatedError, match=f"^{name}: ttsim does not simulate it"):
                function(1)
        assert not hasattr(ttnn, "disaggregation")
        assert not hasattr(ttnn.experimental, "generic_op_of_nobody")


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("import ttnn; ttnn.nothing", "module 'ttnn' has no attribute 'nothing': .*ttnn.from_torch.*dir.ttnn. lists"),
        (
            "import ttnn; ttnn.experimental.conv2d",
            "module 'ttnn.experimental' .*: conv3d; dir.ttnn.experimental. lists",
        ),
        ("import ttnn.device; ttnn.types.conv3", "module 'ttnn.types' has no attribute .*; the nearest names: conv"),
        ("from ttnn import conv3", "cannot import name 'conv3' from 'ttnn': .*; the nearest names: conv"),
    ],
)
def test_a_missing_name_says_what_a_script_can_do(statement: str, text: str) -> None:
    with ttnn_is_ttsim(), pytest.raises((AttributeError, ImportError), match=f"^{text}"):
        exec(statement, {})


def test_a_real_library_that_is_loaded_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    real = ModuleType("ttnn")
    monkeypatch.setitem(sys.modules, "ttnn", real)
    with pytest.raises(ImportError, match="loaded already"), ttnn_is_ttsim():
        pass
    assert sys.modules["ttnn"] is real
    assert not isinstance(real, Face)
