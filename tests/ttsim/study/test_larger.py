"""A layer that more of a resource slows down is told with the planner's rule, and nothing else is."""

from ops.sensitivity.changes import load_spec
from ttsim.runtime.types.layer import Layer
from ttsim.study.design import design
from ttsim.study.design_result import DesignPoint, LayerOutcome
from ttsim.study.evaluate import Evaluator, Point
from ttsim.study.larger import slower_layers
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
    return slower_layers(axes, points, specs)


def test_the_largest_slowdown_of_a_layer_is_told():
    times = {"8x8": 100.0, "10x8": 130.0, "8x9": 120.0, "8x10": 100.9, "7x9": 500.0}
    (told,) = slower([GRIDS], [point(time, "it leaves cores idle", grid=grid) for grid, time in times.items()])
    assert (told.layer, told.axis, told.smaller, told.larger, round(told.share, 6)) == (
        "up",
        "grid",
        "8x8",
        "10x8",
        0.3,
    )
    assert told.reason == "it leaves cores idle\nthe rings of the networks are longer"


def test_where_a_config_names_the_cores_what_binds_is_told():
    banks = DesignAxis(name="dram.banks", values=("12", "25"))
    told = slower([banks], [point(time, **{"dram.banks": banks}) for banks, time in (("12", 100.0), ("25", 102.0))])
    assert [each.reason for each in told] == [
        "its config names its cores, so that no rule of the planner does it; bound by math 100 %"
    ]


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
    assert f"narrow: {100 * told.share:.3g} % slower with grid 12x8 than with 3x8:" in str(found)
    row = Evaluator().row(Point(layer=layer, spec=base))
    assert row.grid_rules.startswith("the planner's rule")
