"""Cycles in words, as far as the approved texts do not hold them."""

import numpy as np

import ttsim
from device.cores import first_cores
from device.time.stages import CoreGroupCycles, OperationCycles, Stage, StageCycles
from ops.op_model import Description
from ops.passes.cycles import TimedOperation, expected_error
from ttsim.report.cycle_report import cycle_report
from ttsim.report.cycles import DOES, CallRun, stage_times, tied_stages
from ttsim.report.explain import explain_call
from ttsim.report.formatting import count_of


def bound(*stages, description=Description(), cycles=100_000):  # noqa: B008 - frozen
    """An operation whose first stage is said to bind it."""
    group = CoreGroupCycles(cores=first_cores(4, 8, 8), cycles=cycles, stages=stages)
    taken = OperationCycles(cycles=cycles, groups=(group,), bound_by=stages[0].stage)
    return TimedOperation(name="Op", cycles=taken, description=description)


def explained(spec, *operations):
    report = cycle_report([CallRun(name="f", spec=spec, ran=operations)], spec)
    return report, report.explain().splitlines()


def test_small_operations_are_told_together(halo, conv, spec):
    assert sum(line.startswith("- ") for line in explained(spec, *(conv,) * 30)[1]) == 30  # none is above the limit
    assert "- The others take 2.4 %: HaloDeviceOperation." in explained(spec, *(conv,) * 10, halo)[1]


def test_errors_in_words(spec):
    share = expected_error("convolution", spec.arch).share
    parts = ((900, Description(measured_as="convolution")), (100, Description(composed_of="a matmul")))
    operations = [bound(StageCycles(Stage.MATH, own), description=text, cycles=own) for own, text in parts]
    report, (first, one, two, *_) = explained(spec, *operations)
    assert report.total.error.share == share
    assert f"expected {100 * share:.1f} % off where models were measured; for 10.0 % of the cycles there is no" in first
    assert f"Expected error: {100 * share:.1f} % (convolution: mean of" in one
    assert two.endswith("Error: no measurement; composed of a matmul.")
    head = f"wormhole_n150: 1,000 cycles (error expected: {100 * share:.1f} % where models were measured; for 10.0 % of"
    assert str(report).startswith(head)


def test_every_stage_has_a_meaning_and_figures_have_prefixes():
    assert set(Stage) == set(DOES)
    shown = ["0 ", "999 ", "1 k", "1.5 M", "2 G", "3.25 T", "4 P"]
    assert list(map(count_of, (0, 999, 1000, 1.5e6, 2e9, 3.25e12, 4e15))) == shown


def test_near_ties_are_named(spec):
    """Two readers of weights and the matrix unit, as in upconv4: none of them binds the operation alone."""
    operation = bound(
        StageCycles(Stage.MATH, 24_576, critical_cycles=24_576),
        StageCycles(Stage.WEIGHT_READER, 40_000, critical_cycles=24_570),
        StageCycles(Stage.WEIGHT_MULTICAST, 30_000, critical_cycles=19_823),
        StageCycles(Stage.TILIZE, 31_031, critical_cycles=31_031 - 20_000),
        StageCycles(Stage.READER, 20_000, critical_cycles=20_000),
        description=Description(stages={Stage.WEIGHT_READER: "weights are read from DRAM"}),
    )
    report, (_, line, *_) = explained(spec, operation)
    assert report.operations[0].tied_with == ("weight reader", "reader", "weight multicast")  # 24,576 - 5,000 and more
    assert (
        "bound by math (the matrix unit multiplies: 24,576 cycles), nearly tied with weight reader (weights are read "
        "from DRAM: 24,570 cycles, and 19,823 for its multicast), reader (data is brought in: 20,000 cycles) and "
        "weight multicast (blocks of weights are sent on: 19,823 cycles)."
    ) in line
    assert {stage.does for group in report.operations[0].groups for stage in group.stages} >= {
        "weights are read from DRAM"
    }


def test_what_is_far_behind_is_no_tie(spec):
    few = (StageCycles(Stage.MATH, 900, critical_cycles=900), StageCycles(Stage.PACK, 440, critical_cycles=440))
    for stages, cycles, tied in (
        (few, 9900, ()),  # within 5 % of all, and less than half of the leader
        ((StageCycles(Stage.READER, 95_000), StageCycles(Stage.WRITER, 89_000)), 100_000, ()),
        ((StageCycles(Stage.READER, 95_000), StageCycles(Stage.WRITER, 90_000)), 100_000, ("writer",)),
        ((StageCycles(Stage.WRITER, 600), StageCycles(Stage.START, 2_500)), 5_000, ()),  # the start binds nothing
    ):
        report, lines = explained(spec, bound(*stages, cycles=cycles))
        assert report.operations[0].tied_with == tied
        assert ("nearly tied" in lines[1]) == bool(tied)
    assert tied_stages((), "math", 0) == ()
    assert tied_stages(stage_times([StageCycles(Stage.MATH, 5)], of_cycles=5), "math", 5) == ()


def test_functions_that_were_never_compared_are_named() -> None:
    with ttsim.open_device(l1_small_size=32768, values="off") as device, ttsim.profile(device) as profile:
        x = ttsim.Tensor(np.ones((1, 1, 32, 32), np.float32), ttsim.bfloat16, device, ttsim.TILE_LAYOUT)
        ttsim.exp(x)
        ttsim.tanh(x)
        ttsim.add_(x, x)
    exp, tanh, add = (explain_call(call, "wormhole_n150") for call in profile.report().calls)
    assert "Planned: numbers of tanh in a 16-bit Dst never compared with the real kernel's." in tanh
    assert add.endswith(
        "- Values: outputs of add_ were never compared with the real library's (docs/values.md, Activation)."
    )
    assert "compared" not in exp
