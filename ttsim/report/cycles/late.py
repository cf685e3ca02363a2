"""Figures computed when somebody asks for them: a report is made for each call, its details are rarely read."""

from collections.abc import Callable
from typing import Generic, TypeVar

ValueT = TypeVar("ValueT")


class Late(Generic[ValueT]):
    """A field of a frozen dataclass that is given its value, or a function that computes it at the first look.

    The class has no slots: a field of its name would lie in front of this one. Whoever copies, compares or writes the
    dataclass looks, and finds the value.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        """Under which name the value lies."""
        self.name = name

    def __get__(self, instance: object | None, owner: type | None = None) -> ValueT:
        """The value, computed once.

        Raises:
            AttributeError: Of the class itself: the field has no default.
        """
        if instance is None:
            raise AttributeError(self.name)
        value = instance.__dict__[self.name]
        if callable(value):
            value = instance.__dict__[self.name] = value()
        found: ValueT = value
        return found

    def __set__(self, instance: object, value: ValueT | Callable[[], ValueT]) -> None:
        """Keeps what was given; the dataclass is frozen, so this happens when it is made."""
        instance.__dict__[self.name] = value
