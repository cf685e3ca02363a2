import numpy as np
import pytest

from device.cores import first_cores
from device.errors import MemoryAccessError, PoisonError
from device.machine import Machine
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout, MemoryConfig, ShardSpec, TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, quantize

ROWS = TensorSpec([70, 20], FLOAT32, Layout.ROW_MAJOR, MemoryConfig(buffer_type=BufferType.L1))


@pytest.fixture
def device() -> Machine:
    return Machine("wormhole_n150", l1_small_bytes=1024)


def test_what_was_stored_lies_at_its_address(device: Machine) -> None:
    buffer = device.allocate(ROWS.buffer(device.spec), "rows")
    values = np.arange(1400, dtype=np.float32).reshape(70, 20)
    buffer.store(values, ROWS)
    place = buffer.page_location(66)
    assert place == (2, buffer.address + 80)
    assert np.array_equal(device.read(BufferType.L1, *place, 80).view(np.float32), values[66])
    assert np.array_equal(device.read(BufferType.L1, 2, place.address + 4, 4).view(np.float32), values[66, 1:2])
    assert buffer.values is values
    assert np.array_equal(buffer.decoded(), values)


def test_tiles_lie_face_by_face(device: Machine) -> None:
    tensor = TensorSpec([32, 32], BFLOAT16, Layout.TILE)
    buffer = device.allocate(tensor.buffer(device.spec))
    values = quantize(np.arange(1024, dtype=np.float32).reshape(32, 32) % 251, BFLOAT16)
    buffer.store(values, tensor)
    second_face = device.read(BufferType.DRAM, 0, buffer.address + 512, 32)
    assert np.array_equal(second_face.view(BFLOAT16.storage), values[0, 16:])


def test_block_floats_can_be_read_by_address(device: Machine) -> None:
    tensor = TensorSpec([32, 32], BFLOAT8_B, Layout.TILE)
    buffer = device.allocate(tensor.buffer(device.spec))
    buffer.store(quantize(np.full((32, 32), 1.0, np.float32), BFLOAT8_B), tensor)
    assert set(device.read(BufferType.DRAM, 0, buffer.address, 64)) == {127}
    assert set(device.read(BufferType.DRAM, 0, buffer.address + 64, 1024)) == {64}


def test_fresh_memory_is_poison(device: Machine) -> None:
    buffer = device.allocate(ROWS.buffer(device.spec), "rows")
    assert not buffer.written
    for read in (lambda: buffer.values, buffer.pages, lambda: buffer.page_location(0)):
        with pytest.raises(PoisonError, match=r"Buffer\('rows', 5600 B in L1 at \d+\)"):
            read()
    with pytest.raises(PoisonError, match=r"is read before anything was written"):
        device.read(BufferType.L1, 0, buffer.address, 4)


def test_padding_and_banks_without_a_share_are_poison(device: Machine) -> None:
    shards = ShardSpec(first_cores(2, 8, 8), [2, 5])
    config = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, shards)
    tensor = TensorSpec([3, 5], BFLOAT16, Layout.ROW_MAJOR, config)
    buffer = device.allocate(tensor.buffer(device.spec), "shards")
    buffer.store(np.ones((3, 5), BFLOAT16.storage), tensor)
    assert buffer.read(0, buffer.address, 10).size == 10
    for bank, offset, poison in ((0, 0, 10), (1, 16, 16), (2, 0, 0)):
        with pytest.raises(PoisonError, match=rf"bank {bank}, address {buffer.address + poison} is read"):
            buffer.read(bank, buffer.address + offset, 11)


def test_reads_outside_a_buffer_are_refused(device: Machine) -> None:
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


def test_a_freed_buffer_is_gone(device: Machine) -> None:
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


def test_a_tensor_of_another_size_does_not_go_in(device: Machine) -> None:
    buffer = device.allocate(ROWS.buffer(device.spec))
    other = TensorSpec([71, 20], FLOAT32, Layout.ROW_MAJOR, ROWS.memory_config)
    with pytest.raises(MemoryAccessError, match=r"can not hold a tensor of"):
        buffer.store(np.zeros((71, 20), np.float32), other)
