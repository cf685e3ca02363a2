"""One way to make a call, planned, placed and timed on a copy of a device."""

from dataclasses import dataclass

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType
from device.plan import MOVE, Plan, usage_per_core
from ops.op_models import OP_MODELS
from ops.passes.cycles import run_cycles, steps_that_ran
from ops.planners.conv.arguments import ConvCall
from ops.planners.conv.l1_path import CONV2D
from ttsim.diagnose import MachineSnapshot, attempt
from ttsim.report.cycles.whole import whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A call that runs, and what it takes."""

    call: ConvCall
    cycles: int  # Of all its device operations that have a model
    around_cycles: int  # Those of all but convolutions and moves within L1
    untimed: int  # Operations without one
    l1_peak_bytes: int  # Of a core, with all that lay there before
    rms_error: float  # Of its arithmetic, relative to float64; 0 where no arithmetic is compared
    plan: Plan  # What it does
    ran: tuple[int, ...]  # The device operations that ran

    @property
    def output(self) -> TensorSpec:
        """What it hands on."""
        return self.plan.tensors[self.plan.results["output"]]


def evaluate(call: ConvCall, ground: MachineSnapshot, *, rms_error: float = 0.0) -> Candidate:
    """What a call takes on a device as it is.

    Raises:
        DeviceError: It is refused, or does not fit; the text is the call's own.
    """
    trial = attempt(call, ground, returns_weights=False)
    if trial.error is not None or trial.plan is None:
        raise DeviceError(trial.error or "it was not planned")
    ran = steps_that_ran(trial.events)
    timed = run_cycles(trial.plan, ground.machine.spec, ran=ran, meanings=OP_MODELS).operations
    took = [(one.name, whole(one.cycles.cycles)) for one in timed if one.cycles is not None]
    return Candidate(
        call=call,
        cycles=sum(cycles for _, cycles in took),
        around_cycles=sum(cycles for name, cycles in took if name not in (CONV2D, MOVE)),
        untimed=sum(one.cycles is None for one in timed),
        l1_peak_bytes=l1_bytes_before(ground) + usage_per_core(trial.events).peak_total,
        rms_error=rms_error,
        plan=trial.plan,
        ran=ran,
    )


def l1_bytes_before(ground: MachineSnapshot) -> int:
    """Bytes of L1 on a core that lie there before a call."""
    live = ground.machine.memory.live()
    return sum(one.spec.bank_bytes for one in live if one.spec.buffer_type is not BufferType.DRAM)
