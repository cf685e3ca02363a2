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


MODULE = """
from device.host.compiling import called_with, compiled
def loop(n):
    return n + n
loop = called_with("(float64,)", "(int64,)")(compiled(loop))
"""
SAYS = "ttsim compiles its loops for this machine"
HERE, BESIDE = f"{SAYS}, which takes some seconds; the code is kept in ", f"{SAYS} in another process, and numpy does "
WORTH = "import time\nfrom math import inf\nfrom device.host import compiling\n"
WORTH += "worth = compiling.worth_loading\ncompiling.PACKAGES = ('first_loops', 'second_loops')"


@pytest.fixture
def compiles(tmp_path):
    """Runs code in a process that has two modules of a loop, in which nothing is compiled at first; what it says."""
    pytest.importorskip("numba", reason="numba is not installed")
    for name in ("first_loops", "second_loops"):
        (tmp_path / f"{name}.py").write_text(MODULE)
    where = {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)]), "NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    return lambda code: run(f"{WORTH}\n{code}", **where)


def test_loops_are_loaded_once_numpy_took_as_long_as_loading(compiles):
    compiles("import first_loops")  # whose code is kept from now on
    compiles("""
share = 0.4 * compiling.WORTH_SECONDS
assert not worth("first_loops", share)
assert not worth("first_loops", share)
assert "numba" not in sys.modules
assert worth("first_loops", share)
assert "first_loops" in sys.modules
assert worth("first_loops", 0.0)
""")
    compiles('import numba\nassert worth("first_loops", 0.0)')  # what is loaded anyhow costs nothing


def test_the_first_compilation_on_a_machine_says_so_once(compiles, tmp_path):
    """All kinds of calls are compiled then; later the last is loaded, and no other but where one is made."""
    (text,) = compiles("import first_loops\nassert len(first_loops.loop.signatures) == 2").splitlines()
    assert text == f"{HERE}{next((tmp_path / 'kept').rglob('*.nbi')).parent}."
    assert compiles("import first_loops\nassert len(first_loops.loop.signatures) == 1") == ""


BEGIN = """
assert not worth("first_loops", 1.0)
assert not worth("second_loops", 1.0)
assert "first_loops" not in sys.modules
"""


def test_another_process_compiles_and_nobody_waits_for_it(compiles, tmp_path):
    wait = """
while not worth("first_loops", 1.0):
    time.sleep(0.05)
assert "first_loops" in sys.modules
assert not worth("second_loops", 1.0)  # one after the other
"""
    (text,) = compiles(BEGIN + wait).splitlines()
    assert text.startswith(BESIDE)
    assert str(tmp_path) in text
    assert compiles('assert worth("first_loops", 1.0)') == ""


def test_who_wants_no_numpy_waits_for_the_other_process(compiles):
    assert BESIDE in compiles(f'{BEGIN}assert worth("first_loops", inf)\nassert "first_loops" in sys.modules')


@pytest.mark.parametrize("broken", ["sys.executable = ''", "sys.executable = '/nowhere'"])
def test_where_there_is_no_other_process_this_one_compiles(compiles, broken):
    (text,) = compiles(f'{broken}\nassert worth("first_loops", 1.0)').splitlines()
    assert text.startswith(HERE)


def test_what_another_process_failed_to_compile_this_one_does(compiles):
    fail = 'compiling.COMPILE = "raise SystemExit(1)"\n'
    wait = 'while not worth("first_loops", 1.0):\n    time.sleep(0.05)'
    assert BESIDE in compiles(fail + BEGIN + wait)


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

for values, (number, dtype) in product(("fast", "exact"), enumerate(("bfloat16", "bfloat8_b", "float32"))):
    wide = number != 1
    layer = Layer(
        in_channels=64, out_channels=32, input_height=4, input_width=4, stride=(2, 2), input_dtype=dtype,
        input_layout="ROW_MAJOR" if dtype == "bfloat16" else "TILE",
        config={"weights_dtype": "bfloat16" if number else "bfloat8_b"},
        compute={"fp32_dest_acc_en": wide, "packer_l1_acc": wide},
    )
    windows = replace(layer, kernel_size=(3, 3), stride=(1, 1), dtype="bfloat16" if number else "float32", compute={})
    for each in (layer, windows):
        call(place(each, make_inputs(each), Settings(spec=load_spec(DEFAULT_SPEC), values=values)))
with open_device(values="fast") as device:
    image, weights = np.ones((1, 4, 17, 16), np.float32), np.ones((16, 16, 3, 3), np.float32)
    axes = {name: [1, 1] for name in ("pads_begin", "pads_end", "strides", "dilations")}
    options = {"weights_format": "IOX", "device": device, **axes}
    result = onednn.conv_transpose(image, weights, **options)
    onednn.conv_transpose_backward_weights(image, result, weights.shape, **options)
"""


@needs_numba
def test_calls_are_of_declared_kinds():
    """Else whoever makes the first of some kind waits until it is compiled; here it is refused."""
    run(CALLS)


@needs_numba
def test_code_that_can_not_be_kept_says_so():
    code = """
from device.host.compiling import compiled
def loop(n):
    return n + 1
loop.__module__ = "device.anywhere"  # but in no file, so that numba has no place beside it
assert compiled(loop)(1) == 2
"""
    (text,) = run(code).splitlines()
    assert text.endswith("every process does so again: name a directory that may be written to, as NUMBA_CACHE_DIR.")


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
