"""Designs of random machines: what `tune` beats, and what more of a resource slows down without a cause, is found."""

from dataclasses import replace

import numpy as np
import pytest

import ttsim
from tests.ttsim.study.test_larger import point
from tools.fuzz import machines
from tools.random_calls.drafts import Choices
from ttsim.runtime.types.layer import Layer
from ttsim.study.design_result import DesignResult
from ttsim.study.larger import Cause, Parts
from ttsim.study.space import Design, DesignAxis

RESULT = DesignResult(
    base="d", layers=("up",), axes=(), points=(), front=(), tuned=True, alike=(), looked=4, sensitivity=()
)
BANKS, GRID = ("6", "12"), ("4x4", "5x4")
SPACE = Design(
    base=ttsim.load_spec("wormhole_n150"),
    axes=(DesignAxis(name="grid", values=GRID), DesignAxis(name="dram.banks", values=BANKS)),
    costs={},
    layers=(Layer(name="up", in_channels=16, out_channels=16, input_height=4, input_width=4),),
)


def slower(monkeypatch, *times, cause, by_ways=True):
    """The causes, and the faults, of a layer that takes these times on 4x4 with 6 and 12 banks, then on 5x4."""
    monkeypatch.setattr(machines, "cause_of", lambda *_: cause)
    monkeypatch.setattr(machines, "_by_ways", lambda *_: by_ways)
    places = [(grid, banks) for grid in GRID for banks in BANKS]
    points = [
        point(time, grid=grid, **{"dram.banks": banks}) for (grid, banks), time in zip(places, times, strict=True)
    ]
    points = [replace(each, nanoseconds=each.layers[0].nanoseconds) for each in points]
    return machines._slower_with_more(SPACE, replace(RESULT, points=tuple(points)))


PLANNED = Cause(Parts(0.02, 0.0, 0.0), "the planner's rule takes 8 cores", is_whole=True)
UNKNOWN = Cause(Parts(0.02, 0.0, 0.0), "bound by math 100 %", is_whole=False)
WAYS = Cause(Parts(0.0, 0.02, 0.0), "ways are longer", is_whole=True)


def test_more_of_a_resource_that_is_slower_without_a_cause_is_a_fault(monkeypatch):
    assert slower(monkeypatch, 100.0, 90.0, 100.9, 80.0, cause=UNKNOWN) == ([], [])
    assert slower(monkeypatch, None, 90.0, 100.0, 80.0, cause=UNKNOWN) == ([], [])
    text = (
        "2.00 % slower with {'grid': '5x4', 'dram.banks': '6'} than with {'grid': '4x4', 'dram.banks': '6'}: "
        "bound by math 100 %"
    )
    assert slower(monkeypatch, 100.0, 90.0, 102.0, 80.0, cause=UNKNOWN) == ([], [text])
    explained, faults = slower(monkeypatch, 100.0, 90.0, 100.0, 102.0, cause=PLANNED)
    assert (len(explained), faults) == (3, [])  # than all with less
    _, (fault,) = slower(monkeypatch, 100.0, 90.0, None, 80.0, cause=PLANNED)
    assert fault.startswith("with {'grid': '5x4', 'dram.banks': '6'} it does not run")


def test_longer_ways_are_no_cause_where_the_layer_is_slower_without_them(monkeypatch):
    assert slower(monkeypatch, 100.0, 90.0, 102.0, 80.0, cause=WAYS)[1] == []
    assert len(slower(monkeypatch, 100.0, 90.0, 102.0, 80.0, cause=WAYS, by_ways=False)[1]) == 1
    assert slower(monkeypatch, 100.0, 90.0, 102.0, 80.0, cause=PLANNED, by_ways=False)[1] == []


def test_a_seed_and_a_number_are_four_machines():
    for number in range(20):
        base, (first, second) = machines.machines(Choices(np.random.default_rng([7, 0, number])))
        assert first.name != second.name
        assert all(len(set(axis.values)) == 2 for axis in (first, second))
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
