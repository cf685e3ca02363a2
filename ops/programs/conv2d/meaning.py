"""What the works of a convolution mean: its program, and what the host does to weights and bias before."""

from typing import Final

from ops.meaning import Meaning, cycles_of_work, values_of_first
from ops.programs.conv2d.account import conv_account
from ops.programs.conv2d.cycles import conv_cycles
from ops.programs.conv2d.values import convolved
from ops.programs.conv2d.weights import PrepareBias, PrepareWeights, prepared_bias, prepared_weights
from ops.programs.conv2d.work import ConvWork

MEANINGS: Final = (
    Meaning(
        work=ConvWork,
        values=convolved,
        cycles=cycles_of_work(conv_cycles),
        fidelity_phases=lambda work: work.fidelity_phases,
        account=conv_account,
    ),
    Meaning(work=PrepareWeights, values=values_of_first(prepared_weights)),
    Meaning(work=PrepareBias, values=values_of_first(prepared_bias)),
)
