"""What a command chooses for scripts."""

from argparse import ArgumentParser

import pytest

from device.errors import SpecError
from ttsim.__main__ import main
from ttsim.dropin.choices import add_choices, chosen
from ttsim.runtime.settings import SPEC_VARIABLE, VALUES_VARIABLE


def choices(*words: str) -> dict[str, str]:
    parser = ArgumentParser()
    add_choices(parser)
    return chosen(parser.parse_args(words))


def test_flags_become_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SPEC_VARIABLE, "blackhole_p100")
    assert choices() == {}
    assert choices("--device", "wormhole_n150", "--values", "off") == {
        SPEC_VARIABLE: "wormhole_n150",
        VALUES_VARIABLE: "off",
    }


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
