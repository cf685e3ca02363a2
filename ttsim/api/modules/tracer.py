"""ttnn.tracer, which records operations of torch and ttnn as a graph; ttsim does not trace, see ``ttsim.graph``."""

from device.errors import ArgumentError
from ttsim.runtime.types.signatures import public

__all__ = ["disable_tracing", "enable_tracing", "is_tracing_enabled", "trace", "visualize"]


def enable_tracing() -> None:
    """Always raises ArgumentError: operations of torch are not traced.

    Raises:
        ArgumentError: Always.

    Examples:
        >>> try:
        ...     ttnn.tracer.enable_tracing()
        ... except ttnn.ArgumentError as error:
        ...     print(error)
        tracer.enable_tracing: torch is not traced; ...
    """
    raise ArgumentError("tracer.enable_tracing: torch is not traced; ttnn.graph.begin_graph_capture records calls")


def disable_tracing() -> None:
    """Does nothing, since nothing is traced.

    Examples:
        >>> ttnn.tracer.disable_tracing()
    """


def is_tracing_enabled() -> bool:
    """Whether operations are traced.

    Returns:
        False.

    Examples:
        >>> ttnn.tracer.is_tracing_enabled()
        False
    """
    return False


def trace() -> None:
    """Always raises ArgumentError: operations of torch are not traced.

    Raises:
        ArgumentError: Always.

    Examples:
        >>> try:
        ...     ttnn.tracer.trace()
        ... except ttnn.ArgumentError as error:
        ...     print(error)
        tracer.trace: torch is not traced; ...
    """
    raise ArgumentError("tracer.trace: torch is not traced; ttnn.graph.begin_graph_capture records calls")


def visualize(*_: object, **__: object) -> None:
    """Always raises ArgumentError: graphs are not drawn.

    Raises:
        ArgumentError: Always.

    Examples:
        >>> try:
        ...     ttnn.tracer.visualize()
        ... except ttnn.ArgumentError as error:
        ...     print(error)
        tracer.visualize: nothing is drawn; ...
    """
    raise ArgumentError("tracer.visualize: nothing is drawn; ttnn.graph.pretty_print shows what a capture recorded")


__dir__ = public(globals())
