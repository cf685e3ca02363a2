"""What a script gave to a function of the library, in words: as the real library's capture writes it down."""

from collections.abc import Iterable, Mapping
from typing import Any

from device.errors import shown
from ttsim.runtime.tensor import Tensor

LONGEST = 2000  # characters of an argument that is told in full


def texts(given: Iterable[tuple[str, object]]) -> tuple[tuple[str, str], ...]:
    """Arguments in words, by name: keywords in the script's order, then those by position, named by their numbers.

    Of tensors and arrays it is told what they are, never what is in them.

    Args:
        given: Names and values, in that order.
    """
    return tuple((name, _text(value)) for name, value in given)


def _text(value: Any) -> str:
    if isinstance(value, Tensor):
        return _tensor_text(value)
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


def _tensor_text(tensor: Tensor) -> str:
    """A tensor as in the real library's capture, without its number there, by which equal calls would differ."""
    told: dict[str, object] = {
        "shape": tensor.shape,
        "dtype": tensor.dtype,
        "layout": tensor.layout,
        "memory_config": tensor.memory_config(),
        "storage_type": tensor.storage_type(),
        "is_allocated": tensor.is_allocated(),
    }
    device = tensor.device()
    if device is not None:
        told["device_id"] = device.device_id
    return f"ttnn.Tensor({', '.join(f'{name}={value}' for name, value in told.items())})"
