"""Values of a device's fields as text: numbers with the units of what is measured, flags, lists and words."""

from typing import Final, TypeAlias

from device.errors import SpecError, shown
from device.spec.units import read_number, spelled_number
from ops.fields.field import Field

Value: TypeAlias = int | float | bool | str | list[int]

_LONGEST_NUMBER: Final = 400  # characters
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
    return read_number(field.name, text, whole=isinstance(field.value, int))


def spelled(field: Field, value: Value) -> str:
    """The shortest text by which `read_value` gives a value."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return ",".join(map(str, value))
    return spelled_number(field.name, value)


def _read_list(field: Field, text: str) -> list[int]:
    """Whole numbers with commas between them, in brackets or not."""
    inner = text.strip().removeprefix("[").removesuffix("]").strip()
    parts = [part.strip() for part in inner.split(",")] if inner else []
    if not all(part.isascii() and part.isdecimal() and len(part) <= _LONGEST_NUMBER for part in parts):
        raise SpecError(f"{field.name} must be whole numbers with commas between, not {shown(text)}; such as 1,2,4")
    return [int(part) for part in parts]
