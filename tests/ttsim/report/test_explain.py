"""Which stages bind an operation as much as its binding stage; the approved answers hold all other words."""

import numpy as np
import pytest

import ttsim
from device.cores import first_cores
from device.time.stages import CoreGroupCycles, OperationCycles, Stage, StageCycles
from ops.passes.cycles import TimedOperation
from ttsim.report.cycle_report import cycle_report
from ttsim.report.cycles import DOES, CallRun, stage_times, tied_stages

FEW = ((Stage.MATH, 900, 900), (Stage.PACK, 440, 440))
SEVERAL = ((Stage.MATH, 24_576, 24_576), (Stage.WEIGHT_READER, 40_000, 24_570), (Stage.TILIZE, 31_031, 11_031),
           (Stage.WEIGHT_MULTICAST, 30_000, 19_823), (Stage.READER, 20_000, 20_000))  # fmt: skip


@pytest.mark.parametrize(
    ("stages", "cycles", "tied"),
    [
        (SEVERAL, 100_000, ("weight reader", "reader", "weight multicast")),  # 24,576 - 5,000 and more; as in upconv4
        (FEW, 9900, ()),  # within 5 % of all, and less than half of the leader
        (((Stage.READER, 95_000, 0), (Stage.WRITER, 89_000, 0)), 100_000, ()),
        (((Stage.READER, 95_000, 0), (Stage.WRITER, 90_000, 0)), 100_000, ("writer",)),
        (((Stage.WRITER, 600, 0), (Stage.START, 2_500, 0)), 5_000, ()),  # the start binds nothing
    ],
)
def test_near_ties_are_named(stages, cycles, tied, spec):
    """The first stage is said to bind the operation."""
    own = tuple(StageCycles(stage, busy, critical_cycles=critical) for stage, busy, critical in stages)
    group = CoreGroupCycles(cores=first_cores(4, 8, 8), cycles=cycles, stages=own)
    timed = TimedOperation("Op", OperationCycles(cycles=cycles, groups=(group,), bound_by=own[0].stage))
    report = cycle_report([CallRun(name="f", spec=spec, ran=(timed,))], spec)
    assert report.operations[0].tied_with == tied
    assert ("nearly tied" in report.explain()) == bool(tied)


def test_nothing_is_tied_with_nothing_and_every_stage_has_a_meaning():
    assert tied_stages((), "math", 0) == ()
    assert tied_stages(stage_times([StageCycles(Stage.MATH, 5)], of_cycles=5), "math", 5) == ()
    assert set(Stage) == set(DOES)


def test_functions_that_were_never_compared_are_named() -> None:
    with ttsim.open_device(l1_small_size=32768, values="off") as device, ttsim.profile(device) as profile:
        x = ttsim.Tensor(np.ones((1, 1, 32, 32), np.float32), ttsim.bfloat16, device, ttsim.TILE_LAYOUT)
        ttsim.exp(x)
        assert "compared" not in profile.report().explain()
        ttsim.add_(x, x)
    assert "- Values: outputs of add_ were never compared with the real library's (docs/v" in profile.report().explain()
