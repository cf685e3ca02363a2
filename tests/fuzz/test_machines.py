"""Designs of random machines: what `tune` beats, and what more of a resource slows down without a rule, is found."""

from dataclasses import replace

import numpy as np
import pytest

import ttsim
from tests.ttsim.study.test_larger import point
from tools.fuzz import machines
from tools.random_calls.drafts import Choices
from ttsim.runtime.types.layer import Layer
from ttsim.study.design_result import DesignResult, SlowerLayer

RESULT = DesignResult(
    base="d", layers=("up",), axes=(), points=(), front=(), tuned=True, alike=(), looked=4, sensitivity=()
)
NAMED = SlowerLayer(
    layer="up",
    axis="grid",
    smaller="4x4",
    larger="5x4",
    others={},
    share=0.2,
    reason="the planner's rule takes 8 cores",
)


def slower(*times, named=()):
    places = [("4x4", "6"), ("4x4", "12"), ("5x4", "6"), ("5x4", "12")]
    points = [point(time, grid=grid, banks=banks) for (grid, banks), time in zip(places, times, strict=True)]
    points = [replace(each, nanoseconds=each.layers[0].nanoseconds) for each in points]
    return list(machines._slower_with_more(replace(RESULT, points=tuple(points), slower=named)))


def test_more_of_a_resource_that_is_slower_without_a_rule_is_a_fault():
    assert not slower(100.0, 90.0, 100.9, 80.0)
    assert not slower(None, 90.0, 100.0, 80.0)
    assert slower(100.0, 90.0, 102.0, 80.0) == [
        "2.00 % slower with {'grid': '5x4', 'banks': '6'} than with {'grid': '4x4', 'banks': '6'}"
    ]
    assert len(slower(100.0, 90.0, 100.0, 102.0)) == 3  # than all with less
    assert not slower(100.0, 90.0, 100.0, 102.0, named=(NAMED,))
    unnamed = replace(NAMED, reason=machines.NO_RULE.format("math 100 %"))
    assert len(slower(100.0, 90.0, 100.0, 102.0, named=(unnamed,))) == 3
    assert slower(100.0, 90.0, None, 80.0)[0].startswith("with {'grid': '5x4', 'banks': '6'} it does not run")


def test_a_seed_and_a_number_are_four_machines():
    for number in range(20):
        base, (first, second) = machines.machines(Choices(np.random.default_rng([7, 0, number])))
        assert first.name != second.name
        assert all(len(axis.values) == 2 for axis in (first, second))
        for axis in (first, second):
            for value in axis.values:
                assert ttsim.changed(base, [f"{axis.name}={value}"]).grid.cores >= base.grid.cores


@pytest.fixture
def small_layer(monkeypatch):
    layer = Layer(name="up", in_channels=16, out_channels=16, input_height=4, input_width=4, input_memory="l1")
    monkeypatch.setattr(machines, "_layer", lambda draw: layer)


@pytest.mark.slow
@pytest.mark.usefixtures("small_layer")
def test_a_design_is_as_fast_as_tune(monkeypatch):
    found = machines.check(seed=3, index=0)
    assert (found.outcome, found.text) == ("right", ""), found.again
    design = ttsim.design

    def slow(space):
        return design(replace(space, tune=False))

    monkeypatch.setattr(ttsim, "design", slow)
    found = machines.check(seed=3, index=0)
    assert found.outcome == "fault"
    assert found.text.startswith("design has ")
