"""What a concatenation computes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from device.numbers.formats import Array
from device.plan import Work
from ops.meaning import ValuesReading, given


@dataclass(frozen=True, slots=True, kw_only=True)
class Concatenate(Work):
    """Tensors one behind the other.

    Attributes:
        axis: Along which.
        shapes: Of the tensors.
        groups: Parts that each is cut into along the axis: first the first parts of all, then the second, and so on.
    """

    axis: int
    shapes: tuple[tuple[int, ...], ...]
    groups: int = 1


def joined(work: Concatenate, inputs: Sequence[Array | None], reading: ValuesReading) -> Array:
    """The tensors, or their parts in turn, along the axis."""
    arrays = [given(one).reshape(shape) for one, shape in zip(inputs, work.shapes, strict=True)]
    parts = [np.split(array, work.groups, axis=work.axis) for array in arrays]
    return np.concatenate([part[group] for group in range(work.groups) for part in parts], axis=work.axis)
