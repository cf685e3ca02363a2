import pytest

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.memory.layouts import BufferSpec, TensorSpec
from device.memory.memory_config import BufferType, Layout, TensorMemoryLayout
from device.numbers.formats import BFLOAT16
from device.plan import (
    BufferAllocated,
    BufferFreed,
    CircularBufferAllocated,
    CircularBuffersFreed,
    OperationBegin,
    OperationEnd,
)
from device.spec.device_spec import load_spec
from ttsim.report.accuracy import Accuracy
from ttsim.report.memory import fullest_core_bytes, living_after, operation_uses, summarize

SPEC = load_spec("wormhole_n150")
USABLE = SPEC.l1.usable_bytes
ROW = CoreRangeSet(CoreRange(CoreCoord(0, 0), CoreCoord(7, 0)))
ONE = CoreRangeSet(CoreRange(CoreCoord(0, 0), CoreCoord(0, 0)))
OTHER = CoreRangeSet(CoreRange(CoreCoord(3, 0), CoreCoord(3, 0)))


def buffer(bank_bytes, memory=BufferType.L1):
    return BufferSpec(
        buffer_type=memory,
        memory_layout=TensorMemoryLayout.HEIGHT_SHARDED,
        size_bytes=8 * bank_bytes,
        page_bytes=bank_bytes,
        bank_bytes=bank_bytes,
        num_cores=8,
        cores=ROW,
    )


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


def test_buffers_live_until_they_are_freed():
    assert living_after([INPUT], [HALO, BufferFreed(*INPUT), OUTPUT, BufferFreed(*OUTPUT)]) == {2: HALO}


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


def test_views_and_dram_take_no_l1():
    halo, _ = operation_uses(SPEC, [INPUT], CALL)
    shares = {use.name: use.l1_share for use in (*halo.circular_buffers, *halo.buffers)}
    assert shares == {"pad": 64 / USABLE, "in": 0, "input": 1000 / USABLE, "weight": 0, "halo": 2000 / USABLE}


def test_summary_of_a_call():
    accuracy = Accuracy(pcc=1, max_abs_error=0, rms_error=0, exact_std=1)
    found = summarize(
        spec=SPEC,
        before=[INPUT],
        events=CALL,
        layouts=(),
        output=TensorSpec((1, 1, 30, 16), BFLOAT16, Layout.TILE),
        output_size=(5, 6),
        accuracy=accuracy,
    )
    assert found.device == "wormhole_n150"
    assert found.output.padded_shape == (1, 1, 32, 32)
    assert (found.output.dtype, found.output.layout) == ("bfloat16", "TILE")
    assert (found.output.height, found.output.width) == (5, 6)
    assert found.accuracy is accuracy
    assert found.l1.peak_circular_bytes == 4096 + 8192
    assert found.l1.peak_buffer_bytes == 6000  # of which the input, there before the call, leaves when halo is done
    assert found.l1.peak_total_bytes == 4096 + 8192 + 6000
    assert found.l1.tightest == "Conv2dDeviceOperation"
    assert found.l1.headroom_bytes == OUTPUT.address - (BASE + 4096 + 8192)
    assert found.l1.headroom_share == found.l1.headroom_bytes / USABLE


def test_nothing_happened():
    found = summarize(
        spec=SPEC,
        before=(),
        events=(),
        layouts=(),
        output=TensorSpec((1, 1, 1, 1), BFLOAT16, Layout.TILE),
        output_size=(1, 1),
    )
    assert found.operations == ()
    assert found.l1.headroom_bytes == USABLE
    assert found.l1.tightest == ""


@pytest.mark.parametrize(
    ("local", "bytes_"),
    [
        ([], 0),
        ([circular("a", 10, 0), circular("b", 5, 10)], 15),
        ([circular("a", 10, 0), circular("b", 5, 10, cores=ONE)], 15),
        ([circular("a", 10, 0, cores=OTHER), circular("b", 5, 0, cores=ONE)], 10),
    ],
)
def test_fullest_core(local, bytes_):
    assert fullest_core_bytes(local) == bytes_


def test_the_operation_that_failed_is_there():
    failed = operation_uses(SPEC, [INPUT], CALL[:-2])
    assert [use.name for use in failed] == ["HaloDeviceOperation", "Conv2dDeviceOperation"]
    assert failed == operation_uses(SPEC, [INPUT], CALL)
