import pytest

from device.machine import Machine
from device.memory.allocator import Owners
from device.memory.buffers import Buffer
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.numbers.formats import BFLOAT16


class Keeper:
    """Somebody who can be referred to weakly."""


@pytest.fixture
def buffers() -> list[Buffer]:
    machine = Machine("wormhole_n150")
    asked = TensorSpec([32, 32], BFLOAT16, Layout.TILE).buffer(machine.spec)
    return [machine.allocate(asked, name) for name in ("first", "second")]


def test_buffers_of_dead_owners_are_freed_once_oldest_first(buffers: list[Buffer]) -> None:
    owners, keepers, freed = Owners(), [Keeper(), Keeper()], []
    for buffer, keeper in zip(buffers, keepers, strict=True):
        owners.own(buffer, keeper)
    del keeper
    assert not owners
    del keepers[0]
    assert buffers[0].owner is not None
    assert buffers[0].owner() is None
    assert owners
    del keepers[0]
    for _ in range(2):
        owners.collect(lambda buffer: freed.append(buffer.name))
    assert freed == ["first", "second"]
    assert not owners


def test_a_buffer_is_known_until_it_is_free(buffers: list[Buffer]) -> None:
    owners, keeper = Owners(), Keeper()
    owners.own(buffers[0], keeper)
    del keeper

    def interrupted(_: Buffer) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        owners.collect(interrupted)
    assert owners
    freed: list[Buffer] = []
    owners.collect(freed.append)
    assert freed == [buffers[0]]


def test_who_lets_go_for_another_leaves_no_orphan(buffers: list[Buffer]) -> None:
    owners, first, second = Owners(), Keeper(), Keeper()
    owners.own(buffers[0], first)
    owners.own(buffers[0], second)
    del first
    assert not owners
    assert buffers[0].owner is not None
    assert buffers[0].owner() is second
