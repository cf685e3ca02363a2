"""Configs of a convolution: blocks and shards (Conv2dConfig), and slices out of DRAM (Conv2dSliceConfig)."""

from collections.abc import Mapping
from dataclasses import fields
from enum import Enum
from typing import Annotated, Any, ClassVar

from device.cores import CoreRangeSet, PlainEnum
from device.errors import shown
from device.memory.memory_config import Layout, TensorMemoryLayout
from ops.planners.conv.arguments import ConvConfig, SliceConfig, SliceType
from ttsim.types.activations import UnaryOpType, UnaryWithParam
from ttsim.types.dtypes import DataType
from ttsim.types.signature import CheckedRecord, Kind


class PaddingMode(PlainEnum):
    """What lies outside the image."""

    Zeros = 0
    Replicate = 1


def _activation(value: Any) -> UnaryWithParam | None:
    """An activation, from a bare UnaryOpType too."""
    if isinstance(value, UnaryOpType):
        return UnaryWithParam(value)
    if value is not None and not isinstance(value, UnaryWithParam):
        raise TypeError("no activation")
    return value


def _padding_mode(value: Any) -> PaddingMode:
    """A padding mode, from its name too."""
    if isinstance(value, str) and value in PaddingMode.__members__:
        return PaddingMode[value]
    if not isinstance(value, PaddingMode):
        raise TypeError("no padding mode")
    return value


ModeOrName = Annotated[PaddingMode, Kind("PaddingMode or its name", _padding_mode)]
Activation = Annotated[UnaryWithParam | UnaryOpType | None, Kind("UnaryWithParam or UnaryOpType or None", _activation)]


class Conv2dConfig(CheckedRecord):
    """How a convolution is laid out; every field can be assigned later.

    Attributes:
        weights_dtype: Of the prepared weights and bias; None for that of the weight tensor.
        activation: Applied to the output; docs/values.md (Activation) says of which the bits were compared.
        deallocate_activation: Free an input in L1 as soon as it is consumed.
        reallocate_halo_output: Move the halo's output up in L1 before the convolution.
        config_tensors_in_dram: Keep index tensors in DRAM instead of L1_SMALL.
        act_block_h_override: Rows of an activation block, a multiple of 32; 0 for all rows of a core.
        act_block_w_div: Parts that the K block of a width-sharded convolution is cut into.
        reshard_if_not_optimal: Allow another sharding of a sharded input.
        override_sharding_config: Use core_grid.
        shard_layout: HEIGHT_, BLOCK_ or WIDTH_SHARDED; None to choose.
        core_grid: Cores to use.
        transpose_shards: Deal block shards along columns.
        output_layout: TILE or ROW_MAJOR.
        enable_act_double_buffer: Two activation buffers.
        enable_weights_double_buffer: Two weights buffers.
        full_inner_dim: One K block for all kernel rows of a block shard; wrong in a transposed convolution.
        enable_kernel_stride_folding: Without effect on a transposed convolution.
        enable_activation_reuse: Without effect on a transposed convolution.
        force_split_reader: Whether two processors read activations; None for the library's own estimate.
        override_output_sharding_config: Use core_grid for the output of a block-sharded convolution.
        padding_mode: What lies outside the image.
    """

    weights_dtype: DataType | None = None
    activation: Activation = None
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
    padding_mode: ModeOrName = PaddingMode.Zeros

    _retired: ClassVar[Mapping[str, str]] = {
        "dtype": "give dtype=... to conv_transpose2d itself",
        "preprocess_weights_on_device": "weights are always prepared on the host",
        "always_preprocess_weights": "weights on the host are always prepared",
        "enable_split_reader": "use force_split_reader, or leave the choice to the library",
        "enable_subblock_padding": "it has no successor",
        "in_place": "it has no successor",
        "input_channels_alignment": "alignment follows from layout and shards",
    }

    def argument(self) -> ConvConfig:
        """The config in the machine's own types."""
        given = dict(vars(self))
        weights, activation = given.pop("weights_dtype"), given.pop("activation")
        return ConvConfig(
            weights_format=None if weights is None else weights.format,
            activation=None if activation is None else (activation.op_type.name.lower(), activation.params),
            replicate_padding=given.pop("padding_mode") is PaddingMode.Replicate,
            **given,
        )

    @classmethod
    def of(cls, config: ConvConfig) -> "Conv2dConfig":
        """The config that means these arguments of the machine."""
        plain = {one.name: getattr(config, one.name) for one in fields(config)}
        weights, activation = plain.pop("weights_format"), plain.pop("activation")
        return cls(
            weights_dtype=None if weights is None else DataType.of(weights),
            activation=None
            if activation is None
            else UnaryWithParam(UnaryOpType[activation[0].upper()], *activation[1]),
            padding_mode=PaddingMode.Replicate if plain.pop("replicate_padding") else PaddingMode.Zeros,
            **plain,
        )


class SliceTypeEnum(PlainEnum):
    """How a call on a tensor in DRAM is cut into slices of its output."""

    L1Full = 0
    DRAMSliceHeight = 1
    DRAMSliceWidth = 2


Conv2dL1Full = SliceTypeEnum.L1Full
Conv2dDRAMSliceHeight = SliceTypeEnum.DRAMSliceHeight
Conv2dDRAMSliceWidth = SliceTypeEnum.DRAMSliceWidth

_SLICE_TYPES = {
    Conv2dL1Full: SliceType.L1_FULL,
    Conv2dDRAMSliceHeight: SliceType.DRAM_HEIGHT,
    Conv2dDRAMSliceWidth: SliceType.DRAM_WIDTH,
}


class Conv2dSliceConfig(CheckedRecord):
    """Slices out of DRAM.

    Attributes:
        slice_type: Along which axis, or not at all.
        num_slices: How many; 0 for as few as fit.
    """

    slice_type: SliceTypeEnum
    num_slices: int = 0

    SliceTypeEnum: ClassVar[type[Enum]] = SliceTypeEnum

    def argument(self) -> SliceConfig:
        """The config in the machine's own types."""
        return SliceConfig(slice_type=_SLICE_TYPES[self.slice_type], num_slices=self.num_slices)

    @classmethod
    def of(cls, config: SliceConfig) -> "Conv2dSliceConfig":
        """The config that means these slices of the machine."""
        kinds = {kind: name for name, kind in _SLICE_TYPES.items()}
        return cls(slice_type=kinds[config.slice_type], num_slices=config.num_slices)

    def __repr__(self) -> str:
        """As the real library prints it."""
        name = _SLICE_TYPES[self.slice_type].name
        return f"Op2DSliceConfig(slice_type=SliceType::{name},num_slices={self.num_slices})"


class _L1Full(Conv2dSliceConfig):
    """The ready-made config for no slices at all; a constant, so it cannot be changed."""

    def __setattr__(self, name: str, value: object) -> None:
        """Raises AttributeError."""
        raise AttributeError(
            f"Conv2dL1FullSliceConfig is a constant: {name} cannot become {shown(value)}; make a Conv2dSliceConfig "
            "instead"
        )


Conv2dL1FullSliceConfig: Conv2dSliceConfig = _L1Full(slice_type=Conv2dL1Full)

# The same under the names that ttnn has for convolutions and pools alike.
Op2DSliceConfig = Conv2dSliceConfig
Op2DL1Full = Conv2dL1Full
Op2DDRAMSliceHeight = Conv2dDRAMSliceHeight
Op2DDRAMSliceWidth = Conv2dDRAMSliceWidth
Op2DL1FullSliceConfig = Conv2dL1FullSliceConfig
