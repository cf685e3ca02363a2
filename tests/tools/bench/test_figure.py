from tools.bench.figure import Figure, all_locked, least_seconds, run_times


def figure(value, limit):
    return Figure(bench="b", case="c", name="n", value=value, unit="s", limit=limit)


def test_limits():
    assert figure(1.0, None).within
    assert figure(1.0, 1.0).within
    assert not figure(1.1, 1.0).within


def test_the_shortest_run_counts():
    calls = []
    seconds = least_seconds(lambda: calls.append(1), 4)
    assert len(calls) == 4
    assert 0 <= seconds < 1


def test_works_take_turns_and_the_first_turn_does_not_count():
    order, clock = [], iter(range(6))

    def op(name):
        order.append(name)
        return next(clock)

    assert all_locked({"a": lambda: op("a"), "b": lambda: op("b")}, 2) == {"a": [2, 4], "b": [3, 5]}
    assert order == ["a", "b"] * 3


def test_runs_keep_their_spread():
    figure = run_times("b", "c", "n", [0.004, 0.001, 0.002])
    assert (figure.value, figure.median, figure.longest, figure.unit) == (1.0, 2.0, 4.0, "ms")
