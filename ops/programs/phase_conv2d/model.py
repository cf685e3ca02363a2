"""The models of a program of output phases and of the preparation of its weights."""

from types import MappingProxyType
from typing import Final

from device.spec.device_spec import DeviceSpec
from device.time.stages import Stage
from ops.op_model import Description, Detail, Ends, OpModel, cycles_of_work, values_of_first
from ops.programs.conv2d.model import STAGES as CONV_STAGES
from ops.programs.phase_conv2d.cycles import phase_cycles
from ops.programs.phase_conv2d.plan import PhaseConv2dOp
from ops.programs.phase_conv2d.values import PreparePhaseWeights, phases_convolved, prepared_phase_weights

STAGES: Final = MappingProxyType(
    {**CONV_STAGES, Stage.WRITER: "the second processor copies finished sticks to their rows of the output shard"}
)


def describe_phases(op: PhaseConv2dOp, ends: Ends, spec: DeviceSpec) -> Description:
    """How a program of output phases was planned."""
    layout, phases = op.layout, sum(len(part.frames) for part in op.parts)
    cores = layout.out_config.cores.num_cores()
    facts = (
        Detail("scheme", layout.scheme.name, layout.scheme.name),
        Detail("output_cores", cores, f"output on {cores} of {spec.grid.cores} cores"),
        Detail("phases", phases, f"{phases} output phases"),
        Detail("groups", len(op.parts), f"{len(op.parts)} groups of phases that meet the same inputs"),
    )
    return Description(facts=facts, stages=STAGES, composed_of="the steps of the measured convolution program")


OP_MODELS: Final = (
    OpModel(
        op=PhaseConv2dOp,
        values=phases_convolved,
        cycles=cycles_of_work(phase_cycles),
        fidelity_phases=lambda op: op.parts[0].conv.fidelity_phases,
        describe=describe_phases,
    ),
    OpModel(op=PreparePhaseWeights, values=values_of_first(prepared_phase_weights)),
)
