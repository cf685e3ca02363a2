"""A timeline of two slices, by hand."""

import gzip
import json

from ttsim.report.trace import Flow, Level, Slice, Trace, trace_json_gz

HOSTILE = '"\n\x00\u202e</script>' + "n" * 10_000


def slice_of(core: tuple[int, int] | None, stage: str, name: str = "Halo") -> Slice:
    return Slice(
        core=core, stage=stage, name=name, start_nanoseconds=1500.0, nanoseconds=1.0, arguments=(("cycles", 1),)
    )


def trace(name: str = "Halo") -> Trace:
    return Trace(
        device=name,
        clock_hz=1_000_000_000,
        cores=((3, 0), (0, 1)),
        stages=(("reader", "NCRISC"),),
        slices=(slice_of(None, "", name), slice_of((0, 1), "reader", name)),
        levels=(Level(start_nanoseconds=0.0, circular_bytes=64, buffer_bytes=32),),
        flows=(
            Flow(
                name="halo", source=(0, 1), source_stage="reader", target=(3, 0), start_nanoseconds=0, end_nanoseconds=5
            ),
        ),
    )


def events(packed: bytes) -> list[dict]:
    return json.loads(gzip.decompress(packed))["traceEvents"]


def test_a_core_is_a_process_and_a_stage_a_thread() -> None:
    found = events(trace_json_gz(trace()))
    names = {(one["pid"], one.get("tid"), one["name"]): one["args"] for one in found if one["ph"] == "M"}
    assert names[2, None, "process_name"] == {"name": "core 0-1"}
    assert names[2, 1, "thread_name"] == {"name": "NCRISC reader"}
    whole, stage = (one for one in found if one["ph"] == "X")
    assert (whole["pid"], whole["tid"], stage["pid"], stage["tid"]) == (0, 0, 2, 1)
    assert (stage["ts"], stage["dur"]) == (1.5, 0.001)  # microseconds


def test_l1_is_counted_and_flows_have_two_ends() -> None:
    found = events(trace_json_gz(trace()))
    (level,) = (one for one in found if one["ph"] == "C")
    assert level["args"] == {"circular buffers": 64, "buffers": 32}
    leaves, arrives = (one for one in found if one["ph"] in "sf")
    assert leaves["id"] == arrives["id"]
    assert (leaves["pid"], leaves["tid"], arrives["pid"], arrives["ts"]) == (2, 1, 1, 0.005)


def test_equal_input_gives_equal_bytes() -> None:
    packed = trace_json_gz(trace())
    assert packed == trace_json_gz(trace())
    assert packed[4:8] == bytes(4)  # no time in the header


def test_hostile_names_stay_names() -> None:
    packed = trace_json_gz(trace(HOSTILE))
    assert len(gzip.decompress(packed)) < 4000
    assert all("\x00" not in one["name"] and "\n" not in one["name"] for one in events(packed))
