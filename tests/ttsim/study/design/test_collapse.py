"""Points that cannot differ are looked into once, and give what they would give by themselves."""

from dataclasses import replace
from itertools import product

from ops.sensitivity.changes import changed, load_spec
from ttsim.study.design import Machine, rows_of
from ttsim.study.evaluate import Point, evaluate
from ttsim.study.space import DesignAxis
from ttsim.types.layer import Layer

SPEC = load_spec("wormhole_n150")
SMALL = Layer(name="small", in_channels=32, out_channels=32, input_height=8, input_width=8)


def test_every_row_is_that_of_its_own_point():
    axes = (
        DesignAxis(name="grid", values=("8x8", "2x1")),
        DesignAxis(name="l1.bytes", values=("1464KiB", "192KiB", "160KiB")),
        DesignAxis(name="dispatch_costs.write_cycles", values=("1490", "2000")),
    )
    machines = [machine(axes, one) for one in product(*(axis.values for axis in axes))]
    for layer in (SMALL, replace(SMALL, name="large", input_height=64)):
        found = rows_of(layer, machines, axes)
        for row, one in zip(found.rows, machines, strict=True):
            assert row == replace(evaluate(Point(layer=layer, spec=one.spec)), key="")
        assert found.asked == {"grid", "l1.bytes"}
        assert found.looked == 2 * 3


def machine(axes, values) -> Machine:
    named = dict(zip((axis.name for axis in axes), values, strict=True))
    return Machine(changed(SPEC, [f"{name}={value}" for name, value in named.items()]), named)


def test_an_error_names_its_own_device():
    """What no DRAM holds is told with the name of the device."""
    axes = (DesignAxis(name="dispatch_costs.write_cycles", values=("1490", "2000")),)
    huge = replace(SMALL, name="huge", input_height=100_000, input_width=100_000)
    machines = [machine(axes, (write,)) for write in axes[0].values]
    found = rows_of(huge, machines, axes)
    for row, one in zip(found.rows, machines, strict=True):
        assert row.device == one.spec.name
        assert row.error == evaluate(Point(layer=huge, spec=one.spec)).error
    assert found.looked == 1
