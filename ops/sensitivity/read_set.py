"""The fields of a device that a computation reads: no other field can change its result."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache, lru_cache
from typing import Any, Final, Self

from device.spec.device_spec import Costs, CostsT, DeviceSpec
from ops.sensitivity.fields import fields_of

PARTS: Final = frozenset(part.name for part in fields(DeviceSpec))
TABLES: Final = "tables"
_HEARD: Final = "_heard"
_NOTHING: Final[tuple[dict[str, str], set[str]]] = ({}, set())


def fields_asked(run: Callable[[DeviceSpec], object], spec: DeviceSpec) -> frozenset[str]:
    """The names of the fields of a device that a deterministic computation reads.

    A part that is compared or hashed counts as read as a whole.
    """
    reads: set[str] = set()
    parts = {name: getattr(spec, name) for name in PARTS}
    listening = _Listening(**parts, plain=spec, reads=reads, costs={})
    for name in PARTS - {TABLES}:
        object.__setattr__(listening, name, _heard(parts[name], name, reads))
    reads.clear()  # drop the reads of the constructor
    run(listening)
    names = _names(spec)
    if TABLES in reads:  # the tables were read as they are, and so all of their fields
        reads |= {name for name in names if name.partition(".")[0] not in PARTS}
    return frozenset(reads.intersection(names))


@lru_cache(maxsize=4)
def _names(spec: DeviceSpec) -> tuple[str, ...]:
    """The names of a device's fields; of one device they are asked for hundreds of times."""
    return tuple(field.name for field in fields_of(spec))


@dataclass(frozen=True, slots=True, eq=False)
class _Listening(DeviceSpec):
    """A device that records which of its parts and fields are read."""

    plain: DeviceSpec = field(repr=False)  # The device itself
    reads: set[str] = field(repr=False)  # Parts, tables of programs, and their fields
    costs: dict[type[Costs], Any] = field(repr=False)  # The tables of programs that were read

    __hash__ = object.__hash__  # caches by a device's figures miss, so that their reads are recorded

    def __eq__(self, other: object) -> bool:
        return self is other

    def __getattribute__(self, name: str) -> Any:
        if name in PARTS:
            object.__getattribute__(self, "reads").add(name)
        return object.__getattribute__(self, name)

    def costs_of(self, kind: type[CostsT]) -> CostsT:
        """The constants of a program's model, which count as a read of that table and of the release."""
        self.reads.add("release")
        if kind not in self.costs:
            self.costs[kind] = _heard(self.plain.costs_of(kind), kind.TABLE, self.reads)
        heard: CostsT = self.costs[kind]
        return heard

    def checked(self, costs: Sequence[type[Costs]]) -> Self:
        """The device with the tables of some costs; the check counts as no read."""
        self.plain.checked(costs)
        return self


def _heard(value: Any, path: str, reads: set[str]) -> Any:
    """A part that records which of its fields are read, including nested parts; other values are unchanged."""
    if isinstance(value, tuple):
        return tuple(_heard(entry, f"{path}[{number}]", reads) for number, entry in enumerate(value))
    if not is_dataclass(value):
        return value
    kind: Any = type(value)
    noting = object.__new__(_hearing(kind))
    for part in fields(kind):
        object.__setattr__(noting, part.name, _heard(getattr(value, part.name), f"{path}.{part.name}", reads))
    object.__setattr__(noting, _HEARD, ({part.name: f"{path}.{part.name}" for part in fields(kind)}, reads))
    return noting


@cache
def _hearing(kind: Any) -> Any:
    """A class of parts that record reads; a changed copy no longer records, because copying reads every field."""
    names = frozenset(part.name for part in fields(kind))
    get = object.__getattribute__

    def read(self: Any, name: str) -> Any:
        if name in names:
            unread, reads = get(self, "__dict__").get(_HEARD, _NOTHING)
            if name in unread:
                reads.add(unread.pop(name))
        return get(self, name)

    return type(kind.__name__, (kind,), {"__getattribute__": read})
