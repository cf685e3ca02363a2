"""The arguments of a convolution, transposed or not, in the machine's own types, and what tells the two apart.

What the public function received, checked by type only; `validation` checks the values, `problem` turns them into a
convolution over a frame.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from device.cores import CoreRangeSet
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout, MemoryConfig, TensorMemoryLayout
from device.numbers.formats import DataFormat
from device.plan import Work
from ops.frame.axis import FrameAxis


class SliceType(Enum):
    """Along which axis of the output a call is cut into slices."""

    L1_FULL = 0
    DRAM_HEIGHT = 1
    DRAM_WIDTH = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceConfig:
    """A Conv2dSliceConfig."""

    slice_type: SliceType  # Height or width slices out of DRAM, or none
    num_slices: int = 0  # How many; 0 lets the library find the smallest number that fits


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvConfig:
    """A Conv2dConfig: the fields of the real library with its defaults (docs/planning.md, Arguments).

    `activation` is ttnn's name in lower case with its parameters; the others have the names and meanings of the real
    fields.
    """

    weights_format: DataFormat | None = None
    activation: tuple[str, tuple[float, ...]] | None = None
    deallocate_activation: bool = False
    reallocate_halo_output: bool = True
    config_tensors_in_dram: bool = False
    act_block_h_override: int = 0
    act_block_w_div: int = 1
    reshard_if_not_optimal: bool = False
    override_sharding_config: bool = False
    shard_layout: TensorMemoryLayout | None = None
    core_grid: CoreRangeSet | None = None
    transpose_shards: bool = False
    output_layout: Layout = Layout.TILE
    enable_act_double_buffer: bool = False
    enable_weights_double_buffer: bool = False
    full_inner_dim: bool = False
    enable_kernel_stride_folding: bool | None = None
    enable_activation_reuse: bool = False
    force_split_reader: bool | None = None
    override_output_sharding_config: bool = False
    replicate_padding: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeConfig:
    """A compute kernel config (docs/planning.md, Arguments)."""

    fidelity_phases: int = 1  # Fidelity phases: 1 (LoFi, also for an invalid fidelity) to 4 (HiFi4)
    fp32_dest: bool = False  # fp32_dest_acc_en
    packer_l1_acc: bool = False  # packer_l1_acc
    # The fidelity is invalid, which computes as LoFi does; this and what follows has no effect on a convolution, but
    # its programs are told apart by them
    fidelity_left_out: bool = False
    math_approx: bool = True
    dst_full_sync: bool = False  # dst_full_sync_en
    throttle_level: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """A tensor argument."""

    spec: TensorSpec  # Its shape, format, layout and place (of a host tensor the place says nothing)
    on_host: bool
    name: str = ""  # Its name in a plan, where that is not the argument's own
    made_by: Work | None = None  # What prepared it, if it is prepared weights or a prepared bias


class AxisWindow(NamedTuple):
    """What a slice takes of the input along one axis, and how it is padded."""

    start: int  # First input position
    stop: int  # One past the last
    padding: tuple[int, int]  # Padding before and after, as an argument of the slice's own call
    output_padding: int  # Output padding of the slice's own call; 0 if it is not transposed


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvRules:
    """What tells conv2d from conv_transpose2d; everything else is the same for both."""

    function: str  # The function of the library, without its prefix
    transposed: bool  # Zeros are inserted between inputs, and raw weights begin with the input channels
    axis: Callable[["ConvArguments", int], FrameAxis]  # The rows (0) or the columns (1) of a call's frame
    # What a slice takes of one axis: a call, the axis, the first output and one past the last, and all outputs of the
    # axis
    window: Callable[["ConvArguments", int, tuple[int, int], int], AxisWindow]
    # A window across with so many more columns of output, which fill its last tile
    filled: Callable[["ConvArguments", AxisWindow, int], AxisWindow]
    one_slice_skips_dram: bool  # A slice config that leads to a single slice means the L1 path
    whole_window_is_slice: bool  # A window that is the whole image is laid out as a slice is
    # A host input of a matmul on the DRAM path is sharded from the image in DRAM, not uploaded once more
    shards_uploaded_image: bool
    frees_copy_after_halo: bool  # A sharded copy of the input is released after the halo, not at the end
    frees_halo_last: bool  # The halo's output is released after the output was moved to memory_config, not before
    skips_halo: bool  # The micro-op reads a WIDTH sharded input itself if it has no padding
    orders_full_inner_dim: bool  # Weights are prepared in the order that full_inner_dim reads them in
    reuses_activations: bool  # The micro-op obeys enable_activation_reuse; else only estimates count on it
    # Where zeros are inserted, output phases are computed one after the other without them, which no library does
    by_phases: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Folding:
    """Windows that became channels, so that a convolution of stride 1 with a smaller kernel is left."""

    kernel: tuple[int, int]  # Kernel of the raw weight
    stride: tuple[int, int]  # Rows and columns that became channels, the strides of the caller
    weights: bool  # Whether the weights are folded alike; on the DRAM path the real library prepares them as they are

    @property
    def whole(self) -> bool:
        """Whether windows lie side by side, so that a 1x1 kernel is left."""
        return self.kernel == self.stride


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvArguments:
    """One call of conv2d or conv_transpose2d."""

    rules: ConvRules
    input: Operand
    # Raw with four axes on the host ([O, C / groups, kh, kw]; transposed [C, O / groups, kh, kw]), or prepared on the
    # device
    weight: Operand
    bias: Operand | None = None  # Raw [1, 1, 1, O] on the host, or prepared on the device
    in_channels: int
    out_channels: int
    batch_size: int
    input_height: int
    input_width: int
    kernel_size: tuple[int, int]  # (kh, kw)
    stride: tuple[int, int] = (1, 1)  # Down, across
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)  # Top, bottom, left, right
    output_padding: tuple[int, int] = (0, 0)  # Bottom, right; of a transposed convolution only
    dilation: tuple[int, int] = (1, 1)  # Down, across
    groups: int = 1
    mirror_kernel: bool = True  # Whether the kernel of a transposed convolution is flipped here
    # How its windows were folded into channels; None if the call is as the caller made it
    folding: Folding | None = None
    out_format: DataFormat | None = None  # Output format; None for the input's
    conv_config: ConvConfig = field(default_factory=ConvConfig)
    compute_config: ComputeConfig | None = None  # None for the library's default
    memory_config: MemoryConfig | None = None  # Where the output should lie (L1 path only)
    slice_config: SliceConfig | None = None  # None for automatic slices of an input outside L1
