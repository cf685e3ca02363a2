"""A simulator of ttnn's transposed convolution: the bits, the memory map and the cycles, without a card.

With ``import ttsim as ttnn``, ordinary scripts run unchanged. Names are loaded on first access, so importing ttsim
is quick; ``__init__.pyi`` lists all names and their modules for type checkers and for this file.
"""

import ast as _ast
import sys as _sys
from functools import partial as _partial
from importlib import import_module as _import_module
from importlib.machinery import ModuleSpec as _ModuleSpec
from importlib.util import find_spec as _find_spec
from pathlib import Path as _Path
from types import ModuleType as _ModuleType

_FILE = _Path(__file__).resolve()
_SIBLINGS = ("device", "ops")


def _location(name: str) -> _Path | None:
    """Folder or file that ``import name`` finds or has found; None if there is none."""
    loaded = _sys.modules.get(name)
    spec = _find_spec(name) if loaded is None else None
    origin = getattr(loaded, "__file__", None) if spec is None else spec.origin
    path = None if origin is None else _Path(origin).resolve()
    return path.parent if path is not None and path.name == "__init__.py" else path


def _check_siblings(home: _Path) -> None:
    """Raises ImportError, naming the culprit, if ``ops`` or ``device`` would not be the packages in ``home``.

    Both are common names: a ``device.py`` beside a script would be imported instead, and fail far from the cause.
    """
    for name in _SIBLINGS:
        location = _location(name)
        if location != home / name:
            culprit = f"Python finds {location} instead" if location else "Python finds none"
            raise ImportError(
                f"ttsim needs its own package {name!r} in {home}, but {culprit}. Rename that file or folder, or run "
                "from another folder; if the package is missing, install ttsim again"
            )


def _missing_in(module: _ModuleType, name: str, *, depth: int = 1) -> object:
    """A substitute for a name that a module does not have; the accessing code is ``depth`` calls above.

    Raises the error for a missing name, unless the host computes functions that are not simulated.
    """
    __tracebackhide__ = True  # pytest reads it
    value: object = _import_module("ttsim.dropin.missing").instead_of(module, name, _sys._getframe(depth))
    return value


_import_module("ttsim.runtime.tracebacks").install()
_check_siblings(_FILE.parents[1])
for _name in _SIBLINGS:  # kept from now on, wherever a script may look for modules later
    _sibling = _import_module(_name)
    vars(_sibling)["__getattr__"] = _partial(_missing_in, _sibling)

_STUB = _ast.parse(_FILE.with_suffix(".pyi").read_text(encoding="utf-8"))
_HOME_OF = {alias.name: node.module for node in _STUB.body if isinstance(node, _ast.ImportFrom) for alias in node.names}
_MODULES = {name: f"{home}.{name}" for name, home in _HOME_OF.items() if home in (__name__, f"{__name__}.api.modules")}
_MOVED = {f"{__name__}.{name}": home for name, home in _MODULES.items()} | {
    f"{__name__}.pytest_plugin": f"{__name__}.dropin.pytest_plugin"
}  # modules by the names that scripts import

__all__ = sorted(_HOME_OF)


class _MovedModules:
    """Finds modules such as ``ttsim.device``, whose file is elsewhere in the package, by their public name."""

    @classmethod
    def find_spec(cls, name: str, path: object = None, target: object = None) -> _ModuleSpec | None:
        """The spec of a module; None for modules whose file matches their name.

        Raises ModuleNotFoundError, naming the culprit, for a module of a package that ttsim's own package shadows.
        """
        package, _, module = name.partition(".")
        if package in _SIBLINGS and module and (text := _import_module("ttsim.dropin.missing").shadowed(package)):
            raise ModuleNotFoundError(f"No module named {name!r}: {text}", name=name)
        return _ModuleSpec(name, cls()) if _MOVED.get(name, name) != name else None  # type: ignore[arg-type]

    def create_module(self, spec: _ModuleSpec) -> _ModuleType:
        """The module itself, not a copy."""
        module = _home(_MOVED[spec.name])
        self._own_spec = module.__spec__
        return module

    def exec_module(self, module: _ModuleType) -> None:
        """Restores the spec of the module, whose code has already run."""
        module.__spec__ = self._own_spec


def _home(path: str) -> _ModuleType:
    """A module with public names under any of its names; ``_missing_in`` handles names that it does not have."""
    module = _import_module(path)
    vars(module).setdefault("__getattr__", _partial(_missing_in, module))
    return module


_sys.meta_path.append(_MovedModules)


def __getattr__(name: str) -> object:
    """Loads a public name on first access and caches it."""
    __tracebackhide__ = True  # pytest reads it
    if name in _MODULES:
        return _home(_MODULES[name])
    if name not in _HOME_OF:
        return _missing_in(_sys.modules[__name__], name, depth=2)
    value = globals()[name] = getattr(_import_module(_HOME_OF[name]), name)
    _import_module("ttsim.runtime.types.signatures").shorten_all([value])
    return value


def __dir__() -> list[str]:
    """All public names, loaded or not."""
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
