"""Pieces of work side by side: a thread for each core, each with products of BLAS that stay in it.

BLAS deals a product to threads of its own, which turn while they wait for each other. Products of a network's layers
are short, so that on two cores that are not idle nine tenths of the time went there. Pieces are as many, whatever the
number of cores, and each is computed in one thread: neither changes a bit.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Final, TypeVar

import numpy as np

from device.host.blas import library

PieceT = TypeVar("PieceT")
NAMES: Final = ("scipy_openblas_{}_num_threads64_", "openblas_{}_num_threads64_", "openblas_{}_num_threads")
_ONE_AT_A_TIME: Final = Lock()  # the number of BLAS's threads belongs to the whole process


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def in_turn(work: Callable[[PieceT], None], pieces: Iterable[PieceT]) -> None:
    """One piece after the other, in this thread."""
    for piece in pieces:
        work(piece)


def side_by_side(work: Callable[[PieceT], None], pieces: Iterable[PieceT]) -> None:
    """All pieces, begun in order, on all cores, this thread's included; in turn where numpy's BLAS is not OpenBLAS.

    Args:
        work: Does a piece; it must not depend on others.
        pieces: What there is to do.

    Raises:
        Exception: The first that a piece raises; pieces that were not begun are left.
    """
    every = list(pieces)
    blas = openblas() if len(every) > 1 and cores() > 1 else None
    if blas is None:
        in_turn(work, every)
        return

    waiting, turn, raised = enumerate(every), Lock(), dict[int, BaseException]()

    def take_pieces() -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            while not raised:
                with turn:
                    taken = next(waiting, None)
                if taken is None:
                    return
                number, one = taken
                try:
                    work(one)
                except BaseException as error:
                    raised[number] = error

    with _one_thread(*blas):
        helpers = [_helpers(cores() - 1).submit(take_pieces) for _ in range(min(cores(), len(every)) - 1)]
        try:
            take_pieces()
        except BaseException as error:  # an interrupt between two pieces
            raised[len(every)] = error
        wait([helper for helper in helpers if not helper.cancel()])
    if raised:
        raise raised[min(raised)]


@cache
def _helpers(threads: int) -> ThreadPoolExecutor:
    """Threads that wait for pieces: to start one takes a tenth of a small layer's time."""
    return ThreadPoolExecutor(threads, thread_name_prefix="pieces")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_helpers.cache_clear)  # threads stay behind


@cache
def openblas() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """Functions that tell and set the number of threads of numpy's OpenBLAS; None if it has another BLAS."""
    blas = library()
    for name in NAMES:
        if hasattr(blas, name.format("get")) and hasattr(blas, name.format("set")):
            return getattr(blas, name.format("get")), getattr(blas, name.format("set"))
    return None


@contextmanager
def _one_thread(threads: Callable[[], int], set_threads: Callable[[int], None]) -> Iterator[None]:
    """One thread for each product of BLAS meanwhile."""
    with _ONE_AT_A_TIME:
        before = threads()
        set_threads(1)
        try:
            yield
        finally:
            set_threads(before)
