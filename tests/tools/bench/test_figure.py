from tools.bench.figure import Figure, least_seconds


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
