"""L1 of a core over a call whose events are made by hand, and over three operations as a map."""

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.memory.layouts import BufferSpec
from device.memory.memory_config import BufferType, TensorMemoryLayout
from device.plan import (
    BufferAllocated,
    BufferFreed,
    CircularBufferAllocated,
    CircularBuffersFreed,
    OperationBegin,
    OperationEnd,
)
from device.spec.device_spec import load_spec
from ttsim.report.cycles import ranges_of
from ttsim.report.memory import CIRCULAR, Occupant, fullest_core_bytes, l1_map, l1_use, living_after, operation_uses

SPEC = load_spec("wormhole_n150")
USABLE = SPEC.l1.usable_bytes
ROW = CoreRangeSet(CoreRange(CoreCoord(0, 0), CoreCoord(7, 0)))
ONE = CoreRangeSet(CoreRange(CoreCoord(0, 0), CoreCoord(0, 0)))
OTHER = CoreRangeSet(CoreRange(CoreCoord(3, 0), CoreCoord(3, 0)))


def buffer(bank_bytes, memory=BufferType.L1):
    sizes = {"size_bytes": 8 * bank_bytes, "page_bytes": bank_bytes, "bank_bytes": bank_bytes, "num_cores": 8}
    return BufferSpec(memory, TensorMemoryLayout.HEIGHT_SHARDED, **sizes, cores=ROW)


def circular(name, size_bytes, address, *, cores=ROW, view=False):
    return CircularBufferAllocated("Conv2dDeviceOperation", name, size_bytes, address, cores, view)


INPUT = BufferAllocated(0, "input", 1_400_000, buffer(1000))
WEIGHT = BufferAllocated(1, "weight", 2_000_000, buffer(500, BufferType.DRAM))
HALO = BufferAllocated(2, "halo", 1_300_000, buffer(2000))
OUTPUT = BufferAllocated(3, "output", 1_200_000, buffer(4000))
BASE = SPEC.l1.base_bytes
CALL = [
    OperationBegin("Tensor::to_device"),
    WEIGHT,
    OperationEnd("Tensor::to_device"),
    OperationBegin("HaloDeviceOperation"),
    HALO,
    CircularBuffersFreed(),
    circular("pad", 64, BASE),
    circular("in", 1000, INPUT.address, view=True),
    OperationEnd("HaloDeviceOperation"),
    BufferFreed(*INPUT),
    OperationBegin("Conv2dDeviceOperation"),
    OUTPUT,
    CircularBuffersFreed(),
    circular("weights", 4096, BASE),
    circular("act", 8192, BASE + 4096),
    OperationEnd("Conv2dDeviceOperation"),
    BufferFreed(*HALO),
]


def test_operations_know_what_lay_around_them():
    halo, conv = operation_uses(SPEC, [INPUT], CALL)
    assert [use.name for use in halo.circular_buffers] == ["pad", "in"]
    assert [use.name for use in halo.buffers] == ["input", "weight", "halo"]
    assert [use.name for use in conv.buffers] == ["weight", "halo", "output"]
    assert (halo.circular_bytes, halo.buffer_bytes) == (64, 3000)
    assert (conv.circular_bytes, conv.buffer_bytes) == (4096 + 8192, 6000)
    assert halo.headroom_bytes == HALO.address - (BASE + 64)
    assert conv.headroom_bytes == OUTPUT.address - (BASE + 4096 + 8192)
    assert conv.used_bytes == 4096 + 8192 + 6000
    assert conv.used_share == (4096 + 8192 + 6000) / USABLE
    shares = {use.name: use.l1_share for use in (*halo.circular_buffers, *halo.buffers)}  # views and DRAM take none
    assert shares == {"pad": 64 / USABLE, "in": 0, "input": 1000 / USABLE, "weight": 0, "halo": 2000 / USABLE}
    assert [held.name for held in halo.held] == ["pad", "input", "halo"]
    assert operation_uses(SPEC, [INPUT], CALL[:-2]) == (halo, conv)  # the one that failed is there
    assert living_after([INPUT], [HALO, BufferFreed(*INPUT), OUTPUT, BufferFreed(*OUTPUT)]) == {2: HALO}


def test_l1_over_a_call():
    """The input, there before the call, leaves when halo is done."""
    use = l1_use(SPEC, [INPUT, *CALL], operation_uses(SPEC, [INPUT], CALL))
    peaks = (use.peak_circular_bytes, use.peak_buffer_bytes, use.peak_total_bytes)
    assert peaks == (4096 + 8192, 6000, 4096 + 8192 + 6000)
    assert (use.peak_share, use.tightest) == (peaks[2] / USABLE, "Conv2dDeviceOperation")
    assert use.headroom_bytes == OUTPUT.address - (BASE + 4096 + 8192)
    assert use.headroom_share == use.headroom_bytes / USABLE
    nothing = l1_use(SPEC, [], ())
    assert (nothing.headroom_bytes, nothing.tightest) == (USABLE, "")


def test_fullest_core():
    for first, second, size_bytes in ((ROW, ROW, 15), (ROW, ONE, 15), (OTHER, ONE, 10)):
        assert fullest_core_bytes([circular("a", 10, 0, cores=first), circular("b", 5, 0, cores=second)]) == size_bytes
    assert fullest_core_bytes([]) == 0


END = SPEC.l1.bytes
KEPT = Occupant(name="input", kind="L1", address=END - 4096, size_bytes=4096)
WORK = Occupant(name="act", kind=CIRCULAR, address=SPEC.l1.base_bytes, size_bytes=2048)


def test_a_buffer_lives_from_the_first_operation_that_finds_it_to_the_last() -> None:
    blocks = l1_map([(KEPT,), (WORK, KEPT), (WORK,), (KEPT,)], SPEC).blocks
    assert [(block.held.name, block.first, block.last, block.left_share, block.width_share) for block in blocks] == [
        ("input", 0, 1, 0, 0.5), ("act", 1, 1, 0.25, 0.25), ("act", 2, 2, 0.5, 0.25), ("input", 3, 3, 0.75, 0.25)
    ]  # fmt: skip
    assert (blocks[0].top_share, blocks[0].height_share) == (0.0, 4096 / END)
    assert blocks[1].top_share == 1 - (SPEC.l1.base_bytes + 2048) / END
    assert l1_map([], SPEC).blocks == ()


def test_cores_are_rectangles() -> None:
    both = CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(7, 0)), CoreRange(CoreCoord(0, 1), CoreCoord(1, 1))])
    assert ranges_of(both) == ((0, 0, 7, 0), (0, 1, 1, 1))
