"""What `help()`, `dir()` and type checkers show of the public functions: plain types, public names, no `Any`."""

import inspect
import os
import pydoc
import re
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec

import pytest

import ttsim
from tools.stub import PATH, stub
from ttsim.runtime.types.signatures import short_type

INTERNALS = re.compile(
    r"Kind\(|<function|object at 0x|typing\.|Annotated|\b(?:ttsim|device|ops)\.\w+\.\w+\.|[ (\[]_[a-z]\w+:"
)
MODULES = ["experimental", "graph", "model_preprocessing", "onednn", "tracer", *["torch"] * bool(find_spec("torch"))]
OF_TORCH = {
    *(
        "ttsim.create_group_norm_weight_bias_rm",
        "ttsim.model_preprocessing.fold_batch_norm2d_into_conv2d",
        "ttsim.to_torch",
    ),
}
JSON = {f"ttsim.graph.{name}" for name in ("end_graph_capture", "end_graph_capture_to_file", "extract_levelized_graph")}
HOLD_ANY = JSON | {"ttsim.get_golden_function"}  # a function of whatever takes whatever
ARRAY = re.compile(r"numpy\.ndarray\[(?:Any|tuple\[Any, \.\.\.\]), numpy\.dtype\[Any\]\]")


def public_functions():
    """Every public function by its full name."""
    spaces = {"ttsim": ttsim} | {f"ttsim.{name}": import_module(f"ttsim.{name}") for name in MODULES}
    found = {f"{space}.{name}": getattr(module, name) for space, module in spaces.items() for name in module.__all__}
    return {name: value for name, value in found.items() if inspect.isfunction(value)}


def test_help_shows_no_internals():
    functions = public_functions()
    assert len(functions) > 170
    first = {name: pydoc.plain(pydoc.render_doc(function)).split("\n\n")[1] for name, function in functions.items()}
    assert not [(name, found[0]) for name, text in first.items() if (found := INTERNALS.search(text))]
    assert "kernel_size: Sequence[int], stride: Sequence[int] = (1, 1)" in first["ttsim.conv_transpose2d"]
    assert "dtype: DataType | None = None" in first["ttsim.conv_transpose2d"]


def test_methods_have_short_types_as_well():
    assert str(inspect.signature(ttsim.Tensor.to)).startswith("(self, target: Device | Layout | None = None, ")
    assert "weights_dtype: DataType | None = None, " in str(inspect.signature(ttsim.Conv2dConfig))
    parameters = ["input_tensor", "threshold", "value", "memory_config", "output_tensor", "sub_core_grids"]
    assert list(inspect.signature(ttsim.threshold).parameters) == parameters
    assert inspect.signature(ttsim.gelu).parameters["fast_and_approximate_mode"].default is False
    assert short_type(dict[str, list[int] | None]) == "dict[str, list[int] | None]"


@pytest.mark.parametrize("name", MODULES)
def test_modules_list_their_public_names_alone(name):
    module = import_module(f"ttsim.{name}")
    assert dir(module) == sorted(module.__all__)
    assert set(dir(module)) <= set(vars(module))


def test_the_package_lists_its_public_names_alone():
    import_module("ttsim.study.sweep")
    assert [name for name in dir(ttsim) if not name.startswith("__")] == ttsim.__all__


def test_the_types_of_convolutions_are_those_of_their_tables():
    assert PATH.read_text(encoding="utf-8") == stub(), "python -m tools.stub writes the file"


CONSUMER = """# mypy: disable-error-code="func-returns-value,empty-body"
from collections.abc import Callable
from typing import TypeVar
import ttsim
{imports}
R = TypeVar("R")
def result(function: Callable[..., R]) -> R: ...
{lines}
"""


@pytest.mark.long
def test_no_public_function_returns_any(tmp_path):
    """mypy --strict reveals the result of every public function; only JSON and golden functions hold Any.

    With the project's options, so that what MYPY_CACHE_DIR knows of the sources is used.
    """
    pytest.importorskip("mypy")
    names = list(public_functions())
    wholes = re.compile(r"\.conv[12_]|move_to_device")  # overloads and generic functions, of which a call takes one
    revealed = [name if wholes.search(name) else f"result({name})" for name in names]
    lines = "\n".join(f"reveal_type({text})" for text in revealed)
    imports = "\n".join(f"import ttsim.{name}" for name in MODULES if name not in ttsim.__all__)
    consumer = tmp_path / "consumer.py"
    consumer.write_text(CONSUMER.format(imports=imports, lines=lines))
    cache = os.environ.get("MYPY_CACHE_DIR", tmp_path / "cache")
    command = [sys.executable, "-m", "mypy", f"--cache-dir={cache}", consumer]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=PATH.parents[2])
    assert done.returncode == 0, done.stdout
    types = re.findall(r'Revealed type is "(.*)"', done.stdout)
    results = {
        name: type if text != name else re.findall(r"\) -> (.*?)(?=, def |\)?$)", type)
        for name, text, type in zip(names, revealed, types, strict=True)
    }
    untyped = {name for name, shown in results.items() if "Any" in ARRAY.sub("", str(shown))}
    assert untyped - HOLD_ANY == (set() if find_spec("torch") else OF_TORCH & set(names))
    assert results["ttsim.conv2d"][1] == "tuple[ttsim.runtime.tensor.Tensor, tuple[int, int]]"
