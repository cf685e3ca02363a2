"""Items of work in parallel: a thread for each core, and products of BLAS that stay in their thread.

BLAS splits a product among its own threads, which spin while they wait for each other. Products of a network's layers
are short: on two busy cores nine tenths of the time went to this. The number of items and of threads changes no bit.
"""

import ctypes
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from queue import SimpleQueue
from threading import Lock, Thread, local
from typing import Any, Final, Generic, TypeVar

import numpy as np

PieceT = TypeVar("PieceT")
NAMES: Final = ("scipy_openblas_{}_num_threads64_", "openblas_{}_num_threads64_", "openblas_{}_num_threads")
_THREAD: Final = local()  # knows whether it does a piece
_ONE_AT_A_TIME: Final = Lock()  # the number of BLAS's threads belongs to the whole process


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def locked(op: Callable[[PieceT], None], items: Iterable[PieceT]) -> None:
    """Runs ``op`` on one item after the other, in this thread."""
    for item in items:
        op(item)


def on_all_cores(op: Callable[[PieceT], None], items: Iterable[PieceT], threads: int | None = None) -> None:
    """Runs ``op`` on all items, begun in order, in threads that use no BLAS; nested calls run in the item's own thread.

    Items must not depend on each other. ``threads`` includes the calling one; None: one for each core. The first
    exception of an item is raised; items that had not begun are left out.
    """
    every = list(items)
    workers = min(threads or cores(), len(every))
    if workers < 2 or _within_piece():
        locked(op, every)
        return

    dealt = _Dealt(op, every)
    _helpers(workers - 1).call(dealt.help_out)
    try:
        dealt.take()
    except BaseException as error:  # an interrupt between two pieces
        dealt.raised[len(every)] = error
    finally:
        _THREAD.within_piece = False
    dealt.wait_for_helpers()
    dealt.reraise()


class _Dealt(Generic[PieceT]):
    """Items that several threads take one by one; ``raised`` are errors by the numbers of their items."""

    __slots__ = ("_helpers", "_left", "_over", "_turn", "_waiting", "_work", "raised")

    def __init__(self, op: Callable[[PieceT], None], items: list[PieceT]) -> None:
        self.raised: dict[int, BaseException] = {}
        self._work = op
        self._waiting = enumerate(items)
        self._turn = Lock()
        self._helpers = 0
        self._over = False
        self._left: SimpleQueue[None] = SimpleQueue()

    def take(self) -> None:
        """Does items until none waits, or one raised an error."""
        _THREAD.within_piece = True
        with np.errstate(over="ignore", invalid="ignore"):
            while not self.raised:
                with self._turn:
                    taken = next(self._waiting, None)
                if taken is None:
                    return
                number, item = taken
                try:
                    self._work(item)
                except BaseException as error:
                    self.raised[number] = error

    def help_out(self) -> None:
        """Takes items in another thread, unless all are done by then."""
        with self._turn:
            if self._over:
                return
            self._helpers += 1
        try:
            self.take()
        finally:
            self._left.put(None)

    def reraise(self) -> None:
        """Raises the error of the first item that raised one, if any, and forgets it.

        The frames in its traceback hold what was computed with, which must not live on with a helper that comes late.
        """
        error = self.raised[min(self.raised)] if self.raised else None
        self.raised = {}
        try:
            if error is not None:
                raise error
        finally:
            del error

    def wait_for_helpers(self) -> None:
        """Returns when all that began to help have left; no other will begin."""
        with self._turn:
            self._over = True
        for _ in range(self._helpers):
            self._left.get()


def side_by_side(op: Callable[[PieceT], None], items: Iterable[PieceT]) -> None:
    """`on_all_cores` with one thread for each product of BLAS; in turn where numpy's BLAS is not OpenBLAS."""
    every = list(items)
    blas = openblas() if len(every) > 1 and free_threads() > 1 else None
    if blas is None:
        locked(op, every)
        return
    threads, set_threads = blas
    with _ONE_AT_A_TIME:
        before = threads()
        set_threads(1)
        try:
            on_all_cores(op, every)
        finally:
            set_threads(before)


def free_threads() -> int:
    """The number of threads for new work: one for each core, or only this one if it does an item already."""
    return 1 if _within_piece() else cores()


def _within_piece() -> bool:
    """Whether this thread runs an item."""
    return getattr(_THREAD, "within_piece", False)


class _Helpers:
    """Threads that wait for work: to start one takes a tenth of a small layer's time.

    Whoever wakes them goes on working. A system that wakes a thread on the core of the one that woke it lets one of
    them wait for the other, a millisecond or longer, until it moves one away; so helpers are kept off that core.
    """

    def __init__(self, threads: int) -> None:
        self._work: SimpleQueue[Callable[[], None]] = SimpleQueue()
        started = [Thread(target=self._wait, name=f"pieces {number}", daemon=True) for number in range(threads)]
        for thread in started:
            thread.start()
        # Numbers as the operating system counts threads.
        self._numbers = [thread.native_id for thread in started if thread.native_id is not None]
        self._others: set[int] = set()  # cores they may run on, once they are kept off one

    def call(self, function: Callable[[], None]) -> None:
        """Lets each thread call a function that raises nothing, or as many as it takes while others are busy."""
        self._keep_off_this_core()
        for _ in self._numbers:
            self._work.put(function)

    def _wait(self) -> None:
        while True:
            self._work.get()()

    def _keep_off_this_core(self) -> None:
        """Lets the threads run on other cores only than the one that this thread is on, where the system says which."""
        here = _core_of_this_thread()
        if here is None:
            return
        others = os.sched_getaffinity(0) - {here()}
        if others and others != self._others:
            self._others = others
            for number in self._numbers:
                with suppress(OSError):  # not allowed: it may be slower
                    os.sched_setaffinity(number, others)


@cache
def _core_of_this_thread() -> Callable[[], int] | None:
    """A function that tells the core its thread runs on; None where there is none, or threads cannot be kept off it."""
    if sys.platform != "linux":
        return None
    try:
        return getattr(ctypes.CDLL(None), "sched_getcpu", None)
    except OSError:
        return None


@cache
def _helpers(threads: int) -> _Helpers:
    """Helpers for a caller that shares its work with so many threads."""
    return _Helpers(threads)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_helpers.cache_clear)  # threads stay behind


@cache
def numpy_library() -> Any:
    """The library that numpy's BLAS was loaded with; None for an older numpy, or one that is built in another way."""
    try:
        return ctypes.CDLL(sys.modules["numpy._core._multiarray_umath"].__file__)
    except (KeyError, OSError, TypeError):
        return None


@cache
def openblas() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """Functions that tell and set the number of threads of numpy's OpenBLAS; None if it has another BLAS."""
    library = numpy_library()
    for name in NAMES:
        if hasattr(library, name.format("get")) and hasattr(library, name.format("set")):
            return getattr(library, name.format("get")), getattr(library, name.format("set"))
    return None


ValueT = TypeVar("ValueT")


class Shared(Generic[ValueT]):
    """A value that the first of ``uses`` takers makes, in whatever thread, and that the last one gives up."""

    __slots__ = ("_lock", "_make", "_uses", "_value")

    def __init__(self, make: Callable[[], ValueT], *, uses: int) -> None:
        self._make = make
        self._uses = uses
        self._lock = Lock()
        self._value: ValueT | None = None

    def taken(self) -> ValueT:
        """The value; after the last of its uses only the takers keep it alive. One more use is a ValueError."""
        with self._lock:
            if not self._uses:
                raise ValueError("Shared: it is taken more often than its uses say, and is gone by then")
            result = self._make() if self._value is None else self._value
            self._uses -= 1
            self._value = result if self._uses else None
            return result


DEPTH: Final = 448  # what OpenBLAS's kernels for AVX-512 add up in one go, of small matrices and of large ones
_MULTIPLE: Final = 16


def depth_of_part(depth: int) -> int:
    """How many of so many products are added up in one go, as OpenBLAS with AVX-512 does where matrices are large."""
    if depth >= 2 * DEPTH:
        return DEPTH
    return depth if depth <= DEPTH else (depth // 2 + _MULTIPLE - 1) // _MULTIPLE * _MULTIPLE


PART_ELEMENTS: Final = 1 << 16  # a quarter of a MiB in float32


def parts_of(rows: int, columns: int, elements: int = PART_ELEMENTS) -> Iterator[slice]:
    """Slices of rows of ``columns`` elements, each of about ``elements`` elements and at least one row."""
    step = max(1, elements // max(1, columns))
    return (slice(first, min(first + step, rows)) for first in range(0, rows, step))
