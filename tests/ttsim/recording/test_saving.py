"""Reports on disk: which files, the same bytes twice, and names that cannot be."""

import os

import numpy as np
import pytest

import ttsim as ttnn

FILES = {
    "generated/profiler/reports/report/ops_perf_results_report.csv",
    "generated/profiler/reports/report/profile_log_device.csv",
    "generated/reports/report_detailed_memory_usage.csv",
    "generated/reports/report_l1_usage_summary.csv",
    "generated/reports/report_memory_usage_summary.csv",
    "generated/ttnn/reports/report/config.json",
    "generated/ttnn/reports/report/db.sqlite",
    "report.html",
    "report.json",
    "report.trace.json.gz",
}


def saved(folder, **options):
    with ttnn.open_device(values="off") as device, ttnn.profile(device) as profile:
        x = ttnn.Tensor(np.zeros((1, 1, 32, 32), np.float32), ttnn.bfloat16, layout=ttnn.TILE_LAYOUT).to(device)
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


def test_nothing_is_a_report_too(tmp_path):
    with ttnn.open_device(values="off") as device, ttnn.profile(device) as profile:
        ttnn.save_report(str(tmp_path), profile)
    assert (tmp_path / "report.json").exists()


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\\b", "a\n", "-a", "é", "a b", "x" * 101, "a\x00"])
def test_a_name_that_is_none_of_a_file_is_refused(name, tmp_path):
    with ttnn.open_device(values="off") as device, ttnn.profile(device) as profile:
        with pytest.raises(ttnn.ArgumentError, match="save_report: name must be up to 100 letters"):
            ttnn.save_report(tmp_path, profile, name=name)
        assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name == "nt", reason="other names are refused there")
@pytest.mark.parametrize("directory", ["a\x00b", "a\ud800b"])
def test_a_directory_that_cannot_be_is_refused(directory, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with ttnn.open_device(values="off") as device, ttnn.profile(device) as profile:
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
