"""Evaluates points in this process, in processes of its own or on a dask cluster, and survives workers that die."""

import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
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
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from itertools import groupby
from multiprocessing import connection, get_context, parent_process, resource_tracker
from threading import Thread, current_thread, main_thread
from typing import Any, Final, NamedTuple

from device.errors import ArgumentError, DeviceError, TTSimError, shown
from device.spec.device_spec import DeviceSpec
from ttsim.study.evaluate import Point, evaluator, refusal
from ttsim.study.store import Row, Verdict, model_version

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


LISTEN_SECONDS: Final = 5  # until it is asked whether anybody is there
GRACE_SECONDS: Final = 5  # for what is being looked into where a run ends early
LOST_IN_A_ROW: Final = 8  # points whose process died, one after the other: then it is not the points
LOST_AT_FIRST: Final = 2  # likewise, if no point has come back yet


class Sent(NamedTuple):
    """What is under way: some points, and the lane that they are of; None if nothing else is under way."""

    points: Chunk
    lane: int | None


class Run:
    """One run over some points.

    A chunk whose process died is taken apart, and each of its points looked into alone, with nothing else under way, so
    that no other is blamed; one that dies again is a row that says so.

    Attributes:
        waiting: Points that nobody has looked into.
        suspects: Points of chunks that were lost.
        flying: What is under way.
        lost: Points that were lost one after the other.
        returned: Whether anything ever came back.
    """

    def __init__(self, points: Sequence[Point], crew: PointExecutor, take: Callable[[list[Row]], None]) -> None:
        """Begins with nothing done.

        Args:
            points: What to look into.
            crew: Who does.
            take: Gets rows as they come, in any order.
        """
        self.crew = crew
        self.take = take
        self.waiting = Scheduler(points, crew.lanes)
        self.suspects: deque[Point] = deque()
        self.flying: dict[Future[list[Row]], Sent] = {}
        self.lost = 0
        self.returned = False

    def go(self) -> None:
        """Looks into all points.

        Raises:
            DeviceError: Processes die whatever they look into.
            KeyboardInterrupt: The user wants no more; rows that were ready were taken.
        """
        while self.waiting or self.suspects:
            executor = self.crew.executor()
            try:
                self._with(executor)
            except BaseException:
                if self.crew.there():
                    self._harvest()
                raise
            finally:
                self.flying.clear()
                if self.crew.there():
                    executor.shutdown(wait=True)

    def _with(self, executor: Executor) -> None:
        """Looks into points until all are done, or the executor is broken."""
        broken = False
        while not broken and (self.waiting or self.suspects or self.flying):
            broken = self._submit(executor)
            for future in self._done():
                broken = self._settle(future) or broken
        while self.flying:  # what is left of a broken one is done, or broken, too
            for future in self._done():
                self._settle(future)

    def _submit(self, executor: Executor) -> bool:
        """Sends off what there is room for; whether the executor is broken."""
        try:
            if self.suspects:
                if not self.flying:
                    self._send(executor, Sent((self.suspects[0],), lane=None))
                    self.suspects.popleft()
                return False
            for lane in sorted(set(range(self.crew.lanes)) - {sent.lane for sent in self.flying.values()}):
                chunk = self.waiting.take(lane)
                if chunk is not None:
                    self._send(executor, Sent(chunk, lane))
        except BrokenExecutor:
            return True
        return False

    def _done(self) -> list[Future[list[Row]]]:
        """What came back, at least one if something is under way, in the order in which it was sent off.

        Raises:
            DeviceError: Nobody is there any more who could answer.
        """
        while True:
            done, _ = wait(self.flying, timeout=LISTEN_SECONDS, return_when=FIRST_COMPLETED)
            if done or not self.flying:
                return [future for future in self.flying if future in done]
            if not self.crew.there():
                raise DeviceError(
                    f"sweep: nobody answers any more {self.crew.where}; start it again, and then the sweep"
                )

    def _send(self, executor: Executor, sent: Sent) -> None:
        """Sends something off.

        Raises:
            BrokenExecutor: It could not be, and waits again.
        """
        try:
            future = executor.submit(look_into, sent.points, model_version())
        except BrokenExecutor:
            if sent.lane is not None:
                self.waiting.give_back(sent.lane, sent.points)
            raise
        self.flying[future] = sent

    def _settle(self, future: Future[list[Row]]) -> bool:
        """Takes what came back, or notes what was lost; whether the executor is broken.

        Raises:
            DeviceError: Too much was lost.
        """
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

    def _lose(self, sent: Sent, error: BaseException) -> None:
        """Notes points whose process died: those of a chunk are suspects, one that was alone is the reason.

        Raises:
            DeviceError: Too much was lost.
        """
        if sent.lane is not None:
            self.suspects.extend(sent.points)
            return
        self.lost += 1
        said = f"{type(error).__name__}: {error}".strip().rstrip(":")
        if self.lost >= (LOST_IN_A_ROW if self.returned else LOST_AT_FIRST):
            raise DeviceError(
                f"sweep: what runs {self.crew.where} ends whatever it looks into ({said}); find what ends it: "
                "too little memory, an engine that was shut down, or a script that calls ttsim.sweep outside of "
                'if __name__ == "__main__":'
            )
        self.take(
            [refusal(sent.points[0], Verdict.LOST, f"the process that looked into this point died twice: {said}")]
        )

    def _harvest(self) -> None:
        """Takes what is ready where the run ends early, and what is being looked into, if that does not take long."""
        running = [future for future in self.flying if not future.cancel()]
        for future in wait(running, timeout=GRACE_SECONDS).done:
            if future.exception() is None:
                self.take(future.result())
