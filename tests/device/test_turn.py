from threading import Thread

from device.machine import Turn


def elsewhere(function):
    """What a function returns in another thread."""
    found = []
    thread = Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


def test_a_turn_is_one_thread_s_until_it_is_given_up():
    turn = Turn()
    assert not turn.mine
    assert turn.take()
    assert turn.take(wait=False)  # again is harmless
    assert turn.mine
    assert not elsewhere(lambda: turn.take(wait=False))
    elsewhere(turn.give)  # not its own to give
    assert turn.mine
    turn.give()
    assert not turn.mine
    turn.give()
    assert elsewhere(lambda: (turn.take(wait=False), turn.give())[0])


def test_who_waits_gets_it():
    turn, order = Turn(), []
    turn.take()
    threads = [Thread(target=lambda: (turn.take(), order.append(1), turn.give())) for _ in range(3)]
    for thread in threads:
        thread.start()
    order.append(0)
    turn.give()
    for thread in threads:
        thread.join(timeout=5)
    assert order == [0, 1, 1, 1]
