import subprocess
import sys
from pathlib import Path

import pytest

import ttsim

ROOT = Path(__file__).resolve().parents[2]


def run(folder, script):
    command = [sys.executable, "-c", f"import sys; sys.path[:0] = [{str(ROOT)!r}]; {script}"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", ["device", "ops"])
def test_a_foreign_sibling_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.py").write_text("value = 1\n")
    found = run(tmp_path, f"sys.path[:0] = [{str(tmp_path)!r}]; import ttsim")
    assert found.returncode == 1
    assert f"ImportError: ttsim needs its own package {name!r}" in found.stderr
    assert str(tmp_path / f"{name}.py") in found.stderr


@pytest.mark.parametrize("name", ["device", "ops"])
def test_a_foreign_sibling_that_comes_later_is_not_taken(tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.py").write_text("value = 1\n")
    found = run(tmp_path, f"import ttsim; sys.path[:0] = [{str(tmp_path)!r}]; ttsim.open_device(); ttsim.conv2d")
    assert found.returncode == 0, found.stderr


def test_siblings_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(ImportError, match="install ttsim again"):
        ttsim._check_siblings(tmp_path)
    ttsim._check_siblings(ROOT)
