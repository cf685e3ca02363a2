"""A convolution's sizes and options, and the cores that share its rows and channels."""

from dataclasses import dataclass
from typing import NamedTuple

from device.cores import CoreRangeSet, core_rectangle
from device.memory.memory_config import TILE, ShardOrientation, TensorMemoryLayout
from device.numbers.formats import BFLOAT16, FLOAT32, DataFormat, div_up, round_up
from device.spec.parts import GridSpec
from ops.window import PaddedInput

HEIGHT = TensorMemoryLayout.HEIGHT_SHARDED
BLOCK = TensorMemoryLayout.BLOCK_SHARDED
WIDTH = TensorMemoryLayout.WIDTH_SHARDED


class ParallelConfig(NamedTuple):
    """Cores of one side (input or output) of a convolution."""

    scheme: TensorMemoryLayout  # HEIGHT_SHARDED, BLOCK_SHARDED or WIDTH_SHARDED
    nhw_cores: int  # Cores that split the flattened rows
    channel_cores: int
    cores: CoreRangeSet  # All of them
    orientation: ShardOrientation  # ROW_MAJOR: a BLOCK grid has channels along x; COL_MAJOR: along y


def most_cores(tiles: int, limit: int, multiple: int = 1) -> int:
    """The most cores, at most `limit`, that share `tiles` so that every core has more than padding.

    Each core gets the same number of tiles, rounded up to `multiple` tiles. Shares only grow when cores are left out,
    so the cores that the smallest share needs are the most there can be.
    """
    smallest_share = round_up(tiles, limit * multiple) // limit
    return max(1, div_up(tiles, max(1, smallest_share)))


def largest_divisor(limit: int, *counts: int) -> int:
    """The largest number, at most `limit`, that divides every one of `counts`."""
    return next(d for d in range(limit, 0, -1) if all(count % d == 0 for count in counts))


def channel_alignment(
    scheme: TensorMemoryLayout, *, row_major: bool, sliced: bool, matmul: bool, shard_width: int | None
) -> int:
    """Channels per core are a multiple of this number (docs/planning.md, Alignment).

    `scheme` is the memory layout of the tensor that is aligned, `shard_width` the width of its shard; None if
    interleaved.
    """
    if matmul or scheme is WIDTH or not (row_major or sliced):
        return TILE
    if shard_width is None:
        return 8
    return next((channels for channels in (32, 16, 8) if shard_width % channels == 0), TILE)


def block_range(nhw_cores: int, channel_cores: int, orientation: ShardOrientation) -> CoreRangeSet:
    """The rectangle of a BLOCK_SHARDED tensor, anchored at (0, 0)."""
    cols, rows = channel_cores, nhw_cores
    if orientation is ShardOrientation.COL_MAJOR:
        cols, rows = rows, cols
    return core_rectangle(cols, rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvOptions:
    """The fields of a Conv2dConfig and of a compute config that decide a layout (docs/planning.md, Arguments)."""

    act_block_h_override: int = 0  # Rows of an activation block; 0 takes the whole share of a core
    act_block_w_div: int = 1  # Parts of a K block (WIDTH only)
    transpose_shards: bool = False  # BLOCK grids are COL_MAJOR
    untilize_out: bool = False  # The output is ROW_MAJOR
    act_double_buffer: bool = False  # Activations are double buffered
    weights_double_buffer: bool = False  # Weights are double buffered
    full_inner_dim: bool = False  # BLOCK: all kernel rows in one K block
    activation_reuse: bool = False  # HEIGHT: the same, and readers keep what neighboring rows of the image share
    force_split_reader: bool | None = None  # None lets the rates decide
    config_tensors_in_dram: bool = False  # Config tensors live in DRAM
    core_grid: CoreRangeSet | None = None  # Cores given by the caller; None for the library's choice
    output_grid: GridSpec | None = None  # Grid of the output given by the caller (BLOCK only); None for all cores
    fp32_dest: bool = False  # Dst accumulates in float32
    packer_l1_acc: bool = False  # Partial sums are to be added in L1
    # HEIGHT and BLOCK: all kernel rows in one K block, which no caller asks for: output phases may
    whole_windows: bool = False

    def reuses_activations(self, scheme: TensorMemoryLayout) -> bool:
        """Whether readers keep what they have of the row of the image above."""
        return scheme is HEIGHT and self.activation_reuse

    def joins_kernel_rows(self, scheme: TensorMemoryLayout) -> bool:
        """Whether all kernel rows of a shard are one K block."""
        requested = (scheme is HEIGHT and self.activation_reuse) or (scheme is BLOCK and self.full_inner_dim)
        return requested or (self.whole_windows and scheme in (HEIGHT, BLOCK))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvProblem:
    """One convolution, in sizes and formats."""

    frame: PaddedInput  # The padded, zero-inserted input; its stride is that of the conv2d program
    in_channels: int
    out_channels: int
    in_format: DataFormat  # Format of the input tensor
    weight_format: DataFormat  # Format of prepared weights and bias
    out_format: DataFormat
    row_major: bool
    sliced: bool = False  # The input is a window cut out of DRAM (it then arrives as row-major sticks)
    bias: bool = False

    @property
    def kernel(self) -> tuple[int, int]:
        """(kh, kw)."""
        return self.frame.rows.kernel, self.frame.columns.kernel

    @property
    def in_rows(self) -> int:
        """N*H*W."""
        return self.frame.batch * self.frame.rows.input_length * self.frame.columns.input_length

    @property
    def out_rows(self) -> int:
        """N*OH*OW."""
        return self.frame.outputs

    @property
    def act_format(self) -> DataFormat:
        """Format of the halo output: block floats become bfloat16 there."""
        return FLOAT32 if self.in_format == FLOAT32 else BFLOAT16
