"""Who looks into points: this process, processes of its own, or an engine that runs already, behind one interface."""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from multiprocessing import connection, get_context, parent_process, resource_tracker
from threading import Thread, current_thread, main_thread
from typing import Any, Final

from device.errors import ArgumentError, shown
from device.spec.device_spec import DeviceSpec
from ttsim.study.points.point import Point, evaluator
from ttsim.study.points.row import Row
from ttsim.study.points.version import model_version

# One thread each: as many processes as cores share the cores.
THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
CONNECT_SECONDS: Final = 10
FEW: Final = 64  # quick points, which are looked into sooner than a process is started


@dataclass(frozen=True, slots=True, kw_only=True)
class PointExecutor:
    """Who looks into points."""

    executor: Callable[[], Executor]  # Makes an executor; asked again where one broke
    # How many chunks are under way at once: one for each process of this machine, so that none waits in the process of
    # another; two for each worker elsewhere, so that none waits for the network
    lanes: int
    where: str
    there: Callable[[], bool] = lambda: True  # Whether it can still answer; one that cannot is not waited for


class InProcess(Executor):
    """Runs what is submitted at once, in this thread."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """A future that is done; what interrupts the thread is not caught."""
        made: Future[Any] = Future()
        try:
            made.set_result(fn(*args, **kwargs))
        except Exception as error:
            made.set_exception(error)
        return made


def look_into(points: Sequence[Point], model: str) -> list[Row]:
    """The rows of some points, in order; runs wherever the crew is.

    Raises:
        ArgumentError: The sources there are not those of the model that asks.
    """
    if model_version() != model:
        raise ArgumentError(
            f"a worker has another version of ttsim (model {model_version()}) than this process (model {model}); "
            "install the same on both, and start the workers again"
        )
    known = evaluator()
    return [known.row(replace(point, spec=same_spec(point.spec))) for point in points]


@lru_cache(maxsize=64)
def same_spec(spec: DeviceSpec) -> DeviceSpec:
    """The first of equal devices that this process saw: what was worked out of its figures stays with it."""
    return spec


@contextmanager
def crew_of(*, processes: int | None, scheduler: str | None, quick: int | None = None) -> Iterator[PointExecutor]:
    """A crew, as long as the ``with`` block lasts.

    Args:
        processes: How many; 1 for this process alone, None for one on each core where there is much to do.
        scheduler: Address of a scheduler of dask.distributed, such as tcp://10.0.0.1:8786, whose workers are the crew.
        quick: How many points there are, if each is looked into quickly; None where one takes long.

    Raises:
        ArgumentError: There cannot be so many processes; dask.distributed is missing, or no scheduler answers.
    """
    if scheduler is not None:
        if processes is not None:
            raise ArgumentError("sweep: give processes or a scheduler, not both; a scheduler has workers of its own")
        with _cluster(scheduler) as crew:
            yield crew
        return
    count = _usual_count(quick) if processes is None else processes
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise ArgumentError(f"processes must be an integer of at least 1, not {shown(count)}")
    if count == 1:
        yield PointExecutor(executor=InProcess, lanes=1, where="in this process")
        return
    with _one_thread_each():
        yield PointExecutor(executor=lambda: _pool(count), lanes=count, where=f"in {count} processes")


def _usual_count(quick: int | None) -> int:
    """Processes where nobody says how many."""
    if quick is not None and quick <= FEW:
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Pool(ProcessPoolExecutor):
    """Processes that the keyboard does not interrupt, not even while they start."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """A future; a process that is started for it is started to the end."""
        with _deaf_children():
            return super().submit(fn, *args, **kwargs)


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Processes that are started meanwhile inherit that SIGINT is blocked; this one hears of signals afterwards."""
    if current_thread() is not main_thread() or not hasattr(signal, "pthread_sigmask"):
        yield  # which the keyboard never interrupts, or which cannot block it
        return
    resource_tracker.ensure_running()  # were it started with the first process, it would lift the block
    heard: list[int] = []
    heard_of = [one for one in (signal.SIGINT, signal.SIGTERM) if callable(signal.getsignal(one))]
    handlers = {one: signal.signal(one, lambda number, _: heard.append(number)) for one in heard_of}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for one, handler in handlers.items():
            signal.signal(one, handler)
        if heard:
            signal.raise_signal(heard[0])


def _pool(count: int) -> Executor:
    """Processes that are started afresh, not forked: threads and locks of this one are none of theirs."""
    return Pool(count, mp_context=get_context("spawn"), initializer=_begin)


def _begin() -> None:
    """In a new process: the keyboard interrupts its parent, which ends it; it ends as well if the parent is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Processes that are started meanwhile compute with one thread; what the user says of threads is left alone."""
    missing = [name for name in THREADS if name not in os.environ]
    os.environ |= dict.fromkeys(missing, "1")
    try:
        yield
    finally:
        for name in missing:
            os.environ.pop(name, None)


@contextmanager
def _cluster(address: str) -> Iterator[PointExecutor]:
    """The workers of a scheduler of dask.distributed."""
    if find_spec("distributed") is None:
        raise ArgumentError("sweep: a scheduler needs dask.distributed; pip install 'ttsim[dask]'")
    try:
        client = import_module("distributed").Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ArgumentError(
            f"sweep: no scheduler answers at {shown(address)} ({error}); start one with `dask scheduler`, or give "
            "another address, such as tcp://127.0.0.1:8786"
        ) from error
    with client:
        threads = sum(client.nthreads().values())
        if not threads:
            raise ArgumentError(f"sweep: the scheduler at {address} has no workers; start some with `dask worker`")
        yield PointExecutor(
            executor=lambda: client.get_executor(pure=False),
            lanes=2 * threads,
            where=f"on {threads} threads of {address}",
            there=lambda: client.status in ("running", "connecting"),
        )
