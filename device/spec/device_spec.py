"""The description of a device: immutable figures, read from TOML, checked, and copied with changes.

A difference between two devices is always a field here, never a branch on a name elsewhere. The file of a device also
has the costs of programs, in tables that their models read.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace as dataclass_replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar, cast

from device.errors import SpecError, nearest, shown
from device.spec.figures import (
    check_keys,
    check_table,
    convert,
    from_mapping,
    replace_fields,
    require_positive,
    require_share,
    to_plain,
    types_of,
)
from device.spec.parts import (
    ComputeSpec,
    DataMovementSpec,
    DramSpec,
    GridSpec,
    L1Spec,
    NocSpec,
    ReaderRates,
)
from device.spec.releases import DEFAULT_RELEASE, release_of


class Costs:
    """Base class of frozen dataclasses with the constants of a program's model: positive numbers, shares up to 1.

    Attributes:
        TABLE: The table of a device file that has the constants.
    """

    TABLE: ClassVar[str]
    __slots__ = ()

    def __post_init__(self) -> None:
        require_positive(self.TABLE, self)
        shares = [field.name for field in fields(cast(Any, self)) if field.name.endswith("_share")]
        require_share(self.TABLE, self, *shares)


CostsT = TypeVar("CostsT", bound=Costs)
ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a device file; tables with the same figures are equal."""

    name: str  # Its key in a device file
    figures: tuple[tuple[str, Any], ...]  # Keys and values, in order
    # The costs that all of it was checked to be; None if nobody has
    kind: type[Costs] | None = field(default=None, compare=False)
    _read: dict[type[Costs], Costs] = field(default_factory=dict, repr=False, compare=False)

    def read(self, kind: type[CostsT]) -> CostsT:
        """The costs of a kind, read once; raises SpecError for a missing key or a value of a wrong type."""
        costs = self._read.get(kind)
        if costs is None:
            wanted = {item.name for item in fields(cast(Any, kind))}
            values = {key: value for key, value in self.figures if key in wanted}
            costs = self._read[kind] = from_mapping(kind, values, self.name)
        return cast(CostsT, costs)

    def replace(self, changes: Mapping[str, object]) -> "Table":
        """A copy with other values for some keys; a checked table checks the values."""
        if self.kind is None:
            return Table(self.name, tuple({**dict(self.figures), **changes}.items()))
        return table_of(replace_fields(self.read(self.kind), changes, nested=False, where=self.name))

    def replace_all(self, values: Any) -> "Table":
        """Another table with the same name, from costs or a mapping, checked like this table."""
        if self.kind is not None:
            return table_of(convert(self.kind, values, self.name))
        return table_of(values) if isinstance(values, Costs) else unread_table(self.name, values)


def table_of(costs: Costs) -> Table:
    """The table of these costs."""
    return Table(costs.TABLE, tuple(to_plain(costs).items()), type(costs), {type(costs): costs})


def unread_table(name: str, values: Any) -> Table:
    """An unchecked table; raises SpecError if ``values`` is not a table."""
    check_table("numbers", values, name)
    return Table(name, tuple(values.items()))


def checked_table(kind: type[Costs], values: Any) -> Table:
    """A table checked for the keys and types of a kind of costs; raises SpecError."""
    return table_of(from_mapping(kind, values, kind.TABLE))


def replace_tables(tables: Iterable[Table], changes: Mapping[str, object]) -> tuple[tuple[Table, ...], dict[str, Any]]:
    """Tables with their changes (``table=values`` or ``table_key=value``), and the remaining changes."""
    changed, others = [], dict(changes)
    for table in tables:
        if table.name in others:
            table = table.replace_all(others.pop(table.name))
        own = {key: others.pop(name) for key, name in _spellings(table) if name in others}
        changed.append(table.replace(own) if own else table)
    return tuple(changed), others


def table_spellings(tables: Iterable[Table]) -> list[str]:
    """Every name that `replace_tables` accepts."""
    return [name for table in tables for name in (table.name, *(name for _, name in _spellings(table)))]


def _spellings(table: Table) -> list[tuple[str, str]]:
    """Each key of a table, and its name in a change."""
    return [(key, f"{table.name}_{key}") for key, _ in table.figures]


_EXTENDS = "extends"
LONGEST_NAME = 100  # it begins lines of tables and errors
FASTEST_HZ = 10**12  # beyond which a cycle takes no time that a report could show
_RELEASE_OF_NAME = re.compile(r", release=[^,]*")
FAMILIES = ("wormhole_b0", "blackhole", "quasar")  # ttnn's architectures


class _WithDerived:
    """A cache of values derived from a spec; copies and pickles do not include it."""

    __slots__ = ("_derived",)
    _derived: dict[Callable[..., Any], Any]  # By the function that derives the value


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSpec(_WithDerived):
    """One kind of device: all figures that ttsim reads.

    Attributes:
        name: Name in the catalog.
        arch: Name of the architecture, for display; a custom architecture has a custom name.
        family: The ttnn architecture that scripts see: wormhole_b0, blackhole or quasar.
        cluster: ttnn's name of the kind of system, for example N150; CUSTOM if ttnn has none.
        clock_hz: Clock of the worker cores, in Hz.
        grid: Worker cores.
        l1: Memory of a core.
        dram: Memory outside the cores.
        noc: The networks.
        data_movement: The data movement processors of a core.
        compute: The compute threads.
        reader: Cost model of the real planner.
        tables: Costs of programs, in tables that their models read by `costs_of`.
        release: Name of the release of the real library that plans and whose kernels run; the name of a device with
            another release than the default states it.

    Examples:
        >>> spec = ttnn.load_spec("wormhole_n150")
        >>> spec.l1.bytes, spec.replace(clock_hz=1_200_000_000).clock_hz
        (1499136, 1200000000)
        >>> ttnn.DeviceSpec.from_dict(spec.to_dict()) == spec
        True
    """

    name: str
    arch: str
    family: str
    cluster: str
    clock_hz: int
    grid: GridSpec
    l1: L1Spec
    dram: DramSpec
    noc: NocSpec
    data_movement: DataMovementSpec
    compute: ComputeSpec
    reader: ReaderRates
    tables: tuple[Table, ...]
    release: str = DEFAULT_RELEASE

    def __post_init__(self) -> None:
        self._name_release()
        if not self.name.isprintable():
            raise SpecError(f"name must be text that can be printed, not {shown(self.name)}; correct its value")
        if len(_RELEASE_OF_NAME.sub("", self.name)) > LONGEST_NAME:
            raise SpecError(f"name must have at most {LONGEST_NAME} characters, not {shown(self.name)}; shorten it")
        if self.family not in FAMILIES:
            known = ", ".join(FAMILIES)
            raise SpecError(
                f"{self.name}: family must be one of {known}, not {shown(self.family)}"
                f"{nearest(self.family, FAMILIES)}; an architecture with a name of its own acts as one of these"
            )
        require_positive(self.name, self)
        if self.clock_hz > FASTEST_HZ:
            raise SpecError(
                f"{self.name}: clock_hz must be from 1 to {FASTEST_HZ:,} (1 THz), not {self.clock_hz:g}; "
                "give a clock that a machine can have"
            )

    def _name_release(self) -> None:
        """Adds the release to the name; raises SpecError for an unknown release."""
        release_of(self.release)
        said = f", release={self.release}" if self.release != DEFAULT_RELEASE else ""
        if _RELEASE_OF_NAME.findall(self.name) != [said] * bool(said):
            object.__setattr__(self, "name", _RELEASE_OF_NAME.sub("", self.name) + said)

    def costs_of(self, kind: type[CostsT]) -> CostsT:
        """The constants of a program's model; constants of the release replace those of the device.

        Args:
            kind: The model's costs, which name their table.

        Raises:
            SpecError: The table or a key is missing, or a value has a wrong type.
        """
        table: Any = kind  # hashable, which checkers of types do not see
        costs: CostsT = self.derived(_costs_reader(table))
        return costs

    def derived(self, derive: Callable[["DeviceSpec"], ValueT]) -> ValueT:
        """The value that a function derives from the figures of the device, cached.

        Args:
            derive: The function, which lives as long as the device.
        """
        try:
            value: ValueT = self._derived[derive]  # asked for dozens of times in a call
            return value
        except AttributeError:
            object.__setattr__(self, "_derived", {})
        except KeyError:
            pass
        value = self._derived[derive] = derive(self)
        return value

    def _read_costs(self, kind: type[CostsT]) -> CostsT:
        for table in self.tables:
            if table.name == kind.TABLE:
                own = release_of(self.release).costs.get(self.family, {}).get(table.name, {})
                return (table.replace(own) if own else table).read(kind)
        raise SpecError(f"{self.name}: there is no table {kind.TABLE}; extend a device that has it (extends = ...)")

    def with_costs(self, costs: Costs) -> Self:
        """Copy with other constants of one program's model."""
        tables = (table_of(costs) if table.name == costs.TABLE else table for table in self.tables)
        return dataclass_replace(self, tables=tuple(tables))

    def replace(self, **changes: object) -> Self:
        """Copy with changes.

        Args:
            changes: ``field=value`` for a field of the spec, ``part_field=value`` for a field of a part or for a key
                of a program's table, for example ``clock_hz=800_000_000``, ``grid_rows=7``, ``dram_banks=6``.

        Raises:
            SpecError: A name is unknown (the error suggests the nearest name), or the changed spec is inconsistent.
        """
        tables, others = replace_tables(self.tables, changes)
        changed: Self = replace_fields(self, others, nested=True, other_names=table_spellings(self.tables))
        return dataclass_replace(changed, tables=tables)

    def to_dict(self) -> dict[str, Any]:
        """The spec as nested dicts, lists, numbers and strings, for TOML and JSON."""
        machine = {name: to_plain(getattr(self, name)) for name in machine_fields()}
        return machine | {table.name: dict(table.figures) for table in self.tables}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], costs: Sequence[type[Costs]] = ()) -> Self:
        """The spec of nested dicts.

        Args:
            values: The dicts.
            costs: The kinds of costs that the programs' tables must have; without any, tables are not checked.

        Raises:
            SpecError: A key is unknown or missing, a value has the wrong type, or values contradict each other.
        """
        check_table(cls.__name__, values, "")
        kinds, wanted, names = types_of(cast(Any, cls)), {kind.TABLE: kind for kind in costs}, machine_fields()
        needed = [*(field.name for field in _MACHINE if field.default is MISSING), *wanted]
        unread = [key for key, value in values.items() if key not in names and isinstance(value, Mapping)]
        check_keys(values, known=[*names, *(wanted or unread)], needed=needed)
        machine: dict[str, Any] = {}
        tables: dict[str, Table] = {}
        for key, value in values.items():
            if key in names:
                machine[key] = convert(kinds[key], value, key)
            else:
                tables[key] = checked_table(wanted[key], value) if key in wanted else unread_table(key, value)
        return cls(**machine, tables=tuple(tables[key] for key in wanted or tables))

    def checked(self, costs: Sequence[type[Costs]]) -> Self:
        """The spec, checked to have exactly the tables of these costs.

        Raises:
            SpecError: A table or key is missing or unknown, or a value has a wrong type.
        """
        if tuple(costs) == tuple(table.kind for table in self.tables):
            return self
        return self.from_dict(self.to_dict(), costs)


@cache
def _costs_reader(kind: type[Costs]) -> Callable[[DeviceSpec], Any]:
    """The function that reads one program's constants."""
    return lambda spec: spec._read_costs(kind)


_MACHINE = tuple(field for field in fields(DeviceSpec) if field.name != "tables")


def machine_fields() -> list[str]:
    """Fields of a spec that say what the machine is."""
    return [field.name for field in _MACHINE]


@cache
def catalog_names() -> tuple[str, ...]:
    """Names of the devices that come with the package, sorted."""
    entries = files("device").joinpath("spec", "catalog").iterdir()
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in entries if entry.name.endswith(".toml")))


def short_names() -> dict[str, str]:
    """Names of the catalog by their last words, such as n150, which are accepted as names."""
    return {name.rpartition("_")[2]: name for name in catalog_names()}


def catalog_name(device: str) -> str | None:
    """The catalog name of a device from its full name or its last word; None if unknown."""
    return device if device in catalog_names() else short_names().get(device)


def load_spec(device: str | Path | DeviceSpec, costs: Sequence[type[Costs]] = ()) -> DeviceSpec:
    """The spec of a device.

    Args:
        device: A name of the catalog or its last word (``n150``), the path of a TOML file (its name ends in
            ``.toml``), or a spec. A file may have ``extends = "wormhole_n150"`` (a name or a path) and only the fields
            that differ.
        costs: The kinds of costs that the programs' tables must have; without any, tables are not checked.

    Raises:
        SpecError: The name is unknown, the file cannot be read, or it is not a valid spec.
    """
    if isinstance(device, DeviceSpec):
        return device.checked(costs) if costs else device
    if isinstance(device, str) and (name := catalog_name(device)):
        return _of_catalog(name, tuple(costs))
    return DeviceSpec.from_dict(_values(device), costs)


@cache
def _of_catalog(name: str, costs: tuple[type[Costs], ...]) -> DeviceSpec:
    """The spec of a catalog device, cached, because its file never changes."""
    return DeviceSpec.from_dict(_values(name), costs)


@dataclass(frozen=True, slots=True)
class DeviceFile:
    """A TOML file of a device."""

    key: str  # What tells it from others
    folder: Path  # Where relative paths start
    text: str  # What it says
    values: dict[str, Any]  # The same, read

    @property
    def extends(self) -> Any:
        """The value of its key ``extends``, or None."""
        return self.values.get(_EXTENDS)


def device_file(device: str | Path, origin: Path = Path()) -> DeviceFile:
    """The file of a name of the catalog, or at a path that starts at ``origin``."""
    known = f"{', '.join(catalog_names())} (short: {', '.join(short_names())})"
    if not isinstance(device, str | Path):
        raise SpecError(f"a device is named by text, path or DeviceSpec, not by {shown(device)}; names are {known}")
    if isinstance(device, Path) or device.endswith(".toml"):
        path = origin / device
        try:
            key, folder = str(path.resolve()), path.parent
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, ValueError) as error:  # no such file, no text, or no path at all
            raise SpecError(
                f"device file {str(path)!r} cannot be read ({error}); give a TOML file or one of {known}"
            ) from error
    else:
        name = catalog_name(device)
        if name is None:
            near = nearest(device, (*short_names(), *catalog_names()))
            raise SpecError(
                f"unknown device {shown(device, 300)}{near}; known are {known}, or give the path of a .toml file"
            )
        key, folder = name, origin
        text = files("device").joinpath("spec", "catalog", f"{name}.toml").read_text(encoding="utf-8")
    try:
        return DeviceFile(key, folder, text, tomllib.loads(text))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise SpecError(f"device file {key!r} is no TOML: {error}") from error


def extended_files(device: str | Path) -> tuple[DeviceFile, ...]:
    """The file of a device, preceded by the files that it extends; a file must not extend itself."""
    files = [device_file(device)]
    while files[0].extends is not None:
        base = device_file(files[0].extends, files[0].folder)
        if base.key in (keys := [file.key for file in reversed(files)]):
            raise SpecError(
                f"device {base.key!r} extends itself ({' -> '.join((*keys, base.key))}); cut one {_EXTENDS!r}"
            )
        files.insert(0, base)
    return tuple(files)


def _values(device: str | Path) -> dict[str, Any]:
    """The merged values of a device's files."""
    merged: dict[str, Any] = {}
    for file in extended_files(device):
        merged = _merge(merged, {key: value for key, value in file.values.items() if key != _EXTENDS})
    return merged


def _merge(base: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """``base`` updated by ``changes``, merging tables."""
    merged = dict(base)
    for key, value in changes.items():
        old = merged.get(key)
        merged[key] = _merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged
