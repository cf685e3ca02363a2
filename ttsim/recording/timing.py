"""The cycles of a call that ran: the third reading of its plan, without what did not run."""

from collections.abc import Sequence
from functools import partial
from math import fsum

from device.spec.device_spec import DeviceSpec
from ops.op_model import Meanings
from ops.op_models import OP_MODELS
from ops.passes.caches import PlanCache
from ops.passes.cycles import TimedOperation, launches_of, run_cycles
from ttsim.report.cycles.figures import UntimedOperation
from ttsim.report.cycles.figures_of import OperationReading, TimedCall
from ttsim.report.cycles.whole import whole_operation
from ttsim.runtime.traces import RanCall


def timed_call(call: RanCall, spec: DeviceSpec, *, meanings: Meanings = OP_MODELS) -> TimedCall:
    """What a call took on a device; `meanings` say what its works mean."""
    return call_of_operations(call, timed_operations(call, spec, meanings), spec)


def timed_operations(
    call: RanCall, spec: DeviceSpec, meanings: Meanings, plans: PlanCache | None = None
) -> tuple[TimedOperation, ...]:
    """The device operations of a call that ran, each with what it takes on a device.

    Args:
        meanings: What its works mean.
        plans: Where the device keeps plans and what they take, if it does.
    """
    if plans is None:
        return run_cycles(call.plan, spec, ran=call.ran, meanings=meanings).operations
    return plans.cycles_of(call.plan, spec, ran=call.ran, meanings=meanings).operations


def describe_call(
    call: RanCall, ran: Sequence[TimedOperation], spec: DeviceSpec, *, meanings: Meanings, plans: PlanCache
) -> TimedCall:
    """A call whose `timed_operations` are known, as it was told before where its plan is kept."""
    if meanings is not OP_MODELS:
        return call_of_operations(call, ran, spec)
    key = (call.function, call.ran, call.useful_flops)
    return plans.made_of(call.plan, spec, key, lambda: call_of_operations(call, ran, spec))


def call_of_operations(call: RanCall, ran: Sequence[TimedOperation], spec: DeviceSpec) -> TimedCall:
    """A call whose `timed_operations` are known."""
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
        untimed=tuple(
            UntimedOperation(name=one.name, reason=one.reason, position=position)
            for position, one in enumerate(ran)
            if one.cycles is None
        ),
        useful_flops=call.useful_flops,
        decisions=call.plan.decisions,
        launches=partial(launches_of, call.plan, ran, spec, ran=call.ran),
    )


def cycles_of(call: RanCall, spec: DeviceSpec, *, meanings: Meanings = OP_MODELS) -> float:
    """Cycles of what a call ran, on any machine; operations without a model count nothing."""
    return fsum(one.cycles.cycles for one in timed_operations(call, spec, meanings) if one.cycles is not None)
