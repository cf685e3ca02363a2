import threading
from functools import partial

import numpy as np
import pytest

from device.host import threads
from ops.programs.patch_matmul.fast import OrderedSum
from ops.programs.patch_matmul.gather import do

LARGE, ONE = np.float32(2**24), np.float32(1)


def test_products_are_added_in_their_order_whichever_is_first():
    sums, made = OrderedSum(), threading.Event()
    sums.add(0, lambda: np.array([LARGE]))

    def late():
        assert made.wait(30)
        return np.array([-LARGE])

    first = threading.Thread(target=sums.add, args=(1, late))
    second = threading.Thread(target=sums.add, args=(2, lambda: made.set() or np.array([ONE])))
    first.start()
    second.start()
    first.join(30)
    second.join(30)
    assert sums.total.tolist() == [1.0]  # in the other order 1 is lost in 2**24 and 0 is left


def test_memory_of_a_product_may_be_used_again_but_for_the_first():
    sums, again = OrderedSum(), np.empty(1, np.float32)
    sums.add(0, lambda: np.array([1], np.float32))
    for number in (1, 2):
        again[0] = number
        sums.add(number, lambda: again)
    assert sums.total.tolist() == [4.0]


def test_a_product_that_cannot_be_made_keeps_nobody_waiting(monkeypatch):
    monkeypatch.setattr(threads, "cores", lambda: 2)
    sums = OrderedSum()

    def broken():
        raise MemoryError("no memory")

    pieces = [partial(sums.add, 0, broken), *(partial(sums.add, n, lambda: np.ones(1)) for n in range(1, 6))]
    with pytest.raises(MemoryError, match="no memory"):
        threads.side_by_side(do, pieces)
