"""Calls that ran, with their lines in the script, and traces that replay calls."""

import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from os import sep
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from device.errors import DeviceError
from device.memory.buffers import Buffer, Memory
from device.memory.layouts import TensorSpec
from device.numbers.formats import Array
from device.plan import BufferAllocated, Event, Plan, WrittenTensor
from ops.planners.conv.arguments import ConvCall


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedCall:
    """A call that was captured."""

    read: Mapping[str, Buffer]  # Buffers of its inputs on the device, by their names in the plan
    # Buffers of its results with the specs of their tensors, also of an input that is a result
    written: Mapping[str, tuple[Buffer, TensorSpec]]
    # From the arrays in the buffers that it reads to the arrays that it writes, by name; None where nothing is computed
    values: Callable[[Mapping[str, Array]], Mapping[str, Array]] | None


@dataclass(slots=True)
class Trace:
    """The calls of a capture, in order."""

    calls: list[TracedCall] = field(default_factory=list)  # What was captured
    ran: list[object] = field(default_factory=list)  # The same calls as profiles remember them

    def replay(self, memory: Memory) -> None:
        """Runs the calls again on the live buffers in ``memory``.

        Another buffer of the same kind replaces a deallocated buffer; raises DeviceError if there is none.
        """
        result: dict[int, tuple[Buffer, TensorSpec, Array]] = {}
        for call in self.calls:
            if call.values is None:
                continue
            stored = {
                name: result[buffer.number][2] if buffer.number in result else _lying(buffer, memory, name).values
                for name, buffer in call.read.items()
            }
            for name, values in call.values(stored).items():
                buffer, spec = call.written[name]
                result[buffer.number] = (buffer, spec, values)
        for buffer, spec, values in result.values():
            if buffer.allocated:
                buffer.store(values, spec)


def _lying(buffer: Buffer, memory: Memory, name: str) -> Buffer:
    """A buffer that a trace reads, or the buffer that replaced it."""
    if buffer.allocated:
        return buffer
    if memory.has(buffer.spec.buffer_type, buffer.address):
        there = memory.at(buffer.spec.buffer_type, buffer.address)
        if there.spec == buffer.spec:
            return there
    raise DeviceError(
        f"execute_trace: the trace reads {name!r}, at {buffer.address}, which was deallocated in the capture or after "
        "it; keep what a trace reads, or put a tensor like it in its place"
    )


@dataclass(frozen=True, slots=True)
class MeshTraceId:
    """The number of a trace on its device.

    Examples:
        >>> ttnn.MeshTraceId(0)
        MeshTraceId(0)
    """

    number: int

    def __repr__(self) -> str:
        return f"MeshTraceId({self.number})"


@dataclass(frozen=True, slots=True)
class MeshEvent:
    """An event on a queue; it has passed when it is recorded, because all earlier calls have finished.

    Examples:
        >>> ttnn.record_event(device, cq_id=0).mesh_cq_id
        0
    """

    id: int
    device_id: int
    mesh_cq_id: int


@dataclass(slots=True)
class Traces:
    """The traces of a device."""

    capturing: Trace | None = None  # The trace that is being captured; None if there is none
    captured: dict[int, Trace] = field(default_factory=dict)  # Traces by their numbers
    begun: int = 0  # How many were begun
    events: int = 0  # How many events were recorded


_HOME: Final = Path(__file__).resolve().parents[2]
_OWN: Final = tuple(f"{_HOME / name}{sep}" for name in ("ttsim", "ops", "device"))
_INSTALLED: Final = tuple(sysconfig.get_path(name) + sep for name in ("stdlib", "platstdlib", "purelib", "platlib"))
_NOT_OF_A_SCRIPT: Final = (*_OWN, *_INSTALLED, "<frozen ")
_MOST_FILES: Final = 4096  # told apart from each other without a look at their names


class CallSite(NamedTuple):
    """A line of a script."""

    file: str  # As Python names it
    line: int  # Counted from 1
    function: str = "<module>"  # The function that the line is part of


_RECORDED_SITES: Final[ContextVar[tuple[CallSite, ...] | None]] = ContextVar("recorded call sites", default=None)


@contextmanager
def made_by(sites: tuple[CallSite, ...]) -> Iterator[None]:
    """A context that attributes its calls to the script lines of the recorded calls."""
    token = _RECORDED_SITES.set(sites)
    try:
        yield
    finally:
        _RECORDED_SITES.reset(token)


def call_sites() -> tuple[CallSite, ...]:
    """The script lines on this thread's stack, outermost first, without lines of ttsim and of installed packages."""
    recorded = _RECORDED_SITES.get()
    if recorded is not None:
        return recorded
    sites = []
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if _of_a_script(file):
            sites.append(CallSite(file, frame.f_lineno, frame.f_code.co_name))
        frame = frame.f_back  # type: ignore[assignment]
    return tuple(reversed(sites))


@lru_cache(_MOST_FILES)
def _of_a_script(file: str) -> bool:
    """Whether a file belongs neither to ttsim nor to an installed package."""
    return not file.startswith(_NOT_OF_A_SCRIPT)


@dataclass(frozen=True, slots=True, kw_only=True)
class RanCall:
    """A call that ran on a device, as profiles record it."""

    function: str  # The function of the library that was called
    plan: Plan  # What it did
    # Indices of the plan's steps whose device operations ran, in order: a move without a better place does not run
    ran: tuple[int, ...]
    useful_flops: int | None = None  # Multiplications and additions of its definition; None if it has none of its own
    asked: ConvCall | None = None  # The arguments of a convolution, as its caller gave them; None for other calls
    given: tuple[tuple[str, str], ...] = ()  # The script's arguments by name or position, as text; empty if unknown
    sites: tuple[CallSite, ...] = ()  # The script's lines that ran meanwhile, outermost first
    before: tuple[BufferAllocated, ...] = ()  # What lay in its memories when it began, oldest first
    events: tuple[Event, ...] = ()  # What happened on the device meanwhile
    inputs: tuple[
        tuple[str, WrittenTensor], ...
    ] = ()  # What it read that was on the device already, by name in the plan
    results: tuple[tuple[str, WrittenTensor], ...] = ()  # What it returned, likewise
    error: str = ""  # Why it did not fit; empty if it did. Nothing ran then, and the events are those of its planning.


class Listener(Protocol):
    """Is notified of function calls on a device, and of tensors that come from the host."""

    def placed(self, buffer: Buffer, spec: TensorSpec) -> None:
        """A tensor was copied to the device outside of any call."""

    def begun(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """A call begins; the return value is passed to `ended`."""

    def ended(self, begun: Any, result: Any) -> None:
        """The call has returned; not called for a call that failed."""
