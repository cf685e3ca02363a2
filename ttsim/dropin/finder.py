"""Makes ``import ttnn`` import ttsim while a finder is installed.

A face represents ttnn or one of its modules: its names are looked up in the module of ttsim with the same name, or else
in ttsim itself, so ``from ttnn.operations.conv2d import Conv2dConfig`` works for any module of the real library. An
assignment to a face (``ttnn.CONFIG = ...``) sets the name in that module.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import MappingProxyType, ModuleType
from typing import Any

import ttsim
from device.memory.memory_config import TILE
from device.numbers.formats import round_up
from ttsim.dropin.missing import PACKAGE, instead_of

MODULES: frozenset[str] = frozenset(vars(ttsim)["_MODULES"])
# Modules of tt_lib, the package beside ttnn, and what loads the module of ttsim that has their names; rarely needed
TT_LIB: Mapping[str, Callable[[], ModuleType] | None] = MappingProxyType(
    {
        "tt_lib": None,
        "tt_lib.fallback_ops": lambda: import_module("ttsim.runtime.tt_lib"),
        "tt_lib.fused_ops": None,
        "tt_lib.fused_ops.softmax": lambda: import_module("ttsim.dropin.tt_lib_softmax"),
        "tt_lib.utils": lambda: import_module("ttsim.dropin.tt_lib_utils"),
    }
)
# Modules of ttnn 0.81.1 in which ttsim has names of its own, wherever they live here.
FACES = frozenset(
    (
        *("_ttnn", "_ttnn.activation", "_ttnn.core", "_ttnn.device", "_ttnn.multi_device", "_ttnn.operations"),
        *("_ttnn.operations.conv", "_ttnn.tensor", "_ttnn.types", "core", "decorators", "device", "distributed"),
        *("distributed.distributed", "operations", "operations.activations", "operations.binary"),
        *("operations.conv2d", "operations.core", "operations.creation", "operations.data_movement"),
        *("kv_cache", "operations.matmul", "operations.normalization", "operations.pool", "operations.reduction"),
        *("dot_access", "operations.transformer", "operations.unary", "torch_tracer", "transformer", "types"),
    )
)


def pad_to_tile_shape(unpadded_shape: Sequence[int]) -> list[int]:
    """A shape with the last two sides rounded up to whole tiles; older models use this name of earlier releases."""
    *outer, rows, columns = unpadded_shape
    return [*outer, round_up(rows, TILE), round_up(columns, TILE)]


def make_dot_access_dict(dictionary: Mapping[Any, Any], *, ignore_types: Any = None) -> Mapping[Any, Any]:
    """A dict, and all nested dicts, with items as attributes; values of `ignore_types` are not converted."""
    dot_dict = ttsim.model_preprocessing.DotDict
    if isinstance(dictionary, (dot_dict, *([ignore_types] if isinstance(ignore_types, type) else ignore_types or ()))):
        return dictionary
    inner = partial(make_dot_access_dict, ignore_types=ignore_types)
    return dot_dict({key: inner(value) if isinstance(value, dict) else value for key, value in dictionary.items()})


# Names of a module of ttnn that ttsim has under another name, or for scripts of other releases alone
ELSEWHERE: Mapping[str, Callable[[], Any]] = MappingProxyType(
    {
        "dot_access.DotAccessDict": lambda: ttsim.model_preprocessing.DotDict,
        "dot_access.make_dot_access_dict": lambda: make_dot_access_dict,
        "operations.activations.get_golden_function_for_activation": lambda: (
            import_module("ttsim.runtime.golden").get_golden_function_for_activation
        ),
        "pad_to_tile_shape": lambda: pad_to_tile_shape,
        "ttnn": lambda: face_of(""),  # as the package of the real library imports itself
        "types.BlackholeComputeKernelConfig": lambda: ttsim.WormholeComputeKernelConfig,
    }
)


class Face(ModuleType):
    """A module of ttnn with the names of the ttsim modules in `homes`; assignments go to the first of them."""

    def __init__(self, name: str, homes: Sequence[ModuleType]) -> None:
        super().__init__(name, homes[0].__doc__)
        vars(self)["homes"] = tuple(homes)

    def __getattr__(self, name: str) -> Any:
        """A name of one of the homes; `instead_of` handles missing names."""
        __tracebackhide__ = True  # pytest reads it
        for home in vars(self)["homes"]:
            if hasattr(home, name):
                return getattr(home, name)
        module = f"{self.__name__.partition('.')[2]}.{name}".lstrip(".")
        if module in ELSEWHERE:
            return ELSEWHERE[module]()
        if module in FACES:
            return face_of(module)
        return instead_of(self, name, sys._getframe(1))

    def __setattr__(self, name: str, value: Any) -> None:
        """Assigns a name in the module where it is looked up; attributes of the import system stay here."""
        if isinstance(value, ModuleType) or (name.startswith("__") and name.endswith("__")):
            super().__setattr__(name, value)
        else:
            setattr(vars(self)["homes"][0], name, value)

    def __dir__(self) -> list[str]:
        """Names of all homes."""
        return sorted({name for home in vars(self)["homes"] for name in dir(home)})


class TtLibFace(ModuleType):
    """A module of tt_lib, a package that comes with ttnn."""

    def __getattr__(self, name: str) -> Any:
        """A name of the module; the module's own name gives the module itself."""
        load = TT_LIB[self.__name__]
        if load and not name.startswith("__"):
            home = load()
            with suppress(AttributeError):
                return getattr(home, name)
            if name == self.__name__.rpartition(".")[2]:
                return self
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name, obj=self)


def face_of(module: str) -> ModuleType:
    """The (cached) face of a module of ttnn, such as "operations.conv2d", "device", or "" for ttnn itself."""
    name = f"{PACKAGE}.{module}" if module else PACKAGE
    if name not in sys.modules:
        face = sys.modules[name] = Face(name, [*([getattr(ttsim, module)] if module in MODULES else []), ttsim])
        face.__path__ = []
    return sys.modules[name]


class FaceLoader(Loader):
    """Creates faces."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The face of a module spec."""
        if spec.name in TT_LIB:
            return TtLibFace(spec.name, TtLibFace.__doc__)
        return face_of(spec.name.partition(".")[2])

    def exec_module(self, module: ModuleType) -> None:
        """Does nothing: a face has no code to run."""


class TtnnFinder(MetaPathFinder):
    """Finds ttnn, the modules of ttnn with names in ttsim, and the modules of tt_lib."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """The spec of a module of ttnn, or ModuleNotFoundError if ttsim lacks it; None for all other modules."""
        package, _, module = name.partition(".")
        if name in TT_LIB:
            return ModuleSpec(name, FaceLoader(), origin="ttsim", is_package=True)
        if package != PACKAGE:
            return None
        if module and module not in FACES and module not in MODULES:
            known = ", ".join(sorted(FACES.union(MODULES)))
            raise ModuleNotFoundError(f"ttsim has nothing of the module {name}; it has {known}", name=name)
        return ModuleSpec(name, FaceLoader(), origin="ttsim", is_package=True)


def install() -> TtnnFinder:
    """Installs a finder before all others, until `uninstall`; raises ImportError if the real library is loaded."""
    loaded = sys.modules.get(PACKAGE)
    if loaded is not None and not isinstance(loaded, Face):
        raise ImportError(
            f"ttsim cannot stand in for ttnn: {loaded!r} is loaded already; import it later, or not at all"
        )
    finder = TtnnFinder()
    sys.meta_path.insert(0, finder)
    return finder


def uninstall(finder: TtnnFinder) -> None:
    """Removes a finder; removing the last finder also removes the faces."""
    sys.meta_path[:] = [meta_finder for meta_finder in sys.meta_path if meta_finder is not finder]
    if not any(isinstance(meta_finder, TtnnFinder) for meta_finder in sys.meta_path):
        for name in [name for name, module in sys.modules.items() if isinstance(module, Face | TtLibFace)]:
            del sys.modules[name]


@contextmanager
def ttnn_is_ttsim() -> Iterator[None]:
    """A context in which ``import ttnn`` imports ttsim."""
    finder = install()
    try:
        yield
    finally:
        uninstall(finder)
