import numpy as np

from ttsim.study.store import front


def test_what_nothing_beats():
    assert front([]) == ()
    assert front([(3, 1), (1, 3), (2, 2), (2, 3), (3, 3)]) == (1, 2, 0)
    assert front([(1, 1), (1, 1), (0, 2), (1, 2)]) == (2, 0)
    assert front([(2,), (1,), (1,)]) == (1,)


def test_it_is_what_the_definition_says():
    costs = np.random.default_rng(0).integers(0, 6, (80, 3)).tolist()
    beats = [[all(map(int.__le__, a, b)) and a != b for a in costs] for b in costs]
    kept = {tuple(cost) for cost, by in zip(costs, beats, strict=True) if not any(by)}
    assert sorted(tuple(costs[at]) for at in front(costs)) == sorted(kept)
