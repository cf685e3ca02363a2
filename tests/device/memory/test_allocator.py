from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from device.errors import DeviceError, OutOfMemoryError
from device.machine import Machine
from device.memory.allocator import Allocator, BankStatistics, Block, FreeList, Owners
from device.memory.memory_config import BufferType, MemoryConfig
from device.spec.device_spec import load_spec
from tests.build import tensor_spec
from tests.shards import HEIGHT

WORMHOLE, BLACKHOLE = load_spec("wormhole_n150"), load_spec("blackhole_p150")


def buffer(text, spec=WORMHOLE):
    """The buffer of a tensor of bfloat16."""
    tensor = tensor_spec(text)
    if text.endswith("small"):
        config = MemoryConfig(HEIGHT, BufferType.L1_SMALL, tensor.memory_config.shard_spec)
        tensor = type(tensor)(tensor.shape, tensor.data_format, tensor.layout, config)
    return tensor.buffer(spec)


def test_each_memory_grows_in_its_own_direction():
    allocator = Allocator(WORMHOLE, 32768)
    assert allocator.allocate(buffer("100x512")) == 1048640
    assert allocator.allocate(buffer("100x20 l1")) == 1466272
    assert allocator.allocate(buffer("4x12 height/1x12/4 small")) == 1499104
    assert Allocator(BLACKHOLE, 32768).allocate(buffer("100x20 l1", BLACKHOLE)) == 1540032


def test_statistics_are_those_of_the_real_library():
    allocator = Allocator(WORMHOLE, 1000)
    assert allocator.l1_small_bytes == 1024
    assert allocator.statistics(BufferType.L1).total_bytes_per_bank == 1392288
    allocator = Allocator(WORMHOLE, 32768)
    allocator.allocate(buffer("100x20 l1"))
    assert allocator.statistics(BufferType.L1) == BankStatistics(
        num_banks=64,
        total_bytes_per_bank=1360544,
        allocated_bytes_per_bank=96,
        free_bytes_per_bank=1360448,
        largest_free_bytes_per_bank=1360448,
    )
    assert Allocator(WORMHOLE).statistics(BufferType.L1_SMALL).num_banks == 0


def test_freed_addresses_come_back():
    allocator, asked = Allocator(WORMHOLE), buffer("64x512 l1")
    address = allocator.allocate(asked)
    assert allocator.lowest_l1_address == address
    assert allocator.free(address, BufferType.L1)
    assert not allocator.free(address, BufferType.L1)
    assert allocator.lowest_l1_address is None
    assert allocator.allocate(asked) == address


SIZED_AT_OPEN = " The L1_SMALL region is sized at device open; increase l1_small_size when opening the device."
RESERVED_AT_OPEN = (
    " The L1_SMALL region is 0 B because it is reserved at device open; set l1_small_size large enough for this "
    "allocation when opening the device."
)


# Figures and texts of the real library 0.81.1 on a mock Wormhole, the last one recorded.
@pytest.mark.parametrize(
    ("l1_small_bytes", "before", "asked", "figures", "more"),
    [
        (32768, "100x20 l1", "400000x512 l1", (409600000, "L1", 64, 6400000, 1360544, 96, 1360448), ""),
        (32768, None, "500000000x20", (32000000000, "DRAM", 12, 2666666688, 1072693184, 0, 1072693184), ""),
        (32768, None, "9x400000 height/4x400000/4", (9600000, "L1", 3, 3200000, 1360544, 0, 1360544), ""),
        (
            *(32768, None, "40x6000 height/4x6000/10 small"),
            *((480000, "L1_SMALL", 10, 48000, 32768, 0, 32768), SIZED_AT_OPEN),
        ),
        (0, None, "32x12 height/1x12/32 small", (1024, "L1_SMALL", 32, 32, 0, 0, 0), RESERVED_AT_OPEN),
    ],
)
def test_out_of_memory_reads_as_in_the_real_library(l1_small_bytes, before, asked, figures, more):
    allocator = Allocator(WORMHOLE, l1_small_bytes)
    if before is not None:
        allocator.allocate(buffer(before))
    with pytest.raises(OutOfMemoryError) as error:
        allocator.allocate(buffer(asked))
    size, memory, banks, each, bank, allocated, free = figures
    assert str(error.value).splitlines()[0] == (
        f"Out of Memory: Not enough space to allocate {size} B {memory} buffer across {banks} banks, where each bank "
        f"needs to store {each} B, but bank size is {bank} B (allocated: {allocated} B, free: {free} B, largest free "
        f"block: {free} B).{more}"
    )


def test_out_of_memory_says_what_would_help():
    allocator = Allocator(WORMHOLE, 64)
    allocator.allocate(buffer("1x16 height/1x16/1 small"))
    small = buffer("1x40 height/1x40/1 small")
    with pytest.raises(OutOfMemoryError, match=r"\nl1_small_size=128 would have held it"):
        allocator.allocate(small)
    assert Allocator(WORMHOLE, 128).allocate(small)
    with pytest.raises(OutOfMemoryError, match=r"\n6752 B a bank are missing: free tensors .*, keep it in DRAM"):
        allocator.allocate(buffer("1x699992 height/1x699992/1"))


def test_fragmented_memory_is_called_so():
    allocator = Allocator(WORMHOLE)
    first, _, last = (allocator.allocate(buffer("1x232000 height/1x232000/1")) for _ in range(3))
    allocator.free(first, BufferType.L1)
    allocator.free(last, BufferType.L1)
    with pytest.raises(OutOfMemoryError, match=r"\nThe free bytes are enough but lie apart"):
        allocator.allocate(buffer("1x300000 height/1x300000/1"))


@pytest.mark.parametrize(
    ("request_of", "message"),
    [
        (lambda: Allocator(WORMHOLE, -1), r"l1_small_size must be at least 0 and below the 1393312 B of L1, not -1"),
        (
            lambda: Allocator(WORMHOLE).statistics(BufferType.TRACE),
            r"buffers can be allocated in DRAM, L1, L1_SMALL, not in TRACE",
        ),
        (lambda: Allocator(WORMHOLE).allocate(buffer("0x20 l1")), r"a buffer must hold at least one byte"),
    ],
)
def test_unsuitable_requests_are_refused(request_of, message):
    with pytest.raises(DeviceError, match=message):
        request_of()


def test_a_copy_goes_its_own_way():
    allocator = Allocator(WORMHOLE, 4096)
    buffers = [buffer("64x512 l1"), buffer("64x512 height/1x512/64 small"), buffer("64x512")]
    first = [allocator.allocate(asked) for asked in buffers]
    other = allocator.copy()
    assert [other.blocks(asked.buffer_type) for asked in buffers] == [
        allocator.blocks(asked.buffer_type) for asked in buffers
    ]
    for asked, address in zip(buffers, first, strict=True):
        other.free(address, asked.buffer_type)
        assert other.allocate(asked) == address
        other.free(address, asked.buffer_type)
        assert other.statistics(asked.buffer_type).allocated_bytes_per_bank == 0
        assert allocator.statistics(asked.buffer_type).allocated_bytes_per_bank > 0


BASE, SIZE, UNIT = 96, 4096, 32


def make(*, top_down: bool) -> FreeList:
    return FreeList(BASE, SIZE, alignment_bytes=UNIT, top_down=top_down)


def test_blocks_come_from_the_end_that_was_asked_for():
    assert [make(top_down=True).allocate(100), make(top_down=False).allocate(100)] == [BASE + SIZE - 128, BASE]


def test_the_first_hole_that_is_large_enough_is_taken_not_the_best_one():
    """Observed on the real library: a hole of just the right size further down stays."""
    for top_down in (True, False):
        blocks = make(top_down=top_down)
        large, _, exact, _ = (blocks.allocate(size) for size in (320, 32, 96, 32))
        blocks.free(large)
        blocks.free(exact)
        assert blocks.allocate(96) == (large + 320 - 96 if top_down else large)


def test_neighboring_holes_become_one():
    blocks = make(top_down=False)
    addresses = [blocks.allocate(32) for _ in range(4)]
    for index in (0, 2, 1):
        assert blocks.free(addresses[index])
    assert blocks.blocks()[0] == Block(BASE, 96, False)


def test_an_empty_range_holds_nothing():
    assert FreeList(BASE, 0, alignment_bytes=UNIT, top_down=True).allocate(0) is None


def test_freeing_an_unknown_address_is_harmless():
    blocks = make(top_down=True)
    assert not blocks.free(BASE)
    assert blocks.free_bytes == SIZE


@given(st.booleans(), st.lists(st.tuples(st.booleans(), st.integers(0, 900), st.integers(0, 30)), max_size=40))
def test_blocks_tile_the_range_and_never_overlap(top_down, steps):
    blocks = make(top_down=top_down)
    live = {}
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
def buffers():
    machine = Machine("wormhole_n150")
    asked = tensor_spec("32x32 tile").buffer(machine.spec)
    return [machine.allocate(asked, name) for name in ("first", "second")]


def test_buffers_of_dead_owners_are_freed_once_oldest_first(buffers):
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


def test_a_buffer_is_known_until_it_is_free(buffers):
    owners, keeper = Owners(), Keeper()
    owners.own(buffers[0], keeper)
    del keeper

    def interrupted(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        owners.collect(interrupted)
    assert owners
    freed = []
    owners.collect(freed.append)
    assert freed == [buffers[0]]


def test_who_lets_go_for_another_leaves_no_orphan(buffers):
    owners, first, second = Owners(), Keeper(), Keeper()
    owners.own(buffers[0], first)
    owners.own(buffers[0], second)
    del first
    assert not owners
    assert buffers[0].owner is not None
    assert buffers[0].owner() is second


def test_occupied_regions_are_the_blocks_in_use():
    blocks = FreeList(1024, 4096, alignment_bytes=32, top_down=True)
    blocks.allocate(64)
    blocks.occupy([(3072, 4096), (1024, 2048)])
    assert [block[:3] for block in blocks.blocks()] == [
        (1024, 1024, True), (2048, 1024, False), (3072, 1024, True), (4096, 1024, False)
    ]  # fmt: skip
    assert [blocks.allocate(1024) for _ in range(3)] == [4096, 2048, None]
    assert blocks.free(3072)
    assert blocks.allocate(512) == 3584


def test_occupied_regions_have_whole_allocation_units():
    """As the blocks of buffers have; a record of a buffer states the bytes that it needs."""
    blocks = FreeList(1024, 4096, alignment_bytes=32, top_down=True)
    blocks.occupy([(1024, 1034)])
    assert [block[:3] for block in blocks.blocks()] == [(1024, 32, True), (1056, 4064, False)]


@pytest.mark.parametrize("regions", [[(0, 64)], [(5088, 5152)], [(1024, 1024)], [(1024, 2048), (2016, 3072)]])
def test_regions_that_overlap_or_leave_the_range_are_refused(regions):
    blocks = FreeList(1024, 4096, alignment_bytes=32, top_down=True)
    with pytest.raises(DeviceError, match="blocks in use must follow each other in 1024 to 5120 B"):
        blocks.occupy(regions)
    assert blocks.free_bytes == 4096


def test_the_longest_hole_lies_above_the_lowest_block() -> None:
    blocks = FreeList(0, 100, alignment_bytes=1, top_down=True)
    assert blocks.largest_hole_bytes == 0  # all is free, and below nothing
    first, second, third, _ = (blocks.allocate(size) for size in (10, 20, 5, 1))
    assert (first, second, third) == (90, 70, 65)
    blocks.free(70)
    blocks.free(90)
    assert blocks.largest_hole_bytes == 30
