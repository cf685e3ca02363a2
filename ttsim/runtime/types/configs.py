"""Configs of a call: blocks and shards (Conv2dConfig), slices (Conv2dSliceConfig), activations, fidelity."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import Enum
from typing import Annotated, Any, ClassVar

from device.cores import CoreRangeSet, PlainEnum
from device.errors import ArgumentTypeError, shown
from device.memory.memory_config import Layout, TensorMemoryLayout
from ops.planners.conv.arguments import ComputeConfig, ConvConfig, SliceConfig, SliceType
from ttsim.runtime.types.call import CheckedRecord, Kind, incompatible, param
from ttsim.runtime.types.tensors import DataType

# Names and numbers of ttnn 0.81.1.
UnaryOpType = Enum(
    "UnaryOpType",
    """
    EXP RECIP GELU GELU_TANH RELU SQRT SIGMOID LOG LOG1P TANH LOG2 LOG10 SIN COS COSH SINH ABS ABS_INT32 SIGN
    SQUARE EQZ NEZ GTZ LTZ GEZ LEZ RELU_MAX RELU_MIN POWER POWER_ITERATIVE LEAKY_RELU ELU EXP2 HEAVISIDE EXPM1
    SIGNBIT ASIN ACOS ACOSH RSQRT RELU6 ATAN ASINH ATANH ERF ERFC ISINF ISPOSINF ISNEGINF ISNAN
    LOGICAL_NOT_UNARY ISFINITE ERFINV I0 I1 TAN RSUB RDIV SILU SOFTPLUS IDENTITY NEG ADD_UNARY_SFPU
    SUB_UNARY_SFPU MUL_UNARY_SFPU DIV_UNARY_SFPU UNARY_NE UNARY_EQ UNARY_GT UNARY_LT UNARY_GE UNARY_LE
    TILED_PROD TYPECAST BITCAST BITWISE_XOR BITWISE_NOT BITWISE_AND BITWISE_OR RIGHT_SHIFT FLOOR CEIL TRUNC FRAC
    ROUND LEFT_SHIFT REMAINDER FMOD DROPOUT FILL PRELU_SFPU ZERO_POINT ALT_COMPLEX_ROTATE90 MISH HARDMISH
    MAXIMUM MINIMUM TANHSHRINK THRESHOLD SOFTSHRINK HARDSHRINK HARDTANH HARDSIGMOID HARDSWISH WHERE_TSS MAC_TSS
    SOFTSIGN CELU CLAMP_TSS SELU RPOW CBRT LOGSIGMOID LOGIT XIELU LGAMMA DIGAMMA POLYGAMMA SOFTCAP
    """,
    start=0,
)
MOST_PARAMETERS = 2
UnaryOpType.__doc__ = """Element-wise functions; the numbers are ttnn's. `UnaryWithParam` adds their parameters.

Examples:
    >>> ttnn.UnaryOpType.RELU.value
    4
"""
UnaryOpType.__repr__ = UnaryOpType.__str__  # type: ignore[method-assign]  # as the real library prints it


def _wrong_activation(text: str) -> ArgumentTypeError:
    return ArgumentTypeError(f"{incompatible('__init__')}\nUnaryWithParam: {text}")


@dataclass(frozen=True, slots=True, init=False)
class UnaryWithParam:
    """An activation and its parameters.

    Examples:
        >>> ttnn.UnaryWithParam(ttnn.UnaryOpType.LEAKY_RELU, 0.1)
        UnaryWithParam(op_type=UnaryOpType::LEAKY_RELU, params=[0.1])
    """

    op_type: UnaryOpType
    params: tuple[float, ...]  # Its numbers, for example the slope of a LEAKY_RELU

    def __init__(self, op_type: UnaryOpType | tuple[UnaryOpType, float] | list[Any], *params: float) -> None:
        """Takes a UnaryOpType with up to two numbers, or a pair (UnaryOpType, number)."""
        op: object = op_type
        if isinstance(op_type, tuple | list) and len(op_type) == MOST_PARAMETERS and not params:
            op, params = op_type[0], tuple(op_type[1:])
        if not isinstance(op, UnaryOpType):
            near = str(op).upper()
            hint = f"; did you mean UnaryOpType.{near}?" if near in UnaryOpType.__members__ else ""
            raise _wrong_activation(
                f"op_type must be a UnaryOpType, not {shown(op)}{hint}\n"
                "    1. __init__(op_type: UnaryOpType, *params: float)"
            )
        if len(params) > MOST_PARAMETERS:
            raise _wrong_activation(f"op_type takes up to {MOST_PARAMETERS} numbers, not {len(params)}")
        try:
            if any(isinstance(number, str) for number in params):
                raise TypeError
            plain = tuple(map(float, params))
        except (TypeError, ValueError, OverflowError):
            raise _wrong_activation(f"params must be numbers, not {shown(params)}") from None
        object.__setattr__(self, "op_type", op)
        object.__setattr__(self, "params", plain)

    def __repr__(self) -> str:
        params = f", params=[{', '.join(f'{number:g}' for number in self.params)}]" if self.params else ""
        return f"UnaryWithParam(op_type=UnaryOpType::{self.op_type.name}{params})"


class PaddingMode(PlainEnum):
    """The values outside the image.

    Examples:
        >>> ttnn.PaddingMode.Zeros.value
        0
    """

    Zeros, Replicate = range(2)


def _activation(value: Any) -> UnaryWithParam | None:
    """An activation from a UnaryWithParam, a UnaryOpType, or a pair (UnaryOpType, number)."""
    if isinstance(value, UnaryOpType):
        return UnaryWithParam(value)
    if isinstance(value, tuple | list) and len(value) == MOST_PARAMETERS:
        return UnaryWithParam(value)
    if value is not None and not isinstance(value, UnaryWithParam):
        raise TypeError("no activation")
    return value


def _padding_mode(value: Any) -> PaddingMode:
    """A padding mode, also from its name."""
    if isinstance(value, str) and value in PaddingMode.__members__:
        return PaddingMode[value]
    if not isinstance(value, PaddingMode):
        raise TypeError("no padding mode")
    return value


ModeOrName = Annotated[PaddingMode, Kind("PaddingMode or its name", _padding_mode)]
Activation = Annotated[
    UnaryWithParam | UnaryOpType | tuple[UnaryOpType, float] | list[Any] | None,
    Kind("UnaryWithParam or UnaryOpType or None", _activation),
]


class Conv2dConfig(CheckedRecord):
    """The layout of a convolution: shards, blocks and activation; every field can be assigned later.

    Examples:
        >>> config = ttnn.Conv2dConfig(shard_layout=ttnn.TensorMemoryLayout.HEIGHT_SHARDED)
        >>> config.act_block_h_override = 64
        >>> config.activation = ttnn.UnaryOpType.RELU
        >>> config.activation
        UnaryWithParam(op_type=UnaryOpType::RELU)
    """

    weights_dtype: DataType | None = param(
        "Of the prepared weights and bias; None for that of the weight tensor.", default=None
    )
    activation: Activation = param(
        "Function applied to the output; docs/reference/values.md (Activation) says which were compared bit for bit.",
        default=None,
    )
    deallocate_activation: bool = param("Free an input in L1 as soon as it is consumed.", default=False)
    reallocate_halo_output: bool = param("Move the halo's output up in L1 before the convolution.", default=True)
    config_tensors_in_dram: bool = param("Keep index tensors in DRAM instead of L1_SMALL.", default=False)
    act_block_h_override: int = param(
        "Rows of an activation block, a multiple of 32; 0 for all rows of a core.", default=0
    )
    act_block_w_div: int = param("Parts that the K block of a width-sharded convolution is cut into.", default=1)
    reshard_if_not_optimal: bool = param("Allow another sharding of a sharded input.", default=False)
    override_sharding_config: bool = param("Use core_grid.", default=False)
    shard_layout: TensorMemoryLayout | None = param("HEIGHT_, BLOCK_ or WIDTH_SHARDED; None to choose.", default=None)
    core_grid: CoreRangeSet | None = param("Cores to use.", default=None)
    transpose_shards: bool = param("Assign block shards along columns.", default=False)
    output_layout: Layout = param("TILE or ROW_MAJOR.", default=Layout.TILE)
    enable_act_double_buffer: bool = param("Two activation buffers.", default=False)
    enable_weights_double_buffer: bool = param("Two weights buffers.", default=False)
    full_inner_dim: bool = param(
        "One K block for all kernel rows of a block shard; wrong in a transposed convolution.", default=False
    )
    enable_kernel_stride_folding: bool | None = param("Without effect on a transposed convolution.", default=None)
    enable_activation_reuse: bool = param("Without effect on a transposed convolution.", default=False)
    force_split_reader: bool | None = param(
        "Whether two processors read activations; None for the library's own estimate.", default=None
    )
    override_output_sharding_config: bool = param(
        "Use core_grid for the output of a block-sharded convolution.", default=False
    )
    padding_mode: ModeOrName = param("What lies outside the image.", default=PaddingMode.Zeros)

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
        """The config as the planner's type."""
        settings = dict(vars(self))
        weights, activation = settings.pop("weights_dtype"), settings.pop("activation")
        return ConvConfig(
            weights_format=None if weights is None else weights.format,
            activation=None if activation is None else (activation.op_type.name.lower(), activation.params),
            replicate_padding=settings.pop("padding_mode") is PaddingMode.Replicate,
            **settings,
        )

    @classmethod
    def of(cls, config: ConvConfig) -> "Conv2dConfig":
        """The config of these planner arguments."""
        plain = {field.name: getattr(config, field.name) for field in fields(config)}
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

    L1Full, DRAMSliceHeight, DRAMSliceWidth = range(3)  # numbered as `SliceType`


Conv2dL1Full, Conv2dDRAMSliceHeight, Conv2dDRAMSliceWidth = SliceTypeEnum


class Conv2dSliceConfig(CheckedRecord):
    """Slices of a convolution on a tensor in DRAM.

    Examples:
        >>> ttnn.Conv2dSliceConfig(slice_type=ttnn.Conv2dDRAMSliceHeight, num_slices=4).num_slices
        4
    """

    slice_type: SliceTypeEnum = param("The axis of the slices, or no slices.")
    num_slices: int = param("Number of slices; 0 for the fewest that fit.", default=0)

    SliceTypeEnum: ClassVar[type[Enum]] = SliceTypeEnum

    def argument(self) -> SliceConfig:
        """The config as the planner's type."""
        return SliceConfig(slice_type=SliceType(self.slice_type.value), num_slices=self.num_slices)

    @classmethod
    def of(cls, config: SliceConfig) -> "Conv2dSliceConfig":
        """The config of these planner slices."""
        return cls(slice_type=SliceTypeEnum(config.slice_type.value), num_slices=config.num_slices)

    def __repr__(self) -> str:
        name = SliceType(self.slice_type.value).name
        return f"Op2DSliceConfig(slice_type=SliceType::{name},num_slices={self.num_slices})"


class _L1Full(Conv2dSliceConfig):
    """The predefined config without slices; immutable."""

    def __setattr__(self, name: str, value: object) -> None:
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


class MathFidelity(PlainEnum):
    """The number of passes of a multiplication; member values are ttnn's.

    Examples:
        >>> ttnn.MathFidelity.HiFi3.fidelity_phases
        3
    """

    LoFi = 0
    HiFi2 = 2
    HiFi3 = 3
    HiFi4 = 4
    Invalid = 255

    @property
    def fidelity_phases(self) -> int:
        """The number of fidelity phases; an invalid fidelity runs as LoFi."""
        return self.value if self.value in (2, 3, 4) else 1


class ThrottleLevel(PlainEnum):
    """Throttling of matrix products; accepted without effect.

    Examples:
        >>> ttnn.ThrottleLevel.NO_THROTTLE.value
        0
    """

    NO_THROTTLE, LEVEL_1, LEVEL_2, LEVEL_3, LEVEL_4, LEVEL_5 = range(6)


class WormholeComputeKernelConfig(CheckedRecord):
    """The compute config of every architecture: fidelity and accumulators.

    Examples:
        >>> config = ttnn.WormholeComputeKernelConfig(math_fidelity=ttnn.MathFidelity.HiFi2, fp32_dest_acc_en=True)
        >>> config.math_fidelity, config.packer_l1_acc
        (MathFidelity.HiFi2, False)
    """

    math_fidelity: MathFidelity = param("Passes of a multiplication.", default=MathFidelity.Invalid)
    math_approx_mode: bool = param("Without effect on what a convolution computes.", default=True)
    fp32_dest_acc_en: bool = param("Whether sums are kept in float32 rather than bfloat16.", default=False)
    packer_l1_acc: bool = param("Whether partial sums are added in L1.", default=False)
    dst_full_sync_en: bool = param("Without effect on what a convolution computes.", default=False)
    throttle_level: ThrottleLevel = param(
        "Without effect on what a convolution computes.", default=ThrottleLevel.NO_THROTTLE
    )

    def argument(self) -> ComputeConfig:
        """The config as the planner's type."""
        return ComputeConfig(
            fidelity_phases=self.math_fidelity.fidelity_phases,
            fp32_dest=self.fp32_dest_acc_en,
            packer_l1_acc=self.packer_l1_acc,
            fidelity_left_out=self.math_fidelity is MathFidelity.Invalid,
            math_approx=self.math_approx_mode,
            dst_full_sync=self.dst_full_sync_en,
            throttle_level=self.throttle_level.value,
        )

    @classmethod
    def of(cls, config: ComputeConfig) -> "WormholeComputeKernelConfig":
        """The config of this planner config."""
        fidelity = next(fidelity for fidelity in MathFidelity if fidelity.fidelity_phases == config.fidelity_phases)
        return cls(
            math_fidelity=MathFidelity.Invalid if config.fidelity_left_out else fidelity,
            math_approx_mode=config.math_approx,
            fp32_dest_acc_en=config.fp32_dest,
            packer_l1_acc=config.packer_l1_acc,
            dst_full_sync_en=config.dst_full_sync,
            throttle_level=ThrottleLevel(config.throttle_level),
        )


DeviceComputeKernelConfig = WormholeComputeKernelConfig


def init_device_compute_kernel_config(
    arch: object,
    device_kernel_config: WormholeComputeKernelConfig | None = None,
    *,
    math_fidelity: MathFidelity = MathFidelity.LoFi,
    math_approx_mode: bool = True,
    fp32_dest_acc_en: bool = False,
    packer_l1_acc: bool = False,
    dst_full_sync_en: bool = False,
    throttle_level: ThrottleLevel = ThrottleLevel.NO_THROTTLE,
) -> WormholeComputeKernelConfig:
    """A compute config, as models of ttnn create it.

    Args:
        arch: Accepted as in ttnn; configs of all architectures are the same.
        device_kernel_config: A config that is returned unchanged; None creates a config from the other arguments.
        math_fidelity: Fidelity: the number of passes of a multiplication.
        math_approx_mode: Without effect on what a convolution computes.
        fp32_dest_acc_en: Keep sums in float32 instead of bfloat16.
        packer_l1_acc: Add partial sums in L1.
        dst_full_sync_en: Without effect on what a convolution computes.
        throttle_level: Without effect on what a convolution computes.

    Returns:
        The config.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.

    Examples:
        >>> ttnn.init_device_compute_kernel_config(device.arch(), math_fidelity=ttnn.MathFidelity.HiFi4).math_fidelity
        MathFidelity.HiFi4
    """
    if device_kernel_config is not None:
        if not isinstance(device_kernel_config, WormholeComputeKernelConfig):
            line = incompatible("init_device_compute_kernel_config")
            raise ArgumentTypeError(f"{line}\ndevice_kernel_config: not {shown(device_kernel_config)}")
        return device_kernel_config
    return WormholeComputeKernelConfig(
        math_fidelity=math_fidelity,
        math_approx_mode=math_approx_mode,
        fp32_dest_acc_en=fp32_dest_acc_en,
        packer_l1_acc=packer_l1_acc,
        dst_full_sync_en=dst_full_sync_en,
        throttle_level=throttle_level,
    )
