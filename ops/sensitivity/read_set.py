"""The fields of a device that a computation reads; no other field can change its result."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache, lru_cache
from typing import Any, Final, Self

from device.spec.device_spec import Costs, CostsT, DeviceSpec
from ops.sensitivity.fields import fields_of

PARTS: Final = frozenset(part.name for part in fields(DeviceSpec))
TABLES: Final = "tables"
_UNREAD: Final = "_unread"


def fields_asked(run: Callable[[DeviceSpec], object], spec: DeviceSpec) -> frozenset[str]:
    """The names of the fields of a device that a deterministic computation reads.

    Comparing or hashing a part counts as reading the whole part.
    """
    reads: set[str] = set()
    listening = _Listening(**{name: getattr(spec, name) for name in PARTS}, plain=spec, reads=reads, costs={})
    heard = {
        name: getattr(spec, name) if name == TABLES else _heard(getattr(spec, name), name, reads) for name in PARTS
    }
    _listen(listening, heard, "", reads)
    reads.clear()  # drop the reads of the constructor
    run(listening)
    names = _names(spec)
    if TABLES in reads:  # the tables were read as they are, and so all of their fields
        reads |= {name for name in names if name.partition(".")[0] not in PARTS}
    return frozenset(reads.intersection(names))


@lru_cache(maxsize=4)
def _names(spec: DeviceSpec) -> tuple[str, ...]:
    """The names of a device's fields, cached."""
    return tuple(field.name for field in fields_of(spec))


class _Field:
    """A descriptor that records the first read of a field; later reads use an ordinary attribute at no cost.

    A changed copy has ordinary attributes, because copying reads every field.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, part: Any, _: type | None = None) -> Any:
        values, path, reads = part.__dict__[_UNREAD]
        reads.add(path + self.name)
        value = part.__dict__[self.name] = values[self.name]
        return value


def _listen(part: Any, values: dict[str, Any], path: str, reads: set[str]) -> None:
    """Makes a part record reads; its class has a `_Field` for each of these values."""
    for name in values:
        part.__dict__.pop(name, None)
    part.__dict__[_UNREAD] = values, path, reads


@dataclass(frozen=True, eq=False)
class _Listening(DeviceSpec):
    """A device that records which of its parts and fields are read."""

    plain: DeviceSpec = field(repr=False)  # The device itself
    reads: set[str] = field(repr=False)  # Parts, tables of programs, and their fields
    costs: dict[type[Costs], Any] = field(repr=False)  # The tables of programs that were read

    __hash__ = object.__hash__  # caches by a device's figures miss, so that their reads are recorded

    def __eq__(self, other: object) -> bool:
        return self is other

    def costs_of(self, kind: type[CostsT]) -> CostsT:
        """The constants of a program's model; records a read of the table and of the release."""
        heard: CostsT | None = self.costs.get(kind)
        if heard is None:
            self.reads.add("release")
            heard = self.costs[kind] = _heard(self.plain.costs_of(kind), kind.TABLE, self.reads)
        return heard

    def checked(self, costs: Sequence[type[Costs]]) -> Self:
        """The device with checked tables of these costs; the check is not recorded as a read."""
        self.plain.checked(costs)
        return self


for _name in PARTS:
    setattr(_Listening, _name, _Field(_name))


def _heard(value: Any, path: str, reads: set[str]) -> Any:
    """A part that records which of its fields are read, including nested parts; other values are unchanged."""
    if isinstance(value, tuple):
        return tuple(_heard(entry, f"{path}[{number}]", reads) for number, entry in enumerate(value))
    if not is_dataclass(value):
        return value
    kind: Any = type(value)
    noting = object.__new__(_hearing(kind))
    values = {part.name: _heard(getattr(value, part.name), f"{path}.{part.name}", reads) for part in fields(kind)}
    _listen(noting, values, f"{path}.", reads)
    return noting


@cache
def _hearing(kind: Any) -> Any:
    """A subclass of a part that records reads."""
    return type(kind.__name__, (kind,), {part.name: _Field(part.name) for part in fields(kind)})
