"""ttnn.tracer: records the operations of torch and ttnn as a graph, which ttsim does not; see ``ttsim.graph``."""

from device.errors import ArgumentError
from ttsim.runtime.types.signatures import public

__all__ = ["disable_tracing", "enable_tracing", "is_tracing_enabled", "trace", "visualize"]


def enable_tracing() -> None:
    """Refuses; raises ArgumentError."""
    raise ArgumentError("tracer.enable_tracing: torch is not traced; ttsim.graph.begin_graph_capture records calls")


def disable_tracing() -> None:
    """Does nothing: nothing is traced."""


def is_tracing_enabled() -> bool:
    """No."""
    return False


def trace() -> None:
    """Refuses; raises ArgumentError."""
    raise ArgumentError("tracer.trace: torch is not traced; ttsim.graph.begin_graph_capture records calls")


def visualize(*_: object, **__: object) -> None:
    """Refuses; raises ArgumentError."""
    raise ArgumentError("tracer.visualize: nothing is drawn; ttsim.graph.pretty_print shows what a capture recorded")


__dir__ = public(globals())
