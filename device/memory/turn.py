"""Whose turn it is at the memory of a device: one thread's at a time."""

from threading import Event, get_ident
from typing import Final

_HOLDER: Final = "holder"
_LONGEST_WAIT: Final = 0.05  # seconds between two looks, should an interrupt have kept a thread from telling the others


class Turn:
    """A lock that is its own record of who holds it, so that no interrupt comes between taking and recording.

    The record is an entry of a dict that holds the thread's identifier; to take the turn is to make the entry, in one
    step of the interpreter. Taking it again is harmless, and giving it up once gives it up.
    """

    __slots__ = ("_given", "_holder")

    def __init__(self) -> None:
        self._holder: dict[str, int] = {}
        self._given = Event()

    @property
    def mine(self) -> bool:
        """Whether this thread holds it."""
        return self._holder.get(_HOLDER) == get_ident()

    def take(self, *, wait: bool = True) -> bool:
        """Takes it, when the thread that holds it has given it up; False, without ``wait``, if another has it."""
        mine = get_ident()
        while self._holder.setdefault(_HOLDER, mine) != mine:
            if not wait:
                return False
            self._given.clear()
            if _HOLDER in self._holder:
                self._given.wait(_LONGEST_WAIT)
        return True

    def give(self) -> None:
        """Lets the next thread in; harmless for a thread that does not hold it."""
        if self.mine:
            self._holder.clear()
            if not self._given.is_set():  # someone waits, who looks at the holder after taking the flag down
                self._given.set()
