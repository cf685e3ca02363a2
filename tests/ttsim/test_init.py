"""The package's face: what `import ttsim` gives, what it loads, and what type checkers see of it."""

import ast
import inspect
import pickle
import pydoc
import subprocess
import sys
from enum import Enum
from importlib import import_module
from pathlib import Path

import pytest

import ttsim

ROOT = Path(__file__).resolve().parents[2]
FACE = ROOT / "ttsim" / "__init__.py"
HOMES: dict[str, list[str]] = {}
for _name, _home in ttsim._HOME_OF.items():
    if _name not in ttsim._MODULES:
        HOMES.setdefault(_home, []).append(_name)
DOORS = {"ttsim.errors"}  # modules that gather what others define
HEAVY = ("rich", "torch", "numba", "scipy", "pandas", "matplotlib", "pytest", "ttsim.report", "ttsim.study", "tools")
FIRST_CALL = """
import numpy as np
with ttsim.open_device(l1_small_size=32768, values="off") as device:
    x = ttsim.Tensor(np.zeros((1, 1, 16, 32), np.float32), ttsim.bfloat16).to(device)
    w = ttsim.Tensor(np.zeros((32, 32, 2, 2), np.float32), ttsim.bfloat16)
    ttsim.conv_transpose2d(input_tensor=x, weight_tensor=w, device=device, in_channels=32, out_channels=32,
                           batch_size=1, input_height=4, input_width=4, kernel_size=(2, 2), stride=(2, 2))
"""

OF_TTSIM = {
    "ArgumentError", "ArgumentIndexError", "ArgumentTypeError", "Choice", "CircularBufferError", "CycleReport",
    "DesignResult", "DeviceClosedError", "DeviceError", "DeviceSpec", "MemoryAccessError", "NetworkReport",
    "OpConstraints", "OutOfMemoryError", "PoisonError", "Profile", "SpecError", "SweepResult", "TTSimError",
    "TensorDescription", "Tuned", "TunedLayer", "TunedNetwork", "changed", "design", "device_names", "errors",
    "estimate_cycles", "from_numpy", "load_spec", "onednn", "profile", "query_op_constraints", "save_report", "sweep",
    "tune", "tune_network",
}  # fmt: skip
OF_MODULES_OF_TTNN = {  # which ttnn has in modules, or as modules that a script imports
    "ClusterType", "ExecutionStatus", "MemoryView", "SystemMeshDescriptor", "database", "is_blackhole",
    "is_wormhole_b0", "model_preprocessing", "tracer",
}  # fmt: skip


def run(script, cwd=ROOT):
    """What a script prints in a fresh interpreter; it begins with `import sys, ttsim`."""
    command = [sys.executable, "-W", "error", "-c", f"import sys, ttsim\n{script}"]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def bound(module):
    """Names that a module's own statements bind, imports left out."""
    names = set()
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    return names


def test_a_name_is_one_of_the_real_library_or_listed_as_one_of_ttsim():
    """A script that runs here by a name of neither list would fail on a card without a warning in any document."""
    real = set((ROOT / "tests" / "data" / "ttnn_names.txt").read_text(encoding="utf-8").split())
    assert {name for name in ttsim.__all__ if name not in real} == OF_TTSIM | OF_MODULES_OF_TTNN
    assert not real & (OF_TTSIM | OF_MODULES_OF_TTNN)


@pytest.mark.parametrize("home", HOMES)
def test_every_name_is_made_where_the_table_says(home):
    module = import_module(home)
    names = HOMES[home]
    if home not in DOORS:
        assert set(names) <= bound(module)
    assert {name: getattr(ttsim, name) for name in names} == {name: getattr(module, name) for name in names}


def test_modules_are_found_wherever_they_are():
    """By their public names, as themselves: `import ttsim.device` makes no second module."""
    names = [*ttsim._MODULES, "pytest_plugin"]
    found = run(
        f"for name in {names}:\n    exec(f'import ttsim.{{name}}')\n    module = sys.modules[f'ttsim.{{name}}']\n"
        "    print(module.__name__, module.__spec__.name, sys.modules[module.__name__] is module)"
    )
    homes = [ttsim._MOVED[f"ttsim.{name}"] for name in names]
    assert found.splitlines() == [f"{home} {home} True" for home in homes]
    assert run("print(*[getattr(ttsim, name).__name__ for name in ttsim._MODULES])").split() == homes[:-1]


def test_type_checkers_see_every_name():
    """The stub holds nothing but names that it exports, each one once."""
    names = []
    for node in ast.parse(FACE.with_suffix(".pyi").read_text(encoding="utf-8")).body[1:]:
        assert isinstance(node, ast.ImportFrom), ast.unparse(node)
        assert all(alias.asname == alias.name for alias in node.names), ast.unparse(node)
        names += [alias.name for alias in node.names]
    assert sorted(names) == sorted(set(names)) == ttsim.__all__
    assert not [name for name in names if name.startswith("_")]


def test_every_public_function_and_class_is_documented():
    public = {name: getattr(ttsim, name) for name in ttsim.__all__}
    listed = [name for name, value in public.items() if isinstance(value, type) and issubclass(value, Enum)]
    assert not [name for name, value in public.items() if callable(value) and not value.__doc__ and name not in listed]


def test_every_error_is_a_public_name():
    assert set(ttsim.errors.__all__) <= set(ttsim.__all__)


def test_the_import_loads_nothing_else():
    ours = "[name for name in sys.modules if name.split('.')[0] in ('ttsim', 'ops', 'device', 'numpy', 'ml_dtypes')]"
    assert run(f"print(*sorted({ours}))") == "device ops ttsim"


def test_a_first_call_loads_nothing_that_it_does_not_need():
    assert run(f"{FIRST_CALL}\nprint([name for name in {HEAVY!r} if name in sys.modules])") == "[]"


def test_a_name_is_looked_up_once():
    assert run("print('conv2d' in vars(ttsim), ttsim.conv2d is vars(ttsim)['conv2d'])") == "False True"


def test_all_names_are_listed_before_they_are_loaded():
    assert run("print(set(ttsim.__all__) <= set(dir(ttsim)), 'ttsim.runtime' in sys.modules)") == "True False"


def test_a_star_import_gives_all_names():
    assert run("from ttsim import *\nprint(set(ttsim.__all__) <= set(globals()))") == "True"


def test_a_wrong_name_is_refused_with_the_nearest():
    with pytest.raises(AttributeError, match=r"^module 'ttsim' has no attribute 'conv_transpose3d': ") as refused:
        ttsim.conv_transpose3d  # noqa: B018
    assert "ttsim.to_torch" in str(refused.value)
    assert "the nearest names: conv_transpose2d" in str(refused.value)
    assert (refused.value.name, refused.value.obj) == ("conv_transpose3d", ttsim)
    with pytest.raises(ImportError, match="cannot import name 'nothing' from 'ttsim'"):
        exec("from ttsim import nothing")
    assert not hasattr(ttsim, "__wrapped__")


def test_other_modules_of_the_package_are_still_found():
    assert run(
        "from ttsim import recording\nimport ttsim.runtime.types.tensors as tensors\nprint(ttsim.recording, tensors)"
    )


def test_help_shows_what_is_public():
    text = pydoc.plain(pydoc.render_doc(ttsim))
    assert all(name in text for name in ("conv_transpose2d(", "class Tensor", "class OutOfMemoryError", "bfloat16 = "))
    assert "import_module" not in text


def test_signatures_and_pickles_are_those_of_the_home():
    assert list(inspect.signature(ttsim.open_device).parameters)[:2] == ["device_id", "l1_small_size"]
    assert inspect.getmodule(ttsim.conv2d).__name__ == "ttsim.api.conv"
    config = ttsim.Conv2dConfig(weights_dtype=ttsim.bfloat8_b, core_grid=None)
    values = (config, ttsim.TILE_LAYOUT, ttsim.UnaryOpType.RELU, ttsim.load_spec("blackhole_p150"))
    again = run(f"import pickle\nprint(pickle.dumps(pickle.loads({pickle.dumps(values)!r})) != b'')")
    assert again == "True"
    assert pickle.loads(pickle.dumps(values)) == values
