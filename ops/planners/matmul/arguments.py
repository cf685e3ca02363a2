"""The arguments of a matmul, and the library's defaults."""

from dataclasses import dataclass, replace
from math import prod

from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, BufferType, MemoryConfig, ShardSpec, TensorMemoryLayout
from device.numbers.formats import FLOAT32, DataFormat, div_up
from device.spec.device_spec import DeviceSpec
from device.spec.parts import GridSpec
from ops.programs.matmul.op import MatmulConfig

DEFAULT_PHASES = 2  # HiFi2
LOW_PRECISION_PHASES = 1  # LoFi, where both operands are block floats or the caller chose the program or its cores


@dataclass(frozen=True, slots=True, kw_only=True)
class MatmulArguments:
    """One call of matmul or linear."""

    first: TensorSpec  # [..., M, K]; [..., K, M] if it is transposed
    second: TensorSpec  # [..., K, N]; [..., N, K] if it is transposed
    bias: TensorSpec | None  # A single row of N; None without
    out_format: DataFormat | None  # Output format; None for the first operand's
    memory_config: MemoryConfig  # Memory of the output
    activation: tuple[str, tuple[float, ...]] | None = None  # Its name in lower case and its parameters; None without
    fidelity_phases: int | None = None  # Fidelity phases; None for the library's default
    fp32_dest: bool = False  # Dst is 32 bits wide; read only with fidelity phases given, as packer_l1_acc
    packer_l1_acc: bool = False  # Partial sums are added in L1
    transpose_a: bool = False  # The last two axes of the first operand change places
    transpose_b: bool = False  # Those of the second do
    program: MatmulConfig | None = None  # The caller's program config
    core_grid: GridSpec | None = None  # Cores that the caller gives
    target: TensorSpec | None = None  # The caller's tensor "target" that the product is written into, if there is one
    batched: bool = True  # Whether batches of the second operand count; for shards of a convolution they do not

    @property
    def output_format(self) -> DataFormat:
        """Format of the output."""
        return self.out_format or self.first.data_format

    @property
    def first_sides(self) -> tuple[int, int]:
        """M and K, of the first operand."""
        rows, columns = self.first.shape[-2:]
        return (columns, rows) if self.transpose_a else (rows, columns)

    @property
    def second_sides(self) -> tuple[int, int]:
        """K and N, of the second operand."""
        rows, columns = self.second.shape[-2:]
        return (columns, rows) if self.transpose_b else (rows, columns)

    @property
    def batches(self) -> tuple[int, int]:
        """Matrices of both operands."""
        return prod(self.first.shape[:-2]), prod(self.second.shape[:-2])

    @property
    def tiles(self) -> tuple[int, int, int]:
        """Tiles of M, K and N of one matrix, with padding."""
        (rows, depth), columns = self.first_sides, self.second_sides[1]
        return div_up(rows, TILE), div_up(depth, TILE), div_up(columns, TILE)

    @property
    def l1_shards(self) -> ShardSpec | None:
        """The L1 shards whose cores a REUSE program uses: of the first operand, or else of the second."""
        places = (self.first.memory_config, self.second.memory_config)
        return next((each.shard_spec for each in places if each.buffer_type is BufferType.L1 and each.shard_spec), None)

    @property
    def line(self) -> GridSpec | None:
        """Cores of BLOCK shards of the output in one row or column; None for other memory.

        The output determines the cores only for an interleaved first operand without program config or core grid.
        """
        box = None if self.program is not None or self.core_grid is not None else self.box
        return box if box is not None and box.cores > 1 else None

    @property
    def box(self) -> GridSpec | None:
        """Cores of BLOCK shards of the output in one row or column, or one core, for an interleaved first operand."""
        shards = self.memory_config.shard_spec
        if self.memory_config.memory_layout is not TensorMemoryLayout.BLOCK_SHARDED or shards is None:
            return None
        box = shards.grid.bounding_box()
        if min(box.rows, box.cols) > 1 or self.first.memory_config.is_sharded():
            return None
        return GridSpec(cols=box.cols, rows=box.rows)

    @property
    def output_shape(self) -> tuple[int, ...]:
        """[..., M, N], of the rank of the operand, or bias, that has most axes."""
        if self.target is not None:
            return self.target.shape
        alone = self.batches[0] == 1 < self.batches[1] and len(self.first.shape) == len(self.second.shape)
        batches = (self.second if alone else self.first).shape[:-2]
        rank = max(len(operand.shape) for operand in (self.first, self.second, self.bias) if operand is not None)
        shape = (*batches, self.first_sides[0], self.second_sides[1])
        return (1,) * (rank - len(shape)) + shape

    @property
    def multiply_adds(self) -> int:
        """Number of scalar multiplications in the definition of the product."""
        return prod(self.output_shape) * self.first_sides[1]


def with_defaults(call: MatmulArguments, device_spec: DeviceSpec) -> MatmulArguments:
    """The call with the library's compute config, where the caller gave none.

    Two float32 operands get HiFi4, but HiFi3 on devices whose HiFi4 errs with a 32-bit Dst.
    """
    if call.fidelity_phases is not None:
        return call
    formats, wide = (call.first.data_format, call.second.data_format), call.output_format == FLOAT32
    chosen = call.program is not None or call.core_grid is not None
    low = chosen or all(data_format.is_block for data_format in formats)
    fidelity_phases = LOW_PRECISION_PHASES if low else DEFAULT_PHASES
    if formats == (FLOAT32, FLOAT32):
        fidelity_phases = 3 if device_spec.compute.minus_one_quirk else 4
    return replace(call, fidelity_phases=fidelity_phases, fp32_dest=wide, packer_l1_acc=not wide)
