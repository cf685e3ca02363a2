"""Chooses machines of a large design with a multi-objective optimizer (optuna) instead of evaluating all."""

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from itertools import pairwise
from random import Random
from typing import Any, Final

from device.errors import ArgumentError

BATCH: Final = 8  # machines that are chosen together, before the next ones learn from them
TRIES: Final = 20  # proposals in a row of machines that are known already, before a random one is taken
WORSE: Final = 2.0  # a machine that does not run counts as so many times as slow as the slowest

Aims = tuple[float, ...]  # what is to be small: time, then costs


class Explorer:
    """Proposes machines, and receives their objectives; deterministic for the same seed and the same answers.

    Args:
        places: For each machine, the indices of its values on the axes.
        sizes: Number of values on each axis, by name.
        aims: Number of objectives.
        seed: Seed of the optimizer.
    """

    def __init__(self, places: Sequence[tuple[int, ...]], sizes: Mapping[str, int], *, aims: int, seed: int) -> None:
        try:
            optuna: Any = import_module("optuna")
        except ImportError as error:
            raise ArgumentError("design: evaluations needs optuna; pip install 'ttsim[optuna]'") from error
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True)
        self._study = optuna.create_study(directions=["minimize"] * aims, sampler=sampler)
        self._sizes, self._numbers = sizes, {place: number for number, place in enumerate(places)}
        self._random = Random(seed)
        self._aims: dict[int, Aims | None] = {}  # Of the machines that are known; None where a layer does not run
        self._waiting: list[tuple[Any, int | None]] = []  # Trials, with machines; None where values contradict
        for corner in _corners(sizes):
            self._study.enqueue_trial(corner)

    def ask(self, most: int) -> list[int]:
        """Numbers of machines without a result, at most `most` and `BATCH`; fewer only if all others have results."""
        asked: list[int] = []
        tries = 0
        while len(asked) < min(most, BATCH, len(self._numbers) - len(self._aims)):
            trial = self._study.ask()
            place = tuple(trial.suggest_int(name, 0, size - 1) for name, size in self._sizes.items())
            number = self._numbers.get(place)
            self._waiting.append((trial, number))
            tries += 1
            if number is not None and number not in self._aims and number not in asked:
                asked.append(number)
                tries = 0
            elif tries >= TRIES:
                left = [other for other in self._numbers.values() if other not in self._aims and other not in asked]
                asked.append(self._random.choice(left))
                tries = 0
        return asked

    def tell(self, aims: Mapping[int, Aims | None]) -> None:
        """Receives the objectives of proposed machines; None for a machine that does not run all layers."""
        self._aims |= aims
        known = [own for own in self._aims.values() if own is not None]
        for trial, number in self._waiting if known else ():
            own = None if number is None else self._aims[number]
            self._study.tell(trial, own or [WORSE * max(each) for each in zip(*known, strict=True)])
        self._waiting = [] if known else self._waiting


def _corners(sizes: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """The machines with the first or the last value on all axes, and those with one axis at the other end."""
    for end in (0, 1):
        yield {name: end * (size - 1) for name, size in sizes.items()}
    for other in sizes:
        for end in (0, 1):
            yield {name: (1 - end if name == other else end) * (size - 1) for name, size in sizes.items()}


def hypervolume(aims: Sequence[Aims], reference: Aims) -> float:
    """The hypervolume that points dominate up to a reference point."""
    inside = [own for own in aims if all(map(float.__lt__, own, reference))]
    if len(reference) == 1:
        return max((reference[0] - own for (own,) in inside), default=0.0)
    heights = sorted({own[-1] for own in inside})
    steps = pairwise([*heights, reference[-1]])
    below = ([own[:-1] for own in inside if own[-1] <= low] for low in heights)
    return sum((high - low) * hypervolume(own, reference[:-1]) for (low, high), own in zip(steps, below, strict=True))
