"""Measured rows as cases of a fit."""

import math

import pytest

from tools.calibrate.cases import READERS, cases_in


def test_cases_are_measurements_merged_by_configuration(cases):
    for program in READERS:
        own = [case for case in cases if case.program == program]
        assert len({case.configuration for case in own}) == len(own) > 40
        assert sum(case.rows for case in own) >= len(own)


def test_a_folder_without_files_has_no_cases(tmp_path):
    assert cases_in(tmp_path) == []


def test_halves_of_one_image_are_in_one_fold(cases):
    same = [
        case
        for case in cases
        if case.program == "conv"
        and case.configuration[3].startswith("1x4")
        and "x159x256->256" in case.configuration[3]
    ]
    assert len({case.configuration for case in same}) > 1
    assert len({case.fold for case in same}) == 1


@pytest.mark.parametrize("program", [program for program in READERS if program != "dispatch"])
def test_errors_are_relative_to_what_was_measured(cases, program):
    """A program (no launch) that begins later by a tenth of its measured time takes a tenth longer."""
    case = next(case for case in cases if case.program == program)
    table = {"conv": "conv", "halo": "halo", "gemm": "matmul", "layout_ops": "movement"}[program]
    name = f"{table}_costs_start_cycles"
    start = dict(next(one.figures for one in case.spec.tables if one.name == f"{table}_costs"))["start_cycles"]
    later = case.spec.replace(**{name: start + 0.1 * case.measured[0]})
    assert case.error(later) - case.error(case.spec) == pytest.approx(0.1)
    assert case.residuals(later)[0] == pytest.approx(math.log1p(case.error(later)))


def test_end_times_count_by_half_where_they_are_known(cases):
    conv = [case for case in cases if case.program == "conv"]
    timed = next(case for case in conv if case.measured[1] is not None)
    _, reader, second = timed.predict(timed.spec)
    assert timed.residuals(timed.spec)[1:] == [
        pytest.approx(0.5 * (reader - timed.measured[1]) / timed.measured[0]),
        pytest.approx(0.5 * (second - timed.measured[2]) / timed.measured[0]),
    ]
    untimed = next(case for case in conv if case.measured[1] is None)
    assert len(untimed.residuals(untimed.spec)) == 1
