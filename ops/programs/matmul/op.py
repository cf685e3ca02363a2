"""The matmul operation: its operands, the real library's program, and its distribution over cores.

All sizes are in tiles of 32 x 32: M rows of the first operand and of the output, K columns of the first and rows of the
second operand, N columns of the second and of the output.
"""

from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import Final

from device.cores import CoreCoord, CoreRange, CoreRangeSet, first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType
from device.numbers.formats import BFLOAT16, FLOAT32, DataFormat, div_up
from device.plan import DeviceOp
from device.spec.parts import GridSpec
from ops.op_model import PRODUCT_FLOPS


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
    useful: int | None = None  # Multiply-adds that the result needs, without padding; None for those of all tiles

    @property
    def added_format(self) -> DataFormat:
        """Format of the row that is added."""
        return self.bias_format or self.weight_format

    @property
    def multiply_adds(self) -> int:
        """Multiply-adds that the result needs."""
        tiles = self.batches * self.m_tiles * self.n_tiles * self.k_tiles
        return tiles * PRODUCT_FLOPS // 2 if self.useful is None else self.useful

    @property
    def keeps_first(self) -> bool:
        """Whether all batches share the first operand, which then stays in L1 from batch to batch."""
        return self.batches > 1 and not self.first_batched


class MatmulProgram(Enum):
    """How a matmul is distributed over cores."""

    SINGLE_TILES = 0  # Every core computes its output tiles one by one, with the whole of K in Dst
    MCAST_IN0 = 1  # Cores split N, the first operand is multicast
    MCAST_IN1 = 2  # Cores split M, the second operand is multicast
    MCAST_2D = 3  # Cores split M and N, both operands are multicast
    REUSE = 4  # Cores split the rows of all batches, each reads its own operands
    DRAM_SHARDED = 5  # A core for each bank of DRAM multiplies by the second operand's shard there

    @property
    def config_name(self) -> str:
        """The real library's name of the program config."""
        return f"MatmulMultiCore{CONFIG_NAMES.get(self, '')}ProgramConfig"


CONFIG_NAMES: Final = {
    MatmulProgram.MCAST_IN0: "ReuseMultiCast1D",
    MatmulProgram.MCAST_IN1: "ReuseMultiCast1D",
    MatmulProgram.MCAST_2D: "ReuseMultiCast",
    MatmulProgram.REUSE: "Reuse",
    MatmulProgram.DRAM_SHARDED: "ReuseMultiCastDRAMSharded",
}
SENDS: Final = {  # whether blocks of the first operand are multicast, and those of the second
    MatmulProgram.MCAST_IN0: (True, False),
    MatmulProgram.MCAST_IN1: (False, True),
    MatmulProgram.MCAST_2D: (True, True),
    MatmulProgram.DRAM_SHARDED: (True, False),
}


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
    banks: int = 0  # Banks of DRAM whose cores multiply; of DRAM_SHARDED alone
    fuse_batch: bool = False  # Rows of all batches of the first operand are those of one
    # Fused into the program: name in lower case and parameters; None without
    activation: tuple[str, tuple[float, ...]] | None = None
    given: bool = False  # By the caller; otherwise the library chose it
    workers: int = 1  # Cores that read a bank of DRAM; of DRAM_SHARDED alone
    unsimulated: str | None = None  # What of it is not simulated, with a way out; None for nothing

    def rows_of(self, problem: MatmulProblem) -> int:
        """Tile rows of the output of a problem that cores share."""
        fused = self.fuse_batch and problem.first_batched
        return problem.m_tiles * (problem.batches if fused or self.program is MatmulProgram.REUSE else 1)


class Place(Enum):
    """The memory of an operand or of the output of a matmul."""

    DRAM = "dram"
    L1 = "l1"  # In the banks of all cores' L1
    OWN = "own"  # In the L1 of the core that needs it, or of the one that sends it on


@dataclass(frozen=True, slots=True, kw_only=True)
class MatmulOp(DeviceOp):
    """One matmul program: rows of channels times a matrix of weights."""

    problem: MatmulProblem  # Sizes and formats
    config: MatmulConfig  # Its distribution over cores and split into blocks
    fidelity_phases: int  # Fidelity phases, 1 (LoFi) to 4 (HiFi4)
    out_channels: int  # Columns of the output that are no padding
    second_place: Place = Place.DRAM  # Where a core finds the second operand
    # Activation fused into the program: its name in lower case and its parameters; None without
    activation: tuple[str, tuple[float, ...]] | None = None
    # Rows of the output, at least: a program before may have added rows of zeros to the first operand's shape and not
    # to its numbers. None for as many as there are numbers.
    out_rows: int | None = None

    @property
    def k_blocks(self) -> int:
        """K blocks, between which partial sums pass through the packer."""
        return div_up(self.problem.k_tiles, self.config.in0_block_w)

    @property
    def l1_accumulation(self) -> bool:
        """Whether packer_l1_acc has an effect: from two K blocks on, with and without a bias."""
        return self.problem.packer_l1_acc and self.k_blocks > 1

    @property
    def partials_format(self) -> DataFormat:
        """Format of the partial sums: float32 whenever Dst is, unlike in a convolution."""
        if self.problem.fp32_dest:
            return FLOAT32
        return BFLOAT16 if self.l1_accumulation else self.problem.out_format

    def reloads(self, k_block: int) -> bool:
        """Whether a K block fetches the partial sums back; if they are added in L1, only the last block does.

        With a bias the last block need not: the bias is added to the sums in L1.
        """
        if k_block == 0 or not self.l1_accumulation:
            return k_block > 0
        return k_block == self.k_blocks - 1 and not self.problem.bias

    @property
    def single_tiles(self) -> bool:
        """Whether every core computes its output tiles one by one."""
        return self.config.program is MatmulProgram.SINGLE_TILES

    @property
    def sends(self) -> tuple[bool, bool]:
        """Whether blocks of the first operand are multicast, and whether blocks of the second are."""
        return SENDS.get(self.config.program, (False, False))

    @property
    def sharers(self) -> tuple[int, int]:
        """Cores that need the same rows of the first operand, and the same columns of the second."""
        problem, config = self.problem, self.config
        if config.banks:
            return config.banks, 1
        return div_up(problem.n_tiles, config.per_core_n), div_up(problem.m_tiles, config.per_core_m)

    @property
    def receivers(self) -> tuple[int, int]:
        """Cores that get a block of either operand from the core that sends it, that core among them."""
        first, second = (
            min(self.cores, many) if sent else 1 for many, sent in zip(self.sharers, self.sends, strict=True)
        )
        return first, second

    @property
    def passes(self) -> tuple[int, int]:
        """How often a core's part of each operand is needed: for every column, and every row, of its output blocks."""
        problem, config = self.problem, self.config
        if self.single_tiles:
            tiles = div_up(problem.m_tiles * problem.n_tiles, config.grid.cores)
            return tiles, tiles
        return div_up(config.per_core_n, config.out_block_w), div_up(config.per_core_m, config.out_block_h)

    @property
    def _core_batches(self) -> int:
        """Number of batches of a core: all batches, unless their tiles are distributed like tiles of a single batch."""
        alone = (MatmulProgram.SINGLE_TILES, MatmulProgram.REUSE)
        return 1 if self.config.program in alone else self.problem.batches

    @property
    def _shares(self) -> int:
        """Number of parts of the output; a core computes several parts if there are more parts than cores."""
        problem, config = self.problem, self.config
        if config.program is MatmulProgram.REUSE:  # a core may have the rows of several batches
            return problem.batches * problem.m_tiles // config.per_core_m
        return problem.batches // self._core_batches * prod(self.sharers)

    @property
    def cores(self) -> int:
        """Cores that compute."""
        return min(self._shares, self.config.grid.cores)

    @property
    def core_shares(self) -> int:
        """Number of parts of the output that a core computes, over all its batches."""
        return div_up(self._shares, self.cores) * self._core_batches

    @property
    def out_blocks(self) -> int:
        """Number of output blocks that a core computes, over all its parts and batches."""
        config = self.config
        down, across = div_up(config.per_core_m, config.out_block_h), div_up(config.per_core_n, config.out_block_w)
        return self.core_shares * down * across

    @property
    def block_tiles(self) -> tuple[float, float, float]:
        """Mean height, width and depth of a block: its even share of a core's part."""
        problem, config = self.problem, self.config
        return (
            config.per_core_m / div_up(config.per_core_m, config.out_block_h),
            config.per_core_n / div_up(config.per_core_n, config.out_block_w),
            problem.k_tiles / self.k_blocks,
        )

    @property
    def issued_flops(self) -> int:
        """Multiplications and additions of all cores; some cores may have one part of the output less than others."""
        parts = self._shares * self._core_batches
        return parts * self.config.per_core_m * self.config.per_core_n * self.problem.k_tiles * PRODUCT_FLOPS


def reader_cores(op: MatmulOp, grid: GridSpec, number: int) -> CoreRangeSet:
    """The cores that read operand 0 or 1: all cores, or the senders, which are a column, a row, or one core."""
    if not op.sends[number]:
        return first_cores(op.cores, grid.cols, grid.rows)
    if op.config.program is not MatmulProgram.MCAST_2D:
        return CoreRangeSet(CoreRange(CoreCoord(0, 0), CoreCoord(0, 0)))
    down = (number == 0) is not op.config.transpose_mcast
    last = min(op.sharers[1 - number], grid.rows if down else grid.cols) - 1
    return CoreRangeSet(CoreRange(CoreCoord(0, 0), CoreCoord(0, last) if down else CoreCoord(last, 0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The memories of the operands, of the added row and of the output."""

    first: Place = Place.DRAM
    second: Place = Place.DRAM
    added: Place = Place.DRAM
    output: Place = Place.DRAM


IN_DRAM = Places()


def place_of(tensor: TensorSpec) -> Place:
    """Where a core finds a tensor: in DRAM, in its own shard, or in the L1 of all cores."""
    if tensor.memory_config.buffer_type is BufferType.DRAM:
        return Place.DRAM
    return Place.OWN if tensor.memory_config.is_sharded() else Place.L1


def place_text(tensor: TensorSpec) -> str:
    """The memory of a tensor as text."""
    memory = tensor.memory_config
    if memory.buffer_type is BufferType.DRAM:
        return "DRAM"
    return "the cores' own L1" if memory.is_sharded() else "the L1 of all cores"


@dataclass(frozen=True, slots=True)
class Operands:
    """The data that all cores of a program move."""

    first_read_bytes: int  # Of the first operand, read from DRAM
    second_read_bytes: int
    added_read_bytes: int  # Of the row that is added
    written_bytes: int

    @property
    def read_bytes(self) -> int:
        """Of all of them."""
        return self.first_read_bytes + self.second_read_bytes + self.added_read_bytes


def operands_of(op: MatmulOp, places: Places = IN_DRAM) -> Operands:
    """The data that a program moves; arguments as in `matmul_cycles`."""
    problem = op.problem
    written = problem.batches * problem.m_tiles * problem.n_tiles
    sides = (problem.m_tiles, problem.in_format), (problem.n_tiles, problem.weight_format)
    moved = []  # bytes of each operand that all cores take
    for number, (side, data_format) in enumerate(sides):
        tiles = problem.k_tiles * side * op.passes[number] * (1 if op.sends[number] else op.sharers[number])
        tiles *= 1 if problem.keeps_first and not number else problem.batches
        moved.append((written * problem.k_tiles if op.single_tiles else tiles) * data_format.tile_bytes)
    # The row stays, unless output blocks of other columns come in between
    added = problem.n_tiles * (1 if op.sends[1] else op.sharers[1]) * problem.bias
    added *= op.passes[1] * problem.batches if op.passes[0] > 1 else 1
    return Operands(
        first_read_bytes=moved[0] if places.first is Place.DRAM else 0,
        second_read_bytes=moved[1] if places.second is Place.DRAM else 0,
        added_read_bytes=added * problem.added_format.tile_bytes if places.added is Place.DRAM else 0,
        written_bytes=written * problem.out_format.tile_bytes if places.output is Place.DRAM else 0,
    )
