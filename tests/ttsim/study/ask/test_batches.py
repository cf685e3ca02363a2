"""How questions go to processes: alone while one has nothing to do, else together."""

from concurrent import futures

import pytest

from ttsim.study.ask.batches import AHEAD, LONGEST, Batches


class Busy(futures.Executor):
    """Remembers what it was given; its futures are done when a test says so."""

    def __init__(self):
        self.given = []  # texts and future of each batch
        self.ended = None

    def submit(self, fn, /, texts, seconds):
        if self.ended:
            raise self.ended
        self.given.append((texts, futures.Future()))
        return self.given[-1][1]

    def answer(self, number):
        texts, future = self.given[number]
        future.set_result([f"to {text}" for text in texts])


def asked(count, slots=1):
    """An executor, what sends to it, and the answers to so many questions."""
    pool = Busy()
    batches = Batches(pool, slots, 0)
    return pool, batches, [batches.submit(str(number)) for number in range(count)]


def test_a_question_goes_at_once_while_there_is_room():
    pool, _, _ = asked(4 * AHEAD, slots=4)
    assert [texts for texts, _ in pool.given] == [[str(number)] for number in range(4 * AHEAD)]


def test_questions_that_find_no_room_go_together():
    """Of 5 that wait, with room for two batches, each takes half: 3, then 1 of the 2 that are left, then the last."""
    pool, _, answers = asked(AHEAD + 5)
    assert [texts for texts, _ in pool.given] == [["0"], ["1"]]
    for number in range(5):
        pool.answer(number)
    assert [texts for texts, _ in pool.given[2:]] == [["2", "3", "4"], ["5"], ["6"]]
    assert [answer.result(0) for answer in answers] == [f"to {number}" for number in range(AHEAD + 5)]


def test_a_batch_has_an_end():
    pool, _, _ = asked(AHEAD + 10 * LONGEST)
    pool.answer(0)
    assert len(pool.given[-1][0]) == LONGEST


def test_a_broken_executor_loses_all_questions():
    """Also those that no process has got: each is asked again, by whoever wants its answer."""
    pool, batches, answers = asked(AHEAD + 5)
    assert not batches.broken
    pool.given[0][1].set_exception(futures.BrokenExecutor())
    assert batches.broken
    lost = [answer for number, answer in enumerate(answers) if number != 1]  # which the other process still has
    assert all(isinstance(answer.exception(0), futures.BrokenExecutor) for answer in lost)


@pytest.mark.parametrize("error", [futures.BrokenExecutor(), RuntimeError("cannot schedule new futures")])
def test_an_executor_that_takes_nothing_loses_all_questions(error):
    pool, batches, answers = asked(AHEAD + 5)
    pool.ended = error
    pool.answer(0)
    assert batches.broken
    assert isinstance(answers[-1].exception(0), futures.BrokenExecutor | futures.CancelledError)


def test_an_error_of_a_batch_is_its_own():
    pool, batches, answers = asked(AHEAD + 1)
    pool.given[0][1].set_exception(MemoryError())
    assert isinstance(answers[0].exception(0), MemoryError)
    assert not batches.broken
    pool.answer(1)
    pool.answer(2)
    assert [answer.result(0) for answer in answers[1:]] == ["to 1", "to 2"]


def test_questions_in_flight_are_cancelled_at_the_end():
    pool, _, answers = asked(AHEAD + 1)
    assert pool.given[0][1].cancel()
    assert all(isinstance(answers[number].exception(0), futures.CancelledError) for number in (0, AHEAD))
