"""What a matmul multiplies, the program that the real library multiplies it with, and how that is dealt to cores.

All sizes are in tiles of 32 x 32: M rows of the first operand and of the output, K columns of the first and rows of the
second operand, N columns of the second and of the output.
"""

from dataclasses import dataclass
from enum import Enum

from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, BufferType
from device.numbers.formats import BFLOAT16, FLOAT32, DataFormat, div_up
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
    """How a matmul is distributed over cores."""

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
    """Whether a K block fetches the partial sums back; if they are added in L1, only the last block does.

    With a bias the last block need not: the bias is added to the sums in L1.
    """
    if k_block == 0 or not l1_accumulation(problem, config):
        return k_block > 0
    return k_block == k_blocks(problem, config) - 1 and not problem.bias


def partials_format(problem: MatmulProblem, config: MatmulConfig) -> DataFormat:
    """Format of the partial sums: float32 whenever Dst is, unlike in a convolution."""
    if problem.fp32_dest:
        return FLOAT32
    return BFLOAT16 if l1_accumulation(problem, config) else problem.out_format


TILE_PRODUCT_FLOPS = 2 * TILE**3


class Place(Enum):
    """Where an operand or the output of a matmul lies."""

    DRAM = "dram"
    L1 = "l1"  # In the banks of all cores' L1
    OWN = "own"  # In the L1 of the core that needs it, or of the one that sends it on


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where the operands and the output lie."""

    first: Place = Place.DRAM
    second: Place = Place.DRAM
    output: Place = Place.DRAM


IN_DRAM = Places()


def place_text(tensor: TensorSpec) -> str:
    """Where a tensor lies, in words."""
    memory = tensor.memory_config
    if memory.buffer_type is BufferType.DRAM:
        return "DRAM"
    return "the cores' own L1" if memory.is_sharded() else "the L1 of all cores"


@dataclass(frozen=True, slots=True)
class Operands:
    """The data that all cores of a program move."""

    first_read_bytes: int  # Of the first operand, read from DRAM
    second_read_bytes: int
    written_bytes: int
    sent_bytes: int  # Bytes that leave a core over a network


def issued_flops(op: MatmulOp) -> int:
    """Multiplications and additions of all cores."""
    config = op.config
    products = _rounds(op) * _passed_batches(op) * config.per_core_m * config.per_core_n * op.problem.k_tiles
    return cores_of(op) * products * TILE_PRODUCT_FLOPS


def out_blocks(op: MatmulOp) -> int:
    """Output blocks that a core computes, one after the other."""
    config = op.config
    across = div_up(config.per_core_n, config.out_block_w)
    return _rounds(op) * _passed_batches(op) * div_up(config.per_core_m, config.out_block_h) * across


def block_tiles(op: MatmulOp) -> tuple[float, float, float]:
    """Height, width and depth of a block: even shares of a core's part, so that all blocks together are that part."""
    problem, config = op.problem, op.config
    return (
        config.per_core_m / div_up(config.per_core_m, config.out_block_h),
        config.per_core_n / div_up(config.per_core_n, config.out_block_w),
        problem.k_tiles / k_blocks(problem, config),
    )


def operands_of(op: MatmulOp, places: Places = IN_DRAM) -> Operands:
    """What a program moves; arguments as of `matmul_cycles`."""
    problem, config = op.problem, op.config
    written = problem.batches * problem.m_tiles * problem.n_tiles
    moved = []  # bytes of each operand that all cores take
    for number, data_format in enumerate((problem.in_format, problem.weight_format)):
        tiles = (
            problem.k_tiles * (problem.n_tiles if number else problem.m_tiles) * operand_passes(problem, config)[number]
        )
        tiles *= 1 if sent_operands(config)[number] else sharers(op)[number]
        tiles *= 1 if problem.keeps_first and not number else problem.batches
        if config.program is MatmulProgram.SINGLE_TILES:
            tiles = written * problem.k_tiles
        moved.append(tiles * data_format.tile_bytes)
    first, second = moved
    return Operands(
        first_read_bytes=first if places.first is Place.DRAM else 0,
        second_read_bytes=second if places.second is Place.DRAM else 0,
        written_bytes=written * problem.out_format.tile_bytes if places.output is Place.DRAM else 0,
        sent_bytes=sum(size for size, sent in zip(moved, sent_operands(config), strict=True) if sent),
    )


def sent_operands(config: MatmulConfig) -> tuple[bool, bool]:
    """Whether blocks of the first operand are multicast, and those of the second."""
    both = config.program is MatmulProgram.MCAST_2D
    return both or config.program is MatmulProgram.MCAST_IN0, both or config.program is MatmulProgram.MCAST_IN1


def sharers(op: MatmulOp) -> tuple[int, int]:
    """Cores that need the same rows of the first operand, and the same columns of the second."""
    problem, config = op.problem, op.config
    return div_up(problem.n_tiles, config.per_core_n), div_up(problem.m_tiles, config.per_core_m)


def block_receivers(op: MatmulOp) -> tuple[int, int]:
    """Cores that get a block of either operand from the core that sends it, that core among them."""
    first, second = (
        min(cores_of(op), shared) if sent else 1
        for sent, shared in zip(sent_operands(op.config), sharers(op), strict=True)
    )
    return first, second


def _shares(op: MatmulOp) -> int:
    """Parts of the output, one for each core."""
    across, down = sharers(op)
    return op.problem.batches // _passed_batches(op) * down * across


def _passed_batches(op: MatmulOp) -> int:
    """Batches that every core computes: all of them, unless their tiles are distributed as those of a single batch."""
    return 1 if op.config.program is MatmulProgram.SINGLE_TILES else op.problem.batches


def cores_of(op: MatmulOp) -> int:
    """Cores that compute."""
    return min(_shares(op), op.config.grid.cores)


def _rounds(op: MatmulOp) -> int:
    """Parts of the output that a core computes in sequence."""
    return div_up(_shares(op), cores_of(op))


def operand_passes(problem: MatmulProblem, config: MatmulConfig) -> tuple[int, int]:
    """How often a core's part of each operand is needed: for every column, and every row, of its output blocks."""
    if config.program is MatmulProgram.SINGLE_TILES:
        tiles = div_up(problem.m_tiles * problem.n_tiles, config.grid.cores)
        return tiles, tiles
    return div_up(config.per_core_n, config.out_block_w), div_up(config.per_core_m, config.out_block_h)
