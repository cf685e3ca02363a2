"""What would make a call faster: other configs, each planned, placed and timed on a copy of the device.

The search is bounded and its order fixed, so that the same call gets the same advice: first every change alone, then
the best one and every other on top of it, as long as that gains something.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from device.errors import ArgumentError, DeviceError
from ttsim.recording.changes import Attempt, arguments_source, attempts
from ttsim.report.cycles.advice import Change

TRIALS: Final = 64
EFFORT: Final = 5000  # of all trials together, so that large images and many slices do not take many seconds
LEAST_SHARE: Final = 0.01  # of the cycles: smaller gains are not told


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a call takes."""

    cycles: int  # All operations that have a model
    untimed: int  # Operations without one
    effort: int  # What finding out takes, in steps of plans or so
    scheme: str = ""  # The shard scheme that the library chose; empty if it chose none


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a search gave; the fields are those of `Advice`."""

    changes: tuple[Change, ...]
    together: Change | None
    at_a_price: tuple[Change, ...]
    tried: int


class Search:
    """Trials of one call.

    Attributes:
        tried: How many there were.
    """

    def __init__(
        self, function: Callable[..., Any], options: Mapping[str, Any], measure: Callable[[Mapping[str, Any]], Measured]
    ) -> None:
        """Begins with nothing tried.

        Args:
            function: What is called.
            options: Its keyword arguments.
            measure: What a call with other keyword arguments takes; raises what the call raises.
        """
        self.function = function
        self.options = dict(options)
        self.measure = measure
        self.tried = 0
        self.effort = 0

    def run(self, before: Measured) -> Found:
        """Everything that is worth telling of a call that takes so much."""
        singles = self._tried(attempts(self.function, self.options), self.options, before)
        free = _best_of_each([one for one in singles if not one[0].price], before)
        together = self._together(free[0], before) if free else None
        return Found(
            changes=tuple(_change(attempt, took, before) for attempt, took in free),
            together=together,
            at_a_price=tuple(
                _change(*one, before) for one in _best_of_each([one for one in singles if one[0].price], before)
            ),
            tried=self.tried,
        )

    def _together(self, first: tuple[Attempt, Measured], before: Measured) -> Change | None:
        """The best change, and more on top of it; None if nothing is gained by more."""
        attempt, best = first
        texts, used, options = [attempt.text], {attempt.kind}, {**self.options, **attempt.options}
        while True:
            others = (one for one in attempts(self.function, options) if one.kind not in used and not one.price)
            better = _best_of_each(self._tried(others, options, before), best)
            if not better:
                break
            attempt, best = better[0]
            texts.append(attempt.text)
            used.add(attempt.kind)
            options.update(attempt.options)
        if len(texts) == 1:
            return None
        changed = {name: value for name, value in options.items() if value is not self.options.get(name)}
        whole = Attempt(kind="together", text=", ".join(texts), options=changed)
        return _change(whole, best, before)

    def _tried(
        self, others: Iterable[Attempt], options: Mapping[str, Any], before: Measured
    ) -> list[tuple[Attempt, Measured]]:
        """What changed calls take; without those that do not fit, are refused, or hide operations without a model."""
        found = []
        for one in others:
            if self.tried >= TRIALS or self.effort >= EFFORT:
                break
            self.tried += 1
            try:
                took = self.measure({**options, **one.options})
            except (ArgumentError, DeviceError):
                self.effort += before.effort
                continue
            self.effort += took.effort
            if took.untimed <= before.untimed:
                other = took.scheme if took.scheme != before.scheme else ""
                then = f" (the library then chooses {other})" if other else ""
                found.append((replace(one, text=f"{one.text}{then}"), took))
        return found


def _best_of_each(found: Iterable[tuple[Attempt, Measured]], before: Measured) -> list[tuple[Attempt, Measured]]:
    """Of each kind the best change that is worth it, the best of all first."""
    best: dict[str, tuple[Attempt, Measured]] = {}
    for attempt, took in found:
        if took.cycles > (1 - LEAST_SHARE) * before.cycles:
            continue
        if attempt.kind not in best or took.cycles < best[attempt.kind][1].cycles:
            best[attempt.kind] = (attempt, took)
    return sorted(best.values(), key=lambda one: one[1].cycles)


def _change(attempt: Attempt, took: Measured, before: Measured) -> Change:
    return Change(
        kind=attempt.kind,
        text=attempt.text,
        arguments=arguments_source(attempt.options),
        cycles=took.cycles,
        saved_share=1 - took.cycles / before.cycles,
        price=attempt.price,
    )
