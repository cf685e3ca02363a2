"""What differs between two devices, field by field."""

from dataclasses import dataclass
from typing import Any

from device.spec.device_spec import DeviceSpec
from ops.sensitivity.fields import Field, fields_of


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldDifference:
    """A field that differs."""

    name: str  # As a file has it, with its table
    unit: str  # Of both values; empty of plain numbers, texts and flags
    before: Any  # Of the first device; None where it has no such field
    after: Any  # Of the second device; likewise
    ratio: float | None  # The second value over the first; None of what is no number


def differences(first: DeviceSpec, second: DeviceSpec) -> tuple[FieldDifference, ...]:
    """Every field that differs, but for the name, in the order of a device's file."""
    before, after = ({field.name: field for field in fields_of(spec)} for spec in (first, second))
    return tuple(
        _difference(name, before.get(name), after.get(name))
        for name in dict.fromkeys((*before, *after))
        if name != "name" and _value(before.get(name)) != _value(after.get(name))
    )


def _difference(name: str, before: Field | None, after: Field | None) -> FieldDifference:
    either = before or after
    return FieldDifference(
        name=name,
        unit="" if either is None else either.unit,
        before=_value(before),
        after=_value(after),
        ratio=after.value / before.value if before and after and before.numeric and after.numeric else None,
    )


def _value(field: Field | None) -> Any:
    return None if field is None else field.value
