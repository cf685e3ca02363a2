"""Checks of device figures, and the nearest right spelling of a wrong name."""

import difflib
import math
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from device.errors import SpecError


def require_positive(part: str, spec: Any) -> None:
    """Every number of a part is above zero (numbers of torus columns and rows apart, which are tuples)."""
    for field in fields(spec):
        value = getattr(spec, field.name)
        if isinstance(value, int | float) and not isinstance(value, bool) and not (value > 0 and math.isfinite(value)):
            raise SpecError(f"{part}: {field.name} must be a number above zero, not {value}; give a positive number")


def require_powers_of_two(part: str, spec: Any, *names: str) -> None:
    """Each of the named fields is a power of two."""
    for name in names:
        value = getattr(spec, name)
        if value & (value - 1):
            below = 1 << (value.bit_length() - 1)
            raise SpecError(f"{part}: {name} must be a power of two, not {value}; the nearest below is {below}")


def require_multiple(part: str, spec: Any, name: str, of: str) -> None:
    """One field is a multiple of another."""
    value, unit = getattr(spec, name), getattr(spec, of)
    if value % unit:
        raise SpecError(
            f"{part}: {name} must be a multiple of {of} ({unit}), not {value}; {value - value % unit + unit} would do"
        )


def require_room(part: str, name: str, top_bytes: int, base_bytes: int) -> None:
    """A memory ends above its base."""
    if top_bytes <= base_bytes:
        raise SpecError(
            f"{part}: {name} must be above base_bytes ({base_bytes}), not {top_bytes}; raise {name} or lower base_bytes"
        )


def nearest(name: str, known: Iterable[str]) -> str:
    """``", did you mean ...?"`` with the known name that is spelt most like ``name``; empty if none is close."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f", did you mean {close[0]!r}?" if close else ""
