"""What the works of a program of output phases mean: the program, and what the host does to weights before."""

from typing import Final

from ops.meaning import Meaning, cycles_of_work, values_of_first
from ops.programs.phase_conv2d.cycles import phase_cycles
from ops.programs.phase_conv2d.values import phases_convolved
from ops.programs.phase_conv2d.weights import PreparePhaseWeights, prepared_phase_weights
from ops.programs.phase_conv2d.work import PhaseConvWork

MEANINGS: Final = (
    Meaning(
        work=PhaseConvWork,
        values=phases_convolved,
        cycles=cycles_of_work(phase_cycles),
        fidelity_phases=lambda work: work.parts[0].conv.fidelity_phases,
    ),
    Meaning(work=PreparePhaseWeights, values=values_of_first(prepared_phase_weights)),
)
