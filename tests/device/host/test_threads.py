"""Pieces of work on several cores: all are done, errors come out, BLAS gets its threads back."""

import contextlib
import gc
import os
import sys
import threading
import weakref

import numpy as np
import pytest

from device.host import threads


@pytest.fixture(params=[1, 2])
def on_cores(request, monkeypatch):
    monkeypatch.setattr(threads, "cores", lambda: request.param)
    return request.param


@pytest.mark.parametrize("each", [threads.locked, threads.on_all_cores, threads.side_by_side])
def test_every_piece_is_done_once(each, on_cores):
    done = np.zeros(20, int)

    def piece(number):
        done[number] += 1

    each(piece, range(20))
    assert done.tolist() == [1] * 20


def test_pieces_run_on_as_many_threads_as_there_are_cores(on_cores):
    if threads.openblas() is None:
        pytest.skip("numpy has another BLAS")
    both, seen = threading.Barrier(on_cores, timeout=30), set()

    def piece(number):
        both.wait()  # passes only if so many run at once
        seen.add(threading.get_ident())

    threads.side_by_side(piece, range(2))
    assert len(seen) == on_cores


@pytest.mark.parametrize("inner", [threads.on_all_cores, threads.side_by_side])
def test_pieces_of_a_piece_are_done_by_its_thread(inner, on_cores):
    """In turn, or threads would be as many as pieces, and a piece would wait for the BLAS that its caller holds."""
    wrong = []

    def piece(number):
        mine = threading.get_ident()
        inner(lambda part: threading.get_ident() == mine or wrong.append(part), range(3))

    threads.side_by_side(piece, range(4))
    threads.on_all_cores(piece, range(4))
    assert wrong == []


def test_pieces_run_on_as_many_threads_as_asked_for():
    both, seen = threading.Barrier(3, timeout=30), set()

    def piece(number):
        both.wait()
        seen.add(threading.get_ident())

    threads.on_all_cores(piece, range(3), 3)
    assert len(seen) == 3
    threads.on_all_cores(lambda number: seen.add(threading.get_ident()), range(9), 1)
    assert threading.get_ident() in seen
    assert len(seen) == 3


def test_an_error_comes_out_and_blas_has_its_threads_again(on_cores):
    blas = threads.openblas()
    if blas is None:
        pytest.skip("numpy has another BLAS")
    before = blas[0]()

    def piece(number):
        raise ValueError(f"piece {number}")

    with pytest.raises(ValueError, match="piece 0"):
        threads.side_by_side(piece, range(50))
    assert blas[0]() == before


def test_what_a_failed_piece_held_dies_with_its_error(on_cores):
    """At once, without a collection: a caller's tensors free memory of the device when they die."""
    kept = []

    def piece(number):
        held = np.zeros(3).view(type("Held", (np.ndarray,), {}))
        kept.append(weakref.ref(held))
        raise ValueError(f"piece {number}")

    gc.disable()
    try:
        with contextlib.suppress(ValueError):
            threads.on_all_cores(piece, range(50))
        threads.on_all_cores(lambda number: None, range(2))  # helpers have let go of the first call
        assert [held() for held in kept if held() is not None] == []
    finally:
        gc.enable()


def test_products_stay_in_their_thread(monkeypatch):
    blas = threads.openblas()
    if blas is None:
        pytest.skip("numpy has another BLAS")
    monkeypatch.setattr(threads, "cores", lambda: 2)
    text = []
    threads.side_by_side(lambda number: text.append(blas[0]()), range(3))
    assert text == [1, 1, 1]


def test_no_piece_warns_of_infinities(monkeypatch, recwarn):
    monkeypatch.setattr(threads, "cores", lambda: 2)
    threads.side_by_side(lambda number: np.float32(3e38) * np.array([10], np.float32), range(3))
    inside = [one for one in recwarn if issubclass(one.category, RuntimeWarning)]
    assert not inside or threads.openblas() is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_a_forked_process_has_helpers_of_its_own(monkeypatch):
    monkeypatch.setattr(threads, "cores", lambda: 2)
    threads.side_by_side(lambda number: None, range(2))
    child = os.fork()
    if not child:
        done = []
        threads.side_by_side(done.append, range(2))
        os._exit(0 if sorted(done) == [0, 1] else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.skipif(sys.platform != "linux" or threads.cores() < 2, reason="threads cannot be kept off a core")
def test_helpers_stay_off_the_core_of_whoever_wakes_them(monkeypatch):
    allowed, before = {}, os.sched_getaffinity(0)
    core = min(before)
    monkeypatch.setattr(threads, "cores", lambda: 2)
    monkeypatch.setattr(threads, "_core_of_this_thread", lambda: lambda: core)
    both = threading.Barrier(2, timeout=30)

    def piece(number):
        both.wait()
        allowed[threading.get_ident()] = os.sched_getaffinity(0)

    threads.on_all_cores(piece, range(2))  # starts them
    threads.on_all_cores(piece, range(2))
    assert allowed.pop(threading.get_ident()) == before
    assert list(allowed.values()) == [before - {core}]


def test_helpers_that_are_busy_are_not_waited_for(monkeypatch):
    """Another thread's pieces hold the one helper; these are all done here, and it finds nothing later."""
    monkeypatch.setattr(threads, "cores", lambda: 2)
    begun, done, seen = threading.Barrier(3, timeout=30), threading.Event(), set()

    def long(number):
        begun.wait()
        assert done.wait(30)

    other = threading.Thread(target=lambda: threads.on_all_cores(long, range(2)))
    other.start()
    begun.wait()
    threads.on_all_cores(lambda number: seen.add(threading.get_ident()), range(5))
    assert seen == {threading.get_ident()}
    done.set()
    other.join(30)
    both = threading.Barrier(2, timeout=30)
    threads.on_all_cores(lambda number: both.wait(), range(2))  # the helper is there again
