"""The fields of a device in reports: value, unit, effects, source; and the differences between two devices."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from device.spec.device_spec import DeviceSpec
from ops.sensitivity.changes import load_spec, spelled, split_changes
from ops.sensitivity.effects import CYCLES, LAUNCHES, effects
from ops.sensitivity.fields import Field, fields_of, source_of, sources_of, words_of
from ops.sensitivity.samples import planners_samples, samples

TIMED = (CYCLES, LAUNCHES)
SHOWN_ELASTICITY = 0.0005  # a table shows thousandths


@dataclass(frozen=True, slots=True)
class FieldFigures:
    """A field of a device, with its meaning and its effects."""

    name: str  # Its name in a file, with its table
    value: Any
    unit: str  # Of the value; empty of plain numbers, texts and flags
    better: str  # Whether "larger" or "smaller" values are better for unchanged programs, or neither
    meaning: str  # Its meaning
    moves: tuple[str, ...]  # Affected parts among plan, memory, values, kernel cycles, launches, and report
    elasticity: Mapping[str, float]  # By program: log(cycles) over log(figure)
    source: str  # The comment behind it


@dataclass(frozen=True, slots=True)
class DeviceFigures:
    """A device with all its fields."""

    name: str  # Its name in the description
    fields: tuple[FieldFigures, ...]  # In the order of its file


def explained(
    device: str | Path, only: str = "", *, watch: Callable[[int], Callable[[], object]] | None = None
) -> DeviceFigures:
    """The meanings and effects of the fields of a device whose names contain `only`.

    `watch` gets the number of fields, and returns a function that is called after each field. Raises SpecError for an
    unknown device.
    """
    spec, base = load_spec(device), split_changes(device)[0] if isinstance(device, str) else device
    sources, before = sources_of(base), {field.name: field.value for field in fields_of(load_spec(base))}
    wanted = [field for field in fields_of(spec) if only in field.name]
    done = None if watch is None else watch(len(wanted))

    def source(field: Field) -> str:
        """The comment of a field; for a changed field its former value."""
        comment, value = source_of(field.name, sources), before.get(field.name, field.value)
        if value == field.value:
            return comment
        return f"changed from {spelled(field, value)}{f': {comment}' if comment else ''}"

    fields = []
    for effect in effects(wanted, samples(), spec, planned=planners_samples(), watch=done):
        field, moves = effect.field, (effect.moves, dict(effect.elasticity))
        meaning = words_of(field.path)
        fields.append(
            FieldFigures(field.name, field.value, field.unit, field.better.value, meaning, *moves, source(field))
        )
    return DeviceFigures(spec.name, tuple(fields))


def moved(field: FieldFigures) -> Iterator[str]:
    """The effects of a field as text; cycles by program."""
    yield from (move for move in field.moves if move not in TIMED)
    shares = [(program, share) for program, share in field.elasticity.items() if abs(share) >= SHOWN_ELASTICITY]
    if shares:
        yield "cycles of " + ", ".join(f"{program} {share:+.3f}" for program, share in shares)
    else:
        yield from (move for move in field.moves if move in TIMED)


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """A field that differs between two devices."""

    name: str  # Its name in a file, with its table
    unit: str  # Of both values; empty of plain numbers, texts and flags
    before: Any  # Of the first device; None if it has no such field
    after: Any  # Of the second device; None if it has no such field
    ratio: float | None  # The second value over the first; None if they are no numbers


def differences(first: DeviceSpec, second: DeviceSpec) -> tuple[FieldDifference, ...]:
    """Every field that differs, except the name, in the order of a device's file."""
    before, after = ({field.name: field for field in fields_of(spec)} for spec in (first, second))

    changes = []
    for name in dict.fromkeys((*before, *after)):
        was, now = before.get(name), after.get(name)
        values = (was.value if was else None, now.value if now else None)
        if name != "name" and values[0] != values[1]:
            ratio = now.value / was.value if was and now and was.numeric and now.numeric else None
            changes.append(FieldDifference(name, (after | before)[name].unit, *values, ratio))
    return tuple(changes)
