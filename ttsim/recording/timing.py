"""The cycles of a call that ran: the third reading of its plan, without what did not run."""

from collections.abc import Iterable, Iterator
from math import fsum
from typing import Protocol, TypeVar

from device.plan import MOVE
from device.spec.device_spec import DeviceSpec
from ops.meaning import Meanings
from ops.meanings import MEANINGS
from ops.readings.cycles import run_cycles
from ops.readings.launches import launches_of
from ttsim.report.cycles.figures import UntimedOperation
from ttsim.report.cycles.figures_of import OperationReading, TimedCall
from ttsim.report.cycles.whole import whole_operation
from ttsim.runtime.device import RanCall


def timed_call(call: RanCall, spec: DeviceSpec, *, meanings: Meanings = MEANINGS) -> TimedCall:
    """What a call took on a device; `meanings` say what its works mean."""
    planned = run_cycles(call.plan, spec, meanings=meanings).operations
    ran = list(that_ran(planned, call.ran))
    return TimedCall(
        name=call.function,
        operations=tuple(
            OperationReading(
                name=one.name,
                cycles=whole_operation(one.cycles),
                fidelity_phases=one.fidelity_phases,
                account=one.account,
            )
            for one in ran
            if one.cycles is not None
        ),
        untimed=tuple(UntimedOperation(name=one.name, reason=one.reason) for one in ran if one.cycles is None),
        useful_flops=call.useful_flops,
        decisions=call.plan.decisions,
        launches=tuple(that_ran(launches_of(call.plan, planned, spec), call.ran)),
    )


def cycles_of(call: RanCall, spec: DeviceSpec, *, meanings: Meanings = MEANINGS) -> float:
    """Cycles of what a call ran, on any machine; operations without a model count nothing."""
    ran = that_ran(run_cycles(call.plan, spec, meanings=meanings).operations, call.ran)
    return fsum(one.cycles.cycles for one in ran if one.cycles is not None)


class _Named(Protocol):
    """What belongs to a device operation, and says to which."""

    @property
    def name(self) -> str:
        """As a graph capture shows it."""
        ...


NamedT = TypeVar("NamedT", bound=_Named)


def that_ran(planned: Iterable[NamedT], ran: Iterable[str]) -> Iterator[NamedT]:
    """Of the device operations of a plan, those that ran: a tensor to be moved may have stayed where it was.

    Args:
        planned: All operations of the plan in order, or what belongs to each.
        ran: Names of those that ran, in order.
    """
    names = list(ran)
    for one in planned:
        if names and names[0] == one.name:
            names.pop(0)
            yield one
        elif one.name != MOVE:
            raise AssertionError(f"the plan's {one.name} did not run; next to run was {names[:1]}")
