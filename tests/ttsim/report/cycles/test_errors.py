from math import hypot

import pytest

from device.cores import first_cores
from device.time.stages import CoreGroupCycles, OperationCycles, Stage, StageCycles
from ops.op_model import Description
from ops.passes.cycles import TimedOperation, expected_error
from ttsim.report.cycle_report import cycle_report
from ttsim.report.cycles import CallRun, ErrorBar, error_bar, total_error


def bar(share):
    return ErrorBar(share=share, configurations=3, text="")


def test_one_kind_adds_up_and_kinds_add_in_squares():
    """Two convolutions of 400 cycles at 5 % are 40 off together, a halo of 200 at 15 % is 30 off: 50 of 1,000."""
    found = total_error([("conv", 400, bar(0.05)), ("halo", 200, bar(0.15)), ("conv", 400, bar(0.05))])
    assert found.share == pytest.approx(hypot(40, 30) / 1000) == pytest.approx(0.05)
    assert found.unmeasured_share == 0


def test_what_was_not_measured_is_counted_apart():
    found = total_error([("conv", 750, bar(0.04)), ("", 250, bar(None))])
    assert (found.share, found.unmeasured_share) == (0.04, 0.25)
    assert total_error([("", 10, bar(None))]).share is None
    assert total_error([]).unmeasured_share == 0


def test_where_an_error_comes_from():
    conv = expected_error("convolution", "blackhole")
    made = error_bar(Description(measured_as="convolution"), "blackhole")
    assert (made.share, made.configurations) == (conv.share, conv.configurations)
    assert made.text == f"convolution: mean of {conv.configurations} configurations that the fit had not seen"
    other = error_bar(Description(measured_as="halo of rows"), "wormhole_b0").text
    assert other.endswith(", all on blackhole: on wormhole_b0 nothing was measured")
    composed = error_bar(Description(composed_of="a matmul and a halo"), "blackhole")
    assert (composed.share, composed.text) == (None, "no measurement; composed of a matmul and a halo")
    assert error_bar(Description(), "blackhole").text == "no measurement"


def operation(cycles, description):
    group = CoreGroupCycles(cores=first_cores(4, 8, 8), cycles=cycles, stages=(StageCycles(Stage.MATH, cycles),))
    made = OperationCycles(cycles=cycles, groups=(group,), bound_by=Stage.MATH)
    return TimedOperation(name="Op", cycles=made, description=description)


def test_errors_in_words(spec):
    share = expected_error("convolution", spec.arch).share
    measured, composed = Description(measured_as="convolution"), Description(composed_of="a matmul")
    both = (operation(900, measured), operation(100, composed))
    report = cycle_report([CallRun(name="f", spec=spec, ran=both)], spec)
    assert report.total.error.share == share
    first, one, two, *_ = report.explain().splitlines()
    assert f"expected {100 * share:.1f} % off where models were measured; for 10.0 % of the cycles there is no" in first
    assert f"Expected error: {100 * share:.1f} % (convolution: mean of" in one
    assert two.endswith("Error: no measurement; composed of a matmul.")
    head = f"wormhole_n150: 1,000 cycles (error expected: {100 * share:.1f} % where models were measured; for 10.0 % of"
    assert str(report).startswith(head)
