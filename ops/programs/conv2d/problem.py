"""What a conv2d program is to compute, and the choices of the caller that lay it out."""

from dataclasses import dataclass

from device.cores import CoreRangeSet
from device.memory.memory_config import TensorMemoryLayout
from device.numbers.formats import BFLOAT16, FLOAT32, DataFormat
from device.spec.parts import GridSpec
from ops.frame.frame import Frame
from ops.programs.conv2d.partition import BLOCK, HEIGHT


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
        asked = (scheme is HEIGHT and self.activation_reuse) or (scheme is BLOCK and self.full_inner_dim)
        return asked or (self.whole_windows and scheme in (HEIGHT, BLOCK))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvProblem:
    """One convolution, in sizes and formats."""

    frame: Frame  # The padded, zero-inserted input; its step is the stride of the conv2d micro-op
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
        return self.frame.rows.taps, self.frame.columns.taps

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
