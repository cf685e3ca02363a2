"""Evaluates points in this process, in processes of its own or on a dask cluster, and survives workers that die."""

import os
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from importlib import import_module
from importlib.util import find_spec
from itertools import groupby
from multiprocessing import connection, get_context, parent_process, resource_tracker
from threading import Thread, current_thread, main_thread
from typing import Any, Final, NamedTuple, TypeAlias

from device.errors import ArgumentError, DeviceError, TTSimError, shown
from device.spec.device_spec import DeviceSpec
from ttsim.study.evaluate import Point, evaluator, refusal
from ttsim.study.store import Row, Verdict, model_version

# One thread each: as many processes as cores share the cores.
THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
CONNECT_SECONDS: Final = 10
FEW: Final = 64  # quick points, which are evaluated sooner than a process starts
LONGEST_CHUNK: Final = 16  # points: the most that are lost with a process; sending them takes a hundredth of their time
CHUNKS_OF_A_SLOT: Final = 8  # at least, so that all end at about the same time
LISTEN_SECONDS: Final = 5  # between two questions whether the workers are still there
GRACE_SECONDS: Final = 5  # for points that are being evaluated when a run ends early
LOST_IN_A_ROW: Final = 8  # points whose process died, one after the other: then the points are not the reason
LOST_AT_FIRST: Final = 2  # the same, if no point has come back yet

Chunk: TypeAlias = tuple[Point, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """What evaluates points: this thread, processes of this machine, or a cluster."""

    start: Callable[[], Executor]  # Starts an executor; called again where one broke
    # How many chunks are under way at once: one for each process of this machine, so that no chunk waits in the process
    # of another; two for each thread of a cluster, so that no thread waits for the network
    slots: int
    where: str  # For messages
    alive: Callable[[], bool] = lambda: True  # Whether answers may still come


class InProcess(Executor):
    """Runs what is submitted at once, in this thread."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """A future that is done; an interrupt of the thread is not caught."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class Pool(ProcessPoolExecutor):
    """Processes that the keyboard does not interrupt, not even while they start."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """A future; a process that is started for it is started to the end."""
        with _children_without_sigint():
            return super().submit(fn, *args, **kwargs)


@contextmanager
def workers(*, processes: int | None, scheduler: str | None, quick: int | None = None) -> Iterator[Workers]:
    """The workers that a user asks for.

    Args:
        processes: How many; 1 for this process alone, None for one on each core.
        scheduler: Address of a scheduler of dask.distributed, such as tcp://10.0.0.1:8786.
        quick: How many points there are, if each is evaluated quickly; None where a point takes long.

    Raises:
        ArgumentError: There cannot be so many processes; dask.distributed is missing, or no scheduler answers.
    """
    if scheduler is not None:
        if processes is not None:
            raise ArgumentError("sweep: give processes or a scheduler, not both; a scheduler has workers of its own")
        with _cluster(scheduler) as cluster:
            yield cluster
        return
    count: int | None = processes
    if count is None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        count = 1 if quick is not None and quick <= FEW else cores
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise ArgumentError(f"processes must be an integer of at least 1, not {shown(count)}")
    if count == 1:
        yield Workers(start=InProcess, slots=1, where="in this process")
        return
    missing = [name for name in THREADS if name not in os.environ]  # what the user says of threads is left alone
    os.environ |= dict.fromkeys(missing, "1")
    try:
        # Processes that are started afresh, not forked, have none of the threads and locks of this one.
        pool = partial(Pool, count, mp_context=get_context("spawn"), initializer=_begin)
        yield Workers(start=pool, slots=count, where=f"in {count} processes")
    finally:
        for name in missing:
            os.environ.pop(name, None)


@contextmanager
def _children_without_sigint() -> Iterator[None]:
    """Processes that are started meanwhile inherit that SIGINT is blocked; this process hears of signals afterwards."""
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


def _begin() -> None:
    """In a new process: the keyboard interrupts its parent, which ends it; a parent that is killed ends it as well."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)


@contextmanager
def _cluster(address: str) -> Iterator[Workers]:
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
        yield Workers(
            start=lambda: client.get_executor(pure=False),
            slots=2 * threads,
            where=f"on {threads} threads of {address}",
            alive=lambda: client.status in ("running", "connecting"),
        )


def evaluate_chunk(points: Sequence[Point], model: str) -> list[Row]:
    """The rows of some points, in order; runs in a worker.

    Raises:
        ArgumentError: The sources there are not those of the model that asks.
    """
    if model_version() != model:
        raise ArgumentError(
            f"a worker has another version of ttsim (model {model_version()}) than this process (model {model}); "
            "install the same on both, and start the workers again"
        )
    return [evaluator().row(replace(point, spec=same_spec(point.spec))) for point in points]


@lru_cache(maxsize=64)
def same_spec(spec: DeviceSpec) -> DeviceSpec:
    """The first of equal devices that this process saw, with all that is cached for it."""
    return spec


class Scheduler:
    """Points that wait, in chunks of one layer on one device.

    A slot, which is one process as long as all are busy, takes chunks of a layer of its own, whose plans its process
    remembers; when none is left, chunks of the layer that most is left of.
    """

    def __init__(self, points: Sequence[Point], slots: int) -> None:
        """All points, those of a layer on a device together."""
        size = max(1, min(LONGEST_CHUNK, len(points) // (slots * CHUNKS_OF_A_SLOT)))
        if any(point.values != "off" for point in points):
            size = 1  # values are computed, which takes long
        families = [list(same) for _, same in groupby(points, key=lambda point: (point.layer.name, point.spec.name))]
        self._families = [
            deque(tuple(family[at : at + size]) for at in range(0, len(family), size)) for family in families
        ]
        self._family_of: dict[int, deque[Chunk]] = {}

    def take(self, slot: int) -> Chunk | None:
        """The next chunk for a slot; None if there is none."""
        own = self._family_of.get(slot)
        if not own:
            left = [family for family in self._families if family]
            taken = set(map(id, self._family_of.values()))
            free = [family for family in left if id(family) not in taken]
            own = free[0] if free else max(left, key=len, default=None)
            if own is None:
                return None
            self._family_of[slot] = own
        return own.popleft()

    def give_back(self, slot: int, chunk: Chunk) -> None:
        """Takes back a chunk that could not be sent."""
        self._family_of[slot].appendleft(chunk)

    def __bool__(self) -> bool:
        """Whether any chunk is left."""
        return any(self._families)


class _Sent(NamedTuple):
    """Points that are under way, and their slot; None if nothing else is under way."""

    points: Chunk
    slot: int | None


class Run:
    """Evaluates points once.

    A chunk whose process died is taken apart, and each of its points is evaluated alone, with nothing else under way,
    so that no other point is blamed; a point whose process dies again is a row that says so.
    """

    def __init__(self, points: Sequence[Point], team: Workers, take: Callable[[list[Row]], None]) -> None:
        """Begins with nothing done; `take` gets rows as they come, in any order."""
        self.team = team
        self.take = take
        self.waiting = Scheduler(points, team.slots)
        self.suspects: deque[Point] = deque()  # Points of chunks that were lost
        self.flying: dict[Future[list[Row]], _Sent] = {}
        self.lost = 0  # Points that were lost one after the other
        self.returned = False  # Whether any row ever came back

    def go(self) -> None:
        """Evaluates all points.

        Raises:
            DeviceError: Processes die whatever they evaluate.
            KeyboardInterrupt: The user wants no more; rows that were ready were taken.
        """
        while self.waiting or self.suspects:
            executor = self.team.start()
            try:
                self._until_broken(executor)
            except BaseException:
                if self.team.alive():
                    self._harvest()
                raise
            finally:
                self.flying.clear()
                if self.team.alive():
                    executor.shutdown(wait=True)

    def _until_broken(self, executor: Executor) -> None:
        """Evaluates points until all are done, or the executor is broken and all that was under way is settled."""
        broken = False
        while self.flying or (not broken and (self.waiting or self.suspects)):
            broken = broken or not self._submit(executor)
            for future in self._done():
                broken = self._settle(future) or broken

    def _submit(self, executor: Executor) -> bool:
        """Sends what there is room for; False if the executor is broken."""
        try:
            if self.suspects:
                if not self.flying:
                    self._send(executor, _Sent((self.suspects[0],), slot=None))
                    self.suspects.popleft()
                return True
            for slot in sorted(set(range(self.team.slots)) - {sent.slot for sent in self.flying.values()}):
                chunk = self.waiting.take(slot)
                if chunk is not None:
                    self._send(executor, _Sent(chunk, slot))
        except BrokenExecutor:
            return False
        return True

    def _send(self, executor: Executor, sent: _Sent) -> None:
        """Sends points; they wait again if the executor is broken, which raises BrokenExecutor."""
        try:
            self.flying[executor.submit(evaluate_chunk, sent.points, model_version())] = sent
        except BrokenExecutor:
            if sent.slot is not None:
                self.waiting.give_back(sent.slot, sent.points)
            raise

    def _done(self) -> list[Future[list[Row]]]:
        """What came back, at least one if something is under way, in the order in which it was sent.

        Raises:
            DeviceError: No worker is there any more.
        """
        while True:
            done, _ = wait(self.flying, timeout=LISTEN_SECONDS, return_when=FIRST_COMPLETED)
            if done or not self.flying:
                return [future for future in self.flying if future in done]
            if not self.team.alive():
                raise DeviceError(
                    f"sweep: nobody answers any more {self.team.where}; start it again, and then the sweep"
                )

    def _settle(self, future: Future[list[Row]]) -> bool:
        """Takes the rows that came back, or notes points that were lost; True if the executor is broken."""
        sent = self.flying.pop(future)
        try:
            rows = future.result()
        except TTSimError:
            raise
        except (Exception, CancelledError) as error:
            self._lose(sent, error)
            return isinstance(error, BrokenExecutor)
        self.lost, self.returned = 0, True
        self.take(rows)
        return False

    def _lose(self, sent: _Sent, error: BaseException) -> None:
        """Notes points whose process died: those of a chunk are suspects, a point that was alone is the reason.

        Raises:
            DeviceError: Too much was lost.
        """
        if sent.slot is not None:
            self.suspects.extend(sent.points)
            return
        self.lost += 1
        said = f"{type(error).__name__}: {error}".strip().rstrip(":")
        if self.lost >= (LOST_IN_A_ROW if self.returned else LOST_AT_FIRST):
            raise DeviceError(
                f"sweep: what runs {self.team.where} ends whatever it looks into ({said}); find what ends it: "
                "too little memory, an engine that was shut down, or a script that calls ttsim.sweep outside of "
                'if __name__ == "__main__":'
            )
        self.take(
            [refusal(sent.points[0], Verdict.LOST, f"the process that looked into this point died twice: {said}")]
        )

    def _harvest(self) -> None:
        """Takes what is ready where the run ends early, and what is being evaluated, if that does not take long."""
        running = [future for future in self.flying if not future.cancel()]
        for future in wait(running, timeout=GRACE_SECONDS).done:
            if future.exception() is None:
                self.take(future.result())
