from device.cores import CalledList, CoreCoord, CoreRange, CoreRangeSet, FrozenList
from device.memory.memory_config import Layout, ShardSpec


def test_enumerations_print_alike_in_lists() -> None:
    assert f"{Layout.TILE} {[Layout.ROW_MAJOR]}" == "Layout.TILE [Layout.ROW_MAJOR]"


def test_a_frozen_list_is_equal_to_a_list() -> None:
    assert FrozenList((1, 2)) == [1, 2] == FrozenList((1, 2))
    assert FrozenList((1, 2)) != [2, 1]
    assert repr(FrozenList((1, 2))) == "[1, 2]"
    assert len({FrozenList((1, 2)), (1, 2)}) == 1


def test_ranges_are_an_attribute_and_a_method() -> None:
    one = CoreRange(CoreCoord(0, 0), CoreCoord(3, 1))
    cores = CoreRangeSet([one])
    assert cores.ranges() == [one] == list(cores.ranges)
    assert isinstance(cores.ranges, CalledList)
    assert ShardSpec(cores, [32, 64]).shape == [32, 64]
