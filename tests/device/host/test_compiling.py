"""When modules of compiled loops are loaded: once numpy has taken as long as loading takes."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
needs_numba = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed")


def run(code, **environment):
    command = [sys.executable, "-W", "error", "-c", f"import sys\n{code}"]
    done = subprocess.run(
        command, check=True, cwd=ROOT, env={**os.environ, **environment}, stderr=subprocess.PIPE, text=True
    )
    return done.stderr


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


SMALL_LOOP = """
import numpy as np
from device.matrix_unit.packing_loops import cut
bits = np.ones(3, np.int32)
cut(bits, np.int32(1), bits)
"""


@needs_numba
def test_the_first_compilation_on_a_machine_says_so_once(tmp_path):
    (told,) = run(SMALL_LOOP, NUMBA_CACHE_DIR=str(tmp_path)).splitlines()
    assert told.startswith("ttsim compiles its loops for this machine, which takes some seconds; the code is kept in ")
    assert str(tmp_path) in told
    assert any(tmp_path.rglob("*.nbi"))
    assert run(SMALL_LOOP, NUMBA_CACHE_DIR=str(tmp_path)) == ""  # it is loaded


@needs_numba
def test_code_that_can_not_be_kept_says_so_in_every_process():
    code = """
from device.host.compiling import compiled
def loop(n):
    return n + 1
loop.__module__ = "device.anywhere"  # but in no file, so that numba has no place beside it
assert compiled(loop)(1) == 2
"""
    for _ in range(2):
        (told,) = run(code).splitlines()
        assert told.endswith(
            "every process does so again: name a directory that may be written to, as NUMBA_CACHE_DIR."
        )


@needs_numba
def test_loops_of_others_are_none_of_ours():
    assert (
        run("""
import numba
from device.host.compiling import load_numba
load_numba()
assert numba.njit(lambda n: n + 1)(1) == 2
""")
        == ""
    )
