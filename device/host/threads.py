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
    """Runs ``op`` on the items in sequence, in this thread."""
    for item in items:
        op(item)


def on_all_cores(op: Callable[[PieceT], None], items: Iterable[PieceT], threads: int | None = None) -> None:
    """Runs ``op`` on all items, started in order, in threads without BLAS; nested calls run in the item's thread.

    Items must be independent. ``threads`` includes the calling thread; None means one per core. The first exception of
    an item is raised; items that had not started are skipped.
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
    """Items that several threads take one by one; ``raised`` are errors by item number."""

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
        """Processes items until none is left, or one raised an error."""
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
        """Processes items in another thread, unless all are done."""
        with self._turn:
            if self._over:
                return
            self._helpers += 1
        try:
            self.take()
        finally:
            self._left.put(None)

    def reraise(self) -> None:
        """Raises the error of the first failing item, if any, and drops it.

        The frames of its traceback hold the operands, which a late helper thread must not keep alive.
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
    """`on_all_cores` with one thread per BLAS product; sequentially if numpy's BLAS is not OpenBLAS."""
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
    """The number of threads for new work: one per core, or 1 if this thread already processes an item."""
    return 1 if _within_piece() else cores()


def _within_piece() -> bool:
    """Whether this thread runs an item."""
    return getattr(_THREAD, "within_piece", False)


class _Helpers:
    """A pool of waiting threads; starting a thread takes a tenth of a small layer's time.

    The waking thread continues to work. If the system wakes a thread on the core of the waking thread, one of them
    waits a millisecond or longer until the system moves it; so helpers are kept off that core.
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
        """Makes idle threads call a function that must not raise."""
        self._keep_off_this_core()
        for _ in self._numbers:
            self._work.put(function)

    def _wait(self) -> None:
        while True:
            self._work.get()()

    def _keep_off_this_core(self) -> None:
        """Excludes the core of this thread from the helper threads, if the system tells the core."""
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
    """A function that returns the core of its thread; None if unsupported, or if affinity cannot be set."""
    if sys.platform != "linux":
        return None
    try:
        return getattr(ctypes.CDLL(None), "sched_getcpu", None)
    except OSError:
        return None


@cache
def _helpers(threads: int) -> _Helpers:
    """The helper threads for a caller that uses this number of threads."""
    return _Helpers(threads)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_helpers.cache_clear)  # threads stay behind


@cache
def numpy_library() -> Any:
    """The library of numpy's BLAS; None for an older numpy, or a different build."""
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
    """A value that the first of ``uses`` users computes, in any thread, and the last user releases."""

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
    """The number of products that are summed at a time, as OpenBLAS with AVX-512 does for large matrices."""
    if depth >= 2 * DEPTH:
        return DEPTH
    return depth if depth <= DEPTH else (depth // 2 + _MULTIPLE - 1) // _MULTIPLE * _MULTIPLE


PART_ELEMENTS: Final = 1 << 16  # a quarter of a MiB in float32


def parts_of(rows: int, columns: int, elements: int = PART_ELEMENTS) -> Iterator[slice]:
    """Slices of rows of ``columns`` elements, each of about ``elements`` elements and at least one row."""
    step = max(1, elements // max(1, columns))
    return (slice(first, min(first + step, rows)) for first in range(0, rows, step))
