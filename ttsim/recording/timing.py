"""The cycles of a call that ran: the third reading of its plan, without what did not run."""

from collections.abc import Iterable, Iterator, Sequence

from device.plan import Operation, Relocate
from device.spec.device_spec import DeviceSpec
from ops.programs.conv2d.work import ConvWork
from ops.programs.matmul.work import MatmulWork
from ops.programs.patch_matmul.work import PatchMatmul, PixelMatmul
from ops.readings.cycles import TimedOperation, run_cycles
from ops.readings.memory import MOVE
from ttsim.report.cycles.figures import UntimedOperation
from ttsim.report.cycles.figures_of import OperationReading, TimedCall
from ttsim.runtime.device import RanCall


def timed_call(call: RanCall, spec: DeviceSpec) -> TimedCall:
    """What a call took on a device."""
    steps = [step for step in call.plan.steps if isinstance(step, Operation | Relocate)]
    read = run_cycles(call.plan, spec).operations
    ran = list(that_ran(list(zip(read, (step.work for step in steps), strict=True)), call.ran))
    return TimedCall(
        name=call.function,
        operations=tuple(
            OperationReading(name=one.name, cycles=one.cycles, fidelity_phases=fidelity_phases(work))
            for one, work in ran
            if one.cycles is not None
        ),
        untimed=tuple(UntimedOperation(name=one.name, reason=one.reason) for one, _ in ran if one.cycles is None),
        useful_flops=call.useful_flops,
    )


def that_ran(
    planned: Sequence[tuple[TimedOperation, object]], ran: Iterable[str]
) -> Iterator[tuple[TimedOperation, object]]:
    """Of the device operations of a plan, those that ran: a tensor to be moved may have stayed where it was.

    Args:
        planned: All operations of the plan in order.
        ran: Names of those that ran, in order.
    """
    names = list(ran)
    for one, work in planned:
        if names and names[0] == one.name:
            names.pop(0)
            yield one, work
        elif one.name != MOVE:
            raise AssertionError(f"the plan's {one.name} did not run; next to run was {names[:1]}")


def fidelity_phases(work: object) -> int:
    """Fidelity phases of an operation's tile products; 0 if it multiplies nothing."""
    match work:
        case ConvWork(fidelity_phases=count) | MatmulWork(fidelity_phases=count):
            return count
        case PatchMatmul(matmul=matmul) | PixelMatmul(matmul=matmul):
            return matmul.fidelity_phases
        case _:
            return 0
