"""The errors that reports expect are those of the measured rows: the table is held to what validation finds."""

import pytest

from ops.passes.cycles import expected_error, expected_errors
from ops.programs.data_movement.copy import Conversion, CopyTensor
from tools.validate.report import sum_up
from tools.validate.rows import MEASURED, validate

UNSEEN_ADDS = 0.02  # and at most three quarters: what errors of unseen configurations may lie above those in sample
TELLING = 5  # configurations from which on a mean tells something


def kind_of(name, prediction):
    """Under which name a program tells that it was measured."""
    if name == "conv":
        return "convolution"
    if name == "gemm":
        return "matmul"
    if name == "halo":
        return "halo of tiles" if prediction.group[1].startswith("tile") else "halo of rows"
    return prediction.group[0]


@pytest.fixture(scope="module")
def in_sample():
    found = {}
    for name in ("conv", "gemm", "halo", "layout_ops"):
        for one in validate(MEASURED / f"{name}.csv")[0]:
            if one.counted and "," not in one.architecture:  # not what a library of the time chose by itself
                found.setdefault((kind_of(name, one), one.architecture), []).append(one)
    return {key: sum_up(predictions) for key, predictions in found.items()}


def test_every_kind_that_was_measured_is_there(in_sample):
    table = {(name, row.architecture): row.configurations for name, rows in expected_errors().items() for row in rows}
    assert table == {key: errors.configurations for key, errors in in_sample.items()}


def test_the_figures_are_those_of_the_models(in_sample):
    for name, rows in expected_errors().items():
        for row in rows:
            seen = in_sample[name, row.architecture]
            if seen.configurations < TELLING:
                continue
            assert seen.mean * 0.9 <= row.share <= seen.mean * 1.75 + UNSEEN_ADDS, (name, row, seen.mean)


def test_every_movement_was_measured_or_says_that_it_was_not():
    known = set(expected_errors())
    for conversion in Conversion:
        assert CopyTensor(conversion).measured_as == (conversion.value if conversion.value in known else "")


def test_another_architecture_stands_in_where_nothing_was_measured():
    assert expected_error("convolution", "wormhole_b0").architecture == "wormhole_b0"
    assert expected_error("halo of rows", "wormhole_b0").architecture == "blackhole"
    assert expected_error("convolution", "my own").share == expected_error("convolution", "wormhole_b0").share
    assert expected_error("Sort", "blackhole") is None
