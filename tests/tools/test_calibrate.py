"""Measured rows as cases, least squares with priors, and the catalog that holds what the fit gives."""

import math
import sys
import tomllib
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from device.spec.device_spec import load_spec
from ops.programs.kernel_costs import ComputeCosts, TransferCosts
from tools.calibrate.__main__ import figures, main
from tools.calibrate.bars import bars, bars_text, within
from tools.calibrate.cases import PROGRAMS, Case, cases_in
from tools.calibrate.fit import PRIOR_SPREAD, PRIORS, changed_specs, cross_validated_errors, fit_constants, fit_jointly
from tools.validate.prediction import Prediction
from tools.validate.report import sum_up_errors
from tools.validate.rows import MEASURED


@pytest.fixture(scope="module")
def cases():
    return cases_in(MEASURED)


def of(cases, program, architecture="blackhole"):
    return [case for case in cases if case.program == program and case.spec.arch == architecture]


def test_cases_are_measurements_merged_by_configuration(cases, tmp_path):
    for program in PROGRAMS:
        own = [case for case in cases if case.program.split()[0] == program]
        assert len({(case.source, case.prediction.configuration) for case in own}) > 15
        assert sum(case.rows for case in own) >= len(own)
    assert cases_in(tmp_path) == []


@pytest.mark.parametrize("program", ["conv", "halo", "gemm", "layout_ops"])
def test_errors_are_relative_to_what_was_measured(cases, program):
    """A program (no launch) that begins later by a tenth of its measured time takes a tenth longer."""
    case = next(case for case in cases if case.program == program)
    name = {"conv": "conv", "halo": "halo", "gemm": "matmul", "layout_ops": "movement"}[program] + "_costs_start_cycles"
    later = case.spec.replace(**{name: figures(case)[name] + 0.1 * case.measured})
    assert case.error(later) - case.error(case.spec) == pytest.approx(0.1)
    assert case.residuals(later)[0] == pytest.approx(math.log1p(case.error(later)))


def test_end_times_count_by_half_where_they_are_known(cases):
    conv = of(cases, "conv") + of(cases, "conv", "wormhole_b0")
    timed = next(case for case in conv if case.ends[0] is not None)
    _, *ends = timed.prediction.cycles_on(timed.spec)
    late = [0.5 * (end - known) / timed.measured for end, known in zip(ends, timed.ends, strict=True)]
    assert timed.residuals(timed.spec)[1:] == pytest.approx(late)
    untimed = next(case for case in conv if case.ends[0] is None)
    assert (len(untimed.residuals(untimed.spec)), untimed.count, timed.count) == (1, 1, 3)


POINTS = [(x, 50 + 7 * x) for x in range(1, 60)]


def line(points, values, moved, before):
    return np.array([math.log((values["a"] + values["b"] * x) / y) for x, y in points])


def test_constants_are_found_and_one_odd_row_does_not_bend_them():
    fit = fit_constants(partial(line, POINTS), {"a": 40.0, "b": 6.0})
    assert (fit.values["a"], fit.values["b"]) == (pytest.approx(50, rel=0.01), pytest.approx(7, rel=0.01))
    odd = fit_constants(partial(line, [*POINTS, (30, 900.0)]), {"a": 50.0, "b": 7.0})
    assert odd.values["b"] == pytest.approx(7, rel=0.02)


def test_what_rows_do_not_tell_stays_and_pulls_are_in_prior_spreads():
    text = []

    def residuals(values, moved, before):
        text.append((moved, before is None))
        return np.array([math.log(values["a"] / 20)] * 100)

    fit = fit_constants(residuals, {"a": 10.0, "unseen": 3.0}, rounds=1)
    assert text[:3] == [(None, True), ("a", False), ("unseen", False)]
    assert fit.values["unseen"] == pytest.approx(3.0)
    assert fit.pulls["unseen"] == pytest.approx(0.0, abs=1e-9)
    assert fit.pulls["a"] == pytest.approx(math.log(fit.values["a"] / 10) / PRIOR_SPREAD)


def test_older_rows_keep_the_older_tilize(cases):
    older = next(case for case in of(cases, "conv") if case.prediction.spec.release == "2025")
    newer = next(case for case in of(cases, "conv") if case.prediction.spec.release != "2025")
    specs = changed_specs([older, newer], {"compute_costs_tilize_tile_cycles": 0.1})
    assert [spec.costs_of(ComputeCosts).tilize_tile_cycles == 0.1 for spec in specs] == [False, True]


def case_of(program, measured):
    """Of a program that takes ten times as long as a page is issued."""
    prediction = Prediction(
        row={}, spec=load_spec("wormhole_n150"), program=program, measured_ns=measured, architecture="wormhole_b0",
        cycles_on=lambda spec: (10 * spec.costs_of(TransferCosts).page_issue_cycles,), group=(program,),
        configuration=(program,),
    )  # fmt: skip
    return Case(program=program, prediction=prediction, rows=1, measured=measured)


def test_shared_figures_are_fitted_to_all_programs():
    """Two programs that would have 40 and 44 cycles agree halfway; a figure that neither reads stays at its prior."""
    issue, other = "transfer_costs_page_issue_cycles", "halo_costs_pad_issue_cycles"
    priors = {issue: 42.0, other: 20.0}
    alone = fit_jointly([case_of("one", 400.0)] * 50, priors).values
    both = fit_jointly([case_of("one", 400.0)] * 50 + [case_of("other", 440.0)] * 50, priors).values
    assert alone[issue] == pytest.approx(40.0, rel=1e-3)
    assert both[issue] == pytest.approx((40 * 44) ** 0.5, rel=1e-3)
    assert both[other] == pytest.approx(20.0)


def test_bars_hold_nine_of_ten_errors():
    """Of ten errors of 1 to 10 % the tenth (0.9 x 11 = 9.9); of 19 errors the eighteenth; of three the largest."""
    assert within([share / 100 for share in range(1, 11)]) == 0.10
    assert within([-share / 100 for share in range(1, 20)]) == 0.18
    assert within([0.02, -0.05, 0.01]) == 0.05


def test_bars_of_few_configurations_are_no_better_than_all_together():
    cases = [replaced(case_of("one", 400.0), ("Unary", "DRAM"))] * 20 + [
        replaced(case_of("one", 400.0), ("Move", "L1"))
    ]
    found = bars([(case, 0.01 * (number + 1)) for number, case in enumerate(cases[:20])] + [(cases[20], 0.001)])
    assert found["Unary", "wormhole_b0", "DRAM"] == (pytest.approx(0.105), pytest.approx(0.19), 20)
    assert found["Move", "wormhole_b0", "L1"] == (pytest.approx(0.001), pytest.approx(0.19), 1)
    text = bars_text(found)
    assert tomllib.loads(text)["Move"]["wormhole_b0"]["L1"] == {"mean": 0.001, "within": 0.19, "configurations": 1}


def replaced(case, evidence):
    """A case of another class and place."""
    return replace(case, prediction=replace(case.prediction, evidence=evidence))


def test_every_case_is_left_out_once_and_printed(cases, capsys, monkeypatch):
    own = [case for case in of(cases, "halo") if case.prediction.group[1] == "tile"]
    priors = {name: value for name, value in PRIORS["blackhole"].items() if name.startswith("halo_costs")}
    errors = cross_validated_errors(own, priors, seed=0)
    names = [case.prediction.configuration for case in own]
    assert sorted(case.prediction.configuration for case, _ in errors) == sorted(names)
    assert sum_up_errors([error for _, error in errors], rows=len(errors)).mean < 0.1
    monkeypatch.setattr("tools.calibrate.__main__.PRIORS", {"wormhole_b0": priors, "blackhole": priors})
    monkeypatch.setattr(sys, "argv", ["tools.calibrate", "--arch", "blackhole", "--programs", "halo"])
    main()
    printed = capsys.readouterr().out
    for text in ("figures", "in sample", "cross-validated by configuration"):
        assert f"blackhole: {text}" in printed
    assert "halo_costs_pad_issue_cycles" in printed
    assert "all of halo" in printed
    assert "all of conv" not in printed


@pytest.mark.long
def test_the_catalog_holds_what_the_fit_gives(cases):
    """Of Wormhole, rounded, from the thinned rows; a change of model or rows that moves figures moves it, too."""
    for architecture, priors in PRIORS.items():
        assert set(priors) <= set(figures(of(cases, "conv", architecture)[0]))
    own = [case for program in ("conv", "gemm", "matmul") for case in of(cases, program, "wormhole_b0")]
    # SegFormer's convolutions have blocks of one tile, which the model does not explain
    own = [
        case for case in own if case.prediction.fitted and not ("SEG_ENCODER" in case.source and case.program == "conv")
    ]
    others = ("dispatch", "movement", "transfer_costs_locate")  # which these cases do not tell
    priors = {name: value for name, value in PRIORS["wormhole_b0"].items() if not name.startswith(others)}
    catalog = figures(own[0])
    for name, value in fit_jointly(own, priors).values.items():
        assert catalog[name] == pytest.approx(value, rel=0.05), name
