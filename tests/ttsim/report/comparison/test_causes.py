"""What differs, told as far as both sides tell it."""

from dataclasses import replace

from ttsim.report.comparison import ReportedOperation, ReportedTensor, causes_of

TENSOR = ReportedTensor(name="INPUT_0", shape="1x1x64x32", dtype="BFLOAT16", layout="TILE", memory="L1_HEIGHT_SHARDED")
ONE = ReportedOperation(
    name="A", cycles=5, nanoseconds=5.0, bound_by="math", core_count=8, fidelity="HiFi4", tensors=(TENSOR,),
    stages=(("math", 3), ("reader", 2), ("pack", 9)),
)  # fmt: skip


def texts(before: ReportedOperation | None, after: ReportedOperation | None) -> list[tuple[str, str]]:
    return [(one.what, one.text) for one in causes_of(before, after)]


def test_nothing_differs() -> None:
    assert texts(ONE, ONE) == []


def test_each_difference_is_named() -> None:
    other = replace(TENSOR, shape="1x1x32x32", dtype="BFLOAT8_B", layout="ROW_MAJOR", memory="DRAM_INTERLEAVED")
    after = replace(ONE, core_count=4, fidelity="LoFi", bound_by="pack", tensors=(other,),
                    stages=(("math", 4), ("reader", 2), ("pack", 5), ("halo", 2)))  # fmt: skip
    assert texts(ONE, after) == [
        ("cores", "8 -> 4 cores"),
        ("fidelity", "HiFi4 -> LoFi"),
        ("bound", "bound by math -> pack"),
        ("shapes", "INPUT_0 1x1x64x32 -> 1x1x32x32"),
        ("data types", "INPUT_0 BFLOAT16 -> BFLOAT8_B"),
        ("layouts", "INPUT_0 TILE -> ROW_MAJOR"),
        ("memory", "INPUT_0 L1_HEIGHT_SHARDED -> DRAM_INTERLEAVED"),
        ("stages", "pack -4"),
        ("stages", "halo +2"),
    ]
    assert [one.what for one in causes_of(ONE, after, stages=False)][-1] == "memory"


def test_what_one_side_does_not_tell_is_no_difference() -> None:
    silent = ReportedOperation(name="A", cycles=None, nanoseconds=5.0, bound_by="", core_count=0)
    assert texts(ONE, silent) == texts(silent, ONE) == []


def test_an_operation_that_is_missing_or_has_no_time() -> None:
    assert texts(None, ONE) == [("matched", "only after")]
    assert texts(ONE, None) == [("matched", "only before")]
    assert texts(ONE, replace(ONE, nanoseconds=None)) == [("known times", "no time after")]
