"""What a matmul multiplies, and the program that the real library multiplies it with.

All sizes are in tiles of 32 x 32: M rows of the first operand and of the output, K columns of the first and rows of the
second operand, N columns of the second and of the output.
"""

from dataclasses import dataclass
from enum import Enum

from device.numbers.block_floats import div_up
from device.numbers.formats import BFLOAT16, FLOAT32, DataFormat
from device.plan import DeviceOp
from device.spec.parts import GridSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class MatmulProblem:
    """One matmul, in sizes and formats."""

    m_tiles: int
    k_tiles: int
    n_tiles: int
    in_format: DataFormat  # Format of the first operand, activations
    weight_format: DataFormat  # Format of the second operand
    out_format: DataFormat
    bias: bool  # A row is added to every output row within the same program
    fp32_dest: bool  # Dst is 32 bits wide
    packer_l1_acc: bool  # The compute config asks for accumulation in L1
    bias_format: DataFormat | None = None  # Format of the bias; None for that of the second operand
    batches: int = 1  # Products that one program computes, one after the other; sizes are those of each
    first_batched: bool = True  # Each has a first operand of its own; read only with several batches, as second_batched
    second_batched: bool = False  # Each has a second operand of its own
    transpose_first: bool = False  # The first operand's tiles lie transposed and are turned by the program
    transpose_second: bool = False  # The second operand's tiles do; the unpacker turns them

    @property
    def added_format(self) -> DataFormat:
        """Format of the row that is added."""
        return self.bias_format or self.weight_format

    @property
    def keeps_first(self) -> bool:
        """Whether all batches share the first operand, which then stays in L1 from batch to batch."""
        return self.batches > 1 and not self.first_batched


class MatmulProgram(Enum):
    """How a matmul is dealt to cores."""

    SINGLE_TILES = 0  # Every core computes its output tiles one by one, with the whole of K in Dst
    MCAST_IN0 = 1  # Cores split N, the first operand is multicast
    MCAST_IN1 = 2  # Cores split M, the second operand is multicast
    MCAST_2D = 3  # Cores split M and N, both operands are multicast


@dataclass(frozen=True, slots=True, kw_only=True)
class MatmulConfig:
    """A program config."""

    program: MatmulProgram
    grid: GridSpec  # Cores it may use
    in0_block_w: int  # K tiles of one K block
    out_block_h: int = 1  # Height of an output block: what the circular buffers hold
    out_block_w: int = 1  # Width of an output block
    out_subblock_h: int = 1  # Height of a sub-block: what Dst holds
    out_subblock_w: int = 1  # Width of a sub-block
    per_core_m: int = 1  # Output tiles of a core down
    per_core_n: int = 1  # Output tiles of a core across
    transpose_mcast: bool = False  # M runs over grid columns


@dataclass(frozen=True, slots=True, kw_only=True)
class MatmulOp(DeviceOp):
    """One matmul program: rows of channels times a matrix of weights."""

    problem: MatmulProblem  # Sizes and formats
    config: MatmulConfig  # How it is dealt to cores and cut into blocks
    fidelity_phases: int  # Fidelity phases, 1 (LoFi) to 4 (HiFi4)
    out_channels: int  # Columns of the output that are no padding
    # Activation fused into the program: its name in lower case and its parameters; None without
    activation: tuple[str, tuple[float, ...]] | None = None
    # Rows of the output, at least: a program before may have added rows of zeros to the first operand's shape and not
    # to its numbers. None for as many as there are numbers.
    out_rows: int | None = None


def k_blocks(problem: MatmulProblem, config: MatmulConfig) -> int:
    """K blocks, between which partial sums pass through the packer."""
    return div_up(problem.k_tiles, config.in0_block_w)


def l1_accumulation(problem: MatmulProblem, config: MatmulConfig) -> bool:
    """Whether packer_l1_acc has an effect: from two K blocks on, with and without a bias."""
    return problem.packer_l1_acc and k_blocks(problem, config) > 1


def reloads(problem: MatmulProblem, config: MatmulConfig, k_block: int) -> bool:
    """Whether a K block fetches the partial sums back: unless they are added in L1, and then for the last, too.

    With a bias the last one need not: the bias is added to what lies in L1.
    """
    if k_block == 0 or not l1_accumulation(problem, config):
        return k_block > 0
    return k_block == k_blocks(problem, config) - 1 and not problem.bias


def partials_format(problem: MatmulProblem, config: MatmulConfig) -> DataFormat:
    """Format of the partial sums: float32 whenever Dst is, unlike in a convolution."""
    if problem.fp32_dest:
        return FLOAT32
    return BFLOAT16 if l1_accumulation(problem, config) else problem.out_format
