"""What the real library refuses of a convolution's arguments, in its order and words."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import prod
from typing import Final

from device.errors import ArgumentError, DeviceError, OutOfMemoryError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, BufferType, Layout, ShardSpec, TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, UINT32, DataFormat, round_up
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder
from ops.planners.conv.arguments import (
    ConvCall,
    Operand,
    image_shape,
    is_matmul,
    needs_new_shards,
    output_format,
    takes_l1_path,
    weight_format,
)
from ops.planners.conv.slicing import given_slices, too_many
from ops.programs.data_movement.reshape_plan import is_view
from ops.window import NoWindowError, PaddedAxis

WAY_OUT = "put input_tensor in DRAM, or leave dram_slice_config out"


def image_refusals(call: ConvCall) -> Iterator[str]:
    """Why an input on the device can not be cut into slices."""
    spec = call.input.spec
    config = spec.memory_config
    text = view_refusal(spec, image_shape(call))
    if text is not None:
        yield text
    turned = (
        spec.data_format.is_block and spec.volume == prod(image_shape(call)) and not is_view(spec, image_shape(call))
    )
    if turned and config.is_sharded() and config.buffer_type is not BufferType.L1:
        yield (
            "Input tensor must be in L1\n"
            f"input_tensor: its {spec.data_format} tiles are {config.memory_layout.name} in DRAM, and only shards in "
            "L1 can be made an image; use DRAM_MEMORY_CONFIG"
        )
    if config.buffer_type is not BufferType.DRAM:
        yield (
            "Conv DRAM expects the input tensor to be in DRAM.\n"
            f"dram_slice_config: slices are read from DRAM, but input_tensor is in {config.buffer_type.name}; {WAY_OUT}"
        )
    if config.is_sharded():
        yield (
            "Input Tensor to Conv DRAM should be in Interleaved Memory Layout\n"
            f"input_tensor: it is {config.memory_layout.name} in DRAM; use DRAM_MEMORY_CONFIG"
        )


def view_refusal(spec: TensorSpec, shape: tuple[int, ...]) -> str | None:
    """Why rows in shards that are padded across can not be seen under an unpadded shape of the same channels.

    Only a shard as wide as the tensor may lose its padding. It then counts as so many narrower rows, which must still
    be what its sharding asks for, and fill the buffer.
    """
    shards, (rows, cols) = spec.memory_config.shard_spec, spec.matrix
    if shards is None or spec.layout is Layout.TILE or spec.shape[-1] != shape[-1] or cols == shape[-1]:
        return None
    if prod(shape) != spec.volume:
        return None
    ours = (
        f"input_tensor: its rows of {shape[-1]} channels are padded to {cols} in shards of {list(shards.shape)}, which "
        f"slices can not be cut from; {WAY_OUT}"
    )
    if shards.shape[1] != cols:
        return (
            "Changing the last dimension of a sharded tensor is not supported unless the shard width matches the input "
            f"last dimension. Input shape: Shape({list(spec.padded_shape)}), New shape: Shape({list(shape)}), "
            f"Shard width: {shards.shape[1]}\n{ours}"
        )
    narrow = ShardSpec(shards.grid, (prod(shards.shape) // shape[-1], shape[-1]), shards.orientation)
    try:
        TensorSpec(shape, spec.data_format, spec.layout, replace(spec.memory_config, shard_spec=narrow), shape)
    except DeviceError as error:
        return f"{str(error).splitlines()[0]}\n{ours}"
    element_bytes = spec.data_format.element_bytes or 0
    if rows * cols % shape[-1]:
        return (
            f"For valid non-interleaved buffers page size {shape[-1] * element_bytes} must equal buffer size "
            f"{rows * cols * element_bytes}. For interleaved-buffers, buffer size should be divisible by the page size"
            f"\n{ours}"
        )
    return None


HOST_WEIGHT_FORMATS = (BFLOAT16, FLOAT32, UINT32)


def refuse_operands(builder: PlanBuilder, call: ConvCall) -> None:
    """Ends the plan in a refusal where weights or bias can not be prepared, or were not.

    Those that an earlier slice of the plan prepared have a name, and are not looked at again.
    """
    text = None if call.weight.name else next(operand_refusals(call), None)
    if text is not None:
        builder.refuse(ArgumentError(text))


def operand_refusals(call: ConvCall) -> Iterator[str]:
    """Why weights and bias of a call are refused, in the order the real library looks."""
    yield from weight_refusals(call)
    yield from bias_refusals(call)


def weight_refusals(call: ConvCall) -> Iterator[str]:
    """Why weights are refused."""
    if call.rules.transposed:
        yield from _transposed_weight(call)
    elif call.weight.on_host:
        yield from _host_weight(call)
    elif call.conv_config.weights_format not in (None, call.weight.spec.data_format):
        yield (
            "Host conv weights layout should be in row_major layout\n"
            f"weight_tensor: it was prepared in {call.weight.spec.data_format}, so that the real library prepares it "
            f"anew for conv_config.weights_dtype {call.conv_config.weights_format}; leave that out, or pass the "
            "weights on the host"
        )


def bias_refusals(call: ConvCall) -> Iterator[str]:
    """Why the bias is refused."""
    if call.rules.transposed:
        yield from _bias_side(call)
    elif call.bias is not None and not call.bias.on_host:
        held, wanted = call.bias.spec.data_format, call.conv_config.weights_format
        if wanted not in (None, held):
            yield (
                "Host conv bias layout should be in row_major layout\n"
                f"bias_tensor: it is on the device in {held}, so that the real library prepares it anew for "
                f"conv_config.weights_dtype {wanted}; leave that out, or pass the bias on the host"
            )
    yield from bias_shape(call)


def rank(name: str, wanted: str, operand: Operand) -> Iterator[str]:
    """A raw operand with fewer than four axes."""
    shape = operand.spec.shape
    if len(shape) < 4:
        yield (
            f"ShapeBase[] index out of range. 3 not in [-4, {len(shape)})\n"
            f"{name}: it must have the four axes {wanted}, not the shape {list(shape)}"
        )


def transposed_weight_rank(call: ConvCall) -> Iterator[str]:
    """Weights of a transposed convolution that are asked for their kernel."""
    if call.weight.on_host:
        yield from rank(
            "weight_tensor", "[in_channels, out_channels / groups, kernel height, kernel width]", call.weight
        )


def _transposed_weight(call: ConvCall) -> Iterator[str]:
    spec = call.weight.spec
    if not call.weight.on_host:
        if spec.layout is not Layout.TILE:
            yield (
                "Weights should be in TILE layout.\nweight_tensor: weights on the device must be prepared; use "
                "prepare_conv_transpose2d_weights, or pass them on the host"
            )
        return
    yield from transposed_weight_rank(call)
    if spec.data_format not in HOST_WEIGHT_FORMATS:
        yield (
            "Unsupported data type for transform_weights_for_conv_transpose2d\n"
            f"weight_tensor: weights on the host must be bfloat16 or float32, not {spec.data_format}; "
            "set conv_config.weights_dtype to have them converted"
        )


def _host_weight(call: ConvCall) -> Iterator[str]:
    spec = call.weight.spec
    if len(spec.shape) != 4:
        yield (
            "Host conv weights should be 4D tensor\nweight_tensor: it must have the four axes [out_channels, "
            f"in_channels / groups, kernel height, kernel width], not the shape {list(spec.shape)}"
        )
    if spec.layout is not Layout.ROW_MAJOR:
        yield (
            "Host conv weights layout should be in row_major layout\n"
            "weight_tensor: make it with layout=ROW_MAJOR_LAYOUT; block floats come from conv_config.weights_dtype"
        )
    if spec.data_format not in HOST_WEIGHT_FORMATS:
        yield (
            f"Unsupported data type\nweight_tensor: weights on the host must be bfloat16 or float32, not "
            f"{spec.data_format}; set conv_config.weights_dtype to have them converted"
        )


def _bias_side(call: ConvCall) -> Iterator[str]:
    if call.bias is not None and call.bias.on_host and not call.weight.on_host:
        yield (
            "Device Operations expect device tensors as inputs\nbias_tensor: with weights that are prepared, the bias "
            "must be too; use prepare_conv_transpose2d_bias"
        )


def bias_shape(call: ConvCall) -> Iterator[str]:
    """A bias on the host has one row of the call's output channels."""
    if call.bias is None or not call.bias.on_host:
        return
    spec, wanted = call.bias.spec, [1, 1, 1, call.out_channels]
    yield from rank("bias_tensor", "[1, 1, 1, out_channels]", call.bias)
    if spec.shape[3] != call.out_channels:
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


CORE_GRID_HINT: Final = "\nconv_config.core_grid: give a CoreRangeSet, or leave the override out"
TILES_HINT: Final = "\noutput_layout: a block float exists in TILE only; use TILE_LAYOUT, or another dtype"
ROWS_OF_BLOCKS: Final = f"Only TILE layout is supported for BFLOAT8_B dtype!{TILES_HINT}"


def rows_of_blocks(call: ConvCall) -> Iterator[str]:
    """Rows of a block float; the L1 path refuses them when the output is made, and a matmul makes tiles anyway."""
    if takes_l1_path(call) or is_matmul(call):
        return
    searched = call.slice_config is not None and not call.slice_config.num_slices
    if not (searched and call.rules.one_slice_skips_dram):  # else it may be the L1 path
        yield from rows_in_dram(call)


def rows_in_dram(call: ConvCall) -> Iterator[str]:
    """Rows of a block float of a call that takes the DRAM path."""
    if call.conv_config.output_layout is not Layout.TILE and output_format(call) == BFLOAT8_B:
        yield f"Conv output can't be in Row Major if output dtype is BFloat8_B.{TILES_HINT}"


def rows_refusal(data_format: DataFormat) -> str | None:
    """Why the program of a convolution does not write rows of integers; None of other formats.

    `rows_in_dram` and `ROWS_OF_BLOCKS` refuse rows of block floats.
    """
    if data_format.is_block or data_format in (BFLOAT16, FLOAT32):
        return None
    return (
        f"Untilize output requires BFLOAT16 or FLOAT32 data type but got DataType::{data_format.name.upper()}\n"
        "output_layout: ask for TILE_LAYOUT, or for a dtype that is one of the two"
    )


def output_override(call: ConvCall) -> Iterator[str]:
    """Cores of the output that are to be given, for a scheme that has none of its own."""
    config = call.conv_config
    if not config.override_output_sharding_config:
        return
    if config.core_grid is None:
        yield "When override_output_sharding_config is set to true, core_grid must have a value." + CORE_GRID_HINT
    place = call.input.spec.memory_config
    kept = takes_l1_path(call) and place.is_sharded() and not call.input.on_host and not needs_new_shards(call, place)
    if not kept and config.shard_layout not in (None, TensorMemoryLayout.BLOCK_SHARDED):
        yield (
            "Output sharding config override is only supported for BLOCK_SHARDED layout.\n"
            f"conv_config.shard_layout: {config.shard_layout} cannot be combined with "
            "override_output_sharding_config; use BLOCK_SHARDED"
        )


SHARD_LAYOUTS = (TensorMemoryLayout.HEIGHT_SHARDED, TensorMemoryLayout.BLOCK_SHARDED, TensorMemoryLayout.WIDTH_SHARDED)
IMAGE_AXES = 4

Check = Callable[[ConvCall], Iterator[str]]


def raise_first(arguments: ConvCall, *groups: tuple[Check, ...]) -> None:
    """Raises ArgumentError with the first text that a check gives."""
    for group in groups:
        for check in group:
            for text in check(arguments):
                raise ArgumentError(text)


def _slices(call: ConvCall) -> int:
    """How many slices are given; 0 if that is left to the library."""
    return call.slice_config.num_slices if call.slice_config else 0


def input_in_dram(call: ConvCall) -> Iterator[str]:
    """An input of slices that is not where they are cut out; with no number given, it may be the L1 path."""
    if takes_l1_path(call) or call.input.on_host:
        return
    if is_matmul(call):
        return  # no slices are cut for it
    searched = call.slice_config is not None and not _slices(call)
    if not (searched and call.rules.one_slice_skips_dram):
        yield from image_refusals(call)


def _input_volume(call: ConvCall) -> Iterator[str]:
    if takes_l1_path(call) or is_matmul(call):
        return
    spec, claimed = call.input.spec, claimed_volume(call)
    text = (
        f"input_tensor: {claimed_shape(call)} needs {claimed} elements, "
        f"but its shape {list(spec.shape)} has {spec.volume}"
    )
    if not claimed:
        yield f"Tensor volume is not 0, but shape volume is 0\n{text}"
    if claimed == spec.volume:
        return
    if spec.layout is Layout.TILE or spec.shape[-1:] != (call.in_channels,):
        yield f"Attempting to reshape between two shapes with different volumes\n{text}"
    if claimed > spec.volume:
        yield f"MeshBuffer must be large enough to hold the tensor.\n{text}"


def stride_given(call: ConvCall) -> Iterator[str]:
    """A stride moves."""
    if 0 in call.stride:
        yield f"stride must be greater than 0, got {call.stride}\nstride: each of the two numbers must be at least 1"


def rows_of_block_operands(call: ConvCall) -> Iterator[str]:
    """Block floats prepared for an input in DRAM: the real preparation plans slices with operands in rows."""
    weights_format = call.conv_config.weights_format
    if call.input.spec.memory_config.buffer_type is not BufferType.DRAM:
        return
    if weights_format is not None and weights_format.is_block:
        yield (
            "Only TILE layout is supported for BFLOAT8_B dtype!\n"  # said of every block float
            "conv_config.weights_dtype: weights and bias for an input in DRAM can not be prepared in it; pass "
            "them as they were made, on the host, or put the input in L1"
        )


def bias_format_known(call: ConvCall) -> Iterator[str]:
    """A bias is prepared in the format that its config says, which no tensor says instead."""
    if call.conv_config.weights_format is None:
        yield "bad optional access\nconv_config.weights_dtype: set it; the bias is prepared in the same data type"


def _sharded_in_l1(call: ConvCall) -> bool:
    """Whether the call runs in one piece on shards that are in L1 already."""
    in_one_piece = takes_l1_path(call) or is_matmul(call)
    return in_one_piece and not call.input.on_host and call.input.spec.memory_config.is_sharded()


def _shard_layout(call: ConvCall) -> Iterator[str]:
    layout = call.conv_config.shard_layout
    if not _sharded_in_l1(call) and layout not in (None, *SHARD_LAYOUTS):
        yield _no_shard_layout(layout)


def _new_shard_layout(call: ConvCall) -> Iterator[str]:
    layout = call.conv_config.shard_layout or TensorMemoryLayout.INTERLEAVED
    if (
        _sharded_in_l1(call)
        and layout not in SHARD_LAYOUTS
        and not is_matmul(call)  # its plan asks for other shards
        and needs_new_shards(call, call.input.spec.memory_config)
    ):
        yield _no_shard_layout(layout)


def _no_shard_layout(layout: TensorMemoryLayout | None) -> str:
    return (
        "Conv2d supports Height, Block or Width Sharded Layouts but got "
        f"TensorMemoryLayout::{layout.name if layout else None}\nconv_config.shard_layout: set it to one of "
        f"{', '.join(one.name for one in SHARD_LAYOUTS)}"
    )


def _core_grid(call: ConvCall) -> Iterator[str]:
    config, sharded = call.conv_config, _sharded_in_l1(call)
    slices = None if takes_l1_path(call) or is_matmul(call) else _slices(call)
    if not config.override_sharding_config or slices == 0:  # once their number is known, it is asked again
        return
    if config.core_grid is None:
        yield (
            "If override_sharding_config is set, core_grid must be set as well."
            if sharded or (slices or 0) > 1
            else "Core grid must be provided when overriding sharding config"
        ) + CORE_GRID_HINT
    if sharded and config.shard_layout is None:
        yield (
            "If override_sharding_config is set, shard_layout must be set as well.\n"
            f"conv_config.shard_layout: set it to one of {', '.join(one.name for one in SHARD_LAYOUTS)}, "
            "or leave the override out"
        )


def _block_height(call: ConvCall) -> Iterator[str]:
    height = call.conv_config.act_block_h_override
    if height % TILE:
        yield (
            f"Config Error: act_block_h_override ({height}) must be a multiple of {TILE} (tile height).\n"
            f"conv_config.act_block_h_override: {max(height // TILE, 1) * TILE} would do, 0 takes all rows of a core"
        )


def _block_width(call: ConvCall) -> Iterator[str]:
    config, place = call.conv_config, call.input.spec.memory_config
    kept = place.memory_layout if takes_l1_path(call) and place.is_sharded() else config.shard_layout
    if config.act_block_w_div == 0 and kept in (None, TensorMemoryLayout.WIDTH_SHARDED):
        yield (
            "Config Error: act_block_w_div must be greater than 0.\n"
            "conv_config.act_block_w_div: 1 leaves the block whole"
        )


def _placing(call: ConvCall) -> Iterator[str]:
    """Cores and blocks, in the order in which the real library meets them.

    Shards are kept, or cut out for slices, before anything is estimated; a scheme that is to be chosen is estimated
    first of all, and so is a number of slices; a scheme that is given is not estimated.
    """
    counted = given_slices(call)
    if counted is not None and too_many(call, counted):
        return  # which the plan refuses
    yield from _shard_layout(call)
    if not takes_l1_path(call) and not is_matmul(call) and not _slices(call):
        yield from _searching(call)
        return
    given = call.conv_config.shard_layout is not None
    order: tuple[Check, ...]
    if _sharded_in_l1(call) and needs_new_shards(call, call.input.spec.memory_config):
        order = (_core_grid, _block_height, _new_shard_layout, output_override, _block_width)
    elif _sharded_in_l1(call) or (given and counted is not None):
        order = (_core_grid, output_override, _block_height, _block_width)
    elif given:
        order = (_block_height, _core_grid, output_override, _block_width)
    else:
        order = (_block_height, output_override, _block_width, _core_grid)
    for check in order:
        yield from check(call)


def _searching(call: ConvCall) -> Iterator[str]:
    """What the estimates for a number of slices meet."""
    config = call.conv_config
    yield from _block_height(call)
    if config.shard_layout is None:
        yield from output_override(call)
    yield from _block_width(call)
    if config.core_grid is not None:  # else it is refused once the number is known
        yield from output_override(call)


def _input_rank(call: ConvCall) -> Iterator[str]:
    """An input that is dealt to cores as it is, with other than four axes; images for slices have four in any case."""
    if not takes_l1_path(call) and not is_matmul(call):
        return
    spec, folded = call.input.spec, call.folding is not None
    axes = len(spec.shape)
    if axes == IMAGE_AXES or folded:
        return
    ours = (
        f"input_tensor: its shape {list(spec.shape)} has {axes} axes; give it as [1, 1, N*H*W, C] or [N, H, W, C], or "
        "in DRAM, where slices are cut from an image"
    )
    kept = _sharded_in_l1(call) and not needs_new_shards(call, spec.memory_config)
    if kept or axes > IMAGE_AXES:
        yield f"Expected 4D shape\n{ours}"
    yield f"ShapeBase[] index out of range. {axes} not in [-4, {axes})\n{ours}"


def claimed_shape(call: ConvCall) -> str:
    """What the call says of its input, as text."""
    return (
        f"batch_size={call.batch_size}, input_height={call.input_height}, input_width={call.input_width}, "
        f"in_channels={call.in_channels}"
    )


def claimed_volume(call: ConvCall) -> int:
    """Elements that the call says its input has."""
    return prod((call.batch_size, call.input_height, call.input_width, call.in_channels))


INPUT_CHECKS: tuple[Check, ...] = (rows_of_blocks, input_in_dram, _input_volume)
SIZE_CHECKS: tuple[Check, ...] = (stride_given,)
CONFIG_CHECKS: tuple[Check, ...] = (_placing,)
SEARCH_CHECKS: tuple[Check, ...] = (_shard_layout, _searching)  # before a number of slices is looked for
BLOCK_CHECKS: tuple[Check, ...] = (_block_height, _block_width)
INPUT_RANK_CHECKS: tuple[Check, ...] = (_input_rank,)  # once its cores are known


POSITIONS: Final = 1 << 32  # the kernels of the real library count positions in 32 bits


def check_sizes(call: ConvCall, spec: DeviceSpec) -> None:
    """Refuses a call whose frame 32 bits cannot count, or whose tensors are larger than the DRAM of a device.

    Raises:
        ArgumentError: Input, padding and inserted zeros together have 2^32 positions or more.
        OutOfMemoryError: Input, output or weights alone are larger than DRAM.
    """
    try:
        axes: tuple[PaddedAxis, ...] = (call.rules.axis(call, 0), call.rules.axis(call, 1))
    except NoWindowError:
        return
    positions = call.batch_size * prod(max(axis.length, axis.outputs) for axis in axes)
    name = call.rules.function
    if positions >= POSITIONS:
        raise ArgumentError(
            f"{name}: the padded input has {positions} positions ({call.batch_size} x {axes[0].length} x "
            f"{axes[1].length}), more than the 32-bit addresses of the device; use a smaller batch, input, stride, "
            "padding, output_padding or dilation, or make several calls"
        )
    outputs = call.batch_size * prod(axis.outputs for axis in axes)
    taps = prod(call.kernel_size) * call.in_channels // max(call.groups, 1)
    inputs = prod(image_shape(call)[:3])
    capacity, alignment_bytes = spec.dram.banks * spec.dram.usable_bytes, min(spec.dram.alignment_bytes, 32)
    for what, rows, columns, data_format in (
        ("input", inputs, call.in_channels, call.input.spec.data_format),
        ("output", outputs, call.out_channels, output_format(call)),
        ("weight matrix", taps, call.out_channels, weight_format(call)),
    ):
        row_bytes = round_up(columns * (data_format.element_bytes or 1), alignment_bytes)  # at least, in tiles or not
        wanted = rows * row_bytes
        if wanted > capacity:
            raise OutOfMemoryError(
                f"{name}: the {what}, {rows} rows of {columns} channels, takes at least {wanted} B, more than the "
                f"{capacity} B of DRAM of {spec.name}; use smaller sizes or another format, or make several calls"
            )
