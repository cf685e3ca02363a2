"""Random calls made in other ways compute the same; `python -m tools.fuzz --kind twins` makes more."""

import numpy as np
import pytest

from tools.fuzz import oracles as metamorphic
from tools.fuzz.calls import draw
from tools.fuzz.oracles import disagreements, twins


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_a_few_calls(first):
    assert not [text for index in range(first, first + 20) for text in disagreements(draw(20271, index))]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20272, 20276))
def test_more_calls(seed):
    assert not [text for index in range(15) for text in disagreements(draw(seed, index), values="exact")]


def test_twins_are_the_same_every_time():
    call = draw(20271, 0)
    names = [one.name for one in twins(call)]
    assert names == [one.name for one in twins(call)]
    assert len(set(names)) == len(names)


def test_a_difference_is_told(monkeypatch):
    wanted = iter([np.ones((4, 2)), np.zeros((4, 2)), np.ones((4, 3)), np.full((4, 2), 1.001), np.full((4, 2), -1.0)])
    monkeypatch.setattr(metamorphic, "_numbers", lambda *_: next(wanted, None))
    told = [text.split("\n")[0] for text in disagreements(draw(20271, 0))]
    assert [text.rsplit(": ", 1)[1] for text in told] == [
        "8 of 8 values differ",
        "(4, 3) instead of (4, 2)",
        "relative L2 2 is above 0.24" if "0.24" in told[-1] else "relative L2 2 is above 0.16",
    ]
