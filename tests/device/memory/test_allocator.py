from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from device.cores import first_cores
from device.errors import DeviceError, OutOfMemoryError
from device.machine import Machine
from device.memory.allocator import Allocator, BankStatistics, Block, FreeList, Owners
from device.memory.buffers import Buffer
from device.memory.layouts import BufferSpec, TensorSpec
from device.memory.memory_config import BufferType, Layout, MemoryConfig, ShardSpec, TensorMemoryLayout
from device.numbers.formats import BFLOAT16
from device.spec.device_spec import load_spec

WORMHOLE, BLACKHOLE = load_spec("wormhole_n150"), load_spec("blackhole_p150")


def interleaved(buffer_type: BufferType, rows: int, cols: int, spec: object = WORMHOLE) -> BufferSpec:
    assert spec in (WORMHOLE, BLACKHOLE)
    config = MemoryConfig(buffer_type=buffer_type)
    return TensorSpec([rows, cols], BFLOAT16, Layout.ROW_MAJOR, config).buffer(
        WORMHOLE if spec is WORMHOLE else BLACKHOLE
    )


def sharded(buffer_type: BufferType, cores: int, shard_rows: int, cols: int, rows: int | None = None) -> BufferSpec:
    shards = ShardSpec(first_cores(cores, 8, 8), [shard_rows, cols])
    config = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, buffer_type, shards)
    return TensorSpec([rows or cores * shard_rows, cols], BFLOAT16, Layout.ROW_MAJOR, config).buffer(WORMHOLE)


def first_line(error: pytest.ExceptionInfo[Exception]) -> str:
    return str(error.value).splitlines()[0]


def test_each_memory_grows_in_its_own_direction() -> None:
    allocator = Allocator(WORMHOLE, 32768)
    assert allocator.allocate(interleaved(BufferType.DRAM, 100, 512)) == 1048640
    assert allocator.allocate(interleaved(BufferType.L1, 100, 20)) == 1466272
    assert allocator.allocate(sharded(BufferType.L1_SMALL, 4, 1, 12)) == 1499104


def test_blackhole_aligns_to_64() -> None:
    allocator = Allocator(BLACKHOLE, 32768)
    assert allocator.allocate(interleaved(BufferType.L1, 100, 20, BLACKHOLE)) == 1540032


def test_statistics_are_those_of_the_real_library() -> None:
    allocator = Allocator(WORMHOLE, 1000)
    assert allocator.l1_small_bytes == 1024
    assert allocator.statistics(BufferType.L1).total_bytes_per_bank == 1392288
    allocator = Allocator(WORMHOLE, 32768)
    allocator.allocate(interleaved(BufferType.L1, 100, 20))
    assert allocator.statistics(BufferType.L1) == BankStatistics(
        num_banks=64,
        total_bytes_per_bank=1360544,
        allocated_bytes_per_bank=96,
        free_bytes_per_bank=1360448,
        largest_free_bytes_per_bank=1360448,
    )
    assert Allocator(WORMHOLE).statistics(BufferType.L1_SMALL).num_banks == 0


def test_freed_addresses_come_back() -> None:
    allocator = Allocator(WORMHOLE)
    buffer = interleaved(BufferType.L1, 64, 512)
    address = allocator.allocate(buffer)
    assert allocator.lowest_l1_address == address
    assert allocator.free(address, BufferType.L1)
    assert not allocator.free(address, BufferType.L1)
    assert allocator.lowest_l1_address is None
    assert allocator.allocate(buffer) == address


# Texts of the real library 0.81.1 on a mock Wormhole, the last one recorded.
@pytest.mark.parametrize(
    ("l1_small_bytes", "before", "buffer", "text"),
    [
        (
            32768,
            interleaved(BufferType.L1, 100, 20),
            interleaved(BufferType.L1, 400000, 512),
            "Out of Memory: Not enough space to allocate 409600000 B L1 buffer across 64 banks, where each bank needs "
            "to store 6400000 B, but bank size is 1360544 B (allocated: 96 B, free: 1360448 B, largest free block: "
            "1360448 B).",
        ),
        (
            32768,
            None,
            interleaved(BufferType.DRAM, 500000000, 20),
            "Out of Memory: Not enough space to allocate 32000000000 B DRAM buffer across 12 banks, where each bank "
            "needs to store 2666666688 B, but bank size is 1072693184 B (allocated: 0 B, free: 1072693184 B, largest "
            "free block: "
            "1072693184 B).",
        ),
        (
            32768,
            None,
            sharded(BufferType.L1, 4, 4, 400000, rows=9),
            "Out of Memory: Not enough space to allocate 9600000 B L1 buffer across 3 banks, where each bank needs to "
            "store "
            "3200000 B, but bank size is 1360544 B (allocated: 0 B, free: 1360544 B, largest free block: 1360544 B).",
        ),
        (
            32768,
            None,
            sharded(BufferType.L1_SMALL, 10, 4, 6000),
            "Out of Memory: Not enough space to allocate 480000 B L1_SMALL buffer across 10 banks, where each bank "
            "needs to store 48000 B, but bank size is 32768 B (allocated: 0 B, free: 32768 B, largest free block: "
            "32768 B). The "
            "L1_SMALL region is sized at device open; increase l1_small_size when opening the device.",
        ),
        (
            0,
            None,
            sharded(BufferType.L1_SMALL, 32, 1, 12),
            "Out of Memory: Not enough space to allocate 1024 B L1_SMALL buffer across 32 banks, where each bank needs "
            "to store 32 B, but bank size is 0 B (allocated: 0 B, free: 0 B, largest free block: 0 B). The L1_SMALL "
            "region is 0 B because it is reserved at device open; set l1_small_size large enough for this allocation "
            "when opening the "
            "device.",
        ),
    ],
)
def test_out_of_memory_reads_as_in_the_real_library(
    l1_small_bytes: int, before: BufferSpec | None, buffer: BufferSpec, text: str
) -> None:
    allocator = Allocator(WORMHOLE, l1_small_bytes)
    if before is not None:
        allocator.allocate(before)
    with pytest.raises(OutOfMemoryError) as error:
        allocator.allocate(buffer)
    assert first_line(error) == text


def test_out_of_memory_says_what_would_help() -> None:
    allocator = Allocator(WORMHOLE, 64)
    allocator.allocate(sharded(BufferType.L1_SMALL, 1, 1, 16))
    small = sharded(BufferType.L1_SMALL, 1, 1, 40)
    with pytest.raises(OutOfMemoryError, match=r"\nl1_small_size=128 would have held it"):
        allocator.allocate(small)
    assert Allocator(WORMHOLE, 128).allocate(small)
    with pytest.raises(OutOfMemoryError, match=r"\n6752 B a bank are missing: free tensors .*, keep it in DRAM"):
        allocator.allocate(sharded(BufferType.L1, 1, 1, 700000 - 8))


def test_fragmented_memory_is_called_so() -> None:
    allocator = Allocator(WORMHOLE)
    third = sharded(BufferType.L1, 1, 1, 232000)
    first, _, last = (allocator.allocate(third) for _ in range(3))
    allocator.free(first, BufferType.L1)
    allocator.free(last, BufferType.L1)
    with pytest.raises(OutOfMemoryError, match=r"\nThe free bytes are enough but lie apart"):
        allocator.allocate(sharded(BufferType.L1, 1, 1, 300000))


def test_unsuitable_requests_are_refused() -> None:
    with pytest.raises(DeviceError, match=r"l1_small_size must be at least 0 and below the 1393312 B of L1, not -1"):
        Allocator(WORMHOLE, -1)
    with pytest.raises(DeviceError, match=r"buffers can be allocated in DRAM, L1, L1_SMALL, not in TRACE"):
        Allocator(WORMHOLE).statistics(BufferType.TRACE)
    with pytest.raises(DeviceError, match=r"a buffer must hold at least one byte"):
        Allocator(WORMHOLE).allocate(interleaved(BufferType.L1, 0, 20))


def test_a_copy_goes_its_own_way() -> None:
    allocator = Allocator(WORMHOLE, 4096)
    buffers = [interleaved(kind, 64, 512) for kind in (BufferType.L1, BufferType.L1_SMALL, BufferType.DRAM)]
    first = [allocator.allocate(buffer) for buffer in buffers]
    other = allocator.copy()
    assert [other.blocks(buffer.buffer_type) for buffer in buffers] == [
        allocator.blocks(buffer.buffer_type) for buffer in buffers
    ]
    for one, address in zip(buffers, first, strict=True):
        other.free(address, one.buffer_type)
        assert other.allocate(one) == address
        other.free(address, one.buffer_type)
        assert other.statistics(one.buffer_type).allocated_bytes_per_bank == 0
        assert allocator.statistics(one.buffer_type).allocated_bytes_per_bank > 0


BASE, SIZE, UNIT = 96, 4096, 32


def make(*, top_down: bool) -> FreeList:
    return FreeList(BASE, SIZE, alignment_bytes=UNIT, top_down=top_down)


def test_blocks_come_from_the_end_that_was_asked_for() -> None:
    assert [make(top_down=True).allocate(100), make(top_down=False).allocate(100)] == [BASE + SIZE - 128, BASE]


def test_the_first_hole_that_is_large_enough_is_taken_not_the_best_one() -> None:
    """Observed on the real library: a hole of just the right size further down stays."""
    for top_down in (True, False):
        blocks = make(top_down=top_down)
        large, _, exact, _ = (blocks.allocate(size) for size in (320, 32, 96, 32))
        assert large is not None
        assert exact is not None
        blocks.free(large)
        blocks.free(exact)
        assert blocks.allocate(96) == (large + 320 - 96 if top_down else large)


def test_neighboring_holes_become_one() -> None:
    blocks = make(top_down=False)
    addresses = [blocks.allocate(32) for _ in range(4)]
    for index in (0, 2, 1):
        assert blocks.free(addresses[index] or 0)
    assert blocks.blocks()[0] == Block(BASE, 96, False)


def test_an_empty_range_holds_nothing() -> None:
    assert FreeList(BASE, 0, alignment_bytes=UNIT, top_down=True).allocate(0) is None


def test_freeing_an_unknown_address_is_harmless() -> None:
    blocks = make(top_down=True)
    assert not blocks.free(BASE)
    assert blocks.free_bytes == SIZE


@given(st.booleans(), st.lists(st.tuples(st.booleans(), st.integers(0, 900), st.integers(0, 30)), max_size=40))
def test_blocks_tile_the_range_and_never_overlap(top_down: bool, steps: list[tuple[bool, int, int]]) -> None:
    blocks = make(top_down=top_down)
    live: dict[int, int] = {}
    for allocate, size_bytes, pick in steps:
        if allocate:
            fits = blocks.largest_free_bytes >= max(size_bytes, 1)
            address = blocks.allocate(size_bytes)
            assert (address is not None) == fits
            if address is not None:
                assert (address - BASE) % UNIT == 0
                live[address] = size_bytes
        elif live:
            address = sorted(live)[pick % len(live)]
            del live[address]
            assert blocks.free(address)
        found = blocks.blocks()
        assert found[0].address == BASE
        assert all(left.address + left.size_bytes == right.address for left, right in pairwise(found))
        assert sum(block.size_bytes for block in found) == SIZE
        assert all(left.allocated or right.allocated for left, right in pairwise(found))
        assert {block.address for block in found if block.allocated} == set(live)
        assert blocks.allocated_bytes + blocks.free_bytes == SIZE
        assert blocks.lowest_used == min(live, default=None)
        numbers = [*(block.number for block in found), *blocks.spare_numbers()]
        assert sorted(numbers) == list(range(len(numbers)))
    for address in live:
        blocks.free(address)
    (whole,) = blocks.blocks()
    assert whole == Block(BASE, SIZE, False, whole.number)


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
