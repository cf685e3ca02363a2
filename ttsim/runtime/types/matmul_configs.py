"""Program configs of matmul: the split of a product into cores and blocks; every field can be assigned later."""

# ruff: noqa: N815 - fields have the names that ttnn gives them

from dataclasses import replace
from typing import Annotated, Any, ClassVar

from device.cores import CoreCoord, CoreRangeSet
from device.errors import NotSimulatedError
from device.spec.parts import GridSpec
from ops.programs.matmul.op import MatmulConfig, MatmulProgram
from ttsim.runtime.types.call import CheckedRecord, Kind, param
from ttsim.runtime.types.configs import Activation


def _grid(value: Any) -> CoreCoord:
    """Columns and rows of cores, also from a pair."""
    if isinstance(value, tuple) and len(value) == 2:
        return CoreCoord(*value)
    if not isinstance(value, CoreCoord):
        raise TypeError("no grid")
    return value


Grid = Annotated[CoreCoord | tuple[int, int], Kind("CoreCoord or (x, y)", _grid)]
GRID = "Columns and rows of cores that the program may use, from (0, 0) on."
DEPTH = "Tiles of K in one block: partial sums pass through the packer between blocks."
SUBBLOCK = "{} of a sub-block, in tiles: what the registers hold."
BLOCK = "{} of an output block, in tiles: what the circular buffers hold; None for a core's whole part."
PART = "Output tiles of a core {}."
FUSED = "Applied to the output; None for nothing."
FUSE = "The rows of all batches of the first operand count as those of one matrix."
ALLOWED = "Not simulated; None for all cores."


def _program(config: Any, program: MatmulProgram, **more: Any) -> MatmulConfig:
    """The config in the machine's own types."""
    if getattr(config, "allowed_worker_cores", None) is not None:
        raise NotSimulatedError(
            f"{type(config).__name__}: ttsim does not simulate allowed_worker_cores; leave it out to use all cores"
        )
    grid, activation = config.compute_with_storage_grid_size, getattr(config, "fused_activation", None)
    return MatmulConfig(
        program=program,
        grid=GridSpec(cols=grid.x, rows=grid.y),
        in0_block_w=config.in0_block_w,
        out_subblock_h=config.out_subblock_h,
        out_subblock_w=config.out_subblock_w,
        per_core_m=config.per_core_M,
        per_core_n=config.per_core_N,
        activation=_named(activation),
        given=True,
        **more,
    )


def _named(activation: Any) -> tuple[str, tuple[float, ...]] | None:
    return None if activation is None else (activation.op_type.name.lower(), activation.params)


class _Blocks(CheckedRecord):
    """Common part of configs with output blocks; by default a block is the whole output of a core."""

    def __init__(self, *args: object, **fields: object) -> None:
        """Takes the fields by keyword."""
        super().__init__(*args, **fields)
        for block, part in (("out_block_h", "per_core_M"), ("out_block_w", "per_core_N")):
            if getattr(self, block, 0) is None:
                object.__setattr__(self, block, getattr(self, part))


class MatmulMultiCoreReuseProgramConfig(CheckedRecord):
    """A batched matmul in which each core computes its own rows.

    Examples:
        >>> config = ttnn.MatmulMultiCoreReuseProgramConfig(
        ...     compute_with_storage_grid_size=(8, 8), in0_block_w=2, out_subblock_h=1, out_subblock_w=2, per_core_M=1,
        ...     per_core_N=4)
        >>> config.per_core_M = 2
        >>> config.per_core_M
        2
    """

    compute_with_storage_grid_size: Grid = param(GRID)
    in0_block_w: int = param(DEPTH)
    out_subblock_h: int = param(SUBBLOCK.format("Height"))
    out_subblock_w: int = param(SUBBLOCK.format("Width"))
    per_core_M: int = param(PART.format("down"))
    per_core_N: int = param(PART.format("across"))
    allowed_worker_cores: CoreRangeSet | None = param(ALLOWED, default=None)

    def argument(self) -> MatmulConfig:
        """The config in the machine's own types."""
        return _program(self, MatmulProgram.REUSE, out_block_h=self.per_core_M, out_block_w=self.per_core_N)


class MatmulMultiCoreReuseMultiCastProgramConfig(_Blocks):
    """A matmul whose cores split rows and columns of the output, and multicast both operands.

    Examples:
        >>> config = ttnn.MatmulMultiCoreReuseMultiCastProgramConfig(
        ...     compute_with_storage_grid_size=(8, 8), in0_block_w=2, out_subblock_h=1, out_subblock_w=2, per_core_M=4,
        ...     per_core_N=2, transpose_mcast=False, fused_activation=ttnn.UnaryOpType.RELU)
        >>> config.out_block_h, config.fused_activation
        (4, UnaryWithParam(op_type=UnaryOpType::RELU))
    """

    compute_with_storage_grid_size: Grid = param(GRID)
    in0_block_w: int = param(DEPTH)
    out_subblock_h: int = param(SUBBLOCK.format("Height"))
    out_subblock_w: int = param(SUBBLOCK.format("Width"))
    out_block_h: int | None = param(BLOCK.format("Height"), default=None)
    out_block_w: int | None = param(BLOCK.format("Width"), default=None)
    per_core_M: int = param(PART.format("down"))
    per_core_N: int = param(PART.format("across"))
    transpose_mcast: bool = param("Rows of the output run over columns of cores.")
    fused_activation: Activation = param(FUSED, default=None)
    fuse_batch: bool = param(FUSE, default=True)
    allowed_worker_cores: CoreRangeSet | None = param(ALLOWED, default=None)

    def argument(self) -> MatmulConfig:
        """The config in the machine's own types."""
        blocks = {name: getattr(self, name) for name in ("out_block_h", "out_block_w", "transpose_mcast", "fuse_batch")}
        return _program(self, MatmulProgram.MCAST_2D, **blocks)


class MatmulMultiCoreReuseMultiCast1DProgramConfig(_Blocks):
    """A matmul whose cores split one axis of the output, and multicast the operand that all of them need.

    Examples:
        >>> config = ttnn.MatmulMultiCoreReuseMultiCast1DProgramConfig(
        ...     compute_with_storage_grid_size=(8, 8), in0_block_w=2, out_subblock_h=1, out_subblock_w=2, per_core_M=1,
        ...     per_core_N=2, fuse_batch=True, mcast_in0=True)
        >>> config.out_block_w, config.gather_in0
        (2, False)
    """

    compute_with_storage_grid_size: Grid = param(GRID)
    in0_block_w: int = param(DEPTH)
    out_subblock_h: int = param(SUBBLOCK.format("Height"))
    out_subblock_w: int = param(SUBBLOCK.format("Width"))
    out_block_h: int | None = param(BLOCK.format("Height"), default=None)
    out_block_w: int | None = param(BLOCK.format("Width"), default=None)
    per_core_M: int = param(PART.format("down"))
    per_core_N: int = param(PART.format("across"))
    fuse_batch: bool = param(FUSE)
    fused_activation: Activation = param(FUSED, default=None)
    mcast_in0: bool = param("The first operand is multicast, cores split columns; else the second, cores split rows.")
    gather_in0: bool = param("Not simulated: the first operand goes around a ring of cores.", default=False)
    hop_cores: CoreRangeSet = param("Of gather_in0 alone.", default=CoreRangeSet([]))
    num_global_cb_receivers: int = param("Of gather_in0 alone.", default=1)
    untilize_out: bool = param("Not simulated: the output is in ROW_MAJOR layout.", default=False)
    allowed_worker_cores: CoreRangeSet | None = param(ALLOWED, default=None)
    stream_in1: bool = param("Of gather_in0 alone.", default=False)

    _unsimulated: ClassVar[tuple[str, ...]] = ("gather_in0", "untilize_out", "stream_in1")

    def argument(self) -> MatmulConfig:
        """The config as the planner's type; a matmul refuses gather_in0 and untilize_out."""
        unsimulated = next((name for name in self._unsimulated if getattr(self, name)), None)
        way_out = "leave it out, and use mcast_in0 or neither"
        config = _program(
            self,
            MatmulProgram.MCAST_IN0 if self.mcast_in0 else MatmulProgram.MCAST_IN1,
            out_block_h=self.out_block_h,
            out_block_w=self.out_block_w,
            fuse_batch=self.fuse_batch,
        )
        if unsimulated is None:
            return config
        return replace(config, unsimulated=f"{type(self).__name__}: ttsim does not simulate {unsimulated}; {way_out}")


class MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig(CheckedRecord):
    """A matmul of one tile row by an operand that is width-sharded in DRAM, with one core per DRAM bank.

    Examples:
        >>> config = ttnn.MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig(
        ...     in0_block_w=2, per_core_M=1, per_core_N=4)
        >>> config.num_workers_per_dram_bank
        1
    """

    in0_block_w: int = param(DEPTH)
    per_core_M: int = param("Tile rows of the output: 1.")
    per_core_N: int = param("Output tiles across in each shard of the output.")
    fused_activation: Activation = param(FUSED, default=None)
    num_workers_per_dram_bank: int = param("Cores for each bank; more than 1 is not simulated.", default=1)

    def argument(self) -> MatmulConfig:
        """The config as the planner's type; a matmul refuses several cores per bank."""
        workers, unsimulated = self.num_workers_per_dram_bank, None
        if workers != 1:
            unsimulated = f"{type(self).__name__}: ttsim does not simulate num_workers_per_dram_bank={workers}; use 1"
        return MatmulConfig(
            workers=workers,
            unsimulated=unsimulated,
            program=MatmulProgram.DRAM_SHARDED,
            grid=GridSpec(cols=1, rows=1),
            in0_block_w=self.in0_block_w,
            per_core_m=self.per_core_M,
            per_core_n=self.per_core_N,
            activation=_named(self.fused_activation),
            given=True,
        )


class MatmulMultiCoreReuseMultiCastBatchedDRAMShardedProgramConfig(CheckedRecord):
    """A matmul of batches that are sharded over DRAM banks; matmul refuses it.

    Examples:
        >>> config = ttnn.MatmulMultiCoreReuseMultiCastBatchedDRAMShardedProgramConfig(
        ...     in0_block_w=2, per_core_M=1, per_core_N=4)
        >>> config.in0_block_w
        2
    """

    in0_block_w: int = param(DEPTH)
    per_core_M: int = param(PART.format("down"))
    per_core_N: int = param(PART.format("across"))
    fused_activation: Activation = param(FUSED, default=None)

    def argument(self) -> MatmulConfig:
        """Raises NotSimulatedError."""
        raise NotSimulatedError(
            f"matmul: ttsim does not simulate {type(self).__name__}; use MatmulMultiCoreReuseProgramConfig"
        )


ProgramConfig = (
    MatmulMultiCoreReuseProgramConfig
    | MatmulMultiCoreReuseMultiCastProgramConfig
    | MatmulMultiCoreReuseMultiCast1DProgramConfig
    | MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig
    | MatmulMultiCoreReuseMultiCastBatchedDRAMShardedProgramConfig
)
