"""Numbers of a device's fields as text, with the units of what is measured: `2MiB`, `1.2GHz`, `24GB/s`, `92%`, `1e9`.

What a field can be measured in follows from its own unit, and that from its name; a number of another kind is
refused, and so is one that is not exactly what the field can hold.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Final

from device.errors import SpecError, nearest, shown
from device.spec.kinds import kind_of

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


def read_number(name: str, text: str, *, whole: bool) -> int | float:
    """The number that a text says a field is, in the field's own unit.

    Args:
        name: Of the field: `l1.bytes`.
        text: A number, with a unit or in the field's own.
        whole: Whether the field counts in whole numbers.

    Raises:
        SpecError: The text is no value of the field.
    """
    exact = _exact(name, text, whole)
    if not whole:
        return _nearest_float(name, exact)
    if exact.denominator > 1:
        raise SpecError(f"{name} must be a whole number, not {shown(text)}; {round(exact)} would do")
    return int(exact)


def spelled_number(name: str, value: float) -> str:
    """The shortest text by which `read_number` gives a value, in a unit of which there is at least one."""
    whole = isinstance(value, int)
    texts = [*_in_units(name, value), repr(value).removesuffix(".0")]
    return min((text for text in texts if _exact(name, text, whole) == Fraction(repr(value))), key=len)


def _exact(name: str, text: str, whole: bool) -> Fraction:
    """A number in the field's own unit."""
    number, unit = _split(name, text, whole)
    return number * _factor(name, unit, text, whole)


def _nearest_float(name: str, exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        raise SpecError(f"{name} must be at most {sys.float_info.max:g}; give a smaller number") from None


def _in_units(name: str, value: float) -> Iterator[str]:
    """A number with each unit that makes it at least 1, the largest first."""
    units, own = _units(name, isinstance(value, int)), kind_of(name).unit
    for unit, factor in reversed(list(units.items())):
        number = float(Fraction(value) * units.get(own, Fraction(1)) / factor)
        if unit and abs(number) >= 1:
            yield repr(number).removesuffix(".0") + unit


def _split(name: str, text: str, whole: bool) -> tuple[Fraction, str]:
    """The number and the unit of a text."""
    match = _NUMBER.fullmatch(text.strip())
    if match is None or len(match[1]) > _LONGEST_NUMBER:
        raise SpecError(f"{name} must be a number, not {shown(text)}; {_way_out(name, whole)}")
    if len(match[2] or "") > _LONGEST_EXPONENT:
        raise SpecError(f"{name} must have an exponent of at most three digits, not {shown(text)}; shorten it")
    return Fraction(match[1].replace("_", "")), match[3].strip()


def _factor(name: str, unit: str, text: str, whole: bool) -> Fraction:
    """How much of the field's own unit one of a unit is.

    Raises:
        SpecError: There is no such unit, or it is of something else.
    """
    units, own = _units(name, whole), kind_of(name).unit
    if not unit or (unit == own and unit not in units):
        return Fraction(1)
    if unit in units:
        return units[unit] / units[own]
    of = next((kind for kind, known in _KINDS.items() if unit in known), None)
    if of is None:
        every = [one for known in _KINDS.values() for one in known if one]
        raise SpecError(f"{name}: unknown unit {shown(unit)}{nearest(unit, units or every)}; {_way_out(name, whole)}")
    raise SpecError(
        f"{name} is {f'in {own}' if own else 'a plain number'}, not {of} as {shown(text)} is; {_way_out(name, whole)}"
    )


def _units(name: str, whole: bool) -> Mapping[str, Fraction]:
    """The units in which a number can be given; none for what is counted."""
    own = kind_of(name).unit
    if whole and not own:
        return {}
    return next((units for units in _KINDS.values() if own in units), {})


def _way_out(name: str, whole: bool) -> str:
    own = kind_of(name).unit
    units = [unit for unit in _units(name, whole) if unit not in ("", own)]
    plain = f"give a plain number{f' of {own}' if own else ''}"
    return f"{plain}, or one with {', '.join(units)}" if units else plain
