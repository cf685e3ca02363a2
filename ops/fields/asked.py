"""Which parts of a device a computation asks for: whatever else changes, it gives the same."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, Final

from device.spec.device_spec import DeviceSpec
from device.spec.tables import CostsT

PARTS: Final = frozenset(one.name for one in fields(DeviceSpec))
TABLES: Final = "tables"


def parts_asked(run: Callable[[DeviceSpec], object], spec: DeviceSpec) -> frozenset[str]:
    """Parts of a device that a computation reads: the keys at the top of a device file.

    Args:
        run: The computation, which gives the same for the same device.
        spec: The device.
    """
    values = {name: getattr(spec, name) for name in PARTS}
    asked: set[str] = set()
    listening = _Listening(**values, plain=spec, asked=asked)
    asked.clear()  # of what making it read
    run(listening)
    every = {table.name for table in spec.tables} if TABLES in asked else set()
    return frozenset(asked | every)


@dataclass(frozen=True, slots=True)
class _Listening(DeviceSpec):
    """A device that notes what it is asked for.

    Attributes:
        plain: The device itself.
        asked: Parts, and tables of programs.
    """

    plain: DeviceSpec = field(compare=False, repr=False)
    asked: set[str] = field(compare=False, repr=False)

    def __getattribute__(self, name: str) -> Any:
        if name in PARTS:
            object.__getattribute__(self, "asked").add(name)
        return object.__getattribute__(self, name)

    def costs_of(self, kind: type[CostsT]) -> CostsT:
        """The constants of a program's model: of the tables, one is asked for."""
        self.asked.add(kind.TABLE)
        return self.plain.costs_of(kind)
