"""Verdicts: bands end exactly where they say, both ends fail, and words name what changed."""

import pytest

from device.errors import ArgumentError
from tests.ttsim.study.check.checked import CONV, HALO, file_of, found
from ttsim.study.check.budgets import read_budgets
from ttsim.study.check.verdicts import Verdict, counts_of


@pytest.mark.parametrize(
    ("entry", "cycles", "verdict"),
    [
        ("cycles = 1000", 1020, "holds"),
        ("cycles = 1000", 1021, "above"),
        ("cycles = 1000", 980, "holds"),
        ("cycles = 1000", 979, "below"),
        ("cycles = 1000\nband_percent = 0", 1000, "holds"),
        ("cycles = 1000\nband_percent = 0", 1001, "above"),
        ("cycles = 1000\nband_percent = 0.1", 1001, "holds"),
        ("time_us = 0.7\nband_percent = 10", 770, "holds"),  # 0.7 * 1.1 > 0.77 as binary fractions
        ("time_us = 0.7\nband_percent = 10", 771, "above"),
        ("time_ns = 1000", 979, "below"),
        ("cycles = 0", 1, "above"),
        ("trace_replay_us = 2.5\nband_percent = 0", 1, "holds"),
        ("l1_peak_bytes = 714", 1, "holds"),
        ("l1_peak_bytes = 715", 1, "below"),
        ("dram_bytes = 882", 1, "above"),
        ("operations = 1", 1, "holds"),
        ("operations = 2", 1, "differs"),
        (f'operations = ["{HALO}"]', 1, "holds"),
        (f'operations = ["{CONV}"]', 1, "differs"),
    ],
)
def test_both_ends_of_a_band_hold_and_nothing_beyond(entry, cycles, verdict, tmp_path):
    (finding,) = found(file_of(tmp_path, entry, halo=cycles))
    assert finding.verdict.value == verdict


def test_the_band_of_an_entry_stands_above_that_of_the_file(tmp_path):
    files = [file_of(tmp_path, entry, settings="band_percent = 5", halo=1040)
             for entry in ("cycles = 1000", "cycles = 1000\nband_percent = 3")]  # fmt: skip
    assert [found(file)[0].verdict for file in files] == [Verdict.HOLDS, Verdict.ABOVE]


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ("cycles = 3000", "cycles is 3,300, 10.00 % above the budget of 3,000 (band 2 %)"),
        (
            "time_us = 3.75",
            "time_us is 3.3, 12.00 % below the budget of 3.75 (band 2 %); this is a gain: ttsim check --update writes "
            "the new budget",
        ),
        ("cycles = 0", "cycles is 3,300, and the budget is 0: ttsim check --update writes the first one"),
        ("cycles = 3300", "cycles is 3,300, and the budget is 3,300"),
        (
            f'cycles = 3000\noperations = ["{HALO}", "{CONV}"]\noperation_cycles = [1000, 2000]',
            f"cycles is 3,300, 10.00 % above the budget of 3,000 (band 2 %): {CONV} 2,000 -> 2,300 cycles",
        ),
        (
            f'operations = ["{HALO}", "MoveDeviceOperation"]\noperation_cycles = [1000, 20]',
            f"2 device operations, and the budget is 2: {CONV} is new and MoveDeviceOperation is gone",
        ),
        ("operations = 5", "2 device operations, and the budget is 5"),
        (f'operations = ["{HALO}"]', f"2 device operations, and the budget is 1: {CONV} is new"),
        (
            f'cycles = 3000\noperations = ["{HALO}", "{CONV}"]',
            "cycles is 3,300, 10.00 % above the budget of 3,000 (band 2 %)",
        ),
    ],
)
def test_words_say_by_how_much_and_which_operation_changed(entry, text, tmp_path):
    assert found(file_of(tmp_path, entry, halo=1000, conv=2300))[0].text == text


def test_equal_changes_are_counted_and_few_are_named(tmp_path):
    names = [f"{letter}DeviceOperation" for letter in "AABCD"]
    file = file_of(tmp_path, f"operations = {names}", halo=1)
    gone = found(file)[0].changes
    assert gone[0] == "HaloDeviceOperation is new"
    assert gone[1:] == ("ADeviceOperation is gone (2 times)", "BDeviceOperation is gone", "CDeviceOperation is gone",
                        "1 more")  # fmt: skip


def test_a_figure_that_the_report_lacks_is_an_error_of_the_file(tmp_path):
    file = file_of(tmp_path, "l1_peak_bytes = 1", halo=1)
    (tmp_path / "net.json").write_text('{"device": "wormhole_n150", "clock_hz": 1000000000, "operations": []}')
    with pytest.raises(ArgumentError, match=r"toml:2: budget 'net.json': its report has no l1_peak_bytes; name one"):
        found(file)


def test_a_profile_of_a_card_has_times_and_operations(tmp_path):
    (tmp_path / "net.csv").write_text(f"OP CODE,DEVICE KERNEL DURATION [ns]\n{HALO},12\n")
    path = tmp_path / "budgets.toml"
    path.write_text(f'[[budget]]\nreport = "net.csv"\ntime_ns = 12\noperations = ["{HALO}"]\n')
    findings = found(read_budgets(path))
    assert [finding.verdict for finding in findings] == [Verdict.HOLDS] * 2
    assert counts_of(findings) == "one budget, 2 figures: 2 hold"
