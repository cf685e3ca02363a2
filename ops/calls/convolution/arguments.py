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
    """A Conv2dSliceConfig.

    Attributes:
        slice_type: Height or width slices out of DRAM, or none.
        num_slices: How many; 0 lets the library find the smallest number that fits.
    """

    slice_type: SliceType
    num_slices: int = 0


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
    """A compute kernel config (docs/planning.md, Arguments).

    Attributes:
        fidelity_phases: Fidelity phases: 1 (LoFi, also for an invalid fidelity) to 4 (HiFi4).
        fp32_dest: fp32_dest_acc_en.
        packer_l1_acc: packer_l1_acc.
        fidelity_left_out: The fidelity is invalid, which computes as LoFi does; this and what follows has no effect on
            a convolution, but its programs are told apart by them.
        math_approx: math_approx_mode.
        dst_full_sync: dst_full_sync_en.
        throttle_level: The number of throttle_level.
    """

    fidelity_phases: int = 1
    fp32_dest: bool = False
    packer_l1_acc: bool = False
    fidelity_left_out: bool = False
    math_approx: bool = True
    dst_full_sync: bool = False
    throttle_level: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """A tensor argument.

    Attributes:
        spec: Its shape, format, layout and place (of a host tensor the place says nothing).
        on_host: Whether it is on the host.
        name: Its name in a plan, where that is not the argument's own.
        made_by: What prepared it, if it is prepared weights or a prepared bias.
    """

    spec: TensorSpec
    on_host: bool
    name: str = ""
    made_by: Work | None = None


class AxisWindow(NamedTuple):
    """What a slice takes of the input along one axis, and how it is padded.

    Attributes:
        start: First input position.
        stop: One past the last.
        padding: Padding before and after, as an argument of the slice's own call.
        output_padding: Output padding of the slice's own call; 0 if it is not transposed.
    """

    start: int
    stop: int
    padding: tuple[int, int]
    output_padding: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvRules:
    """What tells conv2d from conv_transpose2d; everything else is the same for both.

    Attributes:
        function: The function of the library, without its prefix.
        transposed: Zeros are inserted between inputs, and raw weights begin with the input channels.
        axis: The rows (0) or the columns (1) of a call's frame.
        window: What a slice takes of one axis: a call, the axis, the first output and one past the last, and all
            outputs of the axis.
        filled: A window across with so many more columns of output, which fill its last tile.
        one_slice_skips_dram: A slice config that leads to a single slice means the L1 path.
        whole_window_is_slice: A window that is the whole image is laid out as a slice is.
        shards_uploaded_image: A host input of a matmul on the DRAM path is sharded from the image in DRAM, not uploaded
            once more.
        frees_copy_after_halo: A sharded copy of the input is released after the halo, not at the end.
        frees_halo_last: The halo's output is released after the output was moved to memory_config, not before.
        skips_halo: The micro-op reads a WIDTH sharded input itself if it has no padding.
        orders_full_inner_dim: Weights are prepared in the order that full_inner_dim reads them in.
        reuses_activations: The micro-op obeys enable_activation_reuse; else only estimates count on it.
        by_phases: Where zeros are inserted, output phases are computed one after the other without them, which no
            library does.
    """

    function: str
    transposed: bool
    axis: Callable[["ConvArguments", int], FrameAxis]
    window: Callable[["ConvArguments", int, tuple[int, int], int], AxisWindow]
    filled: Callable[["ConvArguments", AxisWindow, int], AxisWindow]
    one_slice_skips_dram: bool
    whole_window_is_slice: bool
    shards_uploaded_image: bool
    frees_copy_after_halo: bool
    frees_halo_last: bool
    skips_halo: bool
    orders_full_inner_dim: bool
    reuses_activations: bool
    by_phases: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Folding:
    """Windows that became channels, so that a convolution of stride 1 with a smaller kernel is left.

    Attributes:
        kernel: Kernel of the raw weight.
        stride: Rows and columns that became channels, the strides of the caller.
        weights: Whether the weights are folded alike; on the DRAM path the real library prepares them as they are.
    """

    kernel: tuple[int, int]
    stride: tuple[int, int]
    weights: bool

    @property
    def whole(self) -> bool:
        """Whether windows lie side by side, so that a 1x1 kernel is left."""
        return self.kernel == self.stride


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvArguments:
    """One call of conv2d or conv_transpose2d.

    Attributes:
        rules: Which of the two it is.
        input: The input tensor.
        weight: Raw with four axes on the host ([O, C / groups, kh, kw]; transposed [C, O / groups, kh, kw]), or
            prepared on the device.
        bias: Raw [1, 1, 1, O] on the host, or prepared on the device.
        in_channels: C.
        out_channels: O.
        batch_size: N.
        input_height: H.
        input_width: W.
        kernel_size: (kh, kw).
        stride: Down, across.
        padding: Top, bottom, left, right.
        output_padding: Bottom, right; of a transposed convolution only.
        dilation: Down, across.
        groups: Groups.
        mirror_kernel: Whether the kernel of a transposed convolution is flipped here.
        folding: How its windows were folded into channels; None if the call is as the caller made it.
        out_format: Output format; None for the input's.
        conv_config: The conv config.
        compute_config: None for the library's default.
        memory_config: Where the output should lie (L1 path only).
        slice_config: None for automatic slices of an input outside L1.
    """

    rules: ConvRules
    input: Operand
    weight: Operand
    bias: Operand | None = None
    in_channels: int
    out_channels: int
    batch_size: int
    input_height: int
    input_width: int
    kernel_size: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    output_padding: tuple[int, int] = (0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1
    mirror_kernel: bool = True
    folding: Folding | None = None
    out_format: DataFormat | None = None
    conv_config: ConvConfig = field(default_factory=ConvConfig)
    compute_config: ComputeConfig | None = None
    memory_config: MemoryConfig | None = None
    slice_config: SliceConfig | None = None
