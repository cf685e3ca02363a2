from threading import Thread

import pytest

from device.cores import first_cores
from device.errors import CircularBufferError, DeviceClosedError, OutOfMemoryError
from device.machine import Machine, Turn
from device.memory.memory_config import BufferType
from device.numbers.formats import BFLOAT16
from device.plan import (
    BufferAllocated,
    BufferFreed,
    CircularBuffer,
    CircularBufferAllocated,
    CircularBuffersFreed,
    Refused,
    usage_per_core,
)
from device.spec.device_spec import load_spec
from tests.build import tensor_spec

CORES = first_cores(8, 8, 8)


def rows(device, count):
    return tensor_spec(f"{count}x512 l1").buffer(device.spec)


def circular(name, size_bytes, view_of=None, offset_bytes=0):
    sizes = {"size_bytes": size_bytes, "page_bytes": 32, "offset_bytes": offset_bytes}
    return CircularBuffer(name=name, data_format=BFLOAT16, cores=CORES, view_of=view_of, **sizes)


@pytest.fixture
def device():
    return Machine("wormhole_n150")


@pytest.fixture
def heard(device):
    """The events of the device."""
    device.recorders.append(events := [])
    return events


def test_two_devices_do_not_know_of_each_other():
    one, other = Machine("wormhole_n150"), Machine("blackhole_p150", l1_small_bytes=1000)
    first, second = one.allocate(rows(one, 1)), other.allocate(rows(other, 1))
    assert (first.address, second.address) == (1498112, 1570816)
    assert (one.l1_small_bytes, other.l1_small_bytes) == (0, 1024)
    one.close()
    assert second.allocated
    assert not first.allocated


def test_a_device_takes_a_spec():
    spec = load_spec("wormhole_n150").replace(grid_rows=7)
    assert Machine(spec).spec is spec


def test_every_recorder_hears_what_happens(device, heard):
    buffer = device.allocate(rows(device, 1), "x", by="Tensor::to_device")
    device.recorders.append(late := [])
    device.free(buffer)
    device.free(buffer)
    assert heard == [
        BufferAllocated(1, "x", buffer.address, buffer.spec, "Tensor::to_device"),
        BufferFreed(1, "x", buffer.address, buffer.spec, "Tensor::deallocate"),
    ]
    assert late == heard[1:]


def test_a_program_gets_its_circular_buffers_and_views(device, heard):
    parts = [circular("a", 100), circular("out", 64, view_of="y", offset_bytes=32), circular("b", 64)]
    assert device.make_program("Conv2dDeviceOperation", parts, {"y": 1000000}).addresses == (105824, 1000032, 105952)
    assert heard == [
        CircularBuffersFreed(),
        CircularBufferAllocated("Conv2dDeviceOperation", "a", 100, 105824, CORES, False),
        CircularBufferAllocated("Conv2dDeviceOperation", "out", 64, 1000032, CORES, True),
        CircularBufferAllocated("Conv2dDeviceOperation", "b", 64, 105952, CORES, False),
    ]


def test_programs_that_do_not_fit_are_refused_after_they_were_recorded(device, heard):
    device.make_program("MoveDeviceOperation", (), {})
    with pytest.raises(CircularBufferError, match=r"on core range \[0-0 - 7-0\] grow to 1605824 B"):
        device.make_program("Conv2dDeviceOperation", [circular("a", 1500000)], {})
    assert len(heard) == 4
    buffer = device.allocate(rows(device, 1))
    with pytest.raises(
        CircularBufferError, match=rf"in program 3 clash with .* L1 buffer allocated at {buffer.address}"
    ):
        device.make_program("Conv2dDeviceOperation", [circular("a", device.spec.l1.usable_bytes)], {})


def test_a_program_of_too_many_circular_buffers_is_refused_before_any_is_placed():
    device = Machine(load_spec("wormhole_n150").replace(l1_circular_buffers=2))
    device.recorders.append(heard := [])
    device.make_program("MoveDeviceOperation", [circular("a", 64), circular("b", 64)], {})
    with pytest.raises(CircularBufferError, match=r"^Buffer index \(2\) exceeds max number of circular"):
        device.make_program("Conv2dDeviceOperation", [circular(name, 64) for name in "abc"], {})
    assert [type(one).__name__ for one in heard[-2:]] == ["CircularBufferAllocated", "Refused"]


def test_a_cached_program_is_checked_against_what_lies_in_l1_when_it_runs_again(device):
    end = 105824 + 1_300_000
    first = device.make_program("MoveDeviceOperation", [circular("a", 1_300_000)], {}, dataflow=True)
    device.cache_program("k", first)
    device.make_program("MoveDeviceOperation", (), {})
    device.recorders.append(heard := [])
    device.run_cached("k")
    assert heard == [CircularBuffersFreed()]
    lowest = device.allocate(rows(device, 64 * 100)).address  # 100 rows of 1 KiB in the L1 of each core
    assert lowest < end
    with pytest.raises(
        CircularBufferError,
        match=rf"^Statically allocated dataflow buffers in program 1 clash with L1 buffers on core range "
        rf"\[0-0 - 7-0\]\. L1 buffer allocated at {lowest} and static dataflow buffer region ends at {end}\n",
    ) as clash:
        device.run_cached("k")
    assert heard[-2:] == [CircularBuffersFreed(), Refused(str(clash.value))]


def test_cached_programs_keep_their_buffers_until_the_cache_is_cleared():
    device = Machine("wormhole_n150", l1_small_bytes=4096)
    first, second, again = (device.allocate(rows(device, 1), name) for name in ("first", "second", "again"))
    program = device.make_program("Op", (), {})
    device.cache_program("k", program, [first])
    device.cache_program("other", program, [second])
    device.cache_program("k", program, [again])
    assert (first.allocated, second.allocated, again.allocated) == (False, True, True)
    device.clear_program_cache()
    assert device.program_cache == {}
    assert (second.allocated, again.allocated) == (False, False)
    assert device.allocator.lowest_l1_address is None


def test_a_device_that_keeps_no_programs_drops_their_circular_buffers_when_they_have_run(device, heard):
    device.keeps_programs = False
    table = device.allocate(rows(device, 1), "table")
    program = device.make_program("HaloDeviceOperation", [circular("a", 100)], {})
    device.cache_program("k", program, [table])
    device.allocate(rows(device, 128), "next")  # two rows a core
    assert device.program_cache == {}
    assert [type(one).__name__ for one in heard[-3:]] == ["CircularBuffersFreed", "BufferFreed", "BufferAllocated"]
    assert usage_per_core(heard) == (100, 2048, 2048)


def test_closing_frees_everything_once_and_for_all():
    with Machine("wormhole_n150") as device:
        buffer = device.allocate(rows(device, 3))
        device.cache_program("k", device.make_program("Op", (), {}), [device.allocate(rows(device, 1))])
    assert device.closed
    assert not buffer.allocated
    assert device.memory.live() == ()
    assert device.allocator.lowest_l1_address is None
    device.close()
    device.free(buffer)
    assert device.at_close is not None
    assert len(device.at_close.addresses(BufferType.L1)) == 2  # as before the first closing
    with pytest.raises(DeviceClosedError, match=r"device wormhole_n150 was closed; open a new one"):
        device.allocate(rows(device, 1))


def test_a_refusal_is_recorded_before_it_is_raised(device, heard):
    large = rows(device, 10**8)
    with pytest.raises(OutOfMemoryError) as error:
        device.allocate(large)
    assert heard == [Refused(str(error.value), large)]
    with pytest.raises(CircularBufferError) as clash:
        device.make_program("Conv2dDeviceOperation", [circular("a", 2 * device.spec.l1.bytes)], {})
    assert heard[-1] == Refused(str(clash.value))


def elsewhere(function):
    """What a function returns in another thread."""
    found = []
    thread = Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


def test_a_turn_is_one_thread_s_until_it_is_given_up():
    turn = Turn()
    assert not turn.mine
    assert turn.take()
    assert turn.take(wait=False)  # again is harmless
    assert turn.mine
    assert not elsewhere(lambda: turn.take(wait=False))
    elsewhere(turn.give)  # not its own to give
    assert turn.mine
    turn.give()
    assert not turn.mine
    turn.give()
    assert elsewhere(lambda: (turn.take(wait=False), turn.give())[0])


def test_who_waits_gets_it():
    turn, order = Turn(), []
    turn.take()
    threads = [Thread(target=lambda: (turn.take(), order.append(1), turn.give())) for _ in range(3)]
    for thread in threads:
        thread.start()
    order.append(0)
    turn.give()
    for thread in threads:
        thread.join(timeout=5)
    assert order == [0, 1, 1, 1]
