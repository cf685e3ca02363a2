"""Which points are looked into next, and by whom: what is likely to plan alike goes to one process, which remembers."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

from ttsim.study.points.point import Point

LONGEST_CHUNK: Final = 16  # points: what is lost at most with a process; sending them takes a hundredth of their time
CHUNKS_OF_A_WORKER: Final = 8  # at least, so that all end at about the same time

Chunk = tuple[Point, ...]


class Scheduler:
    """Points that nobody has looked into, by the layer and device they are of.

    Each lane, which is one process as long as all are busy, takes chunks of a layer of its own; one that finds none
    helps with the layer that most is left of.

    Attributes:
        families: Chunks of each layer on each device, in order.
    """

    def __init__(self, points: Sequence[Point], lanes: int) -> None:
        """Begins with nothing taken.

        Args:
            points: All points; those of a layer on a device stand together.
            lanes: How many there are.
        """
        size = max(1, min(LONGEST_CHUNK, len(points) // (lanes * CHUNKS_OF_A_WORKER)))
        if any(point.values != "off" for point in points):
            size = 1  # numbers are computed, which takes long
        same = groupby(points, key=lambda point: (point.layer.name, point.spec.name))
        self.families = [deque(batched(list(family), size)) for _, family in same]
        self._family_of: dict[int, int] = {}

    def take(self, lane: int) -> Chunk | None:
        """The next chunk for a lane; None if there is none."""
        own = self._family_of.get(lane)
        if own is None or not self.families[own]:
            own = self._next(set(self._family_of.values()))
            if own is None:
                return None
            self._family_of[lane] = own
        return self.families[own].popleft()

    def give_back(self, lane: int, chunk: Chunk) -> None:
        """Takes back what could not be sent off."""
        self.families[self._family_of[lane]].appendleft(chunk)

    def __bool__(self) -> bool:
        """Whether anything is left."""
        return any(self.families)

    def _next(self, taken: Iterable[int]) -> int | None:
        """The first family that is left and not taken, or else the one that most is left of."""
        left = [index for index, family in enumerate(self.families) if family]
        free = [index for index in left if index not in taken]
        return free[0] if free else max(left, key=lambda index: len(self.families[index]), default=None)


def batched(points: Sequence[Point], size: int) -> Iterator[Chunk]:
    """Points in order, so many at a time; the last are those that are left."""
    return (tuple(points[at : at + size]) for at in range(0, len(points), size))
