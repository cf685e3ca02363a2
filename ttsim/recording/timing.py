"""The cycles of a call that ran: the third reading of its plan, without what did not run."""

from functools import partial
from math import fsum

from device.spec.device_spec import DeviceSpec
from ops.meaning import Meanings
from ops.meanings import MEANINGS
from ops.readings.cycles import run_cycles
from ops.readings.kept_plans import KeptPlans
from ops.readings.launches import launches_of
from ttsim.report.cycles.figures import UntimedOperation
from ttsim.report.cycles.figures_of import OperationReading, TimedCall
from ttsim.report.cycles.whole import whole_operation
from ttsim.runtime.device import RanCall


def timed_call(
    call: RanCall, spec: DeviceSpec, *, meanings: Meanings = MEANINGS, plans: KeptPlans | None = None
) -> TimedCall:
    """What a call took on a device.

    Args:
        call: The call.
        spec: The device.
        meanings: What its works mean.
        plans: Where the device keeps plans and their cycles, if it does.
    """
    plans = plans or KeptPlans(0)
    ran = plans.cycles_of(call.plan, spec, ran=call.ran, meanings=meanings).operations
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
        launches=partial(launches_of, call.plan, ran, spec, ran=call.ran),
    )


def cycles_of(call: RanCall, spec: DeviceSpec, *, meanings: Meanings = MEANINGS) -> float:
    """Cycles of what a call ran, on any machine; operations without a model count nothing."""
    ran = run_cycles(call.plan, spec, ran=call.ran, meanings=meanings).operations
    return fsum(one.cycles.cycles for one in ran if one.cycles is not None)
