"""Kinds of values that look and compare as those of the real library's bindings do."""

from enum import Enum
from typing import TypeVar

T = TypeVar("T")


class PlainEnum(Enum):
    """An enumeration whose members print as ``Layout.TILE``, in lists and configs, too."""

    __hash__ = object.__hash__  # that of an enumeration looks its name up; members are equal to none but themselves

    def __repr__(self) -> str:
        """Class and name."""
        return str(self)


class FrozenList(tuple[T, ...]):
    """A tuple that stands for a list of the bindings: equal to one of the same items, and printed as one."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        """Whether the other is a list or a tuple of the same items."""
        return isinstance(other, list | tuple) and tuple(self) == tuple(other)

    def __ne__(self, other: object) -> bool:
        """Whether it is not."""
        return not self == other

    __hash__ = tuple.__hash__

    def __repr__(self) -> str:
        """As a list."""
        return repr(list(self))


class CalledList(FrozenList[T]):
    """A list that the bindings give by a method and ttsim by an attribute: ``cores.ranges`` and ``cores.ranges()``."""

    __slots__ = ()

    def __call__(self) -> list[T]:
        """A list of the items."""
        return list(self)
