"""Tables of programs in a device file: carried by the spec, read by the costs of a program that this test makes up."""

from dataclasses import dataclass, replace
from typing import ClassVar

import pytest

from device.errors import SpecError
from device.spec.device_spec import Costs, DeviceSpec, load_spec


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolCosts(Costs):
    TABLE: ClassVar[str] = "pool_costs"

    start_cycles: int
    stick_cycles: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StickCosts(Costs):
    TABLE: ClassVar[str] = "pool_costs"

    stick_cycles: float


FIGURES = {"start_cycles": 500, "stick_cycles": 3}
MACHINE = {key: value for key, value in load_spec("wormhole_n150").to_dict().items() if not key.endswith("_costs")}


def device(figures=FIGURES, costs=(PoolCosts,)):
    return DeviceSpec.from_dict(MACHINE | {"pool_costs": figures}, costs)


@pytest.mark.parametrize("costs", [(), (PoolCosts,)], ids=["unread", "checked"])
def test_a_program_reads_its_table_once_and_others_read_parts_of_it(costs):
    spec = device(costs=costs)
    assert spec.costs_of(PoolCosts) == PoolCosts(start_cycles=500, stick_cycles=3.0)
    assert spec.costs_of(StickCosts) == StickCosts(stick_cycles=3.0)
    assert spec.costs_of(PoolCosts) is spec.costs_of(PoolCosts)


def test_specs_are_equal_by_their_figures_whoever_has_read_them():
    read, unread = device(), device(costs=())
    read.costs_of(StickCosts)
    assert read == unread
    assert hash(read) == hash(unread)
    assert device(FIGURES | {"stick_cycles": 4}) != read
    assert DeviceSpec.from_dict(read.to_dict(), (PoolCosts,)) == read


def test_checked_figures_have_the_types_and_the_order_of_the_costs():
    table = device({"stick_cycles": 3, "start_cycles": 500}).to_dict()["pool_costs"]
    assert str(table) == "{'start_cycles': 500, 'stick_cycles': 3.0}"


def test_constants_are_replaced_by_name_or_as_a_whole():
    spec = device()
    changed = spec.with_costs(replace(spec.costs_of(PoolCosts), stick_cycles=4.5))
    assert changed.costs_of(PoolCosts) == PoolCosts(start_cycles=500, stick_cycles=4.5)
    assert changed == spec.replace(pool_costs_stick_cycles=4.5)
    assert changed == spec.replace(pool_costs={"start_cycles": 500, "stick_cycles": 4.5})
    assert changed == spec.replace(pool_costs=changed.costs_of(PoolCosts))
    assert changed == device(costs=()).replace(pool_costs_stick_cycles=4.5)
    assert spec.costs_of(PoolCosts).stick_cycles == 3


@pytest.mark.parametrize(
    ("figures", "message"),
    [
        (FIGURES | {"stick_cycle": 1}, r"unknown key 'pool_costs\.stick_cycle', did you mean 'stick_cycles'\?"),
        ({"start_cycles": 500}, r"missing key pool_costs\.stick_cycles; give every figure"),
        (FIGURES | {"start_cycles": 1.5}, r"pool_costs\.start_cycles must be a whole number, not 1\.5"),
        (FIGURES | {"stick_cycles": 0}, r"pool_costs: stick_cycles must be a number above zero, not 0"),
        (FIGURES | {"stick_cycles": 10**400}, r"pool_costs\.stick_cycles must be at most 1\.79769e\+308"),
        (3, r"pool_costs must be a table of PoolCosts, not 3; write it as \[pool_costs\]"),
    ],
)
def test_a_table_that_its_program_does_not_understand_is_refused(figures, message):
    with pytest.raises(SpecError, match=message):
        device(figures)


def test_tables_are_those_that_the_costs_name():
    with pytest.raises(SpecError, match="missing key pool_costs; give every figure"):
        DeviceSpec.from_dict(MACHINE, (PoolCosts,))
    with pytest.raises(SpecError, match=r"unknown key 'pool_cost', did you mean 'pool_costs'\?; keys here are name, "):
        DeviceSpec.from_dict(MACHINE | {"pool_cost": FIGURES}, (PoolCosts,))
    with pytest.raises(SpecError, match="wormhole_n150: there is no table pool_costs; extend a device that has it"):
        DeviceSpec.from_dict(MACHINE).costs_of(PoolCosts)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pool_costs_stick_cycle": 1}, r"unknown field .*, did you mean 'pool_costs_stick_cycles'\?"),
        (
            {"pool_costs_start_cycles": "few"},
            r"^pool_costs\.start_cycles must be a number, not 'few'; give .* of cycles$",
        ),
        ({"pool_costs_stick_cycles": -1}, r"^pool_costs: stick_cycles must be a number above zero, not -1\.0"),
        ({"pool_costs": 3}, "^pool_costs must be a table of PoolCosts, not 3"),
    ],
)
def test_a_change_that_a_checked_table_can_not_take_is_refused_at_once(changes, message):
    with pytest.raises(SpecError, match=message):
        device().replace(**changes)


def test_a_spec_that_nobody_checked_is_checked_when_it_is_opened():
    spec = device(FIGURES | {"stick_cycles": -1}, costs=())
    with pytest.raises(SpecError, match="pool_costs: stick_cycles must be a number above zero"):
        load_spec(spec, (PoolCosts,))
    assert load_spec(device(), (PoolCosts,)) == device()


def test_a_share_is_no_more_than_the_whole():
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Shares(Costs):
        TABLE: ClassVar[str] = "shares"
        stick_share: float

    assert Shares(stick_share=1.0).stick_share == 1.0
    with pytest.raises(SpecError, match=r"^shares: stick_share must be a part of 1, not 1\.5"):
        Shares(stick_share=1.5)
