"""What the program of output phases tells of itself: its phases, and what its stages do besides the micro-op's."""

from types import MappingProxyType
from typing import Final

from device.spec.device_spec import DeviceSpec
from device.time.stages import Stage
from ops.meaning import Account, Ends, Fact
from ops.programs.conv2d.account import STAGES as CONV_STAGES
from ops.programs.phase_conv2d.work import PhaseConvWork

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
