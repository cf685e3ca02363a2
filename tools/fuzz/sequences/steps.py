"""One step of a sequence: a call as Python text, and what it must give."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from device.numbers.formats import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a tensor must be after a call.

    Attributes:
        values: float64 by the definition of the operation; None where only the shape is defined.
        bound: The largest error of each element, or one for all.
        shape: The shape, where ``values`` is None.
        dtypes: Names of the data types that it may have.
        layout: Name of the layout; None for either.
        place: Its memory config; None where the library chooses.
        norm: The largest relative L2 error of all elements together; None for no such limit.
    """

    values: Array | None = None
    bound: Array | float = 0.0
    shape: tuple[int, ...] = ()
    dtypes: tuple[str, ...] = ()
    layout: str | None = None
    place: Any = None
    norm: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One call.

    Attributes:
        text: Python that makes the call and names the tensors that it returns.
        results: What each tensor that the call returns or writes must be, by name; computed after the call.
        frees: Names of tensors that the call releases, or may release.
        facts: What else the call says, by the name that the text gives it: what must be equal.
        opaque: Names of results whose values are the library's own matter, such as prepared weights.
        contradictory: Why no result can be right; a strict device must refuse the call. Empty for a possible call.
    """

    text: str
    results: Mapping[str, Callable[[], Expected]] = field(default_factory=dict)
    frees: tuple[str, ...] = ()
    facts: Mapping[str, object] = field(default_factory=dict)
    opaque: tuple[str, ...] = ()
    contradictory: str = ""
