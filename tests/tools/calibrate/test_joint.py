"""The joint fit of an architecture's programs, and the catalog that holds it."""

import pytest

from device.spec.device_spec import load_spec
from ops.programs.kernel_costs import TransferCosts
from tools.calibrate.__main__ import figures
from tools.calibrate.cases import Case
from tools.calibrate.joint import PRIORS, changed_specs, cross_validated_errors, fit_jointly
from tools.validate.report import sum_up_errors

SPEC = load_spec("wormhole_n150")


@pytest.mark.parametrize("architecture", sorted(PRIORS))
def test_fitted_figures_are_those_of_a_device(cases, architecture):
    case = next(case for case in cases if case.architecture == architecture)
    assert set(PRIORS[architecture]) <= set(figures(case))


def test_older_rows_keep_the_older_tilize(cases):
    convs = [case for case in cases if case.program == "conv" and case.architecture == "blackhole"]
    older = next(case for case in convs if case.held)
    newer = next(case for case in convs if not case.held)
    name = "compute_costs_tilize_tile_cycles"
    found = changed_specs([older, newer], {name: 0.1})
    assert [spec.to_dict()["compute_costs"]["tilize_tile_cycles"] == 0.1 for spec in found] == [False, True]


def made_case(program, measured):
    """Of a program that takes ten times as long as a page is issued."""
    return Case(
        program=program,
        spec=SPEC,
        group=(program,),
        configuration=(program,),
        fold=program,
        rows=1,
        measured=(measured,),
        predict=lambda spec: (10 * spec.costs_of(TransferCosts).page_issue_cycles,),
    )


def test_shared_figures_are_fitted_to_all_programs():
    """Two programs that would have 40 and 44 cycles agree halfway; a figure that neither reads stays at its prior."""
    priors = {"transfer_costs_page_issue_cycles": 42.0, "halo_costs_pad_issue_cycles": 20.0}
    alone = fit_jointly([made_case("one", 400.0)] * 50, priors).values
    both = fit_jointly([made_case("one", 400.0)] * 50 + [made_case("other", 440.0)] * 50, priors).values
    assert alone["transfer_costs_page_issue_cycles"] == pytest.approx(40.0, rel=1e-3)
    assert both["transfer_costs_page_issue_cycles"] == pytest.approx((40 * 44) ** 0.5, rel=1e-3)
    assert both["halo_costs_pad_issue_cycles"] == pytest.approx(20.0)


def test_every_case_is_left_out_once(cases):
    own = [case for case in cases if case.program == "conv" and case.architecture == "wormhole_b0"]
    priors = {name: value for name, value in PRIORS["wormhole_b0"].items() if name.startswith("conv_costs")}
    errors = cross_validated_errors(own, priors, seed=0)
    assert sorted(case.configuration for case, _ in errors) == sorted(case.configuration for case in own)
    assert sum_up_errors([error for _, error in errors], rows=len(errors)).mean < 0.1


def test_the_catalog_holds_what_the_fit_gives(cases):
    """Of Wormhole, rounded, from the thinned rows; a change of model or rows that moves figures moves it, too."""
    programs = ("conv", "gemm")
    own = [case for case in cases if case.architecture == "wormhole_b0" and case.program in programs]
    priors = {name: value for name, value in PRIORS["wormhole_b0"].items() if not name.startswith("dispatch")}
    catalog = figures(own[0])
    for name, value in fit_jointly(own, priors).values.items():
        assert catalog[name] == pytest.approx(value, rel=0.05), name
