"""Random calls on strict devices end right or refused; `python -m tools.fuzz` makes more."""

import pytest

from tools.fuzz.calls import draw, pasteable
from tools.fuzz.oracles import judge

PART = 25


def faults(seed, first, count):
    """What does not hold, with what makes it happen again."""
    for index in range(first, first + count):
        call = draw(seed, index)
        verdict = judge(call)
        if verdict.outcome == "fault":
            yield f"seed {seed}, index {index}: {verdict.text}\n{pasteable(call)}"


@pytest.mark.parametrize("first", range(0, 200, PART))
def test_a_few_calls(first):
    assert not list(faults(20261, first, PART))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20262, 20266))
def test_more_calls(seed):
    assert not list(faults(seed, 0, 100))
