"""Changes of a device's figures as text with units, and formulas over figures."""

import ast
import json
import math
import operator
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypeAlias

from device.errors import ArgumentError, ArgumentTypeError, SpecError, nearest, shown
from device.spec.device_spec import LONGEST_NAME, DeviceSpec
from device.spec.figures import read_number, spelled_number
from ops import op_models
from ops.sensitivity.fields import Field, fields_of, with_values

GRAMMAR: Final = "numbers, fields, + - * / **, parentheses, min(...) and max(...)"
LONGEST: Final = 500  # characters
_OPERATORS: Final[Mapping[type[ast.AST], Callable[..., Any]]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.Pow: pow,
    ast.UAdd: operator.pos, ast.USub: operator.neg,
}  # fmt: skip
_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {"min": min, "max": max}

Figures: TypeAlias = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Formula:
    """A checked formula."""

    text: str  # As it was written
    names: tuple[str, ...]  # Fields that it names, sorted
    result: Callable[[Figures], Any]  # The result for some figures, which may be no number

    def value(self, fields: Figures) -> float:
        """The value of the formula; raises ArgumentError if it is not a finite number."""
        try:
            result = self.result(fields)
        except (ArithmeticError, TypeError) as error:  # a root of a negative number is complex, and has no order
            what = f"cannot be worked out: {error}"
        else:
            if isinstance(result, float) and math.isfinite(result):
                return result
            what = f"must be a finite number, not {result}"
        values = ", ".join(f"{name} = {fields[name]:g}" for name in self.names)
        raise ArgumentError(f"{shown(self.text)} {what}; {f'with {values}' if values else 'change it'}")


def formula(text: object, known: Collection[str]) -> Formula:
    """Parses a formula of numbers, fields, operators, min and max; raises ArgumentError for anything else."""
    if isinstance(text, int | float) and not isinstance(text, bool):
        text = repr(text)
    if not isinstance(text, str) or not 0 < len(text.strip()) <= LONGEST:
        raise ArgumentError(f"a formula is a text of at most {LONGEST} characters, not {shown(text)}; use {GRAMMAR}")
    names: set[str] = set()
    try:
        result = _compiled(ast.parse(text.strip(), mode="eval").body, known, names)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if isinstance(error, ArgumentError):
            raise
        raise ArgumentError(f"{shown(text)} is no formula ({type(error).__name__}); use {GRAMMAR}") from error
    return Formula(text.strip(), tuple(sorted(names)), result)


def _compiled(node: ast.AST, known: Collection[str], names: set[str]) -> Callable[[Figures], Any]:
    """Compiles a syntax node to a function of figures, and collects field names; raises for other syntax."""
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            try:
                number = float(str(value))
            except (OverflowError, ValueError) as error:
                raise ArgumentError(f"a number of a formula is too large ({error}); give a smaller one") from error
            return lambda _: number
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            function, operands = _OPERATORS[type(op)], [left, right]
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _OPERATORS:
            function, operands = _OPERATORS[type(op)], [operand]
        case ast.Call(func=ast.Name(id=name), args=[_, *_] as operands, keywords=[]) if name in _FUNCTIONS:
            choose = _FUNCTIONS[name]
            function = lambda *values: choose(values)  # noqa: E731 - of one value, too
        case ast.Name() | ast.Attribute() | ast.Subscript():
            name = ast.unparse(node)
            if name not in known:
                hint = nearest(name, known)
                raise ArgumentError(f"unknown field {shown(name)}{hint}; `ttsim devices NAME` prints all")
            names.add(name)
            return lambda fields: float(fields[name])
        case _:
            raise ArgumentError(f"a formula must not have {shown(ast.unparse(node))}; use {GRAMMAR}")
    compiled = [_compiled(operand, known, names) for operand in operands]
    return lambda fields: function(*(value(fields) for value in compiled))


Value: TypeAlias = int | float | bool | str | list[int]

_LONGEST_NUMBER: Final = 400  # characters
_FLAGS: Final = {"true": True, "false": False}


def read_value(field: Field, text: str) -> Value:
    """Parses the value of a field; raises SpecError for an invalid text.

    The text is a number, optionally with a unit; `true` or `false`; numbers separated by commas; or any string.
    """
    if isinstance(field.value, str):
        return text
    if isinstance(field.value, bool):
        if text not in _FLAGS:
            raise SpecError(f"{field.name} must be true or false, not {shown(text)}; write one of the two")
        return _FLAGS[text]
    if not isinstance(field.value, list):
        return read_number(field.name, text, whole=isinstance(field.value, int))
    inner = text.strip().removeprefix("[").removesuffix("]").strip()
    numbers = [number.strip() for number in inner.split(",")] if inner else []
    if not all(number.isascii() and number.isdecimal() and len(number) <= _LONGEST_NUMBER for number in numbers):
        raise SpecError(f"{field.name} must be whole numbers with commas between, not {shown(text)}; such as 1,2,4")
    return list(map(int, numbers))


def spelled(field: Field, value: Value) -> str:
    """The shortest text that `read_value` reads as a value."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ",".join(map(str, value))
    return value if isinstance(value, str) else spelled_number(field.name, value)


GRID: Final = "grid"
SEPARATOR: Final = ", "
_GRID_SIZE: Final = re.compile(r"(\d{1,6})x(\d{1,6})")
_NEXT_CHANGE: Final = re.compile(r",\s*(?=[a-z]\w*(?:[.\[]\w+\]?)*=)")
_NO_CHANGE: Final = "a change is FIELD=VALUE, not {}; such as dram.banks=16"
_LONGEST_BASE: Final = 60  # characters of a device's name, where its changes are too long to be said


def changed(spec: DeviceSpec, changes: Sequence[str]) -> DeviceSpec:
    """A copy of a device with other values of some fields, checked as a whole; the copy's name states the changes.

    Args:
        spec: The device.
        changes: Texts `field=value`, with the names that `ttsim devices NAME` prints: `dram.banks=16`,
            `clock_hz=1.2GHz`, `l1.bytes=2MiB`, `dram.achieved_share=90%`, `noc.worker_cols=1,2,3`,
            `compute.reciprocal_table=true`. `grid=9x7` means `grid.cols=9` and `grid.rows=7`; the network grows if it
            has fewer columns or rows. `name=...` names the copy.

    Returns:
        The changed device; ``spec`` itself without changes.

    Raises:
        SpecError: A field is unknown or repeated, a value does not fit its field, or the device is inconsistent.
        ArgumentTypeError: ``spec`` is not a DeviceSpec, or ``changes`` is a single text.

    Examples:
        >>> ttnn.changed(ttnn.load_spec("wormhole_n150"), ["dram.banks=16"]).name
        'wormhole_n150, dram.banks=16'
    """
    if not isinstance(spec, DeviceSpec):
        raise ArgumentTypeError(f"spec must be a DeviceSpec, not {shown(spec)}; load_spec(...) makes one of a name")
    if isinstance(changes, str):
        raise ArgumentTypeError(f"changes must be a list of texts, not one text; give [{shown(changes)}]")
    fields = {field.name: field for field in fields_of(spec)}
    values: dict[tuple[str | int, ...], Value] = {}
    for text in changes:
        for field, value in read_change(text, fields):
            if field.path in values:
                raise SpecError(f"{field.name} is changed twice, the second time by {shown(text)}; keep one of the two")
            values[field.path] = value
    if not values:
        return spec
    result = with_values(spec, values)
    return result if ("name",) in values else replace(result, name=_name(spec, result))


def load_spec(device: str | Path | DeviceSpec) -> DeviceSpec:
    """The spec of a device, with checked tables for the models of all programs.

    Args:
        device: A name of the catalog, in full or its last word (``"n150"``), the path of a TOML file (its name ends in
            ``.toml``), or a DeviceSpec. Changes as in `changed` may follow a name or a path:
            ``"n150, dram.banks=16, grid=9x7"``; a ``Path`` is taken literally.

    Returns:
        The spec.

    Raises:
        SpecError: The name is unknown, the file cannot be read, or the spec or a change is invalid.

    Examples:
        >>> ttnn.load_spec("blackhole_p150").dram.banks
        8
    """
    base, changes = split_changes(device) if isinstance(device, str) else (device, ())
    spec = op_models.load_spec(base)
    return changed(spec, changes) if changes else spec


def split_changes(device: str) -> tuple[str, tuple[str, ...]]:
    """The name or path of a device, and the changes after it."""
    base, *changes = _NEXT_CHANGE.split(device)
    return base, tuple(changes)


def with_changes(device: str, changes: Sequence[str]) -> str:
    """The text of a device with further changes, in the form that `load_spec` accepts.

    Raises SpecError for an invalid change.
    """
    for text in changes:
        if not _NEXT_CHANGE.match(f"{SEPARATOR}{text.strip()}"):
            raise SpecError(_NO_CHANGE.format(shown(text)))
    return SEPARATOR.join((device, *(text.strip() for text in changes)))


def read_change(text: str, fields: Mapping[str, Field]) -> tuple[tuple[Field, Value], ...]:
    """The fields of a change and their values.

    Raises SpecError for an unknown field or an invalid value.
    """
    name, equals, value = (part.strip() for part in str(text).partition("="))
    if not (name and equals and value):
        raise SpecError(_NO_CHANGE.format(shown(text)))
    if name == GRID:
        size = _GRID_SIZE.fullmatch(value)
        if size is None:
            raise SpecError(f"grid must be COLUMNSxROWS, not {shown(value)}; such as grid=9x7")
        return (fields["grid.cols"], int(size[1])), (fields["grid.rows"], int(size[2]))
    if name not in fields:
        within = [field for field in fields if field.startswith((f"{name}.", f"{name}["))]
        if within:
            raise SpecError(f"{name} is no field but has some; give one of {', '.join(within)}")
        raise SpecError(f"unknown field {shown(name)}{nearest(name, fields)}; `ttsim devices NAME` prints all of them")
    return ((fields[name], read_value(fields[name], value)),)


def _name(before: DeviceSpec, after: DeviceSpec) -> str:
    """The name of a changed device: its name, and every changed field in the order of the device's file."""
    base, earlier = split_changes(before.name)
    changes = dict(change.split("=", 1) for change in earlier)
    old = {field.name: field.value for field in fields_of(before)}
    order: dict[str, int] = {}
    for field in fields_of(after):
        name = GRID if field.path[0] == GRID else field.name
        order.setdefault(name, len(order))
        if name != "name" and field.value != old.get(field.name):
            changes[name] = f"{after.grid.cols}x{after.grid.rows}" if name == GRID else spelled(field, field.value)
    names = sorted(changes, key=lambda name: order.get(name, -1))
    name = SEPARATOR.join((base, *(f"{name}={changes[name]}" for name in names)))
    if len(name) <= LONGEST_NAME:
        return name
    figures = {name: value for name, value in after.to_dict().items() if name != "name"}
    digest = sha256(json.dumps(figures, sort_keys=True).encode()).hexdigest()[:8]
    return f"{base[:_LONGEST_BASE]} with {len(changes)} changes ({digest})"
