"""Work that is dealt to processes."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def each(function: Callable[[T], R], items: Sequence[T], processes: int | None = None) -> list[R]:
    """A function of every item, in so many processes (None: one on each core); 1 works in this one."""
    workers = min(processes or os.cpu_count() or 1, len(items))
    if workers <= 1:
        return list(map(function, items))
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        return list(pool.map(function, items))
