"""What a script gave to a function of the library, in words: as the real library's capture writes it down."""

from collections.abc import Iterable, Mapping
from copy import copy
from enum import Enum
from typing import Any, Final, NamedTuple

from device.errors import shown
from device.memory.layouts import TensorSpec
from ttsim.runtime.storage import StorageType
from ttsim.runtime.tensor import Tensor
from ttsim.types.dtypes import DataType
from ttsim.types.shapes import Shape
from ttsim.types.signature import CheckedRecord

LONGEST = 2000  # characters of an argument that is told in full
_PLAIN: Final = (int, str, bool, float, type(None))


class _Words(NamedTuple):
    """An argument that is in words already."""

    text: str


class _SeenTensor(NamedTuple):
    """What is told of a tensor, as it was then."""

    spec: TensorSpec
    storage_type: StorageType
    is_allocated: bool
    device_id: int | None


def remembered(given: Iterable[tuple[str, object]]) -> tuple[tuple[str, object], ...]:
    """Arguments as `texts` tells them later, whatever becomes of them until then.

    Most calls are never told in words, which take longer to find than what they are made of. Of tensors and arrays
    nothing is kept that is as large as they are.

    Args:
        given: Names and values, in the script's order.
    """
    return tuple((name, _kept(value)) for name, value in given)


def texts(given: Iterable[tuple[str, object]]) -> tuple[tuple[str, str], ...]:
    """Arguments in words, by name: keywords in the script's order, then those by position, named by their numbers.

    Of tensors and arrays it is told what they are, never what is in them.

    Args:
        given: Names and values, in that order, or what is `remembered` of them.
    """
    return tuple((name, _text(value)) for name, value in given)


def _kept(value: Any) -> object:
    """A value, or what its words are made of."""
    if type(value) in _PLAIN or isinstance(value, Enum):
        return value
    if isinstance(value, Tensor):
        return _seen(value)
    if isinstance(value, CheckedRecord):  # its fields can be assigned; what is in them does not change
        return copy(value)
    if type(value) is tuple:
        return tuple(map(_kept, value))
    return _Words(_text(value))


def _seen(tensor: Tensor) -> _SeenTensor:
    device = tensor.device()
    number = None if device is None else device.device_id
    return _SeenTensor(tensor.spec, tensor.storage_type(), tensor.is_allocated(), number)


def _text(value: Any) -> str:
    if isinstance(value, _Words):
        return value.text
    if isinstance(value, _SeenTensor):
        return _tensor_text(value)
    if isinstance(value, Tensor):
        return _tensor_text(_seen(value))
    if isinstance(value, list | tuple):
        inner = ", ".join(map(_text, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' if len(value) == 1 else ''})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_text(name)}: {_text(one)}' for name, one in value.items())}}}"
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        kind = type(value)
        return f"{kind.__module__.partition('.')[0]}.{kind.__name__}(shape={list(value.shape)}, dtype={value.dtype})"
    try:
        text = str(value)
    except Exception:  # a value whose own text fails
        return shown(value)
    return text if len(text) <= LONGEST else shown(value)


def _tensor_text(seen: _SeenTensor) -> str:
    """A tensor as in the real library's capture, without its number there, by which equal calls would differ."""
    spec = seen.spec
    told: dict[str, object] = {
        "shape": Shape(spec.shape),
        "dtype": DataType.of(spec.data_format),
        "layout": spec.layout,
        "memory_config": spec.memory_config.reported(),
        "storage_type": seen.storage_type,
        "is_allocated": seen.is_allocated,
    }
    if seen.device_id is not None:
        told["device_id"] = seen.device_id
    return f"ttnn.Tensor({', '.join(f'{name}={value}' for name, value in told.items())})"
