"""Runs points through an executor, in chunks, whatever becomes of the processes that look into them."""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from typing import Final, NamedTuple

from device.errors import DeviceError, TTSimError
from ttsim.study.executor.crew import PointExecutor, look_into
from ttsim.study.executor.deal import Chunk, Scheduler
from ttsim.study.points.point import Point, refusal
from ttsim.study.points.row import Row, Verdict
from ttsim.study.points.version import model_version

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
