"""How time depends on each figure of a machine: slopes of functions that are known."""

from math import log

import pytest

from device.errors import SpecError
from device.spec.device_spec import catalog_names, load_spec
from ops.passes.sensitivity import PLANNED, machine_figures, scaled, sensitivities

SPEC = load_spec("wormhole_n150")


def found(cycles_on):
    return {sensitivity.figure: sensitivity for sensitivity in sensitivities(SPEC, cycles_on)}


@pytest.mark.parametrize("name", catalog_names())
def test_every_number_of_a_machine_is_a_figure(name):
    """The spec as nested dicts knows no type: each of its numbers is there, but what plans alone depend on."""
    numbers = set()

    def visit(value, path):
        if isinstance(value, dict):
            for key, item in value.items():
                visit(item, f"{path}.{key}" if path else key)
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, dict):
                    visit(item, path)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            numbers.add(path)

    spec = load_spec(name)
    tables = {table.name for table in spec.tables}
    visit({key: value for key, value in spec.to_dict().items() if key not in tables}, "")
    left_out = {path for path in numbers if any(path == one or path.startswith(f"{one}.") for one in PLANNED)}
    assert set(machine_figures(spec)) == numbers - left_out


def test_the_slope_of_a_power():
    result = found(lambda spec: 1000 * spec.clock_hz**0.5 / SPEC.clock_hz**0.5)
    (one,) = result.values()
    assert (one.figure, one.value) == ("clock_hz", SPEC.clock_hz)
    assert one.cycles_elasticity == pytest.approx(0.5)
    assert one.time_elasticity == pytest.approx(-0.5)  # cycles rise, but pass faster
    assert one.doubled_time == pytest.approx(2**-0.5)
    assert one.halved_time == pytest.approx(2**0.5)


def test_whole_numbers_move_by_one_at_least():
    result = found(lambda spec: 1000 + 1000 * spec.dram.banks / SPEC.dram.banks)
    one = result["dram.banks"]  # half of the cycles
    assert one.cycles_elasticity == pytest.approx(0.5, rel=0.01)
    assert (one.doubled_time, one.halved_time) == (1.5, 0.75)
    assert set(result) == {"clock_hz", "dram.banks"}


def test_powers_of_two_are_doubled_and_halved():
    result = found(lambda spec: 6400 / spec.compute.dst_tiles)["compute.dst_tiles"]
    assert result.cycles_elasticity == pytest.approx(-1)
    assert result.doubled_time == 0.5


@pytest.mark.parametrize("beside", [1.01, 0.99])
def test_no_slope_is_taken_through_a_turn(beside):
    """One bank less and one more are both slower, or both faster: half as many take twice as long, twice half."""
    times = {SPEC.dram.banks - 1: beside, SPEC.dram.banks + 1: 2 * beside - 1}
    result = found(lambda spec: 1000 * times.get(spec.dram.banks, SPEC.dram.banks / spec.dram.banks))["dram.banks"]
    assert (result.cycles_elasticity, result.time_elasticity) == (-1, -1)


def test_no_slope_is_taken_over_a_jump():
    """Pages of 8 KiB fill a packet; smaller packets need one more, whatever their size: half as many take 2 % more."""
    result = found(lambda spec: 1000 + 20 * (spec.noc.packet_bytes < 8192))["noc.packet_bytes"]
    assert result.halved_time == 1.02
    assert result.cycles_elasticity == pytest.approx(-log(1.02) / log(4), abs=1e-6)


def test_a_bend_has_the_slope_of_both_sides():
    result = found(lambda spec: max(SPEC.clock_hz, spec.clock_hz))["clock_hz"]
    assert result.cycles_elasticity == pytest.approx(0.5)


def test_entries_of_a_list_move_together():
    result = found(lambda spec: sum(cost.dst_16bit_cycles for cost in spec.reader.tilize))
    assert result["reader.tilize.dst_16bit_cycles"].doubled_time == 2
    assert result["reader.tilize.dst_16bit_cycles"].value == SPEC.reader.tilize[0].dst_16bit_cycles


def test_the_strongest_comes_first():
    order = [
        sensitivity.figure
        for sensitivity in sensitivities(SPEC, lambda s: s.dram.banks + 1000 / s.compute.phase_cycles)
    ]
    assert order[0] == "clock_hz"
    assert order.index("compute.phase_cycles") < order.index("dram.banks")


def test_nothing_to_time_depends_on_nothing():
    assert sensitivities(SPEC, lambda spec: 0.0) == ()


def test_a_machine_that_can_not_be():
    with pytest.raises(SpecError):
        scaled(SPEC, "dram.alignment_bytes", 1.5)
    assert scaled(SPEC, "dram.banks", 1.01).dram.banks == SPEC.dram.banks + 1
