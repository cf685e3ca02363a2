"""The tuner against every call of a space, and a search that leaves something out is found."""

import pytest

import ttsim
from ops.planners.conv.lower_bounds import UNKNOWN, LowerBounds
from tests.ttsim.study.tune.tuned_calls import options
from tools.fuzz import tuner
from ttsim.study.tune.space import SEARCHED

FREE = ("shard_layout", "enable_act_double_buffer")


@pytest.fixture
def few_calls(monkeypatch):
    keep = tuple(name for name in SEARCHED if name not in FREE)
    monkeypatch.setattr(tuner, "_call", lambda draw: (ttsim.conv_transpose2d, options(), keep))


@pytest.mark.usefixtures("few_calls")
def test_a_search_finds_the_best_call():
    found = tuner.check(seed=1, index=0)
    assert (found.outcome, found.text) == ("right", "")


@pytest.mark.usefixtures("few_calls")
def test_a_bound_that_is_too_high_is_found(monkeypatch):
    bound = LowerBounds.of

    def overstated(self, *arguments):
        found = bound(self, *arguments)
        return found if found is UNKNOWN else found._replace(cycles=10**9)

    monkeypatch.setattr(LowerBounds, "of", overstated)
    found = tuner.check(seed=1, index=0)
    assert found.outcome == "fault"
    assert "tune finds" in found.text


@pytest.mark.long
def test_a_search_of_a_random_call():
    """`python -m tools.fuzz --kind tuner` holds more against every call of their space."""
    found = tuner.check(seed=271128, index=1)
    assert found.outcome in ("right", "none fits"), (found.text, found.again)
