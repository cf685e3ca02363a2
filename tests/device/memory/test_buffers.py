import numpy as np
import pytest
from hypothesis import given, strategies as st

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.errors import CircularBufferError, MemoryAccessError, PoisonError
from device.machine import Machine
from device.memory.buffers import Region, check, check_count, place
from device.memory.memory_config import BufferType
from device.numbers.formats import BFLOAT8_B, BFLOAT16, quantize
from device.spec.device_spec import load_spec
from tests.build import tensor_spec

ROWS = tensor_spec("70x20 float32 l1")


@pytest.fixture
def device():
    return Machine("wormhole_n150", l1_small_bytes=1024)


def test_what_was_stored_lies_at_its_address(device):
    buffer = device.allocate(ROWS.buffer(device.spec), "rows")
    values = np.arange(1400, dtype=np.float32).reshape(70, 20)
    buffer.store(values, ROWS)
    place = buffer.page_location(66)
    assert place == (2, buffer.address + 80)
    assert np.array_equal(device.read(BufferType.L1, *place, 80).view(np.float32), values[66])
    assert np.array_equal(device.read(BufferType.L1, 2, place.address + 4, 4).view(np.float32), values[66, 1:2])
    assert buffer.values is values
    assert np.array_equal(buffer.decoded(), values)


def test_tiles_lie_face_by_face(device):
    tensor = tensor_spec("32x32 tile")
    buffer = device.allocate(tensor.buffer(device.spec))
    values = quantize(np.arange(1024, dtype=np.float32).reshape(32, 32) % 251, BFLOAT16)
    buffer.store(values, tensor)
    second_face = device.read(BufferType.DRAM, 0, buffer.address + 512, 32)
    assert np.array_equal(second_face.view(BFLOAT16.storage), values[0, 16:])


def test_block_floats_can_be_read_by_address(device):
    tensor = tensor_spec("32x32 bfloat8_b tile")
    buffer = device.allocate(tensor.buffer(device.spec))
    buffer.store(quantize(np.full((32, 32), 1.0, np.float32), BFLOAT8_B), tensor)
    assert set(device.read(BufferType.DRAM, 0, buffer.address, 64)) == {127}
    assert set(device.read(BufferType.DRAM, 0, buffer.address + 64, 1024)) == {64}


def test_fresh_memory_is_poison(device):
    buffer = device.allocate(ROWS.buffer(device.spec), "rows")
    assert not buffer.written
    for read in (lambda: buffer.values, buffer.pages, lambda: buffer.page_location(0)):
        with pytest.raises(PoisonError, match=r"Buffer\('rows', 5600 B in L1 at \d+\)"):
            read()
    with pytest.raises(PoisonError, match=r"is read before anything was written"):
        device.read(BufferType.L1, 0, buffer.address, 4)


def test_padding_and_banks_without_a_share_are_poison(device):
    tensor = tensor_spec("3x5 height/2x5/2")
    buffer = device.allocate(tensor.buffer(device.spec), "shards")
    buffer.store(np.ones((3, 5), BFLOAT16.storage), tensor)
    assert buffer.read(0, buffer.address, 10).size == 10
    for bank, offset, poison in ((0, 0, 10), (1, 16, 16), (2, 0, 0)):
        with pytest.raises(PoisonError, match=rf"bank {bank}, address {buffer.address + poison} is read"):
            buffer.read(bank, buffer.address + offset, 11)


def test_reads_outside_a_buffer_are_refused(device):
    with pytest.raises(MemoryAccessError, match=r"address 5 in DRAM belongs to no buffer; no buffer lies below"):
        device.read(BufferType.DRAM, 0, 5, 1)
    buffer = device.allocate(ROWS.buffer(device.spec), "rows")
    buffer.store(np.zeros((70, 20), np.float32), ROWS)
    end = buffer.address + buffer.spec.bank_bytes
    with pytest.raises(MemoryAccessError, match=rf"has addresses {buffer.address} to {end - 1} in each bank; 8 B from"):
        device.read(BufferType.L1, 0, end - 4, 8)
    with pytest.raises(MemoryAccessError, match=r"belongs to no buffer; the nearest buffer below is Buffer\('rows'"):
        device.read(BufferType.L1, 0, end, 1)
    with pytest.raises(MemoryAccessError, match=r"has pages 0 to 69, not 70"):
        buffer.page_location(70)


def test_a_freed_buffer_is_gone(device):
    buffer = device.allocate(ROWS.buffer(device.spec), "rows")
    buffer.store(np.zeros((70, 20), np.float32), ROWS)
    address = buffer.address
    device.free(buffer)
    device.free(buffer)
    for access in (lambda: buffer.values, lambda: buffer.store(np.zeros((70, 20), np.float32), ROWS)):
        with pytest.raises(MemoryAccessError, match=r"after it was freed"):
            access()
    with pytest.raises(MemoryAccessError, match=r"belongs to no buffer"):
        device.read(BufferType.L1, 0, address, 1)


def test_a_tensor_of_another_size_does_not_go_in(device):
    buffer = device.allocate(ROWS.buffer(device.spec))
    other = tensor_spec("71x20 float32 l1")
    with pytest.raises(MemoryAccessError, match=r"can not hold a tensor of"):
        buffer.store(np.zeros((71, 20), np.float32), other)


def test_interleaved_pages_may_have_spare_pages_behind_them(device):
    buffer = device.allocate(ROWS.buffer(device.spec))
    first = tensor_spec("69x20 float32 l1")
    buffer.store(np.ones((69, 20), np.float32), first)
    assert buffer.decoded().shape == (69, 20)


L1 = load_spec("wormhole_n150").l1


def block(left, top, right, bottom):
    return CoreRange(CoreCoord(left, top), CoreCoord(right, bottom))


ROW, NEXT_ROW, ALL, CORNER = block(0, 0, 3, 0), block(0, 1, 3, 1), block(0, 0, 7, 7), block(0, 0, 0, 0)


@pytest.mark.parametrize(
    ("requests", "addresses", "regions"),
    [
        ([(64, [ROW]), (32, [NEXT_ROW]), (32, [ROW])], (0, 0, 64), {ROW: 96, NEXT_ROW: 32}),
        ([(64, [ROW]), (32, [ROW, NEXT_ROW])], (0, 64), {ROW: 96, NEXT_ROW: 96}),  # on two ranges one address
        ([(64, [ALL]), (32, [CORNER])], (0, 64), {ALL: 96, CORNER: 96}),  # a range inside another is lifted with it
    ],
)
def test_cores_fill_up(requests, addresses, regions):
    placement = place([(size, CoreRangeSet(cores)) for size, cores in requests], L1)
    assert placement.addresses == tuple(L1.base_bytes + offset for offset in addresses)
    assert placement.regions == tuple(Region(cores, L1.base_bytes + end) for cores, end in regions.items())


def test_no_circular_buffers_need_no_room():
    assert place([], L1).addresses == ()
    assert place([(64, CoreRangeSet())], L1).addresses == (L1.base_bytes,)


def test_what_does_not_fit_is_refused_in_the_real_words():
    regions = [Region(block(0, 0, 7, 1), L1.bytes + 32)]
    with pytest.raises(CircularBufferError) as error:
        check(regions, L1, lowest_l1_address=None, program=1)
    assert str(error.value).split("\n")[0] == (
        "Statically allocated circular buffers on core range [0-0 - 7-1] grow to 1499168 B which is beyond max L1 size "
        "of 1499136 B"
    )
    regions = [Region(block(0, 0, 7, 1), L1.bytes)]
    with pytest.raises(CircularBufferError) as error:
        check(regions, L1, lowest_l1_address=1497088, program=3)
    first, second = str(error.value).split("\n")
    assert first == (
        "Statically allocated circular buffers in program 3 clash with L1 buffers on core range [0-0 - 7-1]. L1 buffer "
        "allocated at 1497088 and static circular buffer region ends at 1499136"
    )
    assert second.startswith("They overlap by 2048 B: free L1 tensors")
    check(regions, L1, lowest_l1_address=L1.bytes, program=4)


rectangles = st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)).map(
    lambda sides: block(sides[0], sides[1], sides[0] + sides[2], sides[1] + sides[3])
)


@given(st.lists(st.tuples(st.integers(1, 500), rectangles), max_size=6))
def test_buffers_on_one_core_never_overlap_when_ranges_are_equal_or_apart(requests):
    chosen = []
    for size_bytes, cores in requests:
        if all(cores == other.ranges[0] or not cores.overlaps(other.ranges[0]) for _, other in chosen):
            chosen.append((size_bytes, CoreRangeSet([cores])))
    placement = place(chosen, L1)
    for index, (size_bytes, cores) in enumerate(chosen):
        assert placement.addresses[index] % L1.circular_buffer_alignment_bytes == 0
        for later, (_, other) in list(enumerate(chosen))[index + 1 :]:
            if cores == other:
                assert placement.addresses[later] >= placement.addresses[index] + size_bytes


def test_a_program_has_no_more_circular_buffers_than_a_core():
    check_count(32, L1)
    with pytest.raises(CircularBufferError) as error:
        check_count(33, L1)
    first, second = str(error.value).split("\n")
    assert first == "Buffer index (32) exceeds max number of circular buffers per core (32)"
    assert second.startswith("The program has 33 circular buffers: turn a bias")
