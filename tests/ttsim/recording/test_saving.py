"""Reports on disk: which files, the same bytes twice, and names that cannot be."""

import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

import ttsim as ttnn
from tests.ttsim.recording.calls import options, tensor
from ttsim.recording.saving import reserved_name

FILES = {
    *(f"generated/profiler/reports/report/{name}.csv" for name in ("ops_perf_results_report", "profile_log_device")),
    *(f"generated/reports/report_{name}.csv" for name in ("detailed_memory_usage", "l1_usage_summary")),
    "generated/reports/report_memory_usage_summary.csv", "generated/ttnn/reports/report/config.json",
    "generated/ttnn/reports/report/db.sqlite", "report.html", "report.json", "report.trace.json.gz",
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
    assert saved(tmp_path / "d") == first
    assert not any(bytes(tmp_path) in content for content in first.values())


def test_reports_share_a_folder_and_replace_themselves(tmp_path):
    saved(tmp_path, name="one")
    both = saved(tmp_path, name="two")
    assert len(both) == 2 * len(FILES)
    assert saved(tmp_path, name="two") == both


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
