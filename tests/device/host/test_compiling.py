"""When modules of compiled loops are loaded: once numpy has taken as long as loading takes, and their code is there."""

import importlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
MOST_SECONDS = 300  # compiling takes ten; where it never ends, a test does
needs_numba = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed")


def run(code, **environment):
    command = [sys.executable, "-W", "error", "-c", f"import sys\n{code}"]
    text = {"stderr": subprocess.PIPE, "text": True}
    done = subprocess.run(
        command, check=True, cwd=ROOT, env={**os.environ, **environment}, timeout=MOST_SECONDS, **text
    )
    return done.stderr


@pytest.fixture
def kept():
    """The code of a module's loops is on disk."""
    pytest.importorskip("numba", reason="numba is not installed")
    importlib.import_module("device.matrix_unit.compiled")


@pytest.mark.usefixtures("kept")
def test_loops_are_loaded_once_numpy_took_as_long_as_loading():
    run("""
from device.host.compiling import WORTH_SECONDS, worth_loading
name = "device.matrix_unit.compiled"
assert not worth_loading(name, 0.4 * WORTH_SECONDS)
assert not worth_loading(name, 0.4 * WORTH_SECONDS)
assert "numba" not in sys.modules
assert worth_loading(name, 0.4 * WORTH_SECONDS)
assert name in sys.modules
assert worth_loading(name, 0.0)
""")


@pytest.mark.usefixtures("kept")
def test_what_is_loaded_anyhow_costs_nothing():
    run("""
import numba
from device.host.compiling import worth_loading
assert worth_loading("device.matrix_unit.compiled", 0.0)
""")


def test_a_numba_that_cannot_be_loaded_is_told_once_and_numpy_goes_on(tmp_path):
    """As where the memory of a process is limited, and LLVM cannot be mapped."""
    (tmp_path / "numba.py").write_text("raise OSError('libllvmlite.so: failed to map segment')\n")
    text = run(f"""
sys.path.insert(0, {str(tmp_path)!r})
from math import inf
from device.host.compiling import compiled, worth_loading
for module in ("device.matrix_unit.compiled", "device.matrix_unit.packing_loops"):
    assert not worth_loading(module, inf)
assert compiled(len) is len
""")
    why = "(OSError: libllvmlite.so: failed to map segment)"
    assert text == f"ttsim goes on without numba, which cannot be loaded {why}; numpy does its work.\n"


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
import device.host.product_loops
"""


@needs_numba
def test_the_first_compilation_on_a_machine_says_so_once(tmp_path):
    (text,) = run(SMALL_LOOP, NUMBA_CACHE_DIR=str(tmp_path)).splitlines()
    assert text.startswith("ttsim compiles its loops for this machine, which takes some seconds; the code is kept in ")
    assert str(tmp_path) in text
    assert any(tmp_path.rglob("*.nbi"))
    assert run(SMALL_LOOP, NUMBA_CACHE_DIR=str(tmp_path)) == ""  # it is loaded


FIRST, SECOND = "device.host.product_loops", "device.matrix_unit.packing_loops"
BEGIN = f"""
import time
from math import inf
from device.host.compiling import worth_loading
assert not worth_loading("{FIRST}", 1.0)
assert not worth_loading("{SECOND}", 1.0)
assert "{FIRST}" not in sys.modules
"""


@needs_numba
def test_another_process_compiles_and_nobody_waits_for_it(tmp_path):
    wait = f"""
while not worth_loading("{FIRST}", 1.0):
    time.sleep(0.05)
assert "{FIRST}" in sys.modules
assert not worth_loading("{SECOND}", 1.0)  # one after the other
"""
    (text,) = run(BEGIN + wait, NUMBA_CACHE_DIR=str(tmp_path)).splitlines()
    assert text.startswith("ttsim compiles its loops for this machine in another process, and numpy does their work ")
    assert str(tmp_path) in text
    load = f'from device.host.compiling import worth_loading\nassert worth_loading("{FIRST}", 1.0)'
    assert run(load, NUMBA_CACHE_DIR=str(tmp_path)) == ""


@needs_numba
def test_who_wants_no_numpy_waits_for_the_other_process(tmp_path):
    wait = f'assert worth_loading("{FIRST}", inf)\nassert "{FIRST}" in sys.modules'
    assert "in another process" in run(BEGIN + wait, NUMBA_CACHE_DIR=str(tmp_path))


@needs_numba
@pytest.mark.parametrize("broken", ["sys.executable = ''", "sys.executable = '/nowhere'"])
def test_where_there_is_no_other_process_this_one_compiles(tmp_path, broken):
    (text,) = run(
        f"""
{broken}
from device.host.compiling import worth_loading
assert worth_loading("{FIRST}", 1.0)
""",
        NUMBA_CACHE_DIR=str(tmp_path),
    ).splitlines()
    assert text.startswith("ttsim compiles its loops for this machine, which takes some seconds; the code is kept in ")


@needs_numba
def test_what_another_process_failed_to_compile_this_one_does(tmp_path):
    fail = 'from device.host import compiling\ncompiling.COMPILE = "raise SystemExit(1)"'
    wait = f'while not worth_loading("{FIRST}", 1.0):\n    time.sleep(0.05)'
    assert "in another process" in run(fail + BEGIN + wait, NUMBA_CACHE_DIR=str(tmp_path))


@needs_numba
def test_all_kinds_of_calls_are_compiled_unless_the_last_is_kept(tmp_path):
    loops = "from ops.programs.conv2d.weight_loops import place_rows"
    for kinds in (3, 1):
        run(f"{loops}\nassert len(place_rows.signatures) == {kinds}", NUMBA_CACHE_DIR=str(tmp_path))


CALLS = """
import numpy as np
from dataclasses import replace
from itertools import product
from math import inf
from device.host import compiling
from tools.machine import LOOPS

declared = []
def with_all(*signatures):
    def load(loop):
        for signature in signatures:
            loop.compile(signature)
        declared.append(loop)
        return loop
    return load
compiling.called_with = with_all
assert all([compiling.worth_loading(loops, inf) for loops in LOOPS])
for loop in declared:
    loop.disable_compile()

from device.spec.device_spec import load_spec
from ttsim import onednn
from ttsim.study.layers.run import make_inputs
from ttsim.study.layers.run import Settings, call, place
from ttsim.runtime.settings import DEFAULT_SPEC
from ttsim.runtime.device import open_device
from ttsim.runtime.types.layer import Layer

for values, dtype, weights, wide in product(
    ("fast", "exact"), ("bfloat16", "bfloat8_b", "float32"), ("bfloat8_b", "bfloat16"), (False, True)
):
    layer = Layer(
        in_channels=64, out_channels=32, input_height=4, input_width=4, stride=(2, 2), input_dtype=dtype,
        input_layout="ROW_MAJOR" if dtype == "bfloat16" else "TILE", config={"weights_dtype": weights},
        compute={"fp32_dest_acc_en": wide, "packer_l1_acc": wide},
    )
    other = "float32" if dtype == "bfloat16" else "bfloat16"
    windows = replace(layer, kernel_size=(3, 3), stride=(1, 1))
    for one in (layer, windows, replace(windows, dtype=other)):
        call(place(one, make_inputs(one), Settings(spec=load_spec(DEFAULT_SPEC), values=values)))
with open_device(values="fast") as device:
    for groups, layout in product((1, 2, 16), ("IOX", "XIO")):
        order = (16, 16 // groups, 3, 3) if layout == "IOX" else (3, 3, 16, 16 // groups)
        image, weights = np.ones((1, 4, 4, 16), np.float32), np.ones(order, np.float32)
        axes = {name: [1, 1] for name in ("pads_begin", "pads_end", "strides", "dilations")}
        given = {"groups": groups, "weights_format": layout, "device": device, **axes}
        made = onednn.conv_transpose(image, weights, **given)
        onednn.conv_transpose_backward_data(made, weights, **given)
        onednn.conv_transpose_backward_weights(image, made, weights.shape, **given)
"""


@needs_numba
def test_calls_are_of_declared_kinds():
    """Else whoever makes the first of some kind waits until it is compiled; here it is refused."""
    run(CALLS)


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
        (text,) = run(code).splitlines()
        assert text.endswith(
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


def test_a_module_that_is_being_loaded_is_waited_for(tmp_path):
    """Another thread may have begun to import it: what stands in sys.modules then is not all of it."""
    (tmp_path / "slow_loops.py").write_text("import time\ntime.sleep(0.3)\nloop = 1\n")
    run(
        """
import time
from threading import Thread
from device.host.compiling import loops_of
other = Thread(target=loops_of, args=("slow_loops",))
other.start()
while "slow_loops" not in sys.modules:
    time.sleep(0.01)
assert loops_of("slow_loops").loop == 1
other.join()
""",
        PYTHONPATH=os.pathsep.join([str(tmp_path), str(ROOT)]),
    )
