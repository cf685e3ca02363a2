"""Who of the data movement processors does what."""

import pytest

from device.errors import SpecError
from device.spec.device_spec import load_spec
from device.time.network import hands, movers, side_by_side_cycles

SPEC = load_spec("wormhole_n150")


@pytest.mark.parametrize(("processors", "shared"), [(1, (0, 0, 0)), (2, (0, 1, 1)), (3, (0, 1, 2)), (4, (0, 1, 2))])
def test_the_last_processor_does_what_is_left(processors, shared):
    result = movers(processors, 3)
    distinct = list(dict.fromkeys(result))
    assert tuple(distinct.index(one) for one in result) == shared


def test_there_are_no_more_hands_than_processors():
    assert [hands(SPEC.replace(data_movement_processors=count), 2) for count in (1, 2, 3)] == [1, 2, 2]


def test_two_roles_take_turns_on_one_processor():
    assert side_by_side_cycles(SPEC, 10.0, 6.0) == 10.0
    assert side_by_side_cycles(SPEC.replace(data_movement_processors=1), 10.0, 6.0) == 16.0
    with pytest.raises(SpecError, match="data_movement: processors must be a number above zero"):
        SPEC.replace(data_movement_processors=0)
