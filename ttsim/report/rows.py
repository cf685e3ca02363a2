"""Rows of reports: records whose figures are columns, each said once and computed at the first look."""

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, Final, Generic, Self, TypeVar, overload

RowT = TypeVar("RowT")
ValueT = TypeVar("ValueT")
# Metadata of a dataclass field from which figures are computed and which is no figure itself.
SOURCE: Final = MappingProxyType({"source": True})


class Column(Generic[RowT, ValueT]):
    """A figure of a row, under the name that it has in the class, in JSON and to users.

    Args:
        of: Computes the figure of a row.
    """

    def __init__(self, of: Callable[[RowT], ValueT]) -> None:
        self.of = of

    def __set_name__(self, owner: type, name: str) -> None:
        """Under which name the figure lies."""
        self.name = name

    @overload
    def __get__(self, row: None, owner: type) -> Self: ...

    @overload
    def __get__(self, row: Any, owner: type) -> ValueT: ...

    def __get__(self, row: Any, owner: type) -> ValueT | Self:
        """The figure, computed once; of the class itself the column."""
        if row is None:
            return self
        value = row.__dict__[self.name] = self.of(row)
        return value


class Row:
    """A frozen dataclass with columns; its fields, but for sources, and then its columns are its figures."""

    def __eq__(self, other: object) -> bool:
        """Whether all figures are the same."""
        return type(self) is type(other) and as_dict(self) == as_dict(other)

    def __hash__(self) -> int:
        """Of the figures."""
        return hash(tuple(getattr(self, name) for name in figure_names(self)))

    def __repr__(self) -> str:
        """All figures, as a dataclass shows its fields."""
        told = (f"{name}={getattr(self, name)!r}" for name in figure_names(self))
        return f"{type(self).__name__}({', '.join(told)})"


def figure_names(record: Any) -> tuple[str, ...]:
    """The names of a record's figures, in order."""
    kind: Any = type(record)
    return _names_of(kind)


@cache
def _names_of(kind: Any) -> tuple[str, ...]:
    stored = (one.name for one in fields(kind) if not one.metadata.get("source"))
    return (*stored, *(name for name, value in vars(kind).items() if isinstance(value, Column)))


def as_dict(record: Any) -> dict[str, Any]:
    """The figures of a record by their names, records among them likewise."""
    return {name: _value(getattr(record, name)) for name in figure_names(record)}


def _value(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(map(_value, value))
    if isinstance(value, dict):
        return {key: _value(item) for key, item in value.items()}
    return as_dict(value) if is_dataclass(value) else value
