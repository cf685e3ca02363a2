"""Points that cannot differ are looked into once, and give what they would give by themselves."""

from dataclasses import replace
from itertools import product

from ops.fields.changed import changed, load_spec
from ttsim.experiments.design.collapse import Collapsing
from ttsim.experiments.design.space import DesignAxis
from ttsim.experiments.point import Point, evaluate
from ttsim.types.layer import Layer

SPEC = load_spec("wormhole_n150")
SMALL = Layer(name="small", in_channels=32, out_channels=32, input_height=8, input_width=8)


def test_every_row_is_that_of_its_own_point():
    axes = (
        DesignAxis(name="grid", values=("8x8", "2x1")),
        DesignAxis(name="l1.bytes", values=("1464KiB", "192KiB", "160KiB")),
        DesignAxis(name="dispatch_costs.write_cycles", values=("1490", "2000")),
    )
    known = Collapsing(axes)
    large = replace(SMALL, name="large", input_height=64)
    for layer, *one in product((SMALL, large), *(axis.values for axis in axes)):
        values = dict(zip((axis.name for axis in axes), one, strict=True))
        spec = changed(SPEC, [f"{name}={value}" for name, value in values.items()])
        assert replace(evaluate(Point(layer=layer, spec=spec)), key="") == known.row(layer, spec, values)
    assert known.asked == {"grid", "l1.bytes"}
    assert known.looked == 2 * 2 * 3


def test_an_error_names_its_own_device():
    """What no DRAM holds is told with the name of the device."""
    axes = (DesignAxis(name="dispatch_costs.write_cycles", values=("1490", "2000")),)
    known = Collapsing(axes)
    huge = replace(SMALL, name="huge", input_height=100_000, input_width=100_000)
    for write in axes[0].values:
        spec = changed(SPEC, [f"{axes[0].name}={write}"])
        found = known.row(huge, spec, {axes[0].name: write})
        assert found.device == spec.name
        assert found.error == evaluate(Point(layer=huge, spec=spec)).error
    assert known.looked == 1
