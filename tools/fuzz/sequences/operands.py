"""Operands that a step makes for its own call."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from device.numbers.formats import Array
from tools.fuzz.sequences.places import named
from tools.fuzz.sequences.state import BLOCKS, INTEGERS, Draft
from tools.fuzz.sequences.steps import Expected


class Operand(NamedTuple):
    """A tensor that is made in front of a call."""

    name: str
    text: str  # The line that makes the tensor
    values: Array  # float64 of what it holds
    dtype: str  # Its data type

    @property
    def result(self) -> Callable[[], Expected]:
        """What the tensor must be."""
        made = Expected(values=self.values, dtypes=(self.dtype,))
        return lambda: made


def operand(
    draft: Draft, suffix: str, sides: tuple[int, ...], dtype: str, *, layout: str = "TILE", where: str | None = None
) -> Operand:
    """A tensor of random numbers.

    Args:
        suffix: What its name ends in.
        dtype: Its data type.
        where: Its memory config as text; None for a tensor on the host.
    """
    layout = "TILE" if dtype in BLOCKS else layout
    kind = "integers" if dtype in INTEGERS else "normal"
    numbers = f'numbers({draft.choices.below(1000)}, {sides}, "{kind}")'
    name = f"{draft.name}{suffix}"
    host = f"ttsim.from_numpy({numbers}, ttsim.{dtype}, layout=ttsim.{layout}_LAYOUT"
    values = np.asarray(draft.evaluated(f"{host})").to_numpy(), np.float64)
    place = "" if where is None else named(device="device", memory_config=where)
    return Operand(name, f"{name} = {host}{place})\n", values, dtype)
