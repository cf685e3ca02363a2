"""What several pieces share is made once and held for as long as one of them needs it."""

from threading import Barrier, Thread
from weakref import ref

import numpy as np
import pytest

from device.host.threads import Shared


def test_it_is_made_when_it_is_taken_first_and_gone_with_the_last():
    result = []

    def make():
        result.append(1)
        return np.zeros(3)

    shared = Shared(make, uses=2)
    assert result == []
    first = shared.taken()
    there = ref(first)
    del first
    assert there() is not None
    assert shared.taken() is not None
    assert result == [1]
    assert there() is None


def test_more_uses_than_said_are_refused():
    with pytest.raises(ValueError, match="more often than its uses say"):
        Shared(list, uses=0).taken()


def test_a_failure_to_make_it_counts_as_no_use():
    tries = iter([None, [1]])
    shared = Shared(lambda: next(tries)[:], uses=1)
    with pytest.raises(TypeError):
        shared.taken()
    assert shared.taken() == [1]


def test_threads_that_come_at_once_share_it():
    begin, taken = Barrier(8), []
    shared = Shared(object, uses=8)

    def take():
        begin.wait()
        taken.append(shared.taken())

    threads = [Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 8
    assert len(set(map(id, taken))) == 1
