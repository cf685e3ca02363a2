"""Errors of the machine and of its callers; `ttsim.errors` draws their tree.

Every message names the rule, the value and a remedy. If the real library has a text for the error, that text is the
first line. Each class has the built-in base class that users of the real library catch.
"""

import difflib
from collections.abc import Iterable
from typing import Final

LONGEST_SHOWN: Final = 60  # characters of a value in an error


class TTSimError(Exception):
    """Every error of the simulator.

    Examples:
        >>> issubclass(ttnn.OutOfMemoryError, ttnn.TTSimError)
        True
    """


class SpecError(TTSimError, ValueError):
    """A device description is incomplete, misspelled or contradicts itself.

    Examples:
        >>> try:
        ...     ttnn.load_spec("wormhole_n151")
        ... except ttnn.SpecError as error:
        ...     print(error)
        unknown device 'wormhole_n151', did you mean 'wormhole_n150'?; ...
    """


class ArgumentError(TTSimError, ValueError, RuntimeError):
    """Arguments contradict each other or the rules of the call.

    Also a RuntimeError, because the real library raises RuntimeError.

    Examples:
        >>> try:
        ...     ttnn.zeros((1 << 31, 1 << 31))
        ... except ttnn.ArgumentError as error:
        ...     print(error)
        full: shape must have at most 281,474,976,710,656 elements, not 4,611,686,018,427,387,904
    """


class NotSimulatedError(ArgumentError):
    """The real library accepts the call, or has the name, and ttsim does not simulate it.

    Examples:
        >>> issubclass(ttnn.NotSimulatedError, ttnn.ArgumentError)
        True
    """


class ArgumentIndexError(ArgumentError, IndexError):
    """An index lies beyond a tensor; also an IndexError, which ends a loop over a tensor.

    Examples:
        >>> issubclass(ttnn.ArgumentIndexError, IndexError)
        True
    """


class ArgumentTypeError(TTSimError, TypeError):
    """An argument is unknown, missing, given twice or of the wrong type.

    Examples:
        >>> try:
        ...     ttnn.close_device("0")
        ... except TypeError as error:
        ...     print(error)
        close_device: device must be a Device, not '0'; ttnn.open_device returns one
    """


class DeviceError(TTSimError, RuntimeError):
    """The device cannot run a request.

    Examples:
        >>> try:
        ...     ttnn.zeros((2, 2)).buffer_address()
        ... except ttnn.DeviceError as error:
        ...     print(type(error).__name__)
        DeviceError
    """


class OutOfMemoryError(DeviceError):
    """No free block of a memory is large enough for a buffer.

    Examples:
        >>> try:
        ...     ttnn.zeros((1, 1, 8192, 8192), device=device, memory_config=ttnn.L1_MEMORY_CONFIG)
        ... except ttnn.OutOfMemoryError as error:
        ...     print(str(error).splitlines()[0])
        Out of Memory: ...
    """


class CircularBufferError(DeviceError):
    """The circular buffers of a program are larger than L1, or overlap L1 buffers.

    Examples:
        >>> issubclass(ttnn.CircularBufferError, RuntimeError)
        True
    """


class MemoryAccessError(DeviceError):
    """Memory outside every buffer, or of a freed buffer, was read or written.

    Examples:
        >>> issubclass(ttnn.PoisonError, ttnn.MemoryAccessError)
        True
    """


class PoisonError(MemoryAccessError):
    """Unwritten memory was read.

    Examples:
        >>> tensor = ttnn.allocate_tensor_on_device((32, 32), ttnn.bfloat16, ttnn.TILE_LAYOUT, device)
        >>> try:
        ...     tensor.buffer.values
        ... except ttnn.PoisonError as error:
        ...     print(str(error).partition(" is ")[2])
        read before anything was written to it; store values first
    """


class DeviceClosedError(DeviceError):
    """A call needs memory of a closed device.

    Examples:
        >>> closed = ttnn.open_device()
        >>> closed.close()
        >>> try:
        ...     ttnn.zeros((2, 2), device=closed)
        ... except ttnn.DeviceClosedError:
        ...     print("closed")
        closed
    """


for _error in [value for value in globals().values() if isinstance(value, type) and issubclass(value, TTSimError)]:
    _error.__module__ = "ttsim"  # where users find it: a traceback shows this name
del _error


def shown(value: object, longest: int = LONGEST_SHOWN) -> str:
    """A value in an error: its repr, or a description of its type if the repr has more than ``longest`` characters."""
    try:
        text = repr(value)
    except Exception:  # a value whose own text fails
        text = ""
    if 0 < len(text) <= longest and "\n" not in text:
        return text
    kind = type(value)
    if isinstance(value, str | bytes):
        return f"{value[: longest // 2]!r}... ({len(value)} characters)"
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def nearest(name: str, known: Iterable[str]) -> str:
    """``", did you mean ...?"`` with the only known name that begins with ``name``, or else the most similar name.

    Empty if there is no such name.
    """
    names = list(known)
    longer = [other for other in names if name and other.startswith(name)]
    close = longer if len(longer) == 1 else difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return f", did you mean {close[0]!r}?" if close else ""
