"""Evaluates points in this process, in subprocesses or on a dask cluster, and survives workers that die."""

import gc
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from multiprocessing import connection, get_context, parent_process, resource_tracker
from threading import Thread, current_thread, main_thread
from typing import Any, Final, NamedTuple, TypeAlias

from device.errors import ArgumentError, DeviceError, TTSimError, shown
from device.spec.device_spec import DeviceSpec
from ttsim.study.evaluate import Point, evaluator, row_of
from ttsim.study.store import Row, Verdict, model_version

# Processes have one thread each, since as many processes as cores share the cores
THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
CONNECT_SECONDS: Final = 10
FEW: Final = 64  # so many quick points take less time than starting a process
LONGEST_CHUNK: Final = 16  # points, all lost with a process; sending them takes a hundredth of their evaluation
CHUNKS_OF_A_SLOT: Final = 8  # at least, so that all workers end at about the same time
SEPARATE: Final = 64  # executors at most: each has 8 open files, and a process may have 1,024 by default
LISTEN_SECONDS: Final = 5  # between two questions whether the workers are still there
GRACE_SECONDS: Final = 5  # for running points when a run ends early
LOST_IN_A_ROW: Final = 8  # points whose process died, one after the other: then the points are not the reason
LOST_AT_FIRST: Final = 2  # the limit as long as no point has come back
# Allocations of a process between two collections of garbage, of young and of older objects: Python's own numbers
# would walk through all cached plans again and again, a seventh of the time that questions take
COLLECTIONS: Final = (50_000, 20, 20)

Chunk: TypeAlias = tuple[Point, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """The executor of points: this thread, processes of this machine, or a cluster."""

    start: Callable[[], futures.Executor]  # Starts an executor; called again where one broke
    # The number of running chunks: one for each process of this machine, so that no chunk waits in the process of
    # another; two for each thread of a cluster, so that no thread waits for the network
    slots: int
    where: str  # For messages
    alive: Callable[[], bool] = lambda: True  # Whether answers may still come
    # Starts one of the processes of this machine, so that the points of a layer stay in it; None if there are none
    start_one: Callable[[], futures.Executor] | None = None

    def start_each(self, slots: int) -> list[futures.Executor]:
        """Starts executors for this many slots: one executor per slot, or one executor for all slots."""
        return (
            [self.start()] if self.start_one is None or slots > SEPARATE else [self.start_one() for _ in range(slots)]
        )


class InProcess(futures.Executor):
    """Runs submitted calls immediately in this thread; interrupts propagate."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> futures.Future[Any]:
        """A finished future."""
        future: futures.Future[Any] = futures.Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class Pool(futures.ProcessPoolExecutor):
    """A pool of processes that Ctrl-C does not interrupt, even while they start."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> futures.Future[Any]:
        """A future; if a process is started for it, interrupts are delayed until the process has started."""
        with _children_without_sigint():
            return super().submit(fn, *args, **kwargs)


@contextmanager
def workers(*, processes: int | None, scheduler: str | None, quick: int | None = None) -> Iterator[Workers]:
    """The workers for a user's options.

    `processes` is 1 for this process, None for one process per core; `scheduler` is the address of a dask.distributed
    scheduler, such as tcp://10.0.0.1:8786; `quick` is the number of points if each is evaluated quickly, else None.
    Raises ArgumentError for a wrong number of processes, or if dask.distributed is missing or no scheduler answers.
    """
    if scheduler is not None:
        if processes is not None:
            raise ArgumentError("sweep: give processes or a scheduler, not both; a scheduler has workers of its own")
        with _cluster(scheduler) as cluster:
            yield cluster
        return
    count: int | None = processes
    if count is None and quick is not None and quick <= FEW:
        count = 1
    elif count is None:
        count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise ArgumentError(f"processes must be an integer of at least 1, not {shown(count)}")
    if count == 1:
        yield Workers(start=InProcess, slots=1, where="in this process")
        return
    missing = [name for name in THREADS if name not in os.environ]  # the user's own settings of threads stay
    os.environ |= dict.fromkeys(missing, "1")
    try:
        # Spawned processes inherit no threads and no locks, unlike forked processes.
        pool = partial(Pool, mp_context=get_context("spawn"), initializer=_begin)
        yield Workers(
            start=partial(pool, count), slots=count, where=f"in {count} processes", start_one=partial(pool, 1)
        )
    finally:
        for name in missing:
            os.environ.pop(name, None)


@contextmanager
def _children_without_sigint() -> Iterator[None]:
    """A context in which started processes inherit a blocked SIGINT; this process receives signals afterwards."""
    if current_thread() is not main_thread() or not hasattr(signal, "pthread_sigmask"):
        yield  # the keyboard never interrupts another thread
        return
    resource_tracker.ensure_running()  # started with the first process, the tracker would lift the block
    heard: list[int] = []
    ours = [number for number in (signal.SIGINT, signal.SIGTERM) if callable(signal.getsignal(number))]
    handlers = {number: signal.signal(number, lambda number, _: heard.append(number)) for number in ours}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if heard:
            signal.raise_signal(heard[0])


@contextmanager
def rare_collections() -> Iterator[None]:
    """A context in which garbage is collected rarely, as in worker processes."""
    before = gc.get_threshold()
    gc.set_threshold(*COLLECTIONS)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _begin() -> None:
    """Initializes a worker process: it ignores Ctrl-C, ends when its parent is killed, and collects garbage rarely."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.set_threshold(*COLLECTIONS)
    parent = parent_process()
    if parent is not None:
        Thread(target=lambda: connection.wait([parent.sentinel]) and os._exit(1), daemon=True).start()


@contextmanager
def _cluster(address: str) -> Iterator[Workers]:
    """The workers of a dask.distributed scheduler."""
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
        yield Workers(
            start=lambda: client.get_executor(pure=False),
            slots=2 * threads,
            where=f"on {threads} threads of {address}",
            alive=lambda: client.status in ("running", "connecting"),
        )


def evaluate_chunk(points: Sequence[Point], model: str) -> list[Row]:
    """The rows of some points, in order; runs in a worker; raises ArgumentError if its version is not `model`."""
    if model_version() != model:
        raise ArgumentError(
            f"a worker has another version of ttsim (model {model_version()}) than this process (model {model}); "
            "install the same on both, and start the workers again"
        )
    return [evaluator().row(replace(point, spec=same_spec(point.spec))) for point in points]


@lru_cache(maxsize=64)
def same_spec(spec: DeviceSpec) -> DeviceSpec:
    """The first equal device spec that this process saw, with its caches."""
    return spec


def chunks_of(points: Iterable[Point], most: int) -> Iterator[Chunk]:
    """The points in order, in chunks of limited size."""
    rest = iter(points)
    for first in rest:
        size = most if first.values == "off" else 1  # computing values takes long
        yield (first, *islice(rest, size - 1))


class Sent(NamedTuple):
    """A running chunk."""

    chunk: Chunk
    place: int  # Of its executor
    suspect: bool


class Run:
    """Evaluates each point once; `take` gets rows in any order.

    Each process evaluates one group after the other and caches shared results; a process without a group helps with
    other groups. If a process dies, each point of its chunk is evaluated alone, while nothing else runs, so that only
    the point that kills a process fails; a point whose process dies again gets a row with this error.

    Args:
        groups: Groups of points, each of one layer on one device.
        count: Number of points.
        team: The workers.
        take: A callback that receives rows.
    """

    def __init__(
        self, groups: Iterable[Iterable[Point]], count: int, team: Workers, take: Callable[[list[Row]], None]
    ) -> None:
        self.team = team
        self.take = take
        self.slots = max(1, min(team.slots, count))
        most = max(1, min(LONGEST_CHUNK, count // (self.slots * CHUNKS_OF_A_SLOT)))
        self.groups = (chunks_of(points, most) for points in groups)
        self.begun: list[Iterator[Chunk]] = []  # The group of each executor, whose chunks are made when they are needed
        self.refused: deque[Chunk] = deque()  # Chunks that a broken executor did not take
        self.suspects: deque[Chunk] = deque()  # Points of chunks that were lost, one by one
        self.flying: dict[futures.Future[list[Row]], Sent] = {}
        self.lost = 0  # Points that were lost one after the other
        self.returned = False  # Whether any row ever came back

    def go(self) -> None:
        """Evaluates all points; raises DeviceError if processes die at every point.

        A KeyboardInterrupt ends the run after finished rows have been passed to `take`.
        """
        unfinished = True
        while unfinished:
            executors = self.team.start_each(self.slots)
            self.begun = self.begun or [iter(()) for _ in executors]
            try:
                while (works := self._submit(executors)) and self.flying:
                    self._settle()
                unfinished = not works
                while self.flying:  # an executor is broken: running chunks come back or are lost
                    self._settle()
            except BaseException:
                if self.team.alive():
                    self._harvest()
                raise
            finally:
                self.flying.clear()
                for executor in executors if self.team.alive() else ():
                    executor.shutdown(wait=True)

    def _submit(self, executors: Sequence[futures.Executor]) -> bool:
        """Sends chunks while slots are free; False if an executor is broken."""
        if self.suspects:
            return bool(self.flying) or self._send(executors[0], 0, self.suspects.popleft(), self.suspects)
        for place, executor in enumerate(executors):
            flying = sum(sent.place == place for sent in self.flying.values())
            for _ in range(flying, self.slots // len(executors)):
                chunk = self._next(place)
                if chunk is not None and not self._send(executor, place, chunk, self.refused):
                    return False
        return True

    def _send(self, executor: futures.Executor, place: int, chunk: Chunk, queue: deque[Chunk]) -> bool:
        """Sends a chunk; if the executor is broken, returns False and puts the chunk back at the front of its queue."""
        try:
            future = executor.submit(evaluate_chunk, chunk, model_version())
        except futures.BrokenExecutor:
            queue.appendleft(chunk)
            return False
        self.flying[future] = Sent(chunk, place, queue is self.suspects)
        return True

    def _next(self, place: int) -> Chunk | None:
        """The next chunk for an executor, or None."""
        if self.refused:
            return self.refused.popleft()
        chunk = next(self.begun[place], None)
        while chunk is None and (group := next(self.groups, None)) is not None:
            self.begun[place] = group
            chunk = next(group, None)
        return chunk or next((chunk for group in self.begun for chunk in group), None)

    def _settle(self) -> None:
        """Waits for at least one chunk, passes its rows on, and notes lost points."""
        done: set[futures.Future[list[Row]]] = set()
        while self.flying and not done:
            done, _ = futures.wait(self.flying, timeout=LISTEN_SECONDS, return_when=futures.FIRST_COMPLETED)
            if not done and not self.team.alive():
                raise DeviceError(
                    f"sweep: no process answers any more {self.team.where}; start it again, and then the sweep"
                )
        for future in [future for future in self.flying if future in done]:  # in the order in which they were sent
            chunk, _, suspect = self.flying.pop(future)
            try:
                rows = future.result()
            except TTSimError:
                raise
            except (Exception, futures.CancelledError) as error:
                if suspect:
                    self._blame(chunk[0], error)
                self.suspects.extend((point,) for point in chunk if not suspect)
            else:
                self.lost, self.returned = 0, True
                self.take(rows)

    def _blame(self, point: Point, error: BaseException) -> None:
        """Records an error row for a point whose process died alone; raises DeviceError if all points die."""
        self.lost += 1
        reason = f"{type(error).__name__}: {error}".strip().rstrip(":")
        if self.lost >= (LOST_IN_A_ROW if self.returned else LOST_AT_FIRST):
            raise DeviceError(
                f"sweep: every process dies while it evaluates a point {self.team.where} ({reason}); find the cause: "
                "too little memory, an engine that was shut down, or a script that calls ttsim.sweep outside of "
                'if __name__ == "__main__":'
            )
        text = f"the process that evaluated this point died twice: {reason}"
        self.take([row_of(point, verdict=Verdict.LOST, error=text)])

    def _harvest(self) -> None:
        """Passes on finished rows when the run ends early, after a short wait for running chunks."""
        running = [future for future in self.flying if not future.cancel()]
        for future in futures.wait(running, timeout=GRACE_SECONDS).done:
            if future.exception() is None:
                self.take(future.result())
