from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pytest

from device.errors import shown
from device.numbers.formats import BFLOAT16
from device.plan import Free, Plan
from ttsim.study.evaluate import canonical, plan_key


@dataclass(frozen=True)
class Thing:
    name: str
    told: int = field(default=0, compare=False)


class Pair(NamedTuple):
    name: str
    number: int


def test_the_text_of_a_plan_is_that_of_its_values():
    assert canonical((1, True, None, "a")) == "[1,True,None,'a']"
    assert canonical(Thing("a", 1)) == canonical(Thing("a", 2)) == f"{__name__}.Thing('a')"
    assert canonical((Pair("a", 1), ["a", 1])) == "[Pair['a',1],['a',1]]"
    assert canonical({"b": 1, "a": 2}) == canonical({"a": 2, "b": 1}) == "{'a':2,'b':1}"
    assert canonical({3, 1}) == "{1,3}"
    assert "bfloat16" in canonical(BFLOAT16)


def test_every_element_of_an_array_counts():
    first, second = np.zeros(5000), np.zeros(5000)
    assert canonical(first) == canonical(second)
    second[2500] = 1
    assert canonical(first) != canonical(second) != canonical(second.astype(np.float32))


def test_what_has_no_text_is_named():
    with pytest.raises(AssertionError, match="a plan holds a function"):
        canonical(shown)


def test_equal_plans_have_equal_keys():
    plan = Plan(steps=(Free("a"),))
    assert plan_key(plan) == plan_key(Plan(steps=(Free("a"),))) != plan_key(Plan(steps=(Free("b"),)))
    assert len(plan_key(plan)) == 16
