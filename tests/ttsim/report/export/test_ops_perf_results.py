"""Rows of ops_perf_results, against the figures of the reports; what it may not let through."""

import csv
import io
import re

from ttsim.report.export.profiler import HEAD, ops_perf_results


def rows(record):
    return list(csv.DictReader(io.StringIO(ops_perf_results(record), newline=""), strict=True))


def test_rows_have_the_figures_of_the_report(record):
    found, times = rows(record), record.cycles.operations
    assert [one["OP CODE"] for one in found] == [one.name for one in record.network.operations]
    assert [int(one["DEVICE KERNEL DURATION [ns]"]) for one in found] == [round(one.nanoseconds) for one in times]
    assert [int(one["CORE COUNT"]) for one in found] == [one.core_count for one in times]
    assert [float(one["PM FPU UTIL (%)"]) for one in found] == [round(100 * one.math.utilization, 3) for one in times]
    assert [int(one["GLOBAL CALL COUNT"]) for one in found] == [1024 * (at + 1) for at in range(len(found))]
    assert {one["DEVICE ARCH"] for one in found} == {"wormhole_b0"}


def test_a_convolution_has_what_its_flops_follow_from(record):
    """1024 rows of output; 32 channels under a window of 2 x 2, a matrix of 128 x 32: as an issued product has it."""
    first, second = (one for one in rows(record) if one["OP CODE"] == "Conv2dDeviceOperation")
    assert first["OUTPUT_0_Y_PAD[LOGICAL]"] == "1024[1024]"
    assert first["INPUT_0_X_PAD[LOGICAL]"] == "32[32]"
    assert (first["INPUT_1_Y_PAD[LOGICAL]"], first["INPUT_1_X_PAD[LOGICAL]"]) == ("128[128]", "32[32]")
    assert "window_hw=(2;2); stride_hw=(2;2); " in first["ATTRIBUTES"]
    assert "," not in first["ATTRIBUTES"]
    assert first["MATH FIDELITY"] == "HiFi4"
    assert first["OUTPUT_0_MEMORY"] == "DEV_0_L1_HEIGHT_SHARDED"
    assert (first["PROGRAM CACHE HIT"], second["PROGRAM CACHE HIT"]) == ("False", "True")
    assert first["PROGRAM HASH"] == second["PROGRAM HASH"]


def test_rows_are_in_the_order_of_their_time_stamps(record):
    stamps = [int(one["HOST START TS"]) for one in rows(record)]
    assert stamps == sorted(set(stamps))


def test_hostile_names_stay_in_their_cells(hostile):
    text = ops_perf_results(hostile)
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e\ud800]", text)
    found = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    assert {len(row) for row in found} == {len(HEAD)}
    assert len(found) == len(text.splitlines()) == len(hostile.operations) + 1
