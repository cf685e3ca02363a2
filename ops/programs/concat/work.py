"""What a concatenation computes."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

import numpy as np

from device.host.parts import parts_of
from device.numbers.formats import Array, bit_patterns
from device.plan import Work
from ops.meaning import ValuesReading, given

COPIED_TOGETHER: Final = 1 << 20  # numbers that one thread copies at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Concatenate(Work):
    """Tensors one behind the other."""

    axis: int
    shapes: tuple[tuple[int, ...], ...]
    # Parts that each is cut into along the axis: first the first parts of all, then the second, and so on
    groups: int = 1


def joined(work: Concatenate, inputs: Sequence[Array | None], reading: ValuesReading) -> Array:
    """The tensors, or their parts in turn, along the axis."""
    lead, total = prod(work.shapes[0][: work.axis]), sum(shape[work.axis] for shape in work.shapes)
    dtype = np.result_type(*(given(one).dtype for one in inputs))
    rows = [bit_patterns(given(one).astype(dtype, copy=False)).reshape(lead, -1) for one in inputs]
    shape = (*work.shapes[0][: work.axis], total, *work.shapes[0][work.axis + 1 :])
    result = np.empty(shape, dtype)
    target = bit_patterns(result).reshape(lead, -1)

    def copy(some: slice) -> None:
        end = 0
        for group in range(work.groups):
            for one in rows:
                width = one.shape[1] // work.groups
                target[some, end : end + width] = one[some, group * width : (group + 1) * width]
                end += width

    reading.arithmetic.each(copy, parts_of(lead, target.shape[1], COPIED_TOGETHER))
    return result
