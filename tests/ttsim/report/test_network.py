"""A report of three operations, by hand: 100, no and 300 cycles at 1 GHz."""

from dataclasses import replace

from device.cores import first_cores
from device.numbers.formats import BFLOAT16
from device.plan import CircularBuffer, Operation
from device.spec.device_spec import load_spec
from tests.ttsim.report.ran_operations import runs_of, timed, untimed
from ttsim.report.network import LivingBuffer, Runs, network_report

SPEC = load_spec("wormhole_n150")
CORES = first_cores(2, 8, 8)
HELD = LivingBuffer(name="output", memory="L1", bank_bytes=500, address=1000, function="ttnn.f", where="net.py:1")
TABLE = replace(HELD, name="table", memory="L1_SMALL", bank_bytes=16)


def circular(name: str, size_bytes: int) -> CircularBuffer:
    return CircularBuffer(name=name, size_bytes=size_bytes, page_bytes=32, data_format=BFLOAT16, cores=CORES)


def found(number: int | None = None) -> Runs:
    """The first of the operations, or all."""
    ran = [timed("A", 100), untimed("B", "nobody measured it"), timed("A", 300)]
    step = Operation(name="A", inputs=(), circular_buffers=(circular("in", 64), circular("out", 32)))
    facts = [
        {"where": "net.py:1", "step": step, "l1": (96, 516), "buffers": (HELD, TABLE)},
        {"where": "net.py:1", "l1": (0, 500), "buffers": (HELD,)},
        {"call": 1, "l1": (0, 500), "buffers": (HELD,)},
    ]
    return runs_of(SPEC, *ran[:number], facts=facts[:number])


def test_operations_follow_each_other() -> None:
    report = network_report(found(), SPEC)
    assert (report.cycles, report.nanoseconds, report.calls) == (400, 400.0, 2)
    assert [(operation.start_nanoseconds, operation.cycles, operation.share) for operation in report.operations] == [
        (0, 100, 0.25), (100, 0, 0), (100, 300, 0.75)
    ]  # fmt: skip
    assert [operation.l1_bytes for operation in report.operations] == [64 + 32 + 500 + 16, 500, 500]
    assert [one.number for one in report.untimed] == [1]


def test_operations_are_put_together_by_kind_and_by_line() -> None:
    report = network_report(found(), SPEC)
    shown = [(kind.name, kind.calls, kind.count, kind.untimed, kind.cycles, kind.l1_bytes) for kind in report.kinds]
    assert shown == [("A", 2, 2, 0, 400, 612), ("B", 1, 1, 1, 0, 500)]
    shown = [
        (layer.name, layer.calls, layer.count, layer.untimed, layer.cycles, layer.share) for layer in report.layers
    ]
    assert shown == [("net.py:1", 1, 2, 1, 100, 0.25), ("", 1, 1, 0, 300, 0.75)]


def test_the_fullest_moment_has_all_that_lives() -> None:
    mark = network_report(found(), SPEC).high_water
    assert (mark.operation, mark.nanoseconds, mark.total_bytes) == (0, 0.0, 612)
    assert (mark.usable_bytes, mark.share) == (SPEC.l1.usable_bytes, 612 / SPEC.l1.usable_bytes)
    held = [(buffer.name, buffer.size_bytes, buffer.cores) for buffer in mark.circular_buffers]
    assert held == [("in", 64, "{[0-0 - 1-0]}"), ("out", 32, "{[0-0 - 1-0]}")]
    assert mark.buffers == (HELD, TABLE)


def test_nothing_that_ran_is_said() -> None:
    report = network_report(found(0), SPEC)
    assert str(report) == "No device operation ran on wormhole_n150."
    assert report.high_water.operation is None


LONG = "very_long_folder/with\x1b[31m/" * 400 + "net.py:77"


def test_tables_of_any_width_have_whole_rows() -> None:
    """Whatever the names: columns go, and no figure is cut."""
    name = "InterleavedToShardedDeviceOperation"
    facts = [{"where": LONG, "l1": (0, 500), "buffers": (HELD,)}, {"where": "net.py:1", "call": 1}]
    runs = runs_of(SPEC, timed(name, 123_456_789), timed("B\n[red]" * 2000, 7), facts=facts)
    for width in (80, 120):
        text = network_report(runs, SPEC).table(width)
        lines = text.split("\n")
        assert max(map(len, lines)) <= width
        assert "\x1b" not in text
        first = next(line for line in lines if line.startswith("0 "))
        assert all(shown in first for shown in (name, "123,456,789", "100.0 %"))
        assert sum("net.py:77" in line for line in lines) >= 1
