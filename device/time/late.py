"""Figures computed when somebody asks for them: all operations are timed, their details are rarely read."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

ValueT = TypeVar("ValueT")


class Late(Generic[ValueT]):
    """A field of a frozen dataclass that is given its value, or a function that computes it at the first look.

    The class has no slots: a field of its name would lie in front of this one. Whoever copies, compares or writes the
    dataclass looks, and finds the value.

    Args:
        derive: What the value is of an instance that is given none, from its other fields; None: it has to be given.
    """

    def __init__(self, derive: Callable[[Any], ValueT] | None = None) -> None:
        self.derive = derive

    def __set_name__(self, owner: type, name: str) -> None:
        """Under which name the value lies."""
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> "Late[ValueT]": ...

    @overload
    def __get__(self, instance: object, owner: type) -> ValueT: ...

    def __get__(self, instance: object | None, owner: type) -> "ValueT | Late[ValueT]":
        """The value, computed once; of the class itself this field, which stands for a value to be derived.

        Raises:
            AttributeError: Of the class itself: the field has no default.
        """
        if instance is None:
            if self.derive is None:
                raise AttributeError(self.name)
            return self
        value = instance.__dict__[self.name]
        if value is self and self.derive is not None:
            value = instance.__dict__[self.name] = self.derive(instance)
        elif callable(value):
            value = instance.__dict__[self.name] = value()
        found: ValueT = value
        return found

    def __set__(self, instance: object, value: ValueT | Callable[[], ValueT]) -> None:
        """Keeps what was given; the dataclass is frozen, so this happens when it is made."""
        instance.__dict__[self.name] = value
