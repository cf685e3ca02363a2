"""Rows of reports: records whose figures are columns, declared once and computed on first access."""

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar, Generic, Self, TypeVar, dataclass_transform, overload

from device.errors import ArgumentTypeError
from ttsim.report.formatting import terminal_width, text
from ttsim.runtime.shown import Headed

ValueT = TypeVar("ValueT")


class Column(Generic[ValueT]):
    """A figure of a row, computed by `of`, with the same name in Python, in JSON and in texts."""

    def __init__(self, of: Callable[[Any], ValueT]) -> None:
        self.of = of

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, row: None, owner: type) -> Self: ...

    @overload
    def __get__(self, row: Any, owner: type) -> ValueT: ...

    def __get__(self, row: Any, owner: type) -> ValueT | Self:
        """The figure, computed once; on the class the column itself."""
        if row is None:
            return self
        value = row.__dict__[self.name] = self.of(row)
        return value


class Derived(Column[ValueT]):
    """A column for other columns and for writers; excluded from JSON."""


class Report(Headed):
    """A public report: ``print(report)`` shows a table, ``to_json()`` has all figures."""

    __slots__ = ()
    FORMAT: ClassVar[int]  # raised when a field changes its meaning or goes

    def table(self, width: int | None = None) -> str:
        """A table with lines of at most `width` characters; None for no limit."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """All figures, by the names of their fields."""
        return {"format": self.FORMAT, **as_dict(self)}

    def to_json(self) -> str:
        """All figures; the same bytes for the same calls."""
        return text(self.to_dict())

    def __str__(self) -> str:
        return self.table(terminal_width())

    def __copy__(self) -> Self:
        """Itself: a report does not change."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Itself: a report does not change."""
        return self

    def __reduce__(self) -> str:
        """Raises ArgumentTypeError: a report cannot be pickled."""
        raise ArgumentTypeError("a report cannot be pickled; to_json() and to_dict() hold all its figures")


@dataclass_transform(eq_default=False, frozen_default=True)
class Row:
    """A frozen dataclass with columns: its figures are the fields that `figures` names, followed by its columns.

    Columns are computed from the other fields. `figures` may name columns to set their order.
    """

    figures: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, figures: str = "", kw_only: bool = False) -> None:
        columns = (name for name, value in vars(cls).items() if type(value) is Column)
        cls.figures = tuple(dict.fromkeys((*figures.split(), *columns)))
        dataclass(frozen=True, eq=False, repr=False, kw_only=kw_only)(cls)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and as_dict(self) == as_dict(other)

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, name) for name in self.figures))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self.figures)})"


def as_dict(record: Any) -> dict[str, Any]:
    """The figures of a record by name; nested records become dictionaries."""
    names = record.figures if isinstance(record, Row) else [field.name for field in fields(record)]
    return {name: _value(getattr(record, name)) for name in names}


def _value(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(map(_value, value))
    if isinstance(value, dict):
        return {key: _value(item) for key, item in value.items()}
    return as_dict(value) if is_dataclass(value) else value
