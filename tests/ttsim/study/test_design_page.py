"""The page of a design: the machines of test_design."""

from dataclasses import replace

import pytest

from tests.ttsim.report.test_pages import column, sections
from tests.ttsim.study.test_design import SPACE
from ttsim.study.design import design
from ttsim.study.design_page import page_of_design


@pytest.fixture(scope="module")
def result():
    return design(SPACE)


def test_the_fastest_machine_and_all_others_are_shown(result):
    shown = sections(page_of_design(result))
    assert list(shown) == [
        *("verdict", "gain", "picture", "area", "energy", "map", "operations", "fields", "effects", "layers"),
        *("sides", "operation_sides"),
    ]
    best = result.points[result.front[0]]
    assert shown["gain"]["code"] == " ".join(f"--set {name}={value}" for name, value in best.values.items())
    assert shown["gain"]["text"].startswith("Saves 47.")
    assert column(shown["operations"], "time")[0] == pytest.approx(best.nanoseconds)
    assert column(shown["operations"], "on the front").count("yes") == len(result.front)
    assert column(shown["operations"], "area")[:2] == [
        pytest.approx(result.points[at].costs["area"]) for at in result.front
    ]
    assert shown["map"]["axes"] == ["clock_hz", "l1.bytes", "dispatch_costs.write_cycles"]
    different = {(point.nanoseconds, point.costs["area"]) for point in result.points if point.nanoseconds is not None}
    assert len(shown["picture"]["marks"]) == len(different)
    assert len(shown["picture"]["lines"][0]["points"]) == len(result.front)
    for name, of in (("area", lambda point: point.area_mm2), ("energy", lambda point: point.energy_joules)):
        aims = {(of(point), point.nanoseconds) for point in result.points if point.nanoseconds is not None}
        assert sorted(mark[0] for mark in shown[name]["marks"]) == pytest.approx(sorted(aim for aim, _ in aims))


def test_layers_on_the_base_and_on_the_fastest_machine_stand_side_by_side(result):
    sides = sections(page_of_design(result))["sides"]
    base = next(point for point in result.points if point.device == result.base)
    best = result.points[result.front[0]]
    more = [after.nanoseconds - before.nanoseconds for before, after in zip(base.layers, best.layers, strict=True)]
    assert column(sides, "difference") == pytest.approx(more)
    assert sum(column(sides, "before")) == pytest.approx(sum(layer.nanoseconds for layer in base.layers))


def test_fields_to_change_next_and_operations_side_by_side(result):
    """Rows of a field show its machine in the table of machines; the operation that changed most comes first."""
    shown = sections(page_of_design(result))
    effects, sides = shown["effects"], shown["operation_sides"]
    assert column(effects, "field") == [effect.name for effect in result.effects]
    machines = column(shown["operations"], "machine")
    assert [machines[ops[0]] for ops in effects["ops"]] == column(effects, "machine")
    assert column(effects, "dlog time") == [effect.time_elasticity for effect in result.effects]
    twice = [effect.doubled_time for effect in result.effects]
    assert column(effects, "time with twice") == pytest.approx([None if own is None else own - 1 for own in twice])
    changes = [abs(change) for change in column(sides, "difference")]
    assert changes == sorted(changes, reverse=True)
    assert sum(column(sides, "difference")) == pytest.approx(sum(column(shown["sides"], "difference")))


def test_no_machine_runs_all_layers(result):
    failed = tuple(replace(point, nanoseconds=None, reason="too small\nby far") for point in result.points)
    shown = sections(page_of_design(replace(result, points=failed, front=(), alike=())))
    assert (shown["verdict"]["state"], shown["gain"]["detail"]) == ("bad", "too small\nby far")
    assert shown["picture"]["lines"] == ["There is nothing to draw without a cost or a machine that runs all layers."]
