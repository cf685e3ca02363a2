"""Arrays of a record: the random ones that calls take, and hashes of those that they return."""

import hashlib
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
DIGITS: Final = 20  # of a hash, hexadecimal


class Numbers:
    """The arrays of calls: random ones, or zeros where values are off and nobody looks at them."""

    def __init__(self, *, random: bool) -> None:
        self.random = random

    def normal(self, seed: int, *shapes: Sequence[int], scales: Sequence[float] = ()) -> Any:
        """float32 arrays of normally distributed numbers from one generator, each times its scale.

        Returns:
            An array for a single shape, else a list.
        """
        rng = np.random.default_rng(seed)
        made = [
            (rng.standard_normal(shape) * scale).astype(np.float32) if self.random else zeros(shape)
            for shape, scale in zip(shapes, scales or [1.0] * len(shapes), strict=True)
        ]
        return made if len(made) > 1 else made[0]

    def integers(self, seed: int, shape: Sequence[int]) -> Array:
        """int32 numbers from 0 to 99."""
        return np.random.default_rng(seed).integers(0, 100, shape, dtype=np.int32)


def zeros(shape: Sequence[int]) -> Array:
    """float32 zeros that take no memory."""
    return np.broadcast_to(np.float32(0), tuple(shape))


def array_text(array: Array) -> str:
    """Type, shape and hash of the bits of an array; all numbers where there are at most eight."""
    bits = np.ascontiguousarray(array)
    digest = hashlib.sha256(bits.tobytes()).hexdigest()[:DIGITS]
    shown = f" {bits.ravel().tolist()}" if bits.size <= 8 else ""
    return f"{bits.dtype} {list(bits.shape)} {digest}{shown}"


def array_lines(array: Array) -> str:
    """`array_text` of an array, and of each image of a batch, so that a difference can be located."""
    rows = [f"[{index}] {array_text(one)}" for index, one in enumerate(array)] if 1 < len(array) <= 8 else []
    return "\n".join([array_text(array), *rows])


def column_text(column: Sequence[Any]) -> str:
    """A column of figures as their sum and a hash, one of words as the different words and a hash of their order."""
    if all(isinstance(one, int | float) for one in column):
        return f"sum {sum(column)!r} hash {_digest(list(column))}"
    words = list(dict.fromkeys(map(repr, column)))
    return f"{', '.join(words)} hash {_digest([words.index(repr(one)) for one in column])}"


def _digest(values: list[Any]) -> str:
    return hashlib.sha256(repr(values).encode()).hexdigest()[:DIGITS]
