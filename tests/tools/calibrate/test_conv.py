"""The fit of the convolution's constants."""

import csv
from pathlib import Path

import pytest

from device.spec.device_spec import load_spec
from ops.programs.conv2d.costs import ConvCosts
from tools.calibrate.conv import PRIORS, conv_cases, costs_for, cross_validated_errors, fit_conv, predicted_error
from tools.validate.summary import sum_up_errors

DATA = Path(__file__).resolve().parents[2] / "data" / "measured" / "conv.csv"
CATALOG = {"wormhole_b0": "wormhole_n150", "blackhole": "blackhole_p150"}


@pytest.fixture(scope="module")
def cases():
    with DATA.open(encoding="utf-8", newline="") as lines:
        return conv_cases(csv.DictReader(lines))


def test_fitted_constants_are_constants_of_the_model():
    for priors in PRIORS.values():
        assert set(priors) <= set(ConvCosts.__dataclass_fields__)


def test_cases_are_measurements_merged_by_configuration(cases):
    assert len({case.configuration for case in cases}) == len(cases)
    assert sum(case.rows for case in cases) > 2 * len(cases)
    assert {case.architecture for case in cases} == set(PRIORS)


def test_older_rows_keep_the_older_tilize(cases):
    older = next(case for case in cases if case.older)
    newer = next(case for case in cases if not case.older)
    assert costs_for(older, {"tilize_factor": 0.1}).costs_of(ConvCosts).tilize_factor != 0.1
    assert costs_for(newer, {"tilize_factor": 0.1}).costs_of(ConvCosts).tilize_factor == 0.1


@pytest.mark.parametrize("architecture", sorted(PRIORS))
def test_the_catalog_holds_what_the_fit_gives(cases, architecture):
    """Rounded to three digits; a change of model or rows that moves constants must move the catalog, too."""
    costs = load_spec(CATALOG[architecture]).costs_of(ConvCosts)
    for name, value in fit_conv(cases, architecture).values.items():
        assert getattr(costs, name) == pytest.approx(value, rel=0.02), name


@pytest.mark.parametrize("architecture", sorted(PRIORS))
def test_configurations_that_were_left_out_are_predicted(cases, architecture):
    errors = cross_validated_errors(cases, architecture, seed=0)
    found = sum_up_errors([error for _, error in errors], rows=len(errors))
    assert len(errors) == sum(case.architecture == architecture for case in cases)
    assert found.mean <= 0.05
    assert abs(found.bias) <= 0.02
    assert found.worst <= 0.20


def test_halves_of_one_image_are_in_one_fold(cases):
    same = [
        case for case in cases if case.configuration[3].startswith("1x4") and "x159x256->256" in case.configuration[3]
    ]
    assert len({case.configuration for case in same}) > 1
    assert len({case.plan for case in same}) == 1


def test_errors_are_relative_to_what_was_measured(cases):
    case = cases[0]
    longer = predicted_error(case, {"start_cycles": case.spec.costs_of(ConvCosts).start_cycles + 0.1 * case.cycles})
    assert longer - predicted_error(case, {}) == pytest.approx(0.1)
