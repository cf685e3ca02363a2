"""What one matmul program computes, as data for the readings of values and of cycles."""

from dataclasses import dataclass

from device.plan import Work
from ops.programs.matmul.config import MatmulConfig, MatmulProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class MatmulWork(Work):
    """One matmul program: rows of channels times a matrix of weights.

    Attributes:
        problem: Sizes and formats.
        config: How it is dealt to cores and cut into blocks.
        fidelity_phases: Fidelity phases, 1 (LoFi) to 4 (HiFi4).
        out_channels: Columns of the output that are no padding.
        activation: Activation fused into the program: its name in lower case and its parameters; None without.
    """

    problem: MatmulProblem
    config: MatmulConfig
    fidelity_phases: int
    out_channels: int
    activation: tuple[str, tuple[float, ...]] | None = None
