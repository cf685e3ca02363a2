"""Sends questions to processes: one at a time while a process is idle, otherwise in batches."""

from collections import deque
from collections.abc import Sequence
from concurrent import futures
from functools import partial
from threading import Lock
from typing import Final, NamedTuple

from ttsim.study.ask.answer import answer_texts

LONGEST: Final = 8  # questions: sending them takes a fiftieth of what answering one takes
AHEAD: Final = 2  # batches for each process: one that it answers, and one that it finds when it has done so


class Sent(NamedTuple):
    """A question that waits for its answer."""

    text: str
    answer: "futures.Future[str]"


class Batches:
    """Sends questions to an executor; threads may send concurrently.

    Sending a question to a process and receiving its answer costs this process as much as reading and writing both
    lines, so questions that arrive while all processes are busy are sent together. No question waits for a batch.

    Args:
        pool: The executor.
        slots: Number of questions that it answers concurrently.
        seconds: Timeout of each question; 0 for none.
    """

    def __init__(self, pool: futures.Executor, slots: int, seconds: float) -> None:
        self._pool, self._most, self._seconds = pool, AHEAD * slots, seconds
        self._lock = Lock()
        self._running = 0  # batches
        self._waiting: deque[Sent] = deque()
        self.broken = False  # whether the executor has come to an end: a process died, or `end` was called

    def submit(self, text: str) -> "futures.Future[str]":
        """The future of an answer; it fails with BrokenExecutor or CancelledError if the executor ends first."""
        sent = Sent(text, futures.Future())
        with self._lock:
            self._waiting.append(sent)
        self._send()
        return sent.answer

    def end(self, *, wait: bool) -> None:
        """Ends the executor; waiting questions are cancelled."""
        self._pool.shutdown(wait=wait, cancel_futures=True)

    def _send(self) -> None:
        """Sends questions while slots are free."""
        while batch := self._next():
            try:
                done = self._pool.submit(answer_texts, [sent.text for sent in batch], self._seconds)
            except futures.BrokenExecutor as error:
                self._lose(batch, error)
            except RuntimeError:  # it was ended
                self._lose(batch, futures.CancelledError())
            else:
                done.add_done_callback(partial(self._settle, batch))

    def _next(self) -> Sequence[Sent]:
        """The next batch: an even share of the waiting questions; empty if no slot is free."""
        with self._lock:
            if not self._waiting or self._running >= self._most:
                return ()
            self._running += 1
            count = min(LONGEST, -(-len(self._waiting) // self._most))
            return [self._waiting.popleft() for _ in range(count)]

    def _settle(self, batch: Sequence[Sent], done: "futures.Future[list[str]]") -> None:
        """Sets the results of a batch, and sends the next batch."""
        error = futures.CancelledError() if done.cancelled() else done.exception()
        if error is not None:
            self._lose(batch, error)
            self._send()
            return
        with self._lock:
            self._running -= 1
        self._send()  # before answers are handed out, so that no process waits for that
        for sent, answer in zip(batch, done.result(), strict=True):
            sent.answer.set_result(answer)

    def _lose(self, batch: Sequence[Sent], error: BaseException) -> None:
        """Sets an error for the questions of a batch, and for all questions if the executor has ended."""
        ended = isinstance(error, futures.BrokenExecutor | futures.CancelledError)
        with self._lock:
            self._running -= 1
            self.broken |= ended
            lost = [*batch, *(self._waiting if ended else ())]
            if ended:
                self._waiting.clear()
        for sent in lost:
            sent.answer.set_exception(error)
