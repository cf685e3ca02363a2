"""The package's face: what `import ttsim` gives, what it loads, and what type checkers see of it."""

import ast
import inspect
import os
import pickle
import pydoc
import subprocess
import sys
import tomllib
from enum import Enum
from importlib import import_module
from pathlib import Path

import pytest

import ttsim
from ttsim.__main__ import VERSION, main, version_line
from ttsim.dropin.missing import names_of_ttnn
from ttsim.study.store import model_version

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
    "NotSimulatedError", "OpConstraints", "OutOfMemoryError", "PoisonError", "Profile", "SpecError", "SweepResult",
    "TTSimError", "TensorDescription", "Tuned", "TunedLayer", "TunedNetwork", "changed", "design", "device_names",
    "errors", "estimate_cycles", "from_numpy", "load_spec", "onednn", "profile", "query_op_constraints", "save_report",
    "sweep", "tune", "tune_network",
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


def imported(module):
    """Names that a module imports from others."""
    nodes = ast.parse(inspect.getsource(module)).body
    return {alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}


def test_a_name_is_one_of_the_real_library_or_listed_as_one_of_ttsim():
    """A script that runs here by a name of neither list would fail on a card without a warning in any document."""
    real = {name.removesuffix(".") for name in names_of_ttnn()}
    assert {name for name in ttsim.__all__ if name not in real} == OF_TTSIM | OF_MODULES_OF_TTNN
    assert not real & (OF_TTSIM | OF_MODULES_OF_TTNN)


@pytest.mark.parametrize("home", HOMES)
def test_every_name_is_made_where_the_table_says(home):
    module = import_module(home)
    names = HOMES[home]
    assert home in DOORS or not set(names) & imported(module)
    assert {name: getattr(ttsim, name) for name in names} == {name: getattr(module, name) for name in names}


def test_modules_are_found_wherever_they_are():
    """By their public names, as themselves: `import ttsim.device` makes no second module, and misses no name."""
    names = [*ttsim._MODULES, "pytest_plugin"]
    found = run(
        f"for name in {names}:\n    exec(f'import ttsim.{{name}}')\n    module = sys.modules[f'ttsim.{{name}}']\n"
        "    print(module.__name__, module.__spec__.name, sys.modules[module.__name__] is module)\n"
        "print(*[getattr(ttsim, name).__name__ for name in ttsim._MODULES])\n"
        "print(ttsim.experimental.rotary_embedding_llama_fused_qk.__name__)\n"  # which refuses to be called
        "from ttsim import recording\nimport ttsim.runtime.types.tensors as tensors"
    )
    homes = [ttsim._MOVED[f"ttsim.{name}"] for name in names]
    loaded = [f"{home} {home} True" for home in homes]
    assert found.splitlines() == [*loaded, " ".join(homes[:-1]), "rotary_embedding_llama_fused_qk"]


def test_type_checkers_see_every_name():
    """The stub holds nothing but names that it exports, each one once."""
    nodes = ast.parse(FACE.with_suffix(".pyi").read_text(encoding="utf-8")).body[1:]
    assert all(isinstance(node, ast.ImportFrom) for node in nodes)
    assert all(alias.asname == alias.name for node in nodes for alias in node.names)
    names = [alias.name for node in nodes for alias in node.names]
    assert sorted(names) == sorted(set(names)) == ttsim.__all__
    assert not [name for name in names if name.startswith("_")]


def test_every_public_function_and_class_is_documented():
    public = {name: getattr(ttsim, name) for name in ttsim.__all__}
    listed = [name for name, value in public.items() if isinstance(value, type) and issubclass(value, Enum)]
    assert not [name for name, value in public.items() if callable(value) and not value.__doc__ and name not in listed]


def test_names_are_loaded_when_they_are_asked_for():
    """All are listed before; each is looked up once; a first call loads nothing that it does not need."""
    found = run(f"""
print(*sorted(name for name in sys.modules if name.split('.')[0] in ('ttsim', 'ops', 'device', 'numpy', 'ml_dtypes')))
print(set(ttsim.__all__) <= set(dir(ttsim)))
print('conv2d' in vars(ttsim), ttsim.conv2d is vars(ttsim)['conv2d'])
{FIRST_CALL}
print([name for name in {HEAVY!r} if name in sys.modules])
from ttsim import *
print(set(ttsim.__all__) <= set(globals()))""")
    assert found.splitlines() == [
        *("device ops ttsim ttsim.runtime ttsim.runtime.tracebacks", "True", "False True", "[]", "True")
    ]


def test_a_wrong_name_is_refused_with_the_nearest_under_the_name_of_the_script():
    with pytest.raises(AttributeError, match=r"^module 'ttsim' has no attribute 'conv_transpose3d': ") as refused:
        ttsim.conv_transpose3d  # noqa: B018
    assert "ttsim.to_torch" in str(refused.value)
    assert "the nearest names: conv_transpose2d" in str(refused.value)
    assert "; dir(ttsim) lists all names" in str(refused.value)
    assert (refused.value.name, refused.value.obj) == ("conv_transpose3d", ttsim)
    with pytest.raises(ImportError, match=r"^cannot import name 'nothing' from 'ttsim': ttsim does not simulate it"):
        exec("from ttsim import nothing")
    with pytest.raises(AttributeError, match=r"^module 'ttnn' has no attribute 'nothing': .*ttnn.to_torch.*dir.ttnn."):
        exec("import ttsim as ttnn\nttnn.nothing", {})
    assert not hasattr(ttsim, "__wrapped__")


def test_help_shows_what_is_public():
    text = pydoc.plain(pydoc.render_doc(ttsim))
    assert all(name in text for name in ("conv_transpose2d(", "class Tensor", "class OutOfMemoryError", "bfloat16 = "))
    assert "import_module" not in text


def test_signatures_and_pickles_are_those_of_the_home():
    assert list(inspect.signature(ttsim.open_device).parameters)[:2] == ["device_id", "l1_small_size"]
    assert inspect.getmodule(ttsim.conv2d).__name__ == "ttsim.api.convolutions"
    config = ttsim.Conv2dConfig(weights_dtype=ttsim.bfloat8_b, core_grid=None)
    values = (config, ttsim.TILE_LAYOUT, ttsim.UnaryOpType.RELU, ttsim.load_spec("blackhole_p150"))
    assert pickle.loads(pickle.dumps(values)) == values


@pytest.mark.parametrize(
    ("name", "way_in"),
    [("device", ["-c", "import ttsim"]), ("ops", ["script.py"]), ("device", ["-m", "ttsim", "devices"])],
)
def test_a_foreign_sibling_is_named(name, way_in, tmp_path):
    (tmp_path / f"{name}.py").write_text("value = 1\n")
    (tmp_path / "script.py").write_text("import ttsim\n")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, *way_in]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"ImportError: ttsim needs its own package {name!r}" in done.stderr
    assert str(tmp_path / f"{name}.py") in done.stderr
    assert "__init__.py" not in done.stderr


def test_a_foreign_sibling_that_comes_later_does_not_matter(tmp_path):
    for name in ("device", "ops"):
        (tmp_path / f"{name}.py").write_text("value = 1\n")
    run(f"sys.path[:0] = [{str(tmp_path)!r}]\nttsim.open_device(); ttsim.conv2d")
    with pytest.raises(ImportError, match="install ttsim again"):
        ttsim._check_siblings(tmp_path)


def test_the_version_is_said_once(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == version_line() + "\n"
    assert version_line() == f"ttsim {VERSION}, following ttnn 0.81.1, model {model_version()}"
    built = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert built["project"]["dynamic"] == ["version"]
    assert "version" not in built["project"]
    assert built["tool"]["hatch"]["version"]["path"] == "ttsim/__main__.py"


def test_nothing_is_traced_or_stored():
    ttsim.tracer.disable_tracing()
    assert not ttsim.tracer.is_tracing_enabled()
    for refuse in (ttsim.tracer.enable_tracing, ttsim.tracer.trace, ttsim.tracer.visualize):
        with pytest.raises(ttsim.ArgumentError, match=r"begin_graph_capture|pretty_print"):
            refuse()
    assert ttsim.database.SQLITE_CONNECTION is None
    assert not ttsim.database.DEVICE_IDS_IN_DATABASE
