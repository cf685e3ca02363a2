"""Energy and counts of reports: exact sums, bounds that are public, and the file for Accelergy."""

import re

import pytest

import ttsim as ttnn
from device.time.energy import EnergyCosts, area_square_millimeters, static_milliwatts
from ttsim.report.actions import COMPONENTS, counts_yaml, energy_lines, in_units
from ttsim.report.energy import ENTRIES

MILLIWATT_SECOND = 10**12  # femtojoules


@pytest.fixture(scope="module")
def small():
    with ttnn.open_device(values="off") as device:
        return report_on(device, 512)


def report_on(device, side):
    matrix = ttnn.zeros((side, side), layout=ttnn.TILE_LAYOUT, dtype=ttnn.bfloat16, device=device)
    with ttnn.profile(device) as profile:
        ttnn.softmax(ttnn.matmul(matrix, matrix))
    return profile.report()


@pytest.mark.parametrize("name", ["n150", "n300", "p100", "p150"])
def test_energy_adds_up_and_lies_between_idle_and_the_limit_of_the_board(name):
    with ttnn.open_device(spec=name, values="off") as device:
        report = report_on(device, 4096)
        spec = device.spec
    total = report.total.energy
    assert total.femtojoules == sum(op.energy.femtojoules for op in report.operations)
    assert total.femtojoules == sum(call.total.energy.femtojoules for call in report.calls)
    assert total.femtojoules == sum(part.femtojoules for part in total.parts)
    for op in report.operations:
        assert op.energy.by_part["static"] == op.cycles * (static_milliwatts(spec) * MILLIWATT_SECOND // spec.clock_hz)
        assert all(type(part.femtojoules) is int for part in op.energy.parts)
    assert static_milliwatts(spec) < 1000 * total.average_watts < spec.costs_of(EnergyCosts).board_limit_milliwatts


def test_every_entry_prices_a_count():
    costs = {entry for entries in ENTRIES.values() for _, entry in entries}
    assert costs == {name for name in EnergyCosts.__dataclass_fields__ if name.endswith("_femtojoules")}
    written = {count for actions in COMPONENTS.values() for count in actions.values()}
    assert written >= {count for entries in ENTRIES.values() for count, _ in entries} - {"passes"}


@pytest.mark.parametrize(
    ("name", "change", "die"), [("n150", {"grid_rows": 10}, 670), ("p150", {"grid_cols": 14}, 600)]
)
def test_parts_of_a_whole_chip_have_the_area_of_its_die(name, change, die):
    assert area_square_millimeters(ttnn.load_spec(name).replace(**change)) == pytest.approx(die, rel=0.01)


def test_counts_file_holds_the_counts(small):
    report = small
    found = dict(
        re.findall(
            r"- name: (multiply_add|busy_cycle)\n(?: +arguments:\n(?: {12}.*\n)+)? +counts: (\d+)",
            counts_yaml([report]),
        )
    )
    assert found == {
        "multiply_add": str(sum(each.issued for each in report.total.actions.multiply_adds)),
        "busy_cycle": str(report.total.actions.busy_core_cycles),
    }
    assert '"bfloat16 x bfloat16"' in counts_yaml([report])


def test_table_says_what_it_rests_on(small):
    *table, basis, least = energy_lines(small)
    assert table[0].split()[:4] == ["operation", "time", "energy", "power"]
    assert "unvalidated" in basis
    assert least.endswith("SoftmaxDeviceOperation.")


@pytest.mark.parametrize(("value", "text"), [(0, "0 J"), (1.5, "1.5 J"), (0.0125, "12.5 mJ"), (3e-15, "0.003 pJ")])
def test_units(value, text):
    assert in_units(value, "J") == text
