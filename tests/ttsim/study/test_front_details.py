"""Fields at machines of the front, and operations side by side, held against the machines of test_design."""

from dataclasses import replace
from math import fsum
from types import SimpleNamespace

import pytest

import ttsim
from ops.sensitivity.changes import load_spec
from tests.ttsim.study.test_design import LAYER, SMALL, SPACE, SPEC
from ttsim.recording.profiling import cycles_of
from ttsim.study.design import design
from ttsim.study.design_result import SpaceStep
from ttsim.study.front_details import calls_on
from ttsim.study.space import Design, DesignAxis


@pytest.fixture(scope="module")
def found():
    return design(SPACE)


def effects_of(found, at):
    return {effect.name: effect for effect in found.effects if effect.machine == at}


def test_fields_of_machines_of_the_front(found):
    """Twice the clock on the machine with 1 GHz: the other machine of the front, where plans stay."""
    fast, slow = found.front
    assert [found.points[at].values["clock_hz"] for at in (fast, slow)] == ["2GHz", "1GHz"]
    assert dict.fromkeys(effect.machine for effect in found.effects) == dict.fromkeys((fast, slow))
    clock = effects_of(found, slow)["clock_hz"]
    (step,) = clock.steps
    assert (clock.value, clock.varied, step.value) == ("1GHz", True, "2GHz")
    assert step.time == pytest.approx(found.points[fast].nanoseconds / found.points[slow].nanoseconds)
    assert clock.doubled_time == pytest.approx(step.time, rel=1e-4)  # whole cycles there
    assert clock.halved_time > 1 > clock.doubled_time > 0.5
    assert -1 < clock.time_elasticity < -0.8


def test_the_effect_is_that_of_held_plans_on_the_machine(found):
    """One more figure, half and twice, computed from the calls of the layers on the machine."""
    at = found.front[0]
    spec = load_spec(found.points[at].device)
    name, effect = next(item for item in effects_of(found, at).items() if item[0].startswith("noc."))
    assert not effect.varied
    assert effect.steps == ()
    ran = [own for layer in SPACE.layers for own in calls_on(layer, spec)]
    part, field = name.split(".")
    twice = replace(spec, **{part: replace(spec.noc, **{field: 2 * getattr(spec.noc, field)})})
    times = [fsum(cycles_of(own, machine) for own in ran) for machine in (spec, twice)]
    assert effect.doubled_time == pytest.approx(times[1] / times[0], abs=1e-6)


def test_a_field_that_decides_plans_has_only_machines_beside_it(found):
    """With less L1 a layer does not fit."""
    size = effects_of(found, found.front[0])["l1.bytes"]
    assert (size.value, size.time_elasticity, size.doubled_time, size.halved_time) == ("1464KiB", None, None, None)
    assert size.steps == (SpaceStep(value="128KiB", time=None),)
    text = str(found)
    assert "What changes clock_hz 2GHz, l1.bytes 1464KiB:" in text
    assert "128KiB: does not run" in text
    assert "half and twice: only the figure changes, with plans held." in text


def test_operations_of_the_base_and_the_fastest_machine_side_by_side(found):
    """Their times add up to those of the layers; clocks differ, so that stages are compared in ns."""
    base = next(point for point in found.points if point.device == found.base)
    best = found.points[found.front[0]]
    for before, after in zip(base.layers, best.layers, strict=True):
        own = [side for side in found.sides if side.layer == after.layer]
        assert [side.position for side in own] == list(range(len(own)))
        assert fsum(side.before_nanoseconds for side in own) == pytest.approx(before.nanoseconds)
        assert fsum(side.after_nanoseconds for side in own) == pytest.approx(after.nanoseconds)
        assert sum(side.after_cycles for side in own) == after.cycles
        assert fsum(side.more_nanoseconds for side in own) == pytest.approx(after.nanoseconds - before.nanoseconds)
    conv = next(side for side in found.sides if side.operation == "Conv2d")
    assert conv.differences.endswith(" ns")
    assert conv.before_bound
    assert f"Operations that gain and lose most, from {found.base} to the fastest machine:" in str(found)


def test_configs_that_were_found_are_held(monkeypatch):
    """A layer with another config than its own on each machine: times are those of the config that was found."""
    layer = replace(SMALL, stride=(2, 2), config={"shard_layout": "WIDTH_SHARDED"})
    config = ttsim.Conv2dConfig(shard_layout=ttsim.TensorMemoryLayout.HEIGHT_SHARDED)
    arguments = "conv_config=ttnn.Conv2dConfig(shard_layout=ttnn.TensorMemoryLayout.HEIGHT_SHARDED)"
    best = SimpleNamespace(cycles=0, arguments=arguments, options=lambda: {"conv_config": config})
    monkeypatch.setattr("ttsim.study.evaluate._fastest", lambda _: SimpleNamespace(best=best, untried=0))
    axis = DesignAxis(name="clock_hz", values=("1GHz", "2GHz"))
    tuned = design(Design(base=SPEC, axes=(axis,), costs={}, layers=(layer,)))
    base, fast = tuned.points
    assert (base.layers[0].arguments, fast.layers[0].arguments) == (arguments, arguments)
    assert base.nanoseconds != base.given_nanoseconds
    assert fsum(side.before_nanoseconds for side in tuned.sides) == pytest.approx(base.nanoseconds)
    assert fsum(side.after_nanoseconds for side in tuned.sides) == pytest.approx(fast.nanoseconds)
    assert "with configs and plans held." in str(tuned)


def test_nothing_stands_beside_the_base_if_it_is_the_fastest():
    axis = DesignAxis(name="clock_hz", values=("500MHz", "1GHz"))
    alone = design(Design(base=SPEC, axes=(axis,), costs={}, layers=(LAYER,), tune=False))
    assert alone.points[alone.front[0]].device == alone.base
    assert alone.sides == ()
