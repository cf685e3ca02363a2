"""Random choices that are recorded, so that a sequence can be run again with some of them changed."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")


class Choices:
    """The choices of one step: drawn from a generator, or replayed from a record.

    A replayed choice that has become impossible turns into the nearest possible one, and a missing one into 0. The
    simplest option of every choice is therefore its first: shrinking a sequence means lowering numbers.

    Attributes:
        taken: The choices so far, as numbers.
    """

    def __init__(self, source: np.random.Generator | Sequence[int]) -> None:
        self._generator = source if isinstance(source, np.random.Generator) else None
        self._recorded: Iterator[int] = iter(() if isinstance(source, np.random.Generator) else source)
        self.taken: list[int] = []

    def below(self, limit: int) -> int:
        """A number from 0 to ``limit - 1``."""
        if self._generator is None:
            number = min(next(self._recorded, 0), limit - 1)
        else:
            number = int(self._generator.integers(limit))
        self.taken.append(number)
        return number

    def between(self, least: int, most: int) -> int:
        """A number from ``least`` to ``most``."""
        return least + self.below(most - least + 1)

    def chance(self, probability: float) -> bool:
        """True with a probability, which counts in hundredths."""
        return self.below(100) >= 100 - round(100 * probability)

    def pick(self, options: Sequence[T]) -> T:
        """One of several options."""
        return options[self.below(len(options))]

    def some(self, options: Sequence[T], probability: float) -> list[T]:
        """Some of several options, each with a probability."""
        return [option for option in options if self.chance(probability)]

    def member(self, numbers: Sequence[int]) -> int:
        """One of several numbers, recorded as itself: removing others does not change the choice."""
        if self._generator is None:
            recorded = next(self._recorded, 0)
            number = recorded if recorded in numbers else numbers[-1]
        else:
            number = numbers[int(self._generator.integers(len(numbers)))]
        self.taken.append(number)
        return number
