"""A short text for a plan: equal plans have equal ones, in every process and on every machine."""

from collections.abc import Callable, Mapping, Set
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cache
from hashlib import sha256
from operator import attrgetter
from typing import Any, Final

import numpy as np

from device.plan import Plan
from ops.programs.conv2d.parallel_config import ConvOptions

DIGITS: Final = 16
ASKED: Final[Mapping[type, frozenset[str]]] = {  # fields that a layout stands beside, which says what came of them
    ConvOptions: frozenset(
        {"act_block_h_override", "core_grid", "force_split_reader", "output_grid", "transpose_shards"}
    ),
}
PLAIN: Final = frozenset({int, bool, str, float, type(None), range})


def plan_key(plan: Plan) -> str:
    """The first digits of a SHA-256 over what a plan does.

    What was asked for and chosen, and why, does not count (`Plan.decisions`, `ASKED`), only what came of it: a config
    that says what the planner would choose has the same plan.
    """
    return sha256(canonical(replace(plan, decisions=())).encode()).hexdigest()[:DIGITS]


def canonical(value: object) -> str:
    """A value of a plan as text, equal for equal values: fields that do not compare are left out."""
    return _Text().of(value)


@cache
def _compared(kind: type) -> Callable[[Any], tuple[Any, ...]]:
    """What gives the fields of a dataclass that two values are compared by, without those that only ask."""
    names = [one.name for one in fields(kind) if one.compare and one.name not in ASKED.get(kind, ())]
    if not names:
        return lambda value: ()
    if len(names) == 1:
        return lambda value: (getattr(value, names[0]),)
    return attrgetter(*names)


class _Text:
    """The text of a value; an object that occurs often in it is written out once.

    Attributes:
        known: Texts of objects by their identity, each with the object, so that it lives as long.
    """

    def __init__(self) -> None:
        self.known: dict[int, tuple[object, str]] = {}

    def of(self, value: object) -> str:
        """The text of a value."""
        if type(value) in PLAIN:
            return repr(value)
        found = self.known.get(id(value))
        if found is None:
            found = self.known[id(value)] = (value, self._written(value))
        return found[1]

    def _written(self, value: object) -> str:
        if isinstance(value, Enum):
            return f"{type(value).__qualname__}.{value.name}"
        kind: type = type(value)
        if isinstance(value, tuple | list):
            name = "" if kind in (tuple, list) else kind.__qualname__
            return f"{name}[{','.join(map(self.of, value))}]"
        if is_dataclass(kind):
            return f"{kind.__module__}.{kind.__qualname__}({','.join(map(self.of, _compared(kind)(value)))})"
        if isinstance(value, Mapping):
            items = sorted(f"{self.of(key)}:{self.of(item)}" for key, item in value.items())
            return f"{{{','.join(items)}}}"
        if isinstance(value, Set):
            return f"{{{','.join(sorted(map(self.of, value)))}}}"
        if isinstance(value, np.ndarray):
            return f"{value.dtype.str}{value.shape}{sha256(value.tobytes()).hexdigest()}"
        if isinstance(value, np.dtype | np.generic | type):
            return repr(value)
        raise AssertionError(f"a plan holds a {type(value).__name__}, which has no text; give it one in plan_key.py")
