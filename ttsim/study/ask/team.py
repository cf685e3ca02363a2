"""Answers questions in this process or in several processes, which may die, and caches answers."""

from collections import OrderedDict
from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager, suppress
from threading import RLock
from typing import Final

from ttsim.study.ask.answer import failed, is_failure
from ttsim.study.ask.batches import Batches
from ttsim.study.executor import Workers, workers

MOST_ANSWERS: Final = 8192  # some kilobytes each
ATTEMPTS: Final = 2  # with nothing else running, of a question whose process died


class Team:
    """Answers questions by their texts; threads may ask concurrently.

    An answer is a future of the answer's text. If a process dies, all running questions are lost with the pool;
    `result` then asks each of them again alone, so that only the question that kills a process fails.
    """

    def __init__(self, crew: Workers, seconds: float) -> None:
        self._crew, self._seconds = crew, seconds
        self._gate = RLock()
        self._batches: Batches | None = None  # to processes that are started with the first question
        self._flying: dict[str, futures.Future[str]] = {}
        self._known: OrderedDict[str, futures.Future[str]] = OrderedDict()  # in the order of use

    def ask(self, text: str) -> "futures.Future[str]":
        """The future of an answer, from the cache or from a running question if possible."""
        with self._gate:
            future = self._known.get(text) or self._flying.get(text)
            if future is None:
                return self._submit(text)
            if text in self._known:
                self._known.move_to_end(text)
            return future

    def result(self, text: str, future: "futures.Future[str]") -> str:
        """Waits for the text of an answer."""
        try:
            answer = future.result()
        except (futures.BrokenExecutor, futures.CancelledError):
            answer = self._alone(text)
        with self._gate:
            if self._flying.pop(text, None) is not None and not is_failure(answer):
                done: futures.Future[str] = futures.Future()
                done.set_result(answer)
                self._known[text] = done
                if len(self._known) > MOST_ANSWERS:
                    self._known.popitem(last=False)
        return answer

    def _submit(self, text: str) -> "futures.Future[str]":
        if self._batches is None or self._batches.broken:  # a process died; all in flight comes back or is lost by now
            self._batches = Batches(self._crew.start(), self._crew.slots, self._seconds)
        future = self._flying[text] = self._batches.submit(text)
        return future

    def _alone(self, text: str) -> str:
        """Asks a question whose process died again while nothing else runs."""
        with self._gate:
            futures.wait(self._flying.values())
            if text in self._known:  # another thread wanted the same answer, and has it
                return self._known[text].result()
            for _ in range(ATTEMPTS):
                with suppress(futures.BrokenExecutor, futures.CancelledError):
                    return self._submit(text).result()
            return failed(f"the process that answers this question died {1 + ATTEMPTS} times")

    def end(self) -> None:
        """Ends the processes; the next question starts others.

        It waits for idle processes: otherwise the pool's thread could close its pipe while the ending interpreter
        writes to the pipe, and Python would print an OSError.
        """
        with self._gate:
            if self._batches is not None:
                self._batches.end(wait=all(future.done() for future in self._flying.values()))
            self._batches = None


@contextmanager
def team(*, processes: int | None, seconds: float) -> Iterator[Team]:
    """A context with a team; for `processes` see `workers`; `seconds` is the timeout of a question (0: none)."""
    with workers(processes=processes, scheduler=None) as crew:
        team = Team(crew, seconds)
        try:
            yield team
        finally:
            team.end()
