"""The arguments of a convolution, transposed or not, in the machine's own types.

What the public function received, checked by type only; `validation` checks the values, `problem` turns them into a
convolution.
"""

from dataclasses import dataclass, field
from enum import Enum

from device.cores import CoreRangeSet
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout, MemoryConfig, TensorMemoryLayout
from device.numbers.formats import DataFormat


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
    """

    fidelity_phases: int = 1
    fp32_dest: bool = False
    packer_l1_acc: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """A tensor argument.

    Attributes:
        spec: Its shape, format, layout and place (of a host tensor the place says nothing).
        on_host: Whether it is on the host.
        name: Its name in a plan, where that is not the argument's own.
    """

    spec: TensorSpec
    on_host: bool
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvArguments:
    """What calls of conv2d and of conv_transpose2d have in common; every call is one of the two below.

    Attributes:
        input: The input tensor.
        weight: Raw with four axes on the host, or prepared on the device.
        bias: Raw [1, 1, 1, O] on the host, or prepared on the device.
        in_channels: C.
        out_channels: O.
        batch_size: N.
        input_height: H.
        input_width: W.
        kernel_size: (kh, kw).
        stride: Down, across.
        padding: Top, bottom, left, right.
        dilation: Down, across.
        groups: Groups.
        out_format: Output format; None for the input's.
        conv_config: The conv config.
        compute_config: None for the library's default.
        memory_config: Where the output should lie (L1 path only).
        slice_config: None for automatic slices of an input outside L1.
    """

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
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1
    out_format: DataFormat | None = None
    conv_config: ConvConfig = field(default_factory=ConvConfig)
    compute_config: ComputeConfig | None = None
    memory_config: MemoryConfig | None = None
    slice_config: SliceConfig | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvTranspose2dArguments(ConvArguments):
    """One call of conv_transpose2d; its raw weight is [C, O / groups, kh, kw].

    Attributes:
        output_padding: Bottom, right.
        mirror_kernel: Whether the kernel is flipped here.
    """

    output_padding: tuple[int, int] = (0, 0)
    mirror_kernel: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Conv2dArguments(ConvArguments):
    """One call of conv2d; its raw weight is [O, C / groups, kh, kw].

    Attributes:
        folded: The window (height, width) that was folded into channels: the raw weight still has it as its kernel,
            with that many channels fewer.
    """

    folded: tuple[int, int] = (1, 1)
