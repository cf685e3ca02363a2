"""The version, said once."""

import tomllib
from pathlib import Path

import pytest

from ttsim.__main__ import VERSION, main, version_line
from ttsim.study.store import model_version

ROOT = Path(__file__).resolve().parents[2]


def test_the_command_line_tells_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == version_line() + "\n"
    assert version_line() == f"ttsim {VERSION}, following ttnn 0.81.1, model {model_version()}"


def test_the_package_takes_it_from_there() -> None:
    built = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert built["project"]["dynamic"] == ["version"]
    assert "version" not in built["project"]
    assert built["tool"]["hatch"]["version"]["path"] == "ttsim/__main__.py"
