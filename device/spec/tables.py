"""Tables of a device file that belong to programs: a spec carries them, and does not know what they mean.

The model of a program says what it needs as a dataclass that derives from `Costs` and names its table. Several may
read one table: a key that one of them does not name is another's. Who opens a device for a user names the dataclasses
that the tables have to fit, and what does not is refused there; elsewhere a table is read when its costs are asked for.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, TypeVar, cast

from device.spec.figures import (
    check_table,
    convert,
    from_mapping,
    replace_fields,
    require_positive,
    require_share,
    to_plain,
)


class Costs:
    """Constants of a program's model: numbers above zero, and no share above 1. A frozen dataclass derives from this.

    Attributes:
        TABLE: The table of a device file that holds them.
    """

    TABLE: ClassVar[str]
    __slots__ = ()

    def __post_init__(self) -> None:
        require_positive(self.TABLE, self)
        shares = [one.name for one in fields(cast(Any, self)) if one.name.endswith("_share")]
        require_share(self.TABLE, self, *shares)


CostsT = TypeVar("CostsT", bound=Costs)


@dataclass(frozen=True, slots=True)
class Table:
    """One table; two are equal if they hold the same figures, whoever has read them.

    Attributes:
        name: Its key in a device file.
        figures: Keys and values, in order.
        kind: The costs that all of it was checked to be; None if nobody has.
    """

    name: str
    figures: tuple[tuple[str, Any], ...]
    kind: type[Costs] | None = field(default=None, compare=False)
    _read: dict[type[Costs], Costs] = field(default_factory=dict, repr=False, compare=False)

    def read(self, kind: type[CostsT]) -> CostsT:
        """The costs of a kind; read once.

        Raises:
            SpecError: A key is missing, or a value is not what the costs want.
        """
        costs = self._read.get(kind)
        if costs is None:
            wanted = {item.name for item in fields(cast(Any, kind))}
            values = {key: value for key, value in self.figures if key in wanted}
            costs = self._read[kind] = from_mapping(kind, values, self.name)
        return cast(CostsT, costs)

    def replace(self, changes: Mapping[str, object]) -> "Table":
        """A copy with other values under some of its keys.

        Raises:
            SpecError: The table was checked, and a value is not what its costs want.
        """
        if self.kind is None:
            return Table(self.name, tuple({**dict(self.figures), **changes}.items()))
        return table_of(replace_fields(self.read(self.kind), changes, nested=False, where=self.name))

    def replace_all(self, values: Any) -> "Table":
        """Another table under the same name: costs, or a mapping.

        Raises:
            SpecError: It is neither, or not what the costs want by which this table was checked.
        """
        if self.kind is not None:
            return table_of(convert(self.kind, values, self.name))
        return table_of(values) if isinstance(values, Costs) else unread_table(self.name, values)


def table_of(costs: Costs) -> Table:
    """The table that holds some costs."""
    return Table(costs.TABLE, tuple(to_plain(costs).items()), type(costs), {type(costs): costs})


def unread_table(name: str, values: Any) -> Table:
    """A table that nobody has checked.

    Raises:
        SpecError: It is none.
    """
    check_table("numbers", values, name)
    return Table(name, tuple(values.items()))


def checked_table(kind: type[Costs], values: Any) -> Table:
    """A table all of whose keys are those of some costs.

    Raises:
        SpecError: A key is unknown or missing, or a value is not what the costs want.
    """
    return table_of(from_mapping(kind, values, kind.TABLE))


def replace_tables(tables: Iterable[Table], changes: Mapping[str, object]) -> tuple[tuple[Table, ...], dict[str, Any]]:
    """Tables with the changes that are theirs, ``table=values`` or ``table_key=value``, and the other changes."""
    changed, others = [], dict(changes)
    for table in tables:
        if table.name in others:
            table = table.replace_all(others.pop(table.name))
        own = {key: others.pop(name) for key, name in _spellings(table) if name in others}
        changed.append(table.replace(own) if own else table)
    return tuple(changed), others


def table_spellings(tables: Iterable[Table]) -> list[str]:
    """Every name by which `replace_tables` knows something."""
    return [name for table in tables for name in (table.name, *(name for _, name in _spellings(table)))]


def _spellings(table: Table) -> list[tuple[str, str]]:
    """Each key of a table, and its name in a change."""
    return [(key, f"{table.name}_{key}") for key, _ in table.figures]
