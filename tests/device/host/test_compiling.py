"""When modules of compiled loops are loaded: once numpy has taken as long as loading takes."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
needs_numba = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed")


def run(code):
    subprocess.run([sys.executable, "-W", "error", "-c", f"import sys\n{code}"], check=True, cwd=ROOT)


@needs_numba
def test_loops_are_loaded_once_numpy_took_as_long_as_loading():
    run("""
from device.host.compiling import WORTH_SECONDS, worth_loading
name = "device.matrix_unit.compiled"
assert not worth_loading(name, 0.4 * WORTH_SECONDS)
assert not worth_loading(name, 0.4 * WORTH_SECONDS)
assert "numba" not in sys.modules
assert worth_loading(name, 0.4 * WORTH_SECONDS)
import device.matrix_unit.compiled
assert worth_loading(name, 0.0)
""")


@needs_numba
def test_what_is_loaded_anyhow_costs_nothing():
    run("""
import numba
from device.host.compiling import worth_loading
assert worth_loading("device.matrix_unit.compiled", 0.0)
""")


def test_without_numba_no_loops_are_loaded():
    run("""
sys.modules["numba"] = None
from math import inf
from device.host.compiling import compiled, numba_installed, worth_loading
assert not numba_installed()
assert not worth_loading("device.matrix_unit.compiled", inf)
function = lambda: 1
assert compiled(function) is function
""")
