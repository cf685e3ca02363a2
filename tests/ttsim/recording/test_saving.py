"""Reports on disk: which files, the same bytes twice, and names that cannot be."""

import gzip
import json
import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from html import unescape
from pathlib import Path

import pytest

import ttsim as ttnn
from tests.ttsim.recording.calls import conv, opened, options, tensor
from tests.ttsim.report.shown_pages import data_of
from ttsim.recording.profiling import page_of_run
from ttsim.recording.saving import report_files, reserved_name
from ttsim.report.writers.html.document import page_html

FILES = {
    *(f"generated/profiler/reports/report/{name}.csv" for name in ("ops_perf_results_report", "profile_log_device")),
    *(f"generated/reports/report_{name}.csv" for name in ("detailed_memory_usage", "l1_usage_summary")),
    *(f"generated/ttnn/reports/report/{name}" for name in ("cluster_descriptor.yaml", "config.json", "db.sqlite")),
    "generated/reports/report_memory_usage_summary.csv",
    *(f"report.{ending}" for ending in ("html", "json", "trace.json.gz", "counts.yaml")),
}  # fmt: skip


def saved(folder, **options):
    with ttnn.open_device(values="off") as device, ttnn.profile(device) as profile:
        x = tensor(device, 1, 1, 32, 32)
        ttnn.relu(x)
        assert ttnn.save_report(folder, profile, **options) == folder
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_equal_input_gives_equal_bytes(tmp_path):
    first = saved(tmp_path / "a, 'b'\n<c>")
    assert first.keys() == FILES
    assert saved(tmp_path / "d") == first == saved(tmp_path / "d")  # in place of the former
    assert not any(bytes(tmp_path) in content for content in first.values())
    both = saved(tmp_path / "d", name="two")
    assert len(both) == 2 * len(FILES)


def test_names_and_directories_that_cannot_be_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with ttnn.open_device(values="off") as device, ttnn.profile(device) as profile:
        for name in ("", "..", "a/b", "a\n", "-a", "é", "x" * 101, "a\x00"):
            with pytest.raises(ttnn.ArgumentError, match="save_report: name must be up to 100 letters"):
                ttnn.save_report(tmp_path, profile, name=name)
        assert not list(tmp_path.iterdir())
        for directory in ("a\x00b", "a\ud800b") if os.name != "nt" else ():
            with pytest.raises(ttnn.ArgumentError, match="directory must be a path that the system can have"):
                ttnn.save_report(directory, profile)
        with pytest.raises(OSError, match="File name too long"):
            ttnn.save_report("x" * 10_000, profile)


def test_arguments_of_other_types_are_refused(tmp_path):
    with ttnn.open_device(values="off") as device, ttnn.profile(device) as profile:
        with pytest.raises(ttnn.ArgumentTypeError, match="directory must be a path, not 1"):
            ttnn.save_report(1, profile)
        with pytest.raises(ttnn.ArgumentTypeError, match="profile must be a Profile"):
            ttnn.save_report(tmp_path, device)


def test_a_closed_device_is_told_as_it_was_before(tmp_path):
    device = ttnn.open_device(spec="wormhole_n150", values="off")
    with ttnn.profile(device) as profile:
        x = tensor(device, 1, 1, 32, 32, memory=ttnn.L1_MEMORY_CONFIG)
        y = ttnn.relu(x)
        ttnn.save_report(tmp_path / "open", profile)
        ttnn.close_device(device)
        ttnn.close_device(device)
        assert not y.is_allocated()
        ttnn.save_report(tmp_path / "closed", profile)
    usage = "generated/reports/report_memory_usage_summary.csv"
    text = (tmp_path / "closed" / usage).read_text()
    assert text == (tmp_path / "open" / usage).read_text()
    assert text.splitlines()[2].split(",")[2] == str(2 * 2048)  # L1: two tiles


def test_a_call_that_does_not_fit_leaves_no_table_without_rows(tmp_path):
    with ttnn.open_device(l1_small_size=32768, values="off", suggestions=False) as device:
        x = tensor(device, 1, 1, 32, 32)
        with ttnn.profile(device) as profile:
            ttnn.relu(x)
        ttnn.save_report(tmp_path, profile)
        assert len(list(tmp_path.glob("generated/profiler/reports/report/*.csv"))) == 2
        big = options(device, size=1024, channels=(32, 32), memory=ttnn.DRAM_MEMORY_CONFIG)
        with ttnn.profile(device) as profile, pytest.raises(RuntimeError, match="Out of Memory"):
            ttnn.conv_transpose2d(device=device, dram_slice_config=ttnn.Conv2dL1FullSliceConfig, **big)
        ttnn.save_report(tmp_path, profile)  # takes the place of the first
    assert list(tmp_path.glob("generated/profiler/reports/report/*.csv")) == []
    with closing(sqlite3.connect(tmp_path / "generated/ttnn/reports/report/db.sqlite")) as database:
        ((name, text),) = database.execute("SELECT operation_name, error_message FROM errors").fetchall()
        ((size,),) = database.execute("SELECT value FROM operation_arguments WHERE name = 'kernel_size'").fetchall()
    assert (name, text.startswith("Out of Memory"), size) == ("ttnn.conv_transpose2d", True, "(2, 2)")


def test_a_name_is_reserved_once(tmp_path):
    """As by processes that ask at the same time: making a directory is one step of the system."""
    with ThreadPoolExecutor(8) as pool:
        names = list(pool.map(lambda _: reserved_name(tmp_path / "new", "report0"), range(8)))
    assert sorted(names) == ["report0", *(f"report0-{number}" for number in range(2, 9))]
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        reserved_name(tmp_path / "file", "report0")


@pytest.fixture(scope="module")
def profile():
    with opened() as device:
        given = options(device, channels=(32, 32))
        with ttnn.profile(device) as profiled:
            ttnn.conv_transpose2d(device=device, **given)
        yield profiled


def document(frame: str) -> str:
    """What a frame shows; tests/ttsim/report/test_documents.py holds the frame."""
    return unescape(frame.partition(' srcdoc="')[2].removesuffix('"></iframe>'))


def sections(page: str) -> dict:
    """The sections of a page's only view."""
    (view,) = data_of(page)["views"]
    return {section["id"]: section for section in view["sections"]}


def test_a_profile_shows_the_page_of_its_file(profile) -> None:
    page = page_of_run(profile, profile.network(), profile.report())
    assert document(profile._repr_html_()) == page_html(page)


def test_a_report_on_cycles_shows_its_operations(profile) -> None:
    report = profile.report()
    assert callable(vars(report)["launches"])  # computed when it is read
    assert report.launches.programs == len(profile.calls[0].ran)
    shown = sections(document(report._repr_html_()))
    assert [row[0] for row in shown["operations"]["rows"]] == list(range(len(report.operations)))
    assert ("roofs" in shown, "l1" in shown) == (True, False)  # it knows nothing of L1


def test_advice_is_kept_and_nothing_ran(profile) -> None:
    assert "machine" in sections(document(profile.report(suggestions=True)._repr_html_()))
    with ttnn.open_device(values="off") as device, ttnn.profile(device) as empty:
        assert "No device operation ran." in document(empty._repr_html_())
        assert document(empty.report()._repr_html_())


def test_a_page_has_the_call_as_python_under_its_first_operation(profile) -> None:
    shown = sections(report_files(profile, "r")[Path("r.html")].decode())
    assert "circular buffer" in {row[1] for row in shown["buffers"]["rows"]}
    ((_, text),) = shown["source"]["texts"]
    assert "ttnn.conv_transpose2d,\n    device=device,\n    input_tensor=ttnn.TensorDescription((1, 1, 64, 32)" in text
    assert "stride=(2, 2)," in text
    assert "Not known: what a network should give" in shown["accuracy"]["lines"][0]


def test_the_timeline_of_all_64_cores_is_small() -> None:
    with opened() as device, ttnn.profile(device) as profiled:
        conv(device, size=64, channels=(32, 32))
        packed = report_files(profiled, "r")[Path("r.trace.json.gz")]
    slices = [event for event in json.loads(gzip.decompress(packed))["traceEvents"] if event["ph"] == "X"]
    assert len({part["pid"] for part in slices}) == 1 + 64
    assert len(packed) < 2_000_000
