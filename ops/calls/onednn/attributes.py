"""The attributes of the four operations, checked by name before anything else happens.

Rules and spellings: oneDNN's texts of ConvTranspose, ConvTransposeBackwardData, ConvTransposeBackwardWeights and
ConvTransposeBackpropFilters. Values of ``auto_pad`` may be written in any case.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, Final

from device.errors import ArgumentError, shown
from ops.definition.geometry import automatic_padding

AUTO_PADS: Final = ("none", "same_upper", "same_lower", "valid")
DATA_FORMATS: Final = ("NXC", "NCX")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """Checked attributes."""

    strides: tuple[int, ...]  # For every spatial axis, at least 1
    pads_begin: tuple[int, ...]  # At least 0
    pads_end: tuple[int, ...]  # At least 0
    dilations: tuple[int, ...]  # At least 1
    auto_pad: str  # In lower case
    output_padding: tuple[int, ...] | None  # At least 0; None if it was not given
    groups: int  # At least 1
    data_format: str  # "NXC" or "NCX"
    weights_format: str  # One of the formats that the operation knows

    def padding(self, kernel: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Padding at the beginning and at the end of every axis, for a kernel."""
        if self.auto_pad == "none":
            return self.pads_begin, self.pads_end
        if self.auto_pad == "valid":
            return (0,) * len(kernel), (0,) * len(kernel)
        pairs = [
            automatic_padding(size, stride, dilation, extra_first=self.auto_pad == "same_lower")
            for size, stride, dilation in zip(kernel, self.strides, self.dilations, strict=True)
        ]
        return tuple(before for before, _ in pairs), tuple(after for _, after in pairs)


def check_attributes(
    given: Mapping[str, Any], *, rank: int, operation: str, format_name: str, formats: Sequence[str]
) -> Attributes:
    """Attributes by the texts' names, checked.

    Args:
        given: Values by name; None for one that was left out.
        rank: Spatial axes.
        operation: What errors begin with.
        format_name: Name of the attribute for the weights' order.

    Raises:
        ArgumentError: An attribute is missing, has a wrong length, is out of range or unknown.
    """
    unknown = sorted(set(given) - {*_LISTS, *_WORDS, "groups", format_name})
    if unknown:
        raise ArgumentError(
            f"{operation}: {unknown[0]!r} is no attribute of this operation; its attributes are "
            f"{', '.join((*_LISTS, *_WORDS, 'groups', format_name))}"
        )
    lists = {name: _list(operation, name, given.get(name), rank, least) for name, least in _LISTS.items()}
    padding = lists["output_padding"]
    required = {name: value for name, value in lists.items() if name != "output_padding"}
    for name, value in required.items():
        if value is None:
            raise ArgumentError(
                f"{operation}: {name} is required, a list with one integer of at least {_LISTS[name]} for each of the "
                f"{rank} spatial axes; it is missing"
            )
    auto_pad = given.get("auto_pad")
    folded = "none" if auto_pad is None else auto_pad.lower() if isinstance(auto_pad, str) else auto_pad
    return Attributes(
        **{name: value for name, value in required.items() if value is not None},
        output_padding=padding,
        auto_pad=_word(operation, "auto_pad", folded, AUTO_PADS, given=auto_pad),
        groups=_groups(operation, given.get("groups")),
        data_format=_word(operation, "data_format", given.get("data_format", DATA_FORMATS[0]), DATA_FORMATS),
        weights_format=_word(operation, format_name, given.get(format_name), formats),
    )


_LISTS: Final = {"strides": 1, "pads_begin": 0, "pads_end": 0, "dilations": 1, "output_padding": 0}  # least values
_WORDS: Final = ("auto_pad", "data_format")


def integers(operation: str, name: str, value: Any) -> tuple[int, ...]:
    """A list of integers.

    Raises:
        ArgumentError: It is no list, or holds something else.
    """
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        found = tuple(value)
        if any(isinstance(one, bool) for one in found):
            raise TypeError
        return tuple(index(one) for one in found)
    except TypeError:
        raise ArgumentError(f"{operation}: {name} must be a list of integers, not {shown(value)}") from None


def _list(operation: str, name: str, value: Any, rank: int, least: int) -> tuple[int, ...] | None:
    if value is None:
        return None
    found = integers(operation, name, value)
    if len(found) != rank:
        raise ArgumentError(
            f"{operation}: {name} must have one entry for each of the {rank} spatial axes, not {list(found)}"
        )
    if min(found) < least:
        raise ArgumentError(f"{operation}: {name} must be at least {least} on every axis, not {list(found)}")
    return found


def _groups(operation: str, value: Any) -> int:
    if value is None:
        return 1
    try:
        groups = index(value)
    except TypeError:
        raise ArgumentError(f"{operation}: groups must be an integer, not {shown(value)}") from None
    if groups < 1 or isinstance(value, bool):
        raise ArgumentError(f"{operation}: groups must be at least 1, not {shown(value)}")
    return groups


def _word(operation: str, name: str, value: Any, words: Sequence[str], *, given: Any = None) -> str:
    if not isinstance(value, str) or value not in words:
        found = value if given is None else given
        raise ArgumentError(f"{operation}: {name} must be one of {', '.join(words)}, not {shown(found)}")
    return value
