"""A value that several pieces of work share, held no longer than they need it."""

from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

ValueT = TypeVar("ValueT")


class Shared(Generic[ValueT]):
    """What is made when it is taken first, by whatever thread, and given up as it is taken last.

    Args:
        make: Makes it.
        uses: How often it will be taken.
    """

    __slots__ = ("_lock", "_made", "_make", "_uses")

    def __init__(self, make: Callable[[], ValueT], *, uses: int) -> None:
        self._make = make
        self._uses = uses
        self._lock = Lock()
        self._made: ValueT | None = None

    def taken(self) -> ValueT:
        """The value; after the last of its uses it lives as long as they keep it.

        Raises:
            ValueError: It was taken as often as was said.
        """
        with self._lock:
            if not self._uses:
                raise ValueError("Shared: it is taken more often than its uses say, and is gone by then")
            made = self._make() if self._made is None else self._made
            self._uses -= 1
            self._made = made if self._uses else None
            return made
