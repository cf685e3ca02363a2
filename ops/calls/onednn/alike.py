"""Calls that are alike are validated and planned once: a training loop makes the same ones again and again."""

from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from types import MappingProxyType
from typing import Any, Final, ParamSpec, TypeVar

from ops.calls.onednn.operands import Names, Operand

P = ParamSpec("P")
R = TypeVar("R")

MOST_KEPT: Final = 64  # results of each function
_PLAIN: Final = frozenset(
    {int, bool, str, type(None), Operand, Names}
)  # frozen, and equal only where they are the same


class _UnlikeError(Exception):
    """An argument that may change, or that is equal to one of another kind."""


class _Call(tuple[Hashable, ...]):
    """A call by its arguments, their types included: True is equal to 1, but no stride."""

    make: Callable[[], Any]


def once_for_alike(function: Callable[P, R]) -> Callable[P, R]:
    """A function that is not called again for equal arguments of the same types; what it raises, it raises each time.

    It must depend on nothing else, and its result must not be changed. Arguments are plain values and operands in
    lists, tuples and dictionaries; with others it is called each time.
    """
    kept = lru_cache(MOST_KEPT)(lambda call: call.make())

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            call = _Call((_key(args), _key(kwargs)))
        except _UnlikeError:
            return function(*args, **kwargs)
        call.make = lambda: function(*args, **kwargs)
        made: R = kept(call)
        return made

    return called


def _key(value: Any) -> Hashable:
    """A value and its types, as they are now."""
    kind = type(value)
    if kind in _PLAIN:
        return kind, value
    if kind is tuple or kind is list:
        kinds = tuple(map(type, value))
        return (kind, kinds, *value) if _PLAIN.issuperset(kinds) else (kind, *map(_key, value))
    if kind is dict or kind is MappingProxyType:
        return kind, *value, *map(_key, value.values())
    raise _UnlikeError
