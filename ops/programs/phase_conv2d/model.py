"""What the works of a program of output phases mean: the program, and what the host does to weights before."""

from types import MappingProxyType
from typing import Final

from device.spec.device_spec import DeviceSpec
from device.time.stages import Stage
from ops.op_model import Account, Ends, Fact, Meaning, cycles_of_work, values_of_first
from ops.programs.conv2d.model import STAGES as CONV_STAGES
from ops.programs.phase_conv2d.cycles import phase_cycles
from ops.programs.phase_conv2d.op import PhaseConvWork
from ops.programs.phase_conv2d.values import PreparePhaseWeights, phases_convolved, prepared_phase_weights

STAGES: Final = MappingProxyType(
    {**CONV_STAGES, Stage.WRITER: "the second processor copies finished sticks to their rows of the output shard"}
)


def phase_account(work: PhaseConvWork, ends: Ends, spec: DeviceSpec) -> Account:
    """How a program of output phases was planned."""
    layout, phases = work.layout, sum(len(part.phases) for part in work.parts)
    cores = layout.out_config.cores.num_cores()
    facts = (
        Fact(name="scheme", value=layout.scheme.name, text=layout.scheme.name),
        Fact(name="output_cores", value=cores, text=f"output on {cores} of {spec.grid.cores} cores"),
        Fact(name="phases", value=phases, text=f"{phases} output phases"),
        Fact(
            name="groups", value=len(work.parts), text=f"{len(work.parts)} groups of phases that meet the same inputs"
        ),
    )
    return Account(facts=facts, stages=STAGES, composed_of="the steps of the measured convolution program")


MEANINGS: Final = (
    Meaning(
        work=PhaseConvWork,
        values=phases_convolved,
        cycles=cycles_of_work(phase_cycles),
        fidelity_phases=lambda work: work.parts[0].conv.fidelity_phases,
        account=phase_account,
    ),
    Meaning(work=PreparePhaseWeights, values=values_of_first(prepared_phase_weights)),
)
