"""What a device is made of: frozen figures, read from TOML, checked, and copied with changes.

A difference between two devices is always a field here, never a branch on a name elsewhere.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Self

from device.errors import SpecError
from device.spec.checks import nearest, require_positive
from device.spec.costs import ConvCosts, HaloCosts, MatmulCosts
from device.spec.fields import from_mapping, replace_fields, to_plain
from device.spec.movement_costs import MovementCosts
from device.spec.parts import (
    ComputeSpec,
    DramSpec,
    GridSpec,
    L1Spec,
    NocSpec,
    ReaderRates,
    TilizeCost,
    TransferRate,
)

__all__ = [
    "ComputeSpec",
    "ConvCosts",
    "DeviceSpec",
    "DramSpec",
    "GridSpec",
    "HaloCosts",
    "L1Spec",
    "MatmulCosts",
    "MovementCosts",
    "NocSpec",
    "ReaderRates",
    "TilizeCost",
    "TransferRate",
    "catalog_names",
    "load_spec",
]

_EXTENDS = "extends"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSpec:
    """One kind of device.

    Attributes:
        name: As in the catalog.
        arch: Name of the architecture, for display.
        clock_hz: Of the worker cores.
        grid: Worker cores.
        l1: Memory of a core.
        dram: Memory outside the cores.
        noc: The networks.
        compute: The compute threads.
        reader: Cost model of the real planner.
        conv_costs: Cycles of the convolution program.
        halo_costs: Cycles of the halo program.
        matmul_costs: Cycles of the matmul program.
        movement_costs: Cycles of the data movement programs.
    """

    name: str
    arch: str
    clock_hz: int
    grid: GridSpec
    l1: L1Spec
    dram: DramSpec
    noc: NocSpec
    compute: ComputeSpec
    reader: ReaderRates
    conv_costs: ConvCosts
    halo_costs: HaloCosts
    matmul_costs: MatmulCosts
    movement_costs: MovementCosts

    def __post_init__(self) -> None:
        require_positive(self.name, self)
        for field_name, cores, places in (
            ("cols", self.grid.cols, self.noc.worker_cols),
            ("rows", self.grid.rows, self.noc.worker_rows),
        ):
            if cores > len(places):
                raise SpecError(
                    f"{self.name}: grid_{field_name} must not exceed the {len(places)} {field_name} of "
                    f"noc_worker_{field_name}, not {cores}; lower grid_{field_name} or lengthen noc_worker_{field_name}"
                )

    def replace(self, **changes: object) -> Self:
        """Copy with changes.

        Args:
            changes: ``field=value`` for a field of the spec, ``part_field=value`` for a field of a part, for example
                ``clock_hz=800_000_000``, ``grid_rows=7``, ``dram_banks=6``.

        Raises:
            SpecError: A name is unknown (the nearest right one is given), or the changed spec contradicts itself.
        """
        changed: Self = replace_fields(self, changes, nested=True)
        return changed

    def to_dict(self) -> dict[str, Any]:
        """The spec as nested dicts, lists, numbers and texts: what TOML and JSON can hold."""
        plain: dict[str, Any] = to_plain(self)
        return plain

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The spec of nested dicts.

        Raises:
            SpecError: A key is unknown or missing, a value has the wrong type, or values contradict each other.
        """
        spec: Self = from_mapping(cls, values)
        return spec


def catalog_names() -> tuple[str, ...]:
    """Names of the devices that come with the package, sorted."""
    entries = files("device").joinpath("spec", "catalog").iterdir()
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in entries if entry.name.endswith(".toml")))


def load_spec(device: str | Path | DeviceSpec) -> DeviceSpec:
    """The spec of a device.

    Args:
        device: A name of the catalog, the path of a TOML file (its name ends in ``.toml``), or a spec. A file may say
            ``extends = "wormhole_n150"`` (a name or a path) and give only what differs.

    Raises:
        SpecError: The name is unknown, the file cannot be read, or what it says is no spec.
    """
    if isinstance(device, DeviceSpec):
        return device
    return DeviceSpec.from_dict(_read(device, origin=Path(), seen=()))


def _read(device: str | Path, *, origin: Path, seen: tuple[str, ...]) -> dict[str, Any]:
    """The values of a TOML file and of what it extends; relative paths start at ``origin``."""
    if not isinstance(device, str | Path):
        known = ", ".join(catalog_names())
        raise SpecError(f"a device is named by text, path or DeviceSpec, not by {device!r}; names are {known}")
    if isinstance(device, Path) or device.endswith(".toml"):
        path = origin / device
        key, folder = str(path.resolve()), path.parent
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            known = ", ".join(catalog_names())
            raise SpecError(
                f"device file {str(path)!r} cannot be read ({error}); give a TOML file or one of {known}"
            ) from error
    else:
        names = catalog_names()
        if device not in names:
            raise SpecError(
                f"unknown device {device!r}{nearest(device, names)}; known are {', '.join(names)}, "
                "or give the path of a .toml file"
            )
        key, folder = device, origin
        text = files("device").joinpath("spec", "catalog", f"{device}.toml").read_text(encoding="utf-8")
    if key in seen:
        raise SpecError(f"device {key!r} extends itself ({' -> '.join((*seen, key))}); cut one {_EXTENDS!r}")
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"device file {key!r} is no TOML: {error}") from error
    base = values.pop(_EXTENDS, None)
    return values if base is None else _merge(_read(base, origin=folder, seen=(*seen, key)), values)


def _merge(base: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """``base`` with ``changes`` laid over it, table by table."""
    merged = dict(base)
    for key, value in changes.items():
        old = merged.get(key)
        merged[key] = _merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged
