import subprocess
import sys
from pathlib import Path

import pytest

import ttsim
from ttsim._siblings import check_siblings

ROOT = Path(__file__).resolve().parents[2]


def test_all_names_the_public_surface() -> None:
    public = {name for name, value in vars(ttsim).items() if not name.startswith("_") and not is_submodule(name, value)}
    assert sorted(ttsim.__all__) == sorted(public | {"graph"})


def is_submodule(name: str, value: object) -> bool:
    return type(value) is type(sys) and getattr(value, "__name__", "") == f"ttsim.{name}"


def test_the_import_is_light() -> None:
    code = (
        "import sys, ttsim; "
        "print([name for name in ('torch', 'numba', 'rich', 'scipy', 'pandas', 'matplotlib') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["device", "ops"])
def test_a_foreign_sibling_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.py").write_text("value = 1\n")
    code = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT)!r}]; import ttsim"
    found = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.returncode == 1
    assert f"ImportError: ttsim needs its own package {name!r}" in found.stderr
    assert str(tmp_path / f"{name}.py") in found.stderr


def test_siblings_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(ImportError, match="install ttsim again"):
        check_siblings(tmp_path)
    check_siblings()
