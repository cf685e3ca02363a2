"""What the docstrings of public functions say: arguments, results, errors, and examples that run.

Examples begin after the lines of docs/reference/api/index.md.
"""

import builtins
import doctest
import inspect
import pydoc
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

import ttsim
from ttsim.runtime.types.docs import SECTIONS, parted, texts_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "api" / "index.md"
MODULES = ("graph", "onednn", "model_preprocessing", "cluster", "experimental", "tracer")
NAMES = [*ttsim.__all__, *(f"{module}.{name}" for module in MODULES for name in getattr(ttsim, module).__all__)]
FUNCTIONS = {name: value for name in NAMES if inspect.isfunction(value := attrgetter(name)(ttsim))}
CLASSES = {name: value for name in NAMES if inspect.isclass(value := attrgetter(name)(ttsim))}
FREE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
INTERNALS = re.compile(r"<function|0x[0-9a-f]{6}|<locals>|Kind\(|NoneType|ttsim\.runtime\.|device\.memory\.")
# Functions that check none of their arguments
UNCHECKED = {
    *("init_device_compute_kernel_config", "model_preprocessing.default_preprocessor"),
    *("model_preprocessing.move_to_device", "tracer.visualize"),
}


@pytest.fixture(scope="module")
def names() -> Iterator[dict[str, Any]]:
    """What examples find, by the first block of the page."""
    setup: dict[str, Any] = {}
    exec(PAGE.read_text(encoding="utf-8").split("```python\n")[1].partition("```")[0], setup)
    yield {name: setup[name] for name in ("np", "ttnn", "device")}
    setup["device"].close()


def check_example(name: str, text: str, names: dict[str, Any]) -> None:
    example = doctest.DocTestParser().get_doctest(text, dict(names), name, None, 0)
    assert example.examples
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert runner.run(example, out=said.append).failed == 0, "".join(said)


def entered(result: Any) -> None:
    """Enters a context, since functions that make one run when it is entered."""
    if hasattr(result, "__enter__"):
        result.__enter__()


def parameters(function: Any) -> list[inspect.Parameter]:
    return list(inspect.signature(function).parameters.values())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_docstring_is_whole(name):
    function, doc = FUNCTIONS[name], inspect.getdoc(FUNCTIONS[name])
    summary, _, rest = doc.partition("\n")
    assert summary[-1] in ".:"
    assert not rest or rest.startswith("\n")
    named = [each.name for each in parameters(function) if each.kind not in FREE]
    args = list(texts_of(doc, "Args"))
    assert [arg for arg in args if arg in named] == named
    assert args == named or len(named) < len(parameters(function))
    assert bool(parted(doc, "Returns")[1]) is (inspect.signature(function).return_annotation not in (None, "None"))
    assert bool(parted(doc, "Raises")[1]) >= bool(args) or name in UNCHECKED
    assert set(texts_of(doc, "Raises")) <= {*dir(ttsim), "AttributeError", "ImportError", "OSError", "TypeError"}
    headings = [line[:-1] for line in doc.splitlines() if line[:-1] in SECTIONS]
    assert headings == sorted(set(headings), key=SECTIONS.index)


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_and_its_methods_are_documented(name):
    """Members of an enumeration are values, and those that Python makes for records have no texts."""
    kind = CLASSES[name]
    doc = inspect.getdoc(kind)
    assert doc.partition("\n")[0][-1] in ".:"
    listed = texts_of(doc, "Attributes")
    own = [each.name for each in fields(kind) if not each.name.startswith("_")] if is_dataclass(kind) else []
    assert not own or list(listed) in ([], own)
    members = {key: inspect.unwrap(getattr(value, "__func__", value)) for key, value in vars(kind).items()}
    shown = {key: value for key, value in members.items() if isinstance(value, property) or inspect.isfunction(value)}
    assert [key for key, value in shown.items() if not key.startswith("_") and not value.__doc__] == []


@pytest.mark.parametrize("name", [*FUNCTIONS, *CLASSES])
def test_the_example_runs(name, names):
    value = FUNCTIONS.get(name) or CLASSES[name]
    text = inspect.getdoc(value)
    if "import torch" in text or "to_torch(" in text:
        pytest.importorskip("torch")
    assert inspect.isclass(value) or f"{value.__name__}(" in parted(text, "Examples")[1]
    check_example(name, text, names)


def test_functions_of_torch_are_documented(names):
    module = pytest.importorskip("ttsim.torch")
    for function in (module.conv_transpose1d, module.conv_transpose2d, module.conv_transpose3d):
        text = inspect.getdoc(function)
        assert list(texts_of(text, "Args")) == list(inspect.signature(function).parameters)
        assert parted(text, "Returns")[1]
        check_example(function.__name__, text, names)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if parameters(FUNCTIONS[name]) and name not in UNCHECKED])
def test_a_wrong_argument_raises_an_error_that_is_listed(name, names):
    function = FUNCTIONS[name]
    required = [each for each in parameters(function) if each.default is each.empty and each.kind not in FREE]
    wrong = required or parameters(function)[:1]
    by_name = {each.name: object() for each in wrong if each.kind is each.KEYWORD_ONLY}
    kinds = texts_of(inspect.getdoc(function), "Raises")
    listed = tuple(getattr(ttsim, kind, None) or getattr(builtins, kind) for kind in kinds)
    with pytest.raises(listed):
        entered(function(*(object() for _ in wrong[len(by_name) :]), **by_name))


def test_help_shows_no_internals():
    texts = {name: pydoc.plain(pydoc.render_doc(function, "%s")) for name, function in FUNCTIONS.items()}
    found = {name: match[0] for name, text in texts.items() if (match := INTERNALS.search(text.partition("\n")[2]))}
    assert found == {}
