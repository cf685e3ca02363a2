"""Values of a device's fields as text: numbers with the units of what is measured, flags, lists and words.

`2MiB`, `1.2GHz`, `24GB/s`, `92%`, `1e9`, `1_048_576`. What a field can be measured in follows from its own unit; a
number of another kind is refused, and so is one that is not exactly what the field can hold.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Final, TypeAlias

from device.errors import SpecError, shown
from device.spec.figures import nearest
from ops.fields.field import Field

Value: TypeAlias = int | float | bool | str | list[int]

_DECIMAL: Final = {"": 0, "k": 3, "M": 6, "G": 9, "T": 12}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40}
_SIZES: Final = {
    "bytes": Fraction(1),
    **{f"{prefix}B": Fraction(10**power) for prefix, power in _DECIMAL.items()},
    **{f"{prefix}B": Fraction(2**power) for prefix, power in _BINARY.items()},
}
# What can be measured, and its units, smaller ones first: how much each is of one and the same.
_KINDS: Final[Mapping[str, Mapping[str, Fraction]]] = MappingProxyType(
    {
        "a size": _SIZES,
        "a frequency": {f"{prefix}Hz": Fraction(10**power) for prefix, power in _DECIMAL.items()},
        "a rate": {
            **{f"{size}/ns": factor * 10**9 for size, factor in _SIZES.items()},
            **{f"{size}/s": factor for size, factor in _SIZES.items()},
        },
        "a time": {"ns": Fraction(1, 10**9), "us": Fraction(1, 10**6), "ms": Fraction(1, 10**3), "s": Fraction(1)},
        "bytes in a cycle": {f"{size}/cycle": factor for size, factor in _SIZES.items()},
        "cycles": {"cycles": Fraction(1)},
        "a part of a whole": {"": Fraction(1), "%": Fraction(1, 100), "percent": Fraction(1, 100)},
    }
)  # fmt: skip
_NUMBER: Final = re.compile(r"([+-]?(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?(\d+))?)\s*(.*)", flags=re.DOTALL)
_LONGEST_NUMBER: Final = 400  # characters
_LONGEST_EXPONENT: Final = 3
_FLAGS: Final = {"true": True, "false": False}


def read_value(field: Field, text: str) -> Value:
    """What a text says that a field is.

    Args:
        field: The field; what it is now says of which type it is.
        text: A number, with a unit or in the field's own; `true` or `false`; numbers with commas between; words.

    Raises:
        SpecError: The text is no value of the field.
    """
    if isinstance(field.value, str):
        return text
    if isinstance(field.value, bool):
        if text not in _FLAGS:
            raise SpecError(f"{field.name} must be true or false, not {shown(text)}; write one of the two")
        return _FLAGS[text]
    if isinstance(field.value, list):
        return _read_list(field, text)
    exact = _exact(field, text)
    if isinstance(field.value, float):
        return _nearest_float(field, exact)
    if exact.denominator > 1:
        raise SpecError(f"{field.name} must be a whole number, not {shown(text)}; {round(exact)} would do")
    return int(exact)


def spelled(field: Field, value: Value) -> str:
    """The shortest text by which `read_value` gives a value, in a unit of which there is at least one."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return ",".join(map(str, value))
    texts = [*_in_units(field, value), repr(value).removesuffix(".0")]
    return min((text for text in texts if _exact(field, text) == Fraction(repr(value))), key=len)


def _exact(field: Field, text: str) -> Fraction:
    """A number in the field's own unit."""
    number, unit = _split(field, text)
    return number * _factor(field, unit, text)


def _nearest_float(field: Field, exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        raise SpecError(f"{field.name} must be at most {sys.float_info.max:g}; give a smaller number") from None


def _in_units(field: Field, value: float) -> Iterator[str]:
    """A number with each unit that makes it at least 1, the largest first."""
    units = _units(field)
    for unit, factor in reversed(list(units.items())):
        number = float(Fraction(value) * units.get(field.unit, Fraction(1)) / factor)
        if unit and abs(number) >= 1:
            yield repr(number).removesuffix(".0") + unit


def _read_list(field: Field, text: str) -> list[int]:
    """Whole numbers with commas between them, in brackets or not."""
    inner = text.strip().removeprefix("[").removesuffix("]").strip()
    parts = [part.strip() for part in inner.split(",")] if inner else []
    if not all(part.isascii() and part.isdecimal() and len(part) <= _LONGEST_NUMBER for part in parts):
        raise SpecError(f"{field.name} must be whole numbers with commas between, not {shown(text)}; such as 1,2,4")
    return [int(part) for part in parts]


def _split(field: Field, text: str) -> tuple[Fraction, str]:
    """The number and the unit of a text."""
    match = _NUMBER.fullmatch(text.strip())
    if match is None or len(match[1]) > _LONGEST_NUMBER:
        raise SpecError(f"{field.name} must be a number, not {shown(text)}; {_way_out(field)}")
    if len(match[2] or "") > _LONGEST_EXPONENT:
        raise SpecError(f"{field.name} must have an exponent of at most three digits, not {shown(text)}; shorten it")
    return Fraction(match[1].replace("_", "")), match[3].strip()


def _factor(field: Field, unit: str, text: str) -> Fraction:
    """How much of the field's own unit one of a unit is.

    Raises:
        SpecError: There is no such unit, or it is of something else.
    """
    units = _units(field)
    if not unit or (unit == field.unit and unit not in units):
        return Fraction(1)
    if unit in units:
        return units[unit] / units[field.unit]
    of = next((kind for kind, known in _KINDS.items() if unit in known), None)
    if of is None:
        every = [one for known in _KINDS.values() for one in known if one]
        raise SpecError(f"{field.name}: unknown unit {shown(unit)}{nearest(unit, units or every)}; {_way_out(field)}")
    raise SpecError(
        f"{field.name} is {f'in {field.unit}' if field.unit else 'a plain number'}, "
        f"not {of} as {shown(text)} is; {_way_out(field)}"
    )


def _units(field: Field) -> Mapping[str, Fraction]:
    """The units in which a number can be given; none for what is counted."""
    if not field.unit and not isinstance(field.value, float):
        return {}
    return next((units for units in _KINDS.values() if field.unit in units), {})


def _way_out(field: Field) -> str:
    units = [unit for unit in _units(field) if unit not in ("", field.unit)]
    if not units:
        return f"give a plain number{f' of {field.unit}' if field.unit else ''}"
    return f"give a plain number{f' of {field.unit}' if field.unit else ''}, or one with {', '.join(units)}"
