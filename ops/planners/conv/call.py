"""A call of either convolution, from its checks to its plan.

Which error comes first is the real library's order: `CHECKS` lists who complains, first to last.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.planners.conv import conv2d, conv_transpose2d as transposed
from ops.planners.conv.arguments import ConvCall
from ops.planners.conv.checks import check_sizes
from ops.planners.conv.phase_program import runs_by_phases
from ops.planners.conv.plan import plan_convolution, reads_free_l1
from ops.planners.conv.strict import check_strict_plan


class Phase(Enum):
    """Who refuses a call, and why."""

    ARGUMENT = "the real library refuses it"
    POSSIBLE = "the real library crashes on it, or it is not simulated"
    STRICT = "the real library accepts it and gets it wrong, so that a strict device refuses it"
    PLAN = "the real library carries out its plan and gets it wrong, so that a strict device refuses the plan"


Check = Callable[[ConvCall, DeviceSpec, int | None], None]


def _alone(check: Callable[[ConvCall], None]) -> Check:
    """A check of nothing but the arguments."""
    return lambda call, spec, free_l1_bytes: check(call)


def _phases(call: ConvCall) -> None:
    if runs_by_phases(call):
        transposed.check_phases(call)


# By whether the convolution is transposed; the checks of a plan are in `plan_call`.
CHECKS: Final[Mapping[bool, tuple[tuple[Phase, Check], ...]]] = MappingProxyType(
    {
        False: (
            (Phase.ARGUMENT, _alone(conv2d.validate)),
            (Phase.POSSIBLE, lambda call, spec, free: conv2d.check_arguments(call, free_l1_bytes=free)),
            (Phase.POSSIBLE, lambda call, spec, free: check_sizes(call, spec)),
            (Phase.STRICT, _alone(conv2d.check_strict)),
        ),
        True: (
            (Phase.ARGUMENT, _alone(transposed.validate)),
            (Phase.POSSIBLE, lambda call, spec, free: transposed.check_arguments(call, free_l1_bytes=free)),
            (Phase.POSSIBLE, lambda call, spec, free: check_sizes(call, spec)),
            (Phase.POSSIBLE, _alone(transposed.check_slices)),
            (Phase.STRICT, _alone(transposed.check_strict)),
            (Phase.POSSIBLE, _alone(_phases)),
        ),
    }
)


def check_call(call: ConvCall, spec: DeviceSpec, *, strict: bool, free_l1_bytes: int | None = None) -> None:
    """Refuses a call that cannot be planned, or (strict) that the real library gets wrong.

    Args:
        free_l1_bytes: Free bytes of every L1 bank; None where nothing is computed yet.

    Raises:
        ArgumentError: The first check that complains.
        OutOfMemoryError: A tensor is larger than DRAM.
    """
    for phase, check in CHECKS[call.rules.transposed]:
        if strict or phase is not Phase.STRICT:
            check(call, spec, free_l1_bytes)


def plan_call(call: ConvCall, spec: DeviceSpec, *, free_l1_bytes: int, returns_weights: bool, strict: bool) -> Plan:
    """The plan of a call that was checked; arguments and errors as of `plan_convolution`.

    Raises:
        ArgumentError: The plan would give a wrong result, and is to be strict; or it takes weights that were prepared
            for another plan of output phases.
    """
    planned = plan_convolution if call.rules.transposed else conv2d.plan_conv2d
    plan = planned(call, spec, free_l1_bytes=free_l1_bytes, returns_weights=returns_weights)
    if strict:
        check_strict_plan(plan, call if call.rules.transposed else conv2d.left_of(call, plan))
    if call.rules.by_phases:
        transposed.check_phase_weights(plan, call)
    return plan


def plan_reads_free_l1(call: ConvCall) -> bool:
    """Whether the free bytes of L1 can change the plan of a call."""
    return reads_free_l1(call) if call.rules.transposed else conv2d.conv2d_reads_free_l1(call)
