"""Records of runs by hand: operations in order, tensors, their pages on cores and their lifetimes."""

import pytest

from device.cores import CoreCoord, CoreRange, CoreRangeSet, first_cores
from device.memory.layouts import BufferSpec, TensorSpec
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    L1_MEMORY_CONFIG,
    BufferType,
    Layout,
    MemoryConfig,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import BFLOAT16
from device.plan import (
    BufferAllocated,
    BufferFreed,
    CircularBufferAllocated,
    CircularBuffersFreed,
    OperationBegin,
    OperationEnd,
    ReadTensor,
    Refused,
    WrittenTensor,
)
from device.spec.device_spec import load_spec
from ttsim.report.cycles import ranges_of
from ttsim.report.memory import CIRCULAR, Occupant, fullest_core_bytes, l1_map, l1_use, living_after, operation_uses
from ttsim.report.record import Chunk, RecordedCall, chunks_of, device_figures, known_arch, lifetimes, numbered
from ttsim.runtime.traces import CallSite

TENSOR = TensorSpec([1, 1, 32, 32], BFLOAT16, Layout.TILE)
SHARDED = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, ShardSpec(first_cores(3, 8, 8), (64, 32)))


def test_a_tensor_has_the_number_of_its_buffer_and_a_view_one_of_its_own():
    flat = TensorSpec([1, 1, 1, 1024], BFLOAT16, Layout.ROW_MAJOR)
    one, view, other = WrittenTensor(4, 0, TENSOR), WrittenTensor(4, 0, flat), WrittenTensor(7, 64, TENSOR)
    assert numbered([one, view, one, other]) == {one: 4, other: 7, view: 8}


def test_a_device_is_told_by_its_figures_and_an_architecture_that_viewers_know(spec):
    result = device_figures(spec, 1024)
    assert result["cb_limit"] - result["l1_bank_size"] == 1024
    assert result["total_l1_for_tensors"] == 64 * result["l1_bank_size"]
    for family, known in (("wormhole_b0", "wormhole_b0"), ("quasar", "")):
        assert known_arch(spec.replace(arch='my, "own"', family=family)) == known


def allocated(number, tensor, spec):
    return BufferAllocated(number, "b", 64 * number, tensor.buffer(spec))


def test_what_does_not_fit_ends_the_events(spec):
    one = allocated(1, TENSOR, spec)
    for events, living in (((one, Refused("why"), BufferFreed(*one)), (one,)), ((one, BufferFreed(*one)), ())):
        assert RecordedCall(number=1, function="f", before=(), events=events).living == living


@pytest.mark.parametrize(
    ("shape", "memory", "expected"),
    [  # column, row, start behind the buffer's address, bytes and pages
        # 66 tiles on 64 cores: two of them have two
        ((1, 1, 32 * 66, 32), L1_MEMORY_CONFIG, [(0, 0, 0, 4096, 2), (1, 0, 0, 4096, 2), (2, 0, 0, 2048, 1)]),
        # Three shards of two tiles, the last of which is half full
        ((1, 1, 32 * 5, 32), SHARDED, [(0, 0, 0, 4096, 2), (1, 0, 0, 4096, 2), (2, 0, 0, 2048, 1)]),
        ((1, 1, 32, 32), DRAM_MEMORY_CONFIG, []),
    ],
)
def test_pages_lie_on_their_cores(shape, memory, expected, spec):
    tensor = TensorSpec(shape, BFLOAT16, Layout.TILE, memory)
    living = [allocated(7, tensor, spec), allocated(8, tensor, spec)]
    found = list(chunks_of(living, {7: tensor}, spec))  # nobody knows the tensor of the other buffer
    assert [(one.column, one.row, one.start - 7 * 64, one.size_bytes, one.pages) for one in found][:3] == expected
    assert len(found) == {66 * 32: 64, 5 * 32: 3, 32: 0}[shape[2]]
    assert found[9:10] in ([], [Chunk(448, 9, 1, 1, 448, 2048, 2048, 1, 1)])


def runs(read, made, spec):
    return (
        OperationBegin("Op", read=tuple(ReadTensor(one, TENSOR.buffer(spec)) for one in read)),
        OperationEnd("Op", made=made),
    )


def test_tensors_are_made_read_and_freed(spec):
    given, inner, out = (WrittenTensor(number, 64 * number, TENSOR) for number in (1, 2, 3))
    buffers = [allocated(number, TENSOR, spec) for number in (1, 2, 3)]
    line_3, line_4 = CallSite("a.py", 3, "f"), CallSite("b.py", 4, "g")

    first = RecordedCall(
        function="f", number=1, before=(buffers[0],), stack=(line_3,),
        events=(
            buffers[1], *runs([given], (inner, given), spec),  # what is written into was made before
            buffers[2], *runs([inner], (out,), spec), BufferFreed(*buffers[1]),
        ),
    )  # fmt: skip
    within = (CallSite("main.py", 9), line_4)
    second = RecordedCall(function="f", number=2, before=(buffers[2],), stack=within, events=runs([out], (out,), spec))
    # The second call works in place
    assert lifetimes([first, second], {given: 1, inner: 2, out: 3}) == [
        (1, None, CallSite("", 0), 1, line_3, 1),  # freed behind the call
        (2, 1, line_3, 1, line_3, 1),
        (3, 1, line_3, 2, line_4, None),
    ]


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
    OperationBegin("Tensor::to_device"), WEIGHT, OperationEnd("Tensor::to_device"),
    OperationBegin("HaloDeviceOperation"), HALO, CircularBuffersFreed(), circular("pad", 64, BASE),
    circular("in", 1000, INPUT.address, view=True), OperationEnd("HaloDeviceOperation"), BufferFreed(*INPUT),
    OperationBegin("Conv2dDeviceOperation"), OUTPUT, CircularBuffersFreed(), circular("weights", 4096, BASE),
    circular("act", 8192, BASE + 4096), OperationEnd("Conv2dDeviceOperation"), BufferFreed(*HALO),
]  # fmt: skip


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
