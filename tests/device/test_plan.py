"""The hash of a key is computed once."""

import pytest

from device.cores import first_cores
from device.memory.layouts import BufferSpec
from device.memory.memory_config import BufferType, TensorMemoryLayout
from device.plan import (
    BufferAllocated,
    BufferFreed,
    CircularBufferAllocated,
    CircularBuffersFreed,
    Operation,
    usage_per_core,
)


def test_the_key_of_a_program_is_hashed_once():
    hashed = []

    class Counted:
        def __hash__(self):
            hashed.append(self)
            return 7

    one = Counted()
    operation = Operation(name="Op", inputs=(), key=("op", one))
    assert {operation.key: 1}[operation.key] == 1
    assert len(hashed) == 1
    assert operation.key == ("op", one)
    assert hash(operation.key) == hash(("op", one))


CORES = first_cores(8, 8, 8)


def buffer(bank_bytes, buffer_type=BufferType.L1):
    return BufferSpec(
        buffer_type=buffer_type,
        memory_layout=TensorMemoryLayout.INTERLEAVED,
        size_bytes=bank_bytes,
        page_bytes=bank_bytes,
        bank_bytes=bank_bytes,
    )


def circular(size_bytes, *, view=False):
    return CircularBufferAllocated("Conv2dDeviceOperation", "act", size_bytes, 105824, CORES, view)


BOTH_MEMORIES = [
    BufferAllocated(1, "a", 0, buffer(100)),
    BufferAllocated(2, "b", 0, buffer(20, BufferType.L1_SMALL)),
    BufferAllocated(3, "c", 0, buffer(9999, BufferType.DRAM)),
    BufferFreed(1, "a", 0, buffer(100)),
    BufferAllocated(4, "d", 0, buffer(50)),
]
TWO_PROGRAMS = [
    *(circular(64), circular(36), circular(5000, view=True), BufferAllocated(1, "a", 0, buffer(1000))),
    *(CircularBuffersFreed(), circular(80), BufferAllocated(2, "b", 0, buffer(10))),
]


@pytest.mark.parametrize(
    ("events", "usage"), [([], (0, 0, 0)), (BOTH_MEMORIES, (0, 120, 120)), (TWO_PROGRAMS, (100, 1010, 1100))]
)
def test_both_kinds_of_l1_count_and_circular_buffers_until_the_next_program(events, usage):
    assert usage_per_core(events) == usage


def test_a_buffer_from_before_the_capture_is_taken_off():
    """Recorded: a run that frees its sharded input reports a peak that is lower by that input."""
    allocated, later = BufferAllocated(2, "b", 0, buffer(130)), BufferAllocated(3, "c", 0, buffer(50))
    assert usage_per_core([allocated, BufferFreed(1, "a", 0, buffer(100)), later]) == (0, 130, 130)
    assert usage_per_core([BufferFreed(1, "a", 0, buffer(100)), allocated]) == (0, 30, 30)
