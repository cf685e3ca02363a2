"""One step of a sequence: a call as Python text, and what it must give."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from device.numbers.formats import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a tensor must be after a call."""

    values: Array | None = None  # float64 by the definition of the operation; None where only the shape is defined
    bound: Array | float = 0.0  # The largest error of each element, or one for all
    shape: tuple[int, ...] = ()  # The shape, where ``values`` is None
    dtypes: tuple[str, ...] = ()  # Names of the data types that it may have
    layout: str | None = None  # Name of the layout; None for either
    place: Any = None  # Its memory config; None where the library chooses
    norm: float | None = None  # The largest relative L2 error of all elements together; None for no such limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One call."""

    text: str  # Python that makes the call and names the tensors that it returns
    # What each tensor that the call returns or writes must be, by name; computed after the call
    results: Mapping[str, Callable[[], Expected]] = field(default_factory=dict)
    frees: tuple[str, ...] = ()  # Names of tensors that the call releases, or may release
    # What else the call says, by the name that the text gives it: what must be equal
    facts: Mapping[str, object] = field(default_factory=dict)
    opaque: tuple[str, ...] = ()  # Names of results whose values are the library's own matter, such as prepared weights
    # Why no result can be right; a strict device must refuse the call. Empty for a possible call.
    contradictory: str = ""
