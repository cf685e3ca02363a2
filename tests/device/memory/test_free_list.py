from itertools import pairwise

from hypothesis import given, strategies as st

from device.memory.allocator import Block, FreeList

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
