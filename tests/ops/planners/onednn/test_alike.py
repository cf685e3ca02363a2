"""Functions that are called once for calls that are alike: equal, and of the same types."""

from types import MappingProxyType

import numpy as np
import pytest

from device.numbers.formats import BFLOAT16, FLOAT32
from ops.planners.onednn.problem import MOST_KEPT, Operand, once_for_alike


@pytest.fixture
def told():
    calls = []

    @once_for_alike
    def function(*args, **kwargs):
        calls.append((args, kwargs))
        if args == ("wrong",):
            raise ValueError("wrong")
        return object()

    return function, calls


def test_equal_calls_have_one_result(told):
    function, calls = told
    given = {"strides": [2, 2], "auto_pad": None}
    first = function(Operand("src", (1, 2), FLOAT32), given, strict=False)
    assert function(Operand("src", (1, 2), FLOAT32), dict(given), strict=False) is first
    given["strides"].append(3)  # the same list, changed since
    assert function(Operand("src", (1, 2), FLOAT32), given, strict=False) is not first
    assert len(calls) == 2


@pytest.mark.parametrize(("one", "other"), [
    (1, True), (0, False), ((1, 2), [1, 2]), ([1, 2], [2, 1]), ({"a": 1}, {"b": 1}), ({"a": 1}, {"a": True}),
    ({"a": 1}, MappingProxyType({"a": 1})), (None, "None"), (([1], 2), ([1, 2],)),
    (Operand("src", (1,), FLOAT32), Operand("src", (1,), BFLOAT16)),
    (Operand("src", (1,), FLOAT32), Operand("dst", (1,), FLOAT32)),
])  # fmt: skip
def test_unlike_calls_do_not(one, other, told):
    function, calls = told
    assert function(one) is not function(other)
    assert function(given=one) is not function(given=other)
    assert len(calls) == 4


@pytest.mark.parametrize("value", [1.0, np.int64(1), np.ones(2), type("Index", (int,), {})(1), {1}, b"1"])
def test_other_values_are_looked_at_each_time(value, told):
    function, calls = told
    assert function([value]) is not function([value])
    assert len(calls) == 2


def test_what_is_raised_is_raised_again(told):
    function, calls = told
    for _ in range(2):
        with pytest.raises(ValueError, match="wrong"):
            function("wrong")
    assert len(calls) == 2


def test_only_some_results_are_kept(told):
    function, calls = told
    for number in range(MOST_KEPT + 1):
        function(number)
    function(0)
    assert len(calls) == MOST_KEPT + 2
