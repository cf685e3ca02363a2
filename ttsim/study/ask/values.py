"""Arguments of calls as JSON, in both directions.

Numbers, strings, booleans, null and lists represent themselves. Objects must have one of these forms:

- ``"ttnn.bfloat16"``, ``"ttnn.DRAM_MEMORY_CONFIG"``, ``"ttnn.MathFidelity.HiFi4"``: a public constant, or an enum
  member.
- ``{"ttnn.Conv2dConfig": {"act_block_h_override": 32}}``, ``{"ttnn.CoreCoord": [0, 0]}``: a public class, or a function
  that creates a config, with its arguments by name or by position.
- ``{"logical_shape": [..], "tensor_layout": {..}}`` and ``{"memory_layout": 0, "buffer_type": 1}``: the output of
  tt-metal's own ``to_json`` for a tensor spec and for a memory config.
"""

import ast
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache, lru_cache
from typing import Any, Final

from device.cores import CoreRangeSet
from device.errors import ArgumentError, ArgumentTypeError, NotSimulatedError, TTSimError, nearest, shown
from device.memory.memory_config import BufferType, Layout, MemoryConfig, ShardSpec, TensorMemoryLayout
from ttsim.runtime.types.call import CheckedRecord
from ttsim.runtime.types.configs import UnaryWithParam
from ttsim.runtime.types.tensor_spec import TensorSpec
from ttsim.runtime.types.tensors import DataType

FACE: Final = __name__.partition(".")[0]  # the package whose functions and classes arguments are made of
PREFIX: Final = "ttnn."
# Modules whose classes and constants are arguments of calls, and whose functions make configs
ARGUMENTS: Final = ("device.cores", "device.memory.memory_config", "ttsim.runtime.types.")
OPERATIONS: Final = "ttsim.api."  # modules of operations
ON_HOST: Final = tuple(
    OPERATIONS + name for name in ("constraints", "conversions", "creation", "device_calls", "trace")
)
AMONG_THESE: Final = (  # .. apart from operations among these
    *("arange", "empty", "empty_like", "full", "full_like", "ones", "ones_like", "rand", "zeros", "zeros_like"),
    *("from_device", "to_device", "to_dtype", "to_layout", "to_memory_config", "typecast"),
)
NAMESPACES: Final = ("", "experimental", "kv_cache", "transformer")
TENSOR: Final = "tensor_spec"  # the key of a whole tensor of tt-metal's JSON


@cache
def face(namespace: str = "") -> Any:
    """The package, or one of its namespaces of functions."""
    package = sys.modules[FACE]  # which imports this module
    return getattr(package, namespace) if namespace else package


@cache
def public() -> frozenset[str]:
    """The public names."""
    return frozenset(name for name in dir(face()) if not name.startswith("_"))


def value_of(written: Any) -> Any:
    """The argument of a JSON value; raises ArgumentError or ArgumentTypeError for an invalid value."""
    if isinstance(written, str):
        return constant(written) if written.startswith(PREFIX) else written
    if isinstance(written, list):
        return [value_of(each) for each in written]
    if not isinstance(written, dict):
        return written
    if len(written) == 1:
        ((name, arguments),) = written.items()
        if name.startswith(PREFIX):
            return _made(name, arguments)
    if TENSOR in written:
        return _tensor(written[TENSOR])
    if "logical_shape" in written:
        return _tensor(written)
    if "buffer_type" in written:
        return _memory(written)
    raise ArgumentError(
        f'an object among arguments is {{"ttnn.NAME": arguments}} with the name of a class, not {shown(written)}'
    )


def arguments_of(text: str) -> dict[str, Any]:
    """Parses keyword arguments of a call in the form that `ttsim.tune` writes; raises ArgumentError for other text.

    Names are looked up like names in JSON; no code runs.
    """
    try:
        (made,) = ast.parse(f"made({text})").body
        match made:
            case ast.Expr(ast.Call(ast.Name(), [], keywords)):
                return {f"{each.arg}": value_of(_written(each.value)) for each in keywords}
    except (SyntaxError, ValueError):
        pass
    raise ArgumentError(f"{shown(text)} is no list of keyword arguments")


def _written(node: ast.expr) -> Any:
    """The JSON value of a Python expression; raises ValueError unless it is a value or a call."""
    if isinstance(node, ast.Call):
        if node.args and node.keywords:
            raise ValueError("arguments by position and by name")
        named = {f"{each.arg}": _written(each.value) for each in node.keywords}
        return {ast.unparse(node.func): named or [_written(each) for each in node.args]}
    if isinstance(node, ast.List | ast.Tuple):
        return [_written(each) for each in node.elts]
    return ast.unparse(node) if isinstance(node, ast.Attribute) else ast.literal_eval(node)


@lru_cache
def constant(name: str) -> Any:
    """The public constant or member of a name such as ttnn.bfloat16 or ttnn.BufferType.L1; raises ArgumentError."""
    first, _, member = name.removeprefix(PREFIX).partition(".")
    value = getattr(face(), first) if first in public() else None
    if isinstance(value, type) and issubclass(value, Enum) and member in value.__members__:
        return value[member]
    if member or value is None or isinstance(value, type) or not _is_argument(type(value)):
        near = nearest(member, list(getattr(value, "__members__", ()))) if member else _near(first)
        raise ArgumentError(f"{shown(name)} is no constant of ttnn{near}")
    return value


@lru_cache
def operation(name: str) -> Callable[..., Any]:
    """The operation of a name such as relu, ttnn.transformer.concatenate_heads or ttnn::relu.

    Raises NotSimulatedError for an operation of ttnn that ttsim does not have, ArgumentError for any other name.
    """
    parts, lacks = name.replace("::", ".").removeprefix(PREFIX).split("."), False
    for namespace in NAMESPACES if len(parts) == 1 else parts[:1] * (len(parts) == 2):
        owner = face(namespace if namespace in NAMESPACES else "")
        found: Any = getattr(owner, parts[-1]) if parts[-1] in dir(owner) else None
        home = getattr(found, "__module__", "")
        plans = home.startswith(OPERATIONS) and (not home.startswith(ON_HOST) or parts[-1] in AMONG_THESE)
        if plans and callable(found) and not isinstance(found, type):
            return found  # type: ignore[no-any-return]
        stand_in = getattr(owner, parts[-1], None) if parts[-1].isidentifier() and found is None else None
        lacks |= callable(stand_in) and not isinstance(stand_in, type)
    if lacks:  # the package has something in its place that refuses to be called
        raise NotSimulatedError(f"{shown(name)} is an operation of ttnn that ttsim does not plan")
    raise ArgumentError(f"{shown(name)} is no operation that ttsim plans{_near(parts[-1])}")


def _near(name: str) -> str:
    """A "did you mean" question with the nearest public class or function; empty if the name itself is public."""
    alike = [known for known in public() if known[:1].isupper() == name[:1].isupper()]
    return "" if name in public() else nearest(name, alike)


def _is_argument(maker: Any) -> bool:
    """Whether a class or a function creates arguments: it is in a module of argument types, or is a config."""
    if isinstance(maker, type) and issubclass(maker, CheckedRecord):
        return True
    return str(maker.__module__).startswith(ARGUMENTS)


def _made(name: str, arguments: Any) -> Any:
    """An object of a public class, from its arguments."""
    first = name.removeprefix(PREFIX)
    maker = getattr(face(), first) if first in public() else None
    if not callable(maker) or not _is_argument(maker):
        raise ArgumentError(f"{shown(name)} makes no argument of a call{_near(first)}")
    if not isinstance(arguments, dict | list):
        raise ArgumentError(f"{name} takes an object of arguments by name or a list, not {shown(arguments)}")
    if isinstance(arguments, dict) and maker is MemoryConfig and isinstance(arguments.get("memory_layout"), int):
        return _memory(arguments)
    values = value_of(arguments) if isinstance(arguments, list) else {}
    named = {key: value_of(each) for key, each in arguments.items()} if isinstance(arguments, dict) else {}
    try:
        return maker(*values, **named)
    except TTSimError:
        raise
    except (TypeError, ValueError, AttributeError, LookupError) as error:
        raise ArgumentTypeError(f"{name}: {error}") from error


def _tensor(written: Any) -> TensorSpec:
    """A tensor spec in tt-metal's JSON; missing fields have tt-metal's defaults."""
    try:
        layout = written.get("tensor_layout", {})
        page = layout.get("page_config", {}).get("config", {}).get("index", 1)
        dtype = DataType(layout.get("dtype", DataType.BFLOAT16.value))
        memory = _memory(layout.get("memory_config", {}))
        return TensorSpec(written["logical_shape"], dtype, (Layout.ROW_MAJOR, Layout.TILE)[page], memory)
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        raise ArgumentError(f"no description of a tensor as tt-metal writes it: {shown(written)}") from error


def _memory(written: Mapping[str, Any]) -> MemoryConfig:
    """A memory config in tt-metal's JSON; raises ArgumentError."""
    whole = {"memory_layout": TensorMemoryLayout.INTERLEAVED.value, "buffer_type": BufferType.DRAM.value, **written}
    return MemoryConfig.from_json(json.dumps(whole))


def json_of(value: Any) -> Any:
    """The inverse of `value_of`; raises ArgumentTypeError for a value that questions cannot contain."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    name = _constants(type(value).__module__).get(id(value), "")
    if name or isinstance(value, Enum):
        return PREFIX + (name or f"{type(value).__name__}.{value.name}")
    made = _arguments_of(value)
    if made is not None:
        return {PREFIX + type(value).__name__: json_of(made)}
    if isinstance(value, Mapping):
        return {name: json_of(each) for name, each in value.items()}
    if isinstance(value, Sequence):
        return list(map(json_of, value))
    raise ArgumentTypeError(f"no JSON stands for {shown(value)}")


@lru_cache
def _constants(module: str) -> Mapping[int, str]:
    """The names of a module's public constants by identity; the first name if there are several."""
    found = vars(sys.modules[module]) if module.startswith(ARGUMENTS) else {}
    names: dict[int, str] = {}
    for name, value in found.items():
        if name in public() and not callable(value):
            names.setdefault(id(value), name)
    return names


def _arguments_of(value: Any) -> Mapping[str, Any] | Sequence[Any] | None:
    """The constructor arguments of an object, without defaults; None if its class is not public."""
    if isinstance(value, TensorSpec):
        names = ("shape", "dtype", "layout", "memory_config")
        return {name: getattr(value, name) for name in names}
    if isinstance(value, ShardSpec):
        return [value.grid, list(value.shape), value.orientation]
    if isinstance(value, CoreRangeSet):
        return [list(value.ranges())]
    if isinstance(value, UnaryWithParam):
        return [value.op_type, *value.params]
    if isinstance(value, CheckedRecord):
        kind = type(value)
        return {name: each for name, each in vars(value).items() if each != getattr(kind, name, MISSING)}
    if is_dataclass(value) and not isinstance(value, type):
        given = [field for field in fields(value) if field.init]
        return {each.name: got for each in given if (got := getattr(value, each.name)) != each.default}
    return None
