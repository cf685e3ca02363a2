"""The grammar of the command line: one device, results in files or on stdout, and examples that work."""

import json
import shlex

import pytest

import ttsim
from device.errors import ArgumentError
from ttsim.__main__ import COMMANDS, build_parser, main
from ttsim.study.options import OPTIONS, SHORT_FLAGS, chosen_device

SMALL = ["--shape", "1,8,8,32", "--out-channels", "16", "--stride", "2"]
PLANNED = ["run", *SMALL, "--values", "off", "--no-suggestions"]
SIZES = "in_channels = 32\nout_channels = 32\ninput_height = 4\ninput_width = 4\n"
DESIGN = (
    f'tune = false\n[space]\ndram.banks = [6, 12]\n[costs]\nbanks = "dram.banks"\n[[layer]]\nname = "small"\n{SIZES}'
)
BUDGETS = 'device = "n150"\n[[budget]]\nlayer = "vgg_unet.d1.up"\noperations = 3\n'
SCRIPT = """
import ttnn

device = ttnn.open_device(device_id=0)
print(device.spec.name, device.values)
ttnn.close_device(device)
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report of a small layer, as JSON."""
    path = tmp_path_factory.mktemp("reports") / "report.json"
    assert main([*PLANNED, "--json", str(path), "--quiet"]) == 0
    return path.read_text()


@pytest.fixture
def folder(tmp_path, monkeypatch, report):
    """The current folder, with the files that examples name."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "machines.toml").write_text(DESIGN)
    (tmp_path / "budgets.toml").write_text(BUDGETS)
    (tmp_path / "my_script.py").write_text(SCRIPT)
    (tmp_path / "my_tests.py").write_text("import ttnn\n\n\ndef test_nothing():\n    assert ttnn\n")
    (tmp_path / "questions.jsonl").write_text('{"ask": "version"}\n')
    for name in ("before", "after"):
        (tmp_path / f"{name}.json").write_text(report)
    return tmp_path


def test_the_flag_stands_above_the_environment(monkeypatch):
    def chosen(*words):
        return chosen_device(build_parser().parse_args(["run", *words]))

    monkeypatch.delenv("TTSIM_DEVICE", raising=False)
    assert chosen() == "wormhole_n150"
    monkeypatch.setenv("TTSIM_DEVICE", "p100")
    assert chosen("--set", "grid=9x7") == "p100, grid=9x7"
    assert chosen("--release", "a8c5af0f", "--set", "grid=9x7") == "p100, release=a8c5af0f, grid=9x7"
    with pytest.raises(ttsim.ArgumentError, match="--release: release must be one of"):
        chosen("--release", "a8")
    assert chosen("--device", "p150", "--set", "dram.banks=6") == "p150, dram.banks=6"
    with pytest.raises(ttsim.SpecError, match="a change is FIELD=VALUE, not 'dram'"):
        chosen("--set", "dram")


EXAMPLES = [(command.name, example) for command in COMMANDS for example in command.examples]


@pytest.mark.filterwarnings("ignore::pytest.PytestAssertRewriteWarning")
@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_the_examples_of_a_help_work(name, example, folder, capsys):
    assert main([name, *shlex.split(example)]) == 0
    assert capsys.readouterr().out
    with pytest.raises(SystemExit, match=r"^0$"):
        main([name, "--help"])
    assert f"  ttsim {name} {example}\n" in capsys.readouterr().out


def test_help_lists_every_command_in_a_line(capsys):
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["--help"])
    lines = capsys.readouterr().out.splitlines()
    assert all(f"  {command.name:<12}{command.help}" in lines for command in COMMANDS)
    assert max(map(len, lines)) <= 80


def test_every_option_is_one_of_a_command_and_has_a_help():
    assert {name for command in COMMANDS for name in command.options} == {*OPTIONS}
    assert set(SHORT_FLAGS) < {*OPTIONS}


RESULTS = {
    "run": PLANNED,
    "sweep": ["sweep", *SMALL, "--vary", "dram.banks=6,12", "--no-tune"],
    "design": ["design", "machines.toml", "--processes", "1", "--set", "l1.bytes=2MiB"],
    "compare": ["compare", "before.json", "after.json"],
    "devices": ["devices", "n150"],
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_mean_the_same_in_every_command(name, folder, capsys):
    (command,) = (command for command in COMMANDS if command.name == name)
    files = {kind: f"result.{kind}" for kind in ("json", "csv", "html") if f"--{kind}" in command.options}
    words = RESULTS[name]
    assert main([*words, *(word for kind, file in files.items() for word in (f"--{kind}", file))]) == 0
    text = capsys.readouterr().out
    assert text
    assert not text.startswith("{")
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads((folder / "result.json").read_text())
    assert all((folder / file).stat().st_size > 100 for file in files.values())


def test_a_source_before_or_behind_a_result_is_not_written_over(folder):
    for words in (["devices", "--json", "n150"], ["design", "--json", "machines.toml"]):
        with pytest.raises(ArgumentError, match="is read, not written"):
            build_parser().parse_args(words)
    assert main(["devices", "n150", "--json", "-"]) == 0


def test_a_design_has_another_device_with_changes(folder, capsys):
    assert main(["design", "machines.toml", "--device", "p150", "--set", "clock_hz=1GHz", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["base"] == "blackhole_p150, clock_hz=1GHz"


@pytest.mark.parametrize("columns", [80, 120])
def test_a_pipe_is_as_wide_as_columns_says(columns, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main(PLANNED) == 0
    widest = max(map(len, capsys.readouterr().out.splitlines()))
    assert columns - 20 < widest <= columns


@pytest.mark.parametrize("no_color", ["", "1"])
def test_no_color_leaves_no_escape(no_color, capsys, monkeypatch):
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert main(PLANNED) == 0
    assert ("\x1b" in capsys.readouterr().out) is not bool(no_color)


def test_quiet_prints_results_alone(folder, capsys):
    assert main(["exec", "--quiet", "--values", "off", "--report", "reports", "my_script.py"]) == 0
    assert capsys.readouterr() == ("wormhole_n150 off\n", "")
    assert main([*PLANNED, "--quiet"]) == 0
    said = capsys.readouterr()
    assert "Conv2dDeviceOperation" in said.out
    assert "Cycles count kernel time" not in said.out
    assert said.err == ""


def test_many_operations_are_shortened_without_details(capsys):
    words = [*PLANNED, "--shape", "1,64,64,64", "--slice", "H:8"]
    assert main(words) == 0
    short = capsys.readouterr().out
    assert main([*words, "-v"]) == 0
    assert len(short.splitlines()) < 70 < len(capsys.readouterr().out.splitlines())
    assert "more operations, which use less L1: -v prints all" in short
    assert "more operations, which take less time: -v prints all" in short
