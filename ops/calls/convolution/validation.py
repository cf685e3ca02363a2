"""Which calls are refused before anything is planned, in the order the real library looks.

A refusal's first line is the real library's; the second names the argument, its value and what would work. Some
refusals need a plan to be seen (too many slices, blocks that do not divide); they are raised there. What the library
accepts and then gets wrong, or crashes on, stands in ``ops.calls.convolution.strictness``.

Evidence: every first line was read from a call of the real library, version 0.81.1.
"""

from collections.abc import Callable, Iterator
from math import prod

from device.errors import DeviceError
from device.memory.memory_config import BufferType, Layout, TensorMemoryLayout
from device.memory.tiles import TILE
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, UINT32
from ops.calls.convolution.arguments import ConvArguments, ConvTranspose2dArguments, Operand, SliceType

SHARD_LAYOUTS = (
    TensorMemoryLayout.HEIGHT_SHARDED,
    TensorMemoryLayout.BLOCK_SHARDED,
    TensorMemoryLayout.WIDTH_SHARDED,
)
HOST_WEIGHT_FORMATS = (BFLOAT16, FLOAT32, UINT32)

Check = Callable[[ConvArguments], Iterator[str]]


class ArgumentError(DeviceError, ValueError):
    """A call whose arguments contradict each other or the rules of the operation."""


def validate(arguments: ConvTranspose2dArguments) -> None:
    """Refuses a call that the real library refuses.

    Raises:
        ArgumentError: The first rule that is broken.
    """
    raise_first(arguments, INPUT_CHECKS, SIZE_CHECKS, WEIGHT_CHECKS, CONFIG_CHECKS, BIAS_CHECKS)


def validate_weights_preparation(arguments: ConvTranspose2dArguments) -> None:
    """Refuses a call of prepare_conv_transpose2d_weights; the memory config of ``input`` is that of the future input.

    Raises:
        ArgumentError: The first rule that is broken.
    """
    raise_first(arguments, (_weights_format_known,), WEIGHT_CHECKS, CONFIG_CHECKS)


def validate_bias_preparation(arguments: ConvTranspose2dArguments) -> None:
    """Refuses a call of prepare_conv_transpose2d_bias.

    Raises:
        ArgumentError: The first rule that is broken.
    """
    raise_first(arguments, (_bias_format_known, _bias_on_host), CONFIG_CHECKS, BIAS_CHECKS)


def raise_first(arguments: ConvArguments, *groups: tuple[Check, ...]) -> None:
    """Raises ArgumentError with the first text that a check gives."""
    for group in groups:
        for check in group:
            for text in check(arguments):
                raise ArgumentError(text)


def takes_l1_path(a: ConvArguments) -> bool:
    """Whether the call runs in one piece on an input in L1: asked for, or because the input is there."""
    if a.slice_config is None:
        return not a.input.on_host and a.input.spec.memory_config.buffer_type is not BufferType.DRAM
    one_slice = a.slice_config.num_slices == 1 and isinstance(a, ConvTranspose2dArguments)
    return a.slice_config.slice_type is SliceType.L1_FULL or one_slice


def _input_in_dram(a: ConvArguments) -> Iterator[str]:
    config = a.input.spec.memory_config
    if takes_l1_path(a) or a.input.on_host:
        return
    slices = a.slice_config.num_slices if a.slice_config else 0
    if config.buffer_type is not BufferType.DRAM and slices:
        yield (
            "Conv DRAM expects the input tensor to be in DRAM.\n"
            f"dram_slice_config: {slices} slices are read from DRAM, but input_tensor is in {config.buffer_type.name}; "
            "put it in DRAM, or leave dram_slice_config out"
        )
    if config.buffer_type is BufferType.DRAM and config.is_sharded():
        yield (
            "Input Tensor to Conv DRAM should be in Interleaved Memory Layout\n"
            f"input_tensor: it is {config.memory_layout.name} in DRAM; use DRAM_MEMORY_CONFIG"
        )


def _row_major_output(a: ConvArguments) -> Iterator[str]:
    out_format = a.out_format or a.input.spec.data_format
    if a.conv_config.output_layout is Layout.TILE or not out_format.is_block:
        return
    sliced = not takes_l1_path(a) and out_format == BFLOAT8_B
    yield (
        "Conv output can't be in Row Major if output dtype is BFloat8_B."
        if sliced
        else "Only TILE layout is supported for BFLOAT8_B dtype!"
    ) + f"\noutput_layout: {out_format} exists in TILE only; use TILE_LAYOUT, or another dtype"


def _input_volume(a: ConvArguments) -> Iterator[str]:
    if takes_l1_path(a):
        return
    spec, claimed = a.input.spec, claimed_volume(a)
    text = (
        f"input_tensor: {claimed_shape(a)} needs {claimed} elements, but its shape {list(spec.shape)} has {spec.volume}"
    )
    if not claimed:
        yield f"Tensor volume is not 0, but shape volume is 0\n{text}"
    if claimed == spec.volume:
        return
    if spec.layout is Layout.TILE or spec.shape[-1:] != (a.in_channels,):
        yield f"Attempting to reshape between two shapes with different volumes\n{text}"
    if claimed > spec.volume:
        yield f"MeshBuffer must be large enough to hold the tensor.\n{text}"


def _stride(a: ConvArguments) -> Iterator[str]:
    if 0 in a.stride:
        yield f"stride must be greater than 0, got {a.stride}\nstride: each of the two numbers must be at least 1"


def _weight(a: ConvArguments) -> Iterator[str]:
    spec = a.weight.spec
    if not a.weight.on_host:
        if spec.layout is not Layout.TILE:
            yield (
                "Weights should be in TILE layout.\nweight_tensor: weights on the device must be prepared; use "
                "prepare_conv_transpose2d_weights, or pass them on the host"
            )
        return
    yield from _rank("weight_tensor", "[in_channels, out_channels / groups, kernel height, kernel width]", a.weight)
    if spec.data_format not in HOST_WEIGHT_FORMATS:
        yield (
            "Unsupported data type for transform_weights_for_conv_transpose2d\n"
            f"weight_tensor: weights on the host must be bfloat16 or float32, not {spec.data_format}; "
            "set conv_config.weights_dtype to have them converted"
        )


def _rank(name: str, wanted: str, operand: Operand) -> Iterator[str]:
    shape = operand.spec.shape
    if len(shape) < 4:
        yield (
            f"ShapeBase[] index out of range. 3 not in [-4, {len(shape)})\n"
            f"{name}: it must have the four axes {wanted}, not the shape {list(shape)}"
        )


def _shard_layout(a: ConvArguments) -> Iterator[str]:
    place = a.input.spec.memory_config
    sharded = takes_l1_path(a) and not a.input.on_host and place.is_sharded()
    if sharded and not a.conv_config.reshard_if_not_optimal:
        return
    layout = a.conv_config.shard_layout
    if layout is None and sharded:
        layout = TensorMemoryLayout.INTERLEAVED
    if layout is not None and layout not in SHARD_LAYOUTS:
        yield (
            "Conv2d supports Height, Block or Width Sharded Layouts but got "
            f"TensorMemoryLayout::{layout.name}\nconv_config.shard_layout: set it to one of "
            f"{', '.join(one.name for one in SHARD_LAYOUTS)}"
        )


def _core_grid(a: ConvArguments) -> Iterator[str]:
    config = a.conv_config
    hint = "\nconv_config.core_grid: give a CoreRangeSet, or leave the override out"
    if config.core_grid is None and config.override_sharding_config:
        sharded = not a.input.on_host and a.input.spec.memory_config.is_sharded()
        yield (
            "If override_sharding_config is set, core_grid must be set as well."
            if sharded and not config.reshard_if_not_optimal
            else "Core grid must be provided when overriding sharding config"
        ) + hint
    if config.override_output_sharding_config:
        if config.core_grid is None:
            yield "When override_output_sharding_config is set to true, core_grid must have a value." + hint
        if config.shard_layout not in (None, TensorMemoryLayout.BLOCK_SHARDED):
            yield (
                "Output sharding config override is only supported for BLOCK_SHARDED layout.\n"
                f"conv_config.shard_layout: {config.shard_layout} cannot be combined with "
                "override_output_sharding_config; use BLOCK_SHARDED"
            )


def _blocks(a: ConvArguments) -> Iterator[str]:
    config = a.conv_config
    height = config.act_block_h_override
    if height % TILE:
        yield (
            f"Config Error: act_block_h_override ({height}) must be a multiple of {TILE} (tile height).\n"
            f"conv_config.act_block_h_override: {max(height // TILE, 1) * TILE} would do, 0 takes all rows of a core"
        )
    place = a.input.spec.memory_config
    kept = place.memory_layout if takes_l1_path(a) and place.is_sharded() else config.shard_layout
    if config.act_block_w_div == 0 and kept in (None, TensorMemoryLayout.WIDTH_SHARDED):
        yield (
            "Config Error: act_block_w_div must be greater than 0.\n"
            "conv_config.act_block_w_div: 1 leaves the block whole"
        )


def _bias_side(a: ConvArguments) -> Iterator[str]:
    if a.bias is not None and a.bias.on_host and not a.weight.on_host:
        yield (
            "Device Operations expect device tensors as inputs\nbias_tensor: with weights that are prepared, the bias "
            "must be too; use prepare_conv_transpose2d_bias"
        )


def _bias_shape(a: ConvArguments) -> Iterator[str]:
    if a.bias is None or not a.bias.on_host:
        return
    spec, wanted = a.bias.spec, [1, 1, 1, a.out_channels]
    yield from _rank("bias_tensor", "[1, 1, 1, out_channels]", a.bias)
    if spec.shape[3] != a.out_channels:
        yield (
            "Bias must have the same length as output channels\n"
            f"bias_tensor: its shape must be {wanted}, not {list(spec.shape)}"
        )
    if len(spec.shape) != 4:
        yield f"Host conv bias should be 4D tensor\nbias_tensor: its shape must be {wanted}, not {list(spec.shape)}"
    if spec.layout is not Layout.ROW_MAJOR:
        yield (
            "Host conv bias layout should be in row_major layout\n"
            "bias_tensor: make it with layout=ROW_MAJOR_LAYOUT; block floats come from conv_config.weights_dtype"
        )
    if spec.shape[:3] != (1, 1, 1):
        yield f"Host conv bias shape is not correct\nbias_tensor: its shape must be {wanted}, not {list(spec.shape)}"


def _weights_format_known(a: ConvArguments) -> Iterator[str]:
    if (
        a.conv_config.weights_format is None
        and not takes_l1_path(a)
        and not (a.slice_config and a.slice_config.num_slices)
    ):
        yield (
            "get_cb_info expects conv_config.weights_dtype to be already set\n"
            "conv_config.weights_dtype: the number of slices depends on it; set it, for example to bfloat16"
        )


def _bias_format_known(a: ConvArguments) -> Iterator[str]:
    if a.conv_config.weights_format is None:
        yield "bad optional access\nconv_config.weights_dtype: set it; the bias is prepared in the same data type"


def _bias_on_host(a: ConvArguments) -> Iterator[str]:
    if a.bias is not None and not a.bias.on_host:
        yield "conv bias should be placed on host\nbias_tensor: use .cpu(), or pass the bias as it was made"


def claimed_shape(a: ConvArguments) -> str:
    """What the call says of its input, as text."""
    return (
        f"batch_size={a.batch_size}, input_height={a.input_height}, input_width={a.input_width}, "
        f"in_channels={a.in_channels}"
    )


def claimed_volume(a: ConvArguments) -> int:
    """Elements that the call says its input has."""
    return prod((a.batch_size, a.input_height, a.input_width, a.in_channels))


INPUT_CHECKS: tuple[Check, ...] = (_input_in_dram, _row_major_output, _input_volume)
SIZE_CHECKS: tuple[Check, ...] = (_stride,)
WEIGHT_CHECKS: tuple[Check, ...] = (_weight,)
CONFIG_CHECKS: tuple[Check, ...] = (_shard_layout, _core_grid, _blocks)
BIAS_SHAPE_CHECKS: tuple[Check, ...] = (_bias_shape,)
BIAS_CHECKS: tuple[Check, ...] = (_bias_side, *BIAS_SHAPE_CHECKS)
