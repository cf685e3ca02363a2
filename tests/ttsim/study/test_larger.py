"""A layer that more of a resource slows down is told with what makes it so, and nothing else is."""

from dataclasses import replace

import pytest

from ops.sensitivity.changes import load_spec
from ttsim.runtime.types.layer import Layer
from ttsim.study import larger
from ttsim.study.design import design
from ttsim.study.design_result import DesignPoint, LayerOutcome
from ttsim.study.evaluate import Evaluator, Point
from ttsim.study.larger import Parts, Side, cause_of, slower_pairs
from ttsim.study.space import Design, DesignAxis

GRIDS = DesignAxis(name="grid", values=("8x8", "10x8", "8x9"))
ACCESS = DesignAxis(name="dram.access_ns", values=("100", "200"))


def point(nanoseconds, rules="", **values):
    layer = LayerOutcome(
        layer="up", count=1, verdict="fits", error="", cycles=1, nanoseconds=nanoseconds, cycles_error_share=None,
        untimed_operations=0, l1_peak_bytes=1, l1_headroom_bytes=1, bound_by="math 100 %", grid_rules=rules,
    )  # fmt: skip
    return DesignPoint(values=values, layers=(layer,))


def slower(axes, points):
    specs = [
        load_spec("wormhole_n150," + ",".join(f"{name}={value}" for name, value in each.values.items()))
        for each in points
    ]
    return slower_pairs(axes, points, specs)


def test_the_largest_slowdown_of_a_layer_is_told():
    times = {"8x8": 100.0, "10x8": 130.0, "8x9": 120.0, "8x10": 100.9, "7x9": 500.0}
    (told,) = slower([GRIDS], [point(time, grid=grid) for grid, time in times.items()])
    assert (told.layer, told.axis, told.small, told.large, round(told.share, 6)) == (0, "grid", 0, 1, 0.3)


ROW = Evaluator().row(
    Point(layer=Layer(in_channels=32, out_channels=32, input_height=4, input_width=4), spec=load_spec("wormhole_n150"))
)


@pytest.mark.parametrize(
    ("parts", "is_whole", "reason"),
    [
        (Parts(0.2, 0.0, 0.0), True, "new"),
        (Parts(-0.1, 0.3, 0.0), True, "the same plan takes 30 % longer"),
        (Parts(0.12, 0.08, 0.0), True, "new|the same plan takes 8 % longer"),
        (Parts(0.08, 0.12, 0.0), True, "the same plan takes 12 % longer|new"),
        (Parts(0.005, 0.195, 0.0), True, "the same plan takes 19.5 % longer"),
        (Parts(0.1, 0.0, 0.1), False, "new|neither a rule of the planner nor the ways through the networks do it"),
    ],
)
def test_the_largest_causes_are_told_until_one_percent_is_left(monkeypatch, parts, is_whole, reason):
    monkeypatch.setattr(larger, "parts_of", lambda *_: parts)
    sides = [Side(None, replace(ROW, grid_rules=rules)) for rules in ("old", "old\nnew")]
    cause = cause_of(None, 0.2, *sides)
    assert cause.is_whole is is_whole
    lines = zip(cause.reason.splitlines(), reason.split("|"), strict=True)
    assert all(line.startswith(begin) for line, begin in lines)


def test_a_rule_of_both_machines_is_no_cause(monkeypatch):
    monkeypatch.setattr(larger, "parts_of", lambda *_: Parts(0.2, 0.0, 0.0))
    assert not cause_of(None, 0.2, *[Side(None, replace(ROW, grid_rules="old"))] * 2).is_whole


def test_longer_rings_make_all_of_a_slowdown_of_one_plan():
    layer = Layer(in_channels=16, out_channels=16, input_height=4, input_width=4, input_memory="dram", stride=(2, 2))
    specs = [load_spec(f"blackhole_p150,grid={grid}") for grid in ("8x8", "9x12")]  # more rows than the card's ten
    sides = [Side(spec, Evaluator().row(Point(layer=layer, spec=spec))) for spec in specs]
    share = sides[1].row.cycles / sides[0].row.cycles - 1
    cause = cause_of(layer, share, *sides)
    assert cause.parts.planner == 0.0
    assert abs(cause.parts.rest) < 1e-6
    assert cause.parts.networks == pytest.approx(share, abs=1e-3)
    assert share > 0.01
    assert cause.is_whole


def test_more_of_what_is_no_resource_may_be_slower():
    assert not slower([ACCESS], [point(time, **{"dram.access_ns": ns}) for ns, time in (("100", 1.0), ("200", 2.0))])


def test_a_layer_that_does_not_run_is_not_slower():
    assert not slower([GRIDS], [point(1.0, grid="8x8"), point(None, grid="10x8")])


def test_a_design_tells_the_rule():
    layer = Layer(
        name="narrow", in_channels=96, out_channels=32, input_height=8, input_width=8, input_memory="l1",
        config={"shard_layout": "BLOCK_SHARDED"},
    )  # fmt: skip
    base = load_spec("wormhole_n150")
    found = design(
        Design(
            base=base, axes=(DesignAxis(name="grid", values=("3x8", "12x8")),), costs={}, layers=(layer,), tune=False
        )
    )
    (told,) = found.slower
    assert "spreads 96 channels over 12 columns of cores, 8 on each" in told.reason
    assert told.planner_share + told.networks_share == pytest.approx(told.share, abs=1e-3)
    assert f"narrow: {100 * told.share:.3g} % slower with grid 12x8 than with 3x8:" in str(found)
    row = Evaluator().row(Point(layer=layer, spec=base))
    assert row.grid_rules.startswith("the planner's rule")
