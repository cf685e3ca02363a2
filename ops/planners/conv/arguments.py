"""The arguments of a convolution, in the machine's own types and checked by type only, and its variants' rules."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum
from math import prod
from types import MappingProxyType
from typing import Any, Final

from device.cores import CoreRangeSet
from device.errors import ArgumentError, shown
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout, MemoryConfig, ShardOrientation, TensorMemoryLayout
from device.numbers.formats import FLOAT32, DataFormat, div_up
from device.plan import DeviceOp
from device.spec.parts import GridSpec
from ops.programs.conv2d.partition import ConvOptions, ConvProblem, channel_alignment
from ops.programs.data_movement.placement import flattened
from ops.programs.data_movement.reshape import memory_after
from ops.window import PaddedAxis, PaddedInput, convolution_axis, count_windows, transposed_axis


class SliceType(Enum):
    """The axis of the output along which a call is cut into slices."""

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
    """A Conv2dConfig (docs/reference/planning.md, Arguments): the real fields, `activation` in lower case."""

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
    """A compute kernel config (docs/reference/planning.md, Arguments)."""

    fidelity_phases: int = 1  # Fidelity phases: 1 (LoFi, also for an invalid fidelity) to 4 (HiFi4)
    fp32_dest: bool = False  # fp32_dest_acc_en
    packer_l1_acc: bool = False  # packer_l1_acc
    # The fidelity is invalid, which computes as LoFi does; this and what follows has no effect on a convolution, but
    # they are part of the key of its programs
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
    created_by: DeviceOp | None = None  # The op that prepared the weights or the bias


class Lowering(StrEnum):
    """Lowerings of the forward operation; member values are the public names."""

    ZERO_INSERTION = "zero_insertion"
    PHASE = "phase"
    GROUPED = "grouped"  # Calls of some groups each, whose weights are not dense over all channels
    SAMPLES = "samples"  # Calls of some images of the batch each


def lowering_of(name: object, caller: str, known: Sequence[Lowering] = tuple(Lowering)) -> Lowering:
    """The lowering of a name; raises ArgumentError for an unknown name, and warns about the former name "frame"."""
    if isinstance(name, str) and name == "frame":
        warnings.warn(f'{caller}: lowering="frame" is now called "zero_insertion"', FutureWarning, stacklevel=3)
        return Lowering.ZERO_INSERTION
    if not isinstance(name, str) or name not in known:
        raise ArgumentError(f"{caller}: lowering must be one of {', '.join(known)}, not {shown(name)}")
    return Lowering(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvRules:
    """The differences between conv2d and conv_transpose2d."""

    function: str = "conv2d"  # The function of the library, without its prefix
    transposed: bool = False  # Zeros are inserted between inputs, and raw weights begin with the input channels
    one_slice_skips_dram: bool = False  # A slice config that leads to a single slice means the L1 path
    whole_window_is_slice: bool = False  # A window that is the whole image is sharded as a slice is
    # A host input of a matmul on the DRAM path is sharded from the image in DRAM, not uploaded once more
    shards_uploaded_image: bool = True
    # A sharded copy of the input is released at the end, and the halo's output after the program, not the other way
    # around: the copy after the halo, and the halo's output at the end
    frees_copy_last: bool = False
    skips_halo: bool = True  # The micro-op reads a WIDTH sharded input itself if it has no padding
    orders_full_inner_dim: bool = True  # Weights are prepared in the order that full_inner_dim reads them in
    reuses_activations: bool = True  # The micro-op obeys enable_activation_reuse; else only estimates count on it
    lowering: Lowering = Lowering.ZERO_INSERTION  # Any other is this library's own

    @property
    def by_phases(self) -> bool:
        """Whether output phases are computed in sequence without inserted zeros."""
        return self.lowering is Lowering.PHASE

    @property
    def splits(self) -> bool:
        """Whether a call becomes several calls of ttnn."""
        return self.lowering in (Lowering.GROUPED, Lowering.SAMPLES)


CONV2D: Final = ConvRules()
CONV_TRANSPOSE2D: Final = ConvRules(
    function="conv_transpose2d",
    transposed=True,
    one_slice_skips_dram=True,
    whole_window_is_slice=True,
    shards_uploaded_image=False,
    frees_copy_last=True,
    skips_halo=False,
    orders_full_inner_dim=False,
    reuses_activations=False,
)
# The same without inserted zeros: everything else is planned equally, so that both differ by the cost of zeros.
CONV_TRANSPOSE2D_BY_PHASES: Final = replace(CONV_TRANSPOSE2D, orders_full_inner_dim=True, lowering=Lowering.PHASE)
# The rules of every lowering; calls that are split are planned part by part, each as ttnn plans it.
LOWERINGS: Final = MappingProxyType(
    {
        Lowering.ZERO_INSERTION: CONV_TRANSPOSE2D,
        Lowering.PHASE: CONV_TRANSPOSE2D_BY_PHASES,
        **{name: replace(CONV_TRANSPOSE2D, lowering=name) for name in (Lowering.GROUPED, Lowering.SAMPLES)},
    }
)


DEFAULT_PHASES: Final = 4  # HiFi4, when no compute config is given
COUNTS: Final = 2**32  # of a number of 32 bits without a sign


def default_compute_config(in_format: DataFormat, weights: DataFormat) -> ComputeConfig:
    """HiFi4, and a float32 Dst if input and weights, as they are prepared, are both float32."""
    return ComputeConfig(fidelity_phases=DEFAULT_PHASES, fp32_dest=in_format == weights == FLOAT32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Folding:
    """Windows that became channels and leave a convolution of stride 1 with a smaller kernel."""

    kernel: tuple[int, int]  # Kernel of the raw weight
    stride: tuple[int, int]  # Rows and columns that became channels, the strides of the caller
    weights: bool  # Whether the weights are folded too; on the DRAM path the real library does not fold them

    @property
    def whole(self) -> bool:
        """Whether windows are adjacent, so that a 1x1 kernel is left."""
        return self.kernel == self.stride


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvCall:
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
    memory_config: MemoryConfig | None = None  # Memory of the output (L1 path only)
    slice_config: SliceConfig | None = None  # None for automatic slices of an input outside L1

    @property
    def weight_format(self) -> DataFormat:
        """Format of prepared weights and bias."""
        return self.conv_config.weights_format or self.weight.spec.data_format

    @property
    def output_format(self) -> DataFormat:
        """Format of the output."""
        return self.out_format or self.input.spec.data_format

    @property
    def compute(self) -> ComputeConfig:
        """The compute config, or else the default."""
        return self.compute_config or default_compute_config(self.input.spec.data_format, self.weight_format)

    @property
    def image_shape(self) -> tuple[int, int, int, int]:
        """[N, H, W, C] of the input."""
        return self.batch_size, self.input_height, self.input_width, self.in_channels

    def axis(self, axis: int) -> PaddedAxis:
        """The rows (0) or the columns (1) of the frame; NoWindowError where no window fits."""
        sizes: dict[str, Any] = {
            "input_length": (self.input_height, self.input_width)[axis],
            "kernel": self.kernel_size[axis],
            "stride": self.stride[axis],
            "padding": self.padding[2 * axis : 2 * axis + 2],
            "dilation": self.dilation[axis],
        }
        if self.rules.transposed:
            return transposed_axis(**sizes, output_padding=self.output_padding[axis])
        return convolution_axis(**sizes)

    def frame(self) -> PaddedInput:
        """The padded input; of a transposed convolution, with zeros filled in."""
        replicate = self.conv_config.replicate_padding
        return PaddedInput(batch=self.batch_size, rows=self.axis(0), columns=self.axis(1), replicate=replicate)

    def lower(self) -> tuple[ConvProblem, ConvOptions]:
        """The convolution that computes the call, and its partition options."""
        config, compute, output_grid = self.conv_config, self.compute, None
        if config.override_output_sharding_config and config.core_grid is not None:
            box = config.core_grid.bounding_box()
            output_grid = GridSpec(cols=box.cols, rows=box.rows)
        problem = ConvProblem(
            frame=self.frame(),
            in_channels=self.in_channels,
            out_channels=self.out_channels,
            in_format=self.input.spec.data_format,
            weight_format=self.weight_format,
            out_format=self.output_format,
            row_major=self.input.spec.layout is Layout.ROW_MAJOR,
            bias=self.bias is not None,
            groups=self.groups,
            zero_weights=self._zero_weights,
            depthwise_row=self.is_depthwise_row and self.folding is None,
        )
        options = ConvOptions(
            act_block_h_override=config.act_block_h_override,
            act_block_w_div=config.act_block_w_div,
            transpose_shards=config.transpose_shards,
            untilize_out=config.output_layout is Layout.ROW_MAJOR,
            act_double_buffer=config.enable_act_double_buffer,
            weights_double_buffer=config.enable_weights_double_buffer,
            full_inner_dim=config.full_inner_dim,
            activation_reuse=config.enable_activation_reuse,
            force_split_reader=config.force_split_reader,
            config_tensors_in_dram=config.config_tensors_in_dram,
            core_grid=config.core_grid if config.override_sharding_config else None,
            output_grid=output_grid,
            fp32_dest=compute.fp32_dest,
            packer_l1_acc=compute.packer_l1_acc,
        )
        return problem, options

    @property
    def is_depthwise_row(self) -> bool:
        """Whether each channel of a row is convolved by itself, without a bias.

        The real library repeats the weights for all rows of a block, and multiplies the windows element by element,
        unless they were folded or the call is a matmul.
        """
        folding = self.folding or Folding(kernel=self.kernel_size, stride=(1, 1), weights=True)
        by_itself = self.groups == self.in_channels // prod(folding.stride) == self.out_channels  # also of one channel
        one_row = folding.kernel[0] == self.input_height == 1
        return by_itself and one_row and self.bias is None and not self.rules.transposed

    @property
    def repeats_weights(self) -> bool:
        """Whether the weights of a depthwise row are repeated for all rows of a block; those of one channel are not."""
        return self.is_depthwise_row and self.groups > 1

    @property
    def _zero_weights(self) -> int:
        """Weights of an output channel that fill the kernel of folded windows up to whole strides."""
        if self.folding is None:
            return 0
        folded_taps = prod(self.kernel_size) * prod(self.folding.stride)
        channels = self.in_channels // prod(self.folding.stride) // self.groups
        return (folded_taps - prod(self.folding.kernel)) * channels

    @property
    def claimed_shape(self) -> str:
        """The shape of the input according to the call, as text."""
        return (
            f"batch_size={self.batch_size}, input_height={self.input_height}, input_width={self.input_width}, "
            f"in_channels={self.in_channels}"
        )

    @property
    def claimed_volume(self) -> int:
        """The number of elements of the input according to the call."""
        return prod(self.image_shape)

    def as_slice(self, source: Operand, scheme: TensorMemoryLayout | None = None) -> "ConvCall":
        """The call that the DRAM path runs for a part of the input: tiled output, halo moved, its own input released.

        The format of ``source`` may differ from the call's, whose defaults are settled first. ``scheme`` is the
        sharding of ``source``; None takes the call's.
        """
        config = replace(
            self.conv_config,
            weights_format=self.weight_format,
            deallocate_activation=True,
            reallocate_halo_output=True,
            output_layout=Layout.TILE,
            shard_layout=scheme or self.conv_config.shard_layout,
        )
        return replace(
            self,
            input=source,
            out_format=self.output_format,
            conv_config=config,
            compute_config=self.compute,
            memory_config=None,
            slice_config=None,
        )

    @property
    def runs_by_phases(self) -> bool:
        """Whether the call runs phase by phase: the conv2d program computes a call with only one phase."""
        return self.rules.by_phases and self.stride != (1, 1)

    @property
    def folds(self) -> bool:
        """Whether the real library folds windows: by the config, or by default where the kernel equals the stride.

        A transposed convolution never folds. Asked before the call is known to be valid: a stride of 0 never folds.
        """
        setting, (top, bottom, left, right) = self.conv_config.enable_kernel_stride_folding, self.padding
        if self.rules.transposed or self.stride == (1, 1):
            return False
        if setting is not None:
            return setting
        if self.stride != self.kernel_size or self.dilation != (1, 1) or not all(self.stride):
            return False
        if (self.input_height + top + bottom) % self.stride[0] or (self.input_width + left + right) % self.stride[1]:
            return False
        spec, on_host = self.input.spec, self.input.on_host
        in_dram = on_host or spec.memory_config.buffer_type is BufferType.DRAM
        if in_dram and (spec.layout is Layout.ROW_MAJOR or not any(self.padding)):
            return True
        return not on_host and spec.memory_config.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED

    @property
    def output_size(self) -> tuple[int, int]:
        """Height and width of the output, folded or not; zero or less where no window fits."""
        if not self.folds:
            return self.output_lengths()
        lengths = (self.input_height + sum(self.padding[:2]), self.input_width + sum(self.padding[2:]))
        height, width = (
            length // stride - dilation * (div_up(kernel, stride) - 1)
            for length, kernel, dilation, stride in zip(
                lengths, self.kernel_size, self.dilation, self.stride, strict=True
            )
        )
        return height, width

    @property
    def is_matmul(self) -> bool:
        """Whether the call runs as a matmul: a plain 1x1 kernel without WIDTH shards, or folded adjacent windows.

        Windows are folded so on the L1 path only.
        """
        if self.folding is not None and self.folding.weights:
            return self.folding.whole
        pointwise = self.kernel_size == self.stride == self.dilation == (1, 1) and not any(self.padding)
        return pointwise and self.conv_config.shard_layout is not TensorMemoryLayout.WIDTH_SHARDED

    @property
    def prepared_as_matmul(self) -> bool:
        """Whether weights and bias are prepared for a matmul.

        The stride and padding of a transposed convolution no longer count at that point. 1x1 windows of stride 1 that
        are to be folded are prepared for a matmul in any scheme and with any padding, although the call itself does not
        fold them.
        """
        config, stride = self.conv_config, (1, 1) if self.rules.transposed else self.stride
        pointwise = self.kernel_size == stride == self.dilation == (1, 1)
        if pointwise and config.enable_kernel_stride_folding and self.folding is None:
            return True
        if not self.rules.transposed:
            return self.is_matmul
        by_width = config.shard_layout is TensorMemoryLayout.WIDTH_SHARDED
        return self.kernel_size == self.dilation == (1, 1) and not by_width

    @property
    def takes_l1_path(self) -> bool:
        """Whether the call runs in one piece on an input in L1, as the config demands or because the input is in L1."""
        if self.slice_config is None:
            return not self.input.on_host and self.input.spec.memory_config.buffer_type is not BufferType.DRAM
        return self.slice_config.slice_type is SliceType.L1_FULL or self.slices_skip_dram(self.slice_config.num_slices)

    @property
    def in_one_piece(self) -> bool:
        """Whether no slices are cut: on the L1 path, or as a matmul."""
        return self.takes_l1_path or self.is_matmul

    @property
    def keeps_place(self) -> bool:
        """Whether the call runs in one piece on shards that are already on the device."""
        return self.in_one_piece and not self.input.on_host and self.input.spec.memory_config.is_sharded()

    def slices_skip_dram(self, slices: int) -> bool:
        """Whether this number of slices, given or found for a slice config, means the L1 path instead."""
        return self.slice_config is not None and slices == 1 and self.rules.one_slice_skips_dram

    def input_alignment(self, memory: MemoryConfig, *, row_major: bool | None = None, matmul: bool = False) -> int:
        """The multiple of channels in a shard of the input, given the input's original memory."""
        shards = memory.shard_spec
        return channel_alignment(
            memory.memory_layout,
            row_major=self.input.spec.layout is Layout.ROW_MAJOR if row_major is None else row_major,
            sliced=False,
            matmul=matmul,
            shard_width=None if shards is None else shards.shape[1],
        )

    def needs_new_shards(self, memory: MemoryConfig) -> bool:
        """Whether the L1 path redistributes its input: its shards do not suit a convolution."""
        shards, config = memory.shard_spec, self.conv_config
        if shards is None or config.reshard_if_not_optimal or config.override_sharding_config:
            return True
        by_columns = shards.orientation is ShardOrientation.COL_MAJOR
        if by_columns and memory.memory_layout is not TensorMemoryLayout.BLOCK_SHARDED:
            return True
        return shards.shape[1] % self.input_alignment(memory) != 0

    @property
    def flattened_memory(self) -> MemoryConfig:
        """The memory of an input on the device as rows of channels."""
        return memory_after(self.input.spec, flattened(self.input.spec.shape))

    def output_lengths(self, *, unsigned: bool = False) -> tuple[int, int]:
        """Height and width of the output; zero or less where no window fits.

        ``unsigned`` counts as the real library does, in unsigned 32 bits: an ordinary convolution divides by its stride
        after the difference has wrapped, so that -1 columns of stride 4 are 2**30.
        """
        return self._length(0, unsigned), self._length(1, unsigned)

    def _length(self, axis: int, unsigned: bool) -> int:
        length, stride = (self.input_height, self.input_width)[axis], self.stride[axis]
        reach, padding = self.dilation[axis] * (self.kernel_size[axis] - 1), sum(self.padding[2 * axis : 2 * axis + 2])
        if self.rules.transposed:
            outputs = (length - 1) * stride + 1 + reach - padding + self.output_padding[axis]
        else:
            positions = length + padding
            if unsigned:
                positions = (positions - reach - 1) % COUNTS + reach + 1
            outputs = count_windows(positions, reach, stride)
        return outputs % COUNTS if unsigned else outputs

    @property
    def wraps(self) -> bool:
        """Whether the real library takes a call without outputs for a call with billions of outputs."""
        return self.output_lengths() != self.output_lengths(unsigned=True)

    @property
    def plans_without_outputs(self) -> bool:
        """Whether a call that is not folded `wraps`, and its plan gets as far as the output's buffer, in DRAM."""
        return self.wraps and all(self.output_lengths(unsigned=True)) and not self.in_one_piece

    def describe_no_outputs(self) -> str:
        """Advice about a call that `wraps`."""
        real, counted = (" x ".join(map(str, self.output_lengths(unsigned=unsigned))) for unsigned in (False, True))
        return (
            f"{self.rules.function}: there is no output of {real} pixels, which the real library takes for {counted}; "
            "change padding or kernel_size"
        )


Check = Callable[[ConvCall], Iterator[str]]  # yields the texts of the faults, in order


def refuse_first(call: ConvCall, checks: tuple[Check, ...], operation: str = "") -> None:
    """Raises ArgumentError with the first text of the checks, in the name of an operation if given."""
    for check in checks:
        for text in check(call):
            raise ArgumentError(f"{operation}: {text}" if operation else text)
