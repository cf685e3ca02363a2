"""Device operations that ran, as the tests of reports build them."""

from typing import Any

from device.cores import first_cores
from device.spec.device_spec import DeviceSpec
from device.time.stages import CoreGroupCycles, OperationCycles, Stage, StageCycles
from ops.passes.cycles import TimedOperation
from ttsim.report.cycles import CallRun
from ttsim.report.network import Runs
from ttsim.runtime.types.layer import Layer

LAYER = Layer(name="up", in_channels=32, out_channels=32, input_height=8, input_width=8, stride=(2, 2))


def timed(name: str, cycles: int, *, stage: Stage = Stage.READER, cores: int = 2) -> TimedOperation:
    """An operation whose cores all spend their time in one stage."""
    stages = (StageCycles(stage, cycles),)
    group = CoreGroupCycles(cores=first_cores(cores, 8, 8), cycles=cycles, stages=stages)
    return TimedOperation(name, OperationCycles(cycles=cycles, groups=(group,), bound_by=stage))


def untimed(name: str = "MoveDeviceOperation", reason: str = "nobody knows") -> TimedOperation:
    """An operation that no model knows."""
    return TimedOperation(name, None, reason)


def runs_of(spec: DeviceSpec, *ran: TimedOperation, facts: Any = None, **of_all: Any) -> Runs:
    """Operations of one call, one after the other.

    Args:
        facts: Fields of the row of each.
        of_all: Fields of all rows.
    """
    runs = Runs(spec.clock_hz, spec)
    taken = CallRun(name="ttnn.f", ran=ran, spec=spec).in_order
    for one, figures, own in zip(ran, taken, facts or [{}] * len(ran), strict=True):
        known = {"call": 0, "function": "ttnn.f", "where": "", **of_all, **own}
        runs.add(**{"name": one.name, "taken": figures, "timed": one, **known})
    return runs
