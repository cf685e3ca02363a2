"""The public surface: what `import ttsim` gives, and what it must not load."""

import subprocess
import sys
from enum import Enum
from pathlib import Path
from types import ModuleType

import ttsim

ROOT = Path(__file__).resolve().parents[1]
NOT_AT_IMPORT = ("rich", "torch", "numba", "scipy", "pytest", "ttsim.report.writers.table", "ttsim.layers", "tools")


def test_all_is_the_public_names():
    public = {
        name for name, value in vars(ttsim).items() if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    modules = {name for name in ttsim.__all__ if isinstance(getattr(ttsim, name), ModuleType)}
    assert sorted(ttsim.__all__) == sorted(public | modules)  # ruff keeps their order, constants first


def test_every_public_function_and_class_is_documented():
    public = {name: getattr(ttsim, name) for name in ttsim.__all__}
    listed = [name for name, value in public.items() if isinstance(value, type) and issubclass(value, Enum)]
    assert not [name for name, value in public.items() if callable(value) and not value.__doc__ and name not in listed]


def test_import_loads_nothing_heavy():
    script = f"import sys, ttsim; print([name for name in {NOT_AT_IMPORT!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_foreign_package_of_the_same_name_is_named(tmp_path):
    (tmp_path / "device.py").write_text("", encoding="utf-8")
    script = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT)!r}]; import ttsim"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert str(tmp_path / "device.py") in done.stderr
