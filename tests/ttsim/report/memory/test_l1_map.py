"""L1 over three operations, by hand."""

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.spec.device_spec import load_spec
from ttsim.report.cycles import ranges_of
from ttsim.report.l1_map import CIRCULAR, Held, l1_map

SPEC = load_spec("wormhole_n150")
END = SPEC.l1.bytes
KEPT = Held(name="input", kind="L1", address=END - 4096, size_bytes=4096)
WORK = Held(name="act", kind=CIRCULAR, address=SPEC.l1.base_bytes, size_bytes=2048)


def test_a_buffer_lives_from_the_first_operation_that_finds_it_to_the_last() -> None:
    found = l1_map([(KEPT,), (WORK, KEPT), (WORK,), (KEPT,)], SPEC)
    assert [(one.held.name, one.first, one.last) for one in found.blocks] == [
        ("input", 0, 1), ("act", 1, 1), ("act", 2, 2), ("input", 3, 3)
    ]  # fmt: skip


def test_blocks_stand_where_they_lie() -> None:
    kept, op = l1_map([(KEPT,), (WORK, KEPT)], SPEC).blocks
    assert (kept.left_share, kept.width_share, kept.top_share) == (0.0, 1.0, 0.0)
    assert kept.height_share == 4096 / END
    assert (op.left_share, op.width_share) == (0.5, 0.5)
    assert op.top_share == 1 - (SPEC.l1.base_bytes + 2048) / END


def test_nothing_ran() -> None:
    assert l1_map([], SPEC).blocks == ()


def test_cores_are_rectangles() -> None:
    both = CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(7, 0)), CoreRange(CoreCoord(0, 1), CoreCoord(1, 1))])
    assert ranges_of(both) == ((0, 0, 7, 0), (0, 1, 1, 1))
