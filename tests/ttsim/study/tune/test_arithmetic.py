"""Other arithmetic: only what is allowed, the given first; errors as measured, larger with fewer bits."""

from dataclasses import replace

import pytest

import ttsim
from tests.ttsim.study.tune.tuned_calls import question
from ttsim.study.tune.space import allowed, arithmetics, measured_error


def test_short_names():
    assert allowed(("fidelity", "dtypes")) == {"math_fidelity", "weights_dtype", "dtype"}
    with pytest.raises(ttsim.ArgumentError, match="allow takes"):
        allowed(("exactness",))


def test_nothing_allowed_is_the_call_alone():
    call = question("l1").call
    assert list(arithmetics(call, ())) == [call]


def test_the_given_comes_first_and_fidelity_falls():
    call = question("l1").call
    found = list(arithmetics(call, {"math_fidelity"}))
    assert found[0] is call
    assert [one.compute_config.fidelity_phases for one in found[1:]] == [3, 2, 1]
    assert len(list(arithmetics(call, {"weights_dtype", "dtype", "lowering"}))) == 8


def test_accuracy_of_conv2d_is_not_measured():
    call = question("conv2d").call
    assert list(arithmetics(call, ())) == [call]
    with pytest.raises(ttsim.ArgumentError, match="conv_transpose2d alone"):
        list(arithmetics(call, {"math_fidelity"}))


def test_fewer_bits_are_less_exact():
    asked = question("l1")
    call = replace(asked.call, in_channels=32, input_height=2, input_width=2)
    given, *_, least = arithmetics(call, {"math_fidelity"})
    spec = asked.ground.machine.spec
    assert 0 < measured_error(given, spec) < measured_error(least, spec) < 0.1
