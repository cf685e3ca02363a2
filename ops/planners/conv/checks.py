"""Calls that are refused before planning, in the real library's order and words, or because the library crashes.

An output padding of the stride or more is accepted: other frameworks refuse it, but the real library computes the right
result. Evidence: calls of the real library, version 0.81.1.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from math import prod
from typing import Final

from device.errors import ArgumentError, DeviceError, NotSimulatedError, OutOfMemoryError
from device.memory.layouts import TensorSpec, no_such_axis
from device.memory.memory_config import TILE, BufferType, Layout, ShardSpec, TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, DataFormat, round_up
from device.spec.device_spec import DeviceSpec
from ops.planners.conv import slicing
from ops.planners.conv.arguments import Check, ConvCall, SliceConfig, SliceType, refuse_first
from ops.planners.conv.operands import sliced_weight_rank, weight_rank
from ops.programs.conv2d.op import choose_scheme
from ops.programs.data_movement.reshape import is_view
from ops.window import NoWindowError

WAY_OUT: Final = "put input_tensor in DRAM, or leave dram_slice_config out"
CORE_GRID_HINT: Final = "\nconv_config.core_grid: give a CoreRangeSet, or leave the override out"
TILES_HINT: Final = "\noutput_layout: a block float exists in TILE only; use TILE_LAYOUT, or another dtype"
ROWS_OF_BLOCKS: Final = f"Only TILE layout is supported for BFLOAT8_B dtype!{TILES_HINT}"
UNFOLD: Final = "conv_config.enable_kernel_stride_folding: leave it to the library"
FOLDING_WAY_OUT: Final = "set conv_config.enable_kernel_stride_folding=False, which the real library obeys too"
SHARD_LAYOUTS: Final = tuple(TensorMemoryLayout[f"{name}_SHARDED"] for name in ("HEIGHT", "BLOCK", "WIDTH"))
SHARD_NAMES: Final = ", ".join(scheme.name for scheme in SHARD_LAYOUTS)
SHARDS_HINT: Final = f"\nconv_config.shard_layout: set it to one of {SHARD_NAMES}"
IMAGE_AXES: Final = 4
POSITIONS: Final = 1 << 32  # the kernels of the real library count positions in 32 bits


def check_arguments(call: ConvCall, spec: DeviceSpec) -> None:
    """Raises an error for a call that the real library refuses."""
    if call.rules.transposed:
        config = call.slice_config
        if config is not None and config.slice_type is not SliceType.L1_FULL and not config.num_slices:
            check_search(call, spec)
        refuse_first(call, (*INPUT_CHECKS, stride_given, weight_rank, placing))
        require_rank(call, spec)
        return
    refuse_first(call, (_folded_override, stride_given, _folded))
    if not call.folds:
        check_folded(call, spec)


def check_search(call: ConvCall, spec: DeviceSpec) -> None:
    """Raises the errors of the real library's search for a number of slices of a transposed convolution.

    The library first estimates the whole image, which needs the format of the weights.
    """
    refuse_first(call, (stride_given, _given_layout, _searching))
    if slicing.estimates(call, spec):
        refuse_first(call, (weight_rank, _search_format))


def check_folded(call: ConvCall, spec: DeviceSpec) -> None:
    """The checks of conv2d on the call that remains after windows are folded, if they are."""
    whole_windows = call.folding is not None and call.folding.whole  # of which no slices are cut
    refuse_first(call, () if call.is_matmul or whole_windows else INPUT_CHECKS)
    refuse_first(call, (sliced_weight_rank, placing))
    require_rank(call, spec)


def check_possible(call: ConvCall, free_l1_bytes: int | None = None, *, prepares: bool = False) -> None:
    """Raises an error for a call that is not simulated, or that crashes or hangs the real library.

    ``free_l1_bytes`` are the free bytes of every L1 bank; None before anything is computed. A preparation (`prepares`)
    folds no input.
    """
    name, transposed = call.rules.function, call.rules.transposed
    refuse_first(call, (_sizes,) if transposed else (_sizes, groups_given), name)
    slicing.require_outputs(call, _no_outputs(call), free_l1_bytes)
    for text in () if transposed or prepares else _not_simulated(call):
        raise NotSimulatedError(f"{name}: {text}")


# Checks of the input


def view_refusal(spec: TensorSpec, shape: tuple[int, ...]) -> str | None:
    """Why rows in shards with padded columns cannot be viewed under an unpadded shape of the same channels.

    Only a shard as wide as the tensor may lose its padding. The shard then counts as more, narrower rows, which must
    match the shard shape and fill the buffer.
    """
    shards, (rows, cols), channels = spec.memory_config.shard_spec, spec.matrix, shape[-1]
    if shards is None or spec.layout is Layout.TILE or spec.shape[-1] != channels or cols == channels:
        return None
    if prod(shape) != spec.volume:
        return None
    ours = (
        f"input_tensor: its rows of {channels} channels are padded to {cols} in shards of {list(shards.shape)}, which "
        f"slices can not be cut from; {WAY_OUT}"
    )
    if shards.shape[1] != cols:
        return (
            "Changing the last dimension of a sharded tensor is not supported unless the shard width matches the input "
            f"last dimension. Input shape: Shape({list(spec.padded_shape)}), New shape: Shape({list(shape)}), "
            f"Shard width: {shards.shape[1]}\n{ours}"
        )
    narrow = ShardSpec(shards.grid, (prod(shards.shape) // channels, channels), shards.orientation)
    try:
        spec.changed(shape=shape, memory_config=replace(spec.memory_config, shard_spec=narrow), padded_shape=shape)
    except DeviceError as error:
        return f"{str(error).splitlines()[0]}\n{ours}"
    element_bytes = spec.data_format.element_bytes or 0
    if rows * cols % channels:
        return (
            f"For valid non-interleaved buffers page size {channels * element_bytes} must equal buffer size "
            f"{rows * cols * element_bytes}. For interleaved-buffers, buffer size should be divisible by the page size"
            f"\n{ours}"
        )
    return None


def _slices(call: ConvCall) -> int:
    """The number of slices; 0 if the library chooses it."""
    return call.slice_config.num_slices if call.slice_config else 0


def _may_skip_dram(call: ConvCall) -> bool:
    """Whether a search for a number of slices may end with one slice, which means the L1 path."""
    return call.slice_config is not None and not _slices(call) and call.rules.one_slice_skips_dram


def _rows_of_blocks(call: ConvCall) -> Iterator[str]:
    """Rows of a block float; the L1 path refuses them when the output is made, and a matmul makes tiles anyway."""
    if not call.in_one_piece and not _may_skip_dram(call):
        yield from rows_in_dram(call)


def rows_in_dram(call: ConvCall) -> Iterator[str]:
    """Rows of a block float of a call that takes the DRAM path."""
    if call.conv_config.output_layout is not Layout.TILE and call.output_format == BFLOAT8_B:
        yield f"Conv output can't be in Row Major if output dtype is BFloat8_B.{TILES_HINT}"


def _rows_of_the_image(call: ConvCall) -> Iterator[str]:
    """Rows of any other block float, which no image of the output in DRAM has."""
    in_rows = call.conv_config.output_layout is not Layout.TILE and call.output_format.is_block
    if in_rows and not call.in_one_piece and not _may_skip_dram(call):
        yield ROWS_OF_BLOCKS


def rows_refusal(data_format: DataFormat) -> str | None:
    """Why the program of a convolution does not write rows of integers; None for other formats."""
    if data_format.is_block or data_format in (BFLOAT16, FLOAT32):
        return None
    return (
        f"Untilize output requires BFLOAT16 or FLOAT32 data type but got DataType::{data_format.name.upper()}\n"
        "output_layout: ask for TILE_LAYOUT, or for a dtype that is one of the two"
    )


def input_in_dram(call: ConvCall) -> Iterator[str]:
    """An input outside DRAM, where slices are cut; without a given number, the call may take the L1 path."""
    if call.in_one_piece or call.input.on_host or _may_skip_dram(call):
        return
    spec, config = call.input.spec, call.input.spec.memory_config
    text = view_refusal(spec, call.image_shape)
    if text is not None:
        yield text
    turned = spec.data_format.is_block and spec.volume == call.claimed_volume and not is_view(spec, call.image_shape)
    if turned and config.is_sharded() and config.buffer_type is not BufferType.L1:
        yield (
            f"Input tensor must be in L1\ninput_tensor: its {spec.data_format} tiles are {config.memory_layout.name} "
            "in DRAM, and only shards in L1 can be made an image; use DRAM_MEMORY_CONFIG"
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


def _input_volume(call: ConvCall) -> Iterator[str]:
    spec, claimed = call.input.spec, call.claimed_volume
    if call.in_one_piece or (claimed and claimed == spec.volume):
        return
    text = (
        f"input_tensor: {call.claimed_shape} needs {claimed} elements, "
        f"but its shape {list(spec.shape)} has {spec.volume}"
    )
    if not claimed:
        yield f"Tensor volume is not 0, but shape volume is 0\n{text}"
    if not is_view(spec, call.image_shape):
        yield f"Attempting to reshape between two shapes with different volumes\n{text}"
    if claimed > spec.volume:
        yield f"MeshBuffer must be large enough to hold the tensor.\n{text}"


def require_rank(call: ConvCall, spec: DeviceSpec) -> None:
    """Raises ArgumentError for an unsliced input whose rank is not 4, unless blocks are refused first.

    The library estimates before it looks at the rank if it chooses the scheme; then DeviceError for blocks of a scheme.
    """
    for text in _input_rank(call):
        if call.conv_config.shard_layout is None and not call.keeps_place:
            with suppress(NoWindowError):
                problem, options = call.lower()
                choose_scheme(problem, options, spec, matmul=call.is_matmul)
        raise ArgumentError(text)


def _input_rank(call: ConvCall) -> Iterator[str]:
    """The refusal of an unsliced input whose rank is not 4; images for slices always have rank 4."""
    spec = call.input.spec
    axes = len(spec.shape)
    if axes == IMAGE_AXES or call.folding is not None or not call.in_one_piece:
        return
    ours = (
        f"input_tensor: its shape {list(spec.shape)} has {axes} axes; give it as [1, 1, N*H*W, C] or [N, H, W, C], or "
        "in DRAM, where slices are cut from an image"
    )
    if axes > IMAGE_AXES or (call.keeps_place and not call.needs_new_shards(spec.memory_config)):
        yield f"Expected 4D shape\n{ours}"
    yield f"{no_such_axis(axes)}\n{ours}"


# Checks of cores and blocks


def output_override(call: ConvCall) -> Iterator[str]:
    """An override of the output's sharding without a core grid, or with another scheme than BLOCK_SHARDED."""
    config, place = call.conv_config, call.input.spec.memory_config
    if not config.override_output_sharding_config:
        return
    if config.core_grid is None:
        yield "When override_output_sharding_config is set to true, core_grid must have a value." + CORE_GRID_HINT
    on_shards = call.takes_l1_path and place.is_sharded() and not call.input.on_host
    keeps_shards = on_shards and not call.needs_new_shards(place)
    if not keeps_shards and config.shard_layout not in (None, TensorMemoryLayout.BLOCK_SHARDED):
        yield (
            "Output sharding config override is only supported for BLOCK_SHARDED layout.\nconv_config.shard_layout: "
            f"{config.shard_layout} cannot be combined with override_output_sharding_config; use BLOCK_SHARDED"
        )


def _given_layout(call: ConvCall) -> Iterator[str]:
    """The layout that a call gives for shards; it does not count where the shards of the input are kept."""
    if call.conv_config.shard_layout is not None and not call.keeps_place:
        yield from _not_sharded(call.conv_config.shard_layout)


def _new_layout(call: ConvCall) -> Iterator[str]:
    """The layout of redistributed shards; the plan of a matmul checks its own."""
    if not call.is_matmul:
        yield from _not_sharded(call.conv_config.shard_layout or TensorMemoryLayout.INTERLEAVED)


def _not_sharded(layout: TensorMemoryLayout) -> Iterator[str]:
    if layout not in SHARD_LAYOUTS:
        first = "Conv2d supports Height, Block or Width Sharded Layouts but got TensorMemoryLayout::"
        yield f"{first}{layout.name}{SHARDS_HINT}"


def _core_grid(call: ConvCall) -> Iterator[str]:
    config, sharded = call.conv_config, call.keeps_place
    slices = None if call.in_one_piece else _slices(call)
    if not config.override_sharding_config or slices == 0:  # checked again once the number of slices is known
        return
    if config.core_grid is None:
        yield (
            "If override_sharding_config is set, core_grid must be set as well."
            if sharded or (slices or 0) > 1
            else "Core grid must be provided when overriding sharding config"
        ) + CORE_GRID_HINT
    if sharded and config.shard_layout is None:
        first = "If override_sharding_config is set, shard_layout must be set as well."
        yield f"{first}{SHARDS_HINT}, or leave the override out"


def block_height(call: ConvCall) -> Iterator[str]:
    """Blocks of part of a tile."""
    height = call.conv_config.act_block_h_override
    if height % TILE:
        yield (
            f"Config Error: act_block_h_override ({height}) must be a multiple of {TILE} (tile height).\n"
            f"conv_config.act_block_h_override: {max(height // TILE, 1) * TILE} would do, 0 takes all rows of a core"
        )


def block_width(call: ConvCall) -> Iterator[str]:
    """Blocks cut in no parts."""
    config, place = call.conv_config, call.input.spec.memory_config
    scheme = place.memory_layout if call.takes_l1_path and place.is_sharded() else config.shard_layout
    if config.act_block_w_div == 0 and scheme in (None, TensorMemoryLayout.WIDTH_SHARDED):
        yield (
            "Config Error: act_block_w_div must be greater than 0.\n"
            "conv_config.act_block_w_div: 1 leaves the block whole"
        )


def placing(call: ConvCall) -> Iterator[str]:
    """The errors of cores and blocks, in the real library's order.

    The library keeps shards, or shards slices, before it estimates. It estimates first if it has to choose a scheme or
    a number of slices; it does not estimate a given scheme.
    """
    for check in _placing_checks(call):
        yield from check(call)


def placing_ahead(call: ConvCall) -> Iterator[str]:
    """Cores and blocks as a preparation meets them, for which shards stay where they are, whether they suit or not."""
    for check in _placing_checks(call):
        if check is not _new_layout:
            yield from check(call)


def _placing_checks(call: ConvCall) -> tuple[Check, ...]:
    counted, scheme_given = slicing.given_slices(call), call.conv_config.shard_layout is not None
    if counted is not None and slicing.too_many(call, counted):
        return ()  # which the plan refuses
    order: tuple[Check, ...]
    if not call.in_one_piece and not _slices(call):
        order = (_searching,)
    elif call.keeps_place and call.needs_new_shards(call.input.spec.memory_config):
        order = (_core_grid, block_height, _new_layout, output_override, block_width)
    elif call.keeps_place or (scheme_given and counted is not None):
        order = (_core_grid, output_override, block_height, block_width)
    elif scheme_given:
        order = (block_height, _core_grid, output_override, block_width)
    else:
        order = (block_height, output_override, block_width, _core_grid)
    return _given_layout, *order


def _searching(call: ConvCall) -> Iterator[str]:
    """The errors of the estimates for a number of slices."""
    yield from block_height(call)
    if call.conv_config.shard_layout is None:
        yield from output_override(call)
    yield from block_width(call)
    if call.conv_config.core_grid is not None:  # else the call is refused once the number is known
        yield from output_override(call)


def _search_format(call: ConvCall) -> Iterator[str]:
    if call.conv_config.weights_format is None:
        yield (
            "get_cb_info expects conv_config.weights_dtype to be already set\n"
            "conv_config.weights_dtype: the number of slices depends on it; set it, for example to bfloat16"
        )


# Checks of sizes


def stride_given(call: ConvCall) -> Iterator[str]:
    """A stride moves."""
    if 0 in call.stride:
        yield f"stride must be greater than 0, got {call.stride}\nstride: each of the two numbers must be at least 1"


def _sizes(call: ConvCall) -> Iterator[str]:
    for name in ("in_channels", "out_channels", "batch_size", "input_height", "input_width"):
        if getattr(call, name) < 1:
            yield f"{name} must be at least 1, not {getattr(call, name)}"
    if min(call.kernel_size) < 1:
        yield f"kernel_size must be at least (1, 1), not {call.kernel_size}"
    if not call.rules.transposed:
        yield from groups_divide(call)
    elif call.groups and call.in_channels % call.groups and call.weight.on_host:
        rows = call.weight.spec.shape[0]  # those of the call alone do not matter
        if rows % call.groups:
            yield (
                f"groups must divide in_channels, but {rows} of weight_tensor is no multiple of {call.groups}, on "
                "which the real library crashes"
            )


def groups_divide(call: ConvCall) -> Iterator[str]:
    """The refusal of groups that do not divide the channels."""
    for name in ("in_channels", "out_channels"):
        if call.groups and getattr(call, name) % call.groups:
            yield f"groups must divide {name}, but {getattr(call, name)} is no multiple of {call.groups}"


def groups_given(call: ConvCall) -> Iterator[str]:
    """No groups."""
    if call.groups < 1:
        yield f"groups must be at least 1, not {call.groups}"


def dilation_given(call: ConvCall) -> Iterator[str]:
    """Taps that fall together."""
    if 0 in call.dilation:
        yield f"dilation must be at least (1, 1), not {call.dilation}; 1 means neighboring taps"


def _no_outputs(call: ConvCall) -> str | None:
    """Our text for a call without outputs."""
    height, width = call.output_size
    if height > 0 and width > 0:
        return None
    if call.rules.transposed:
        return (
            f"conv_transpose2d: padding {call.padding} leaves no output: it would be {height} high and {width} wide; "
            "pad less"
        )
    return (
        f"conv2d: kernel_size {call.kernel_size} with dilation {call.dilation} does not fit an image of "
        f"{call.input_height} x {call.input_width} with padding {call.padding}; pad more"
    )


def check_sizes(call: ConvCall, spec: DeviceSpec) -> None:
    """Raises ArgumentError if 32 bits cannot count the positions of the frame: input, padding and inserted zeros.

    Raises OutOfMemoryError if the input, the output or the weights alone are larger than the DRAM of a device.
    """
    try:
        axes = (call.axis(0), call.axis(1))
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
    weight_rows = prod(call.kernel_size) * call.in_channels // max(call.groups, 1)
    inputs = prod(call.image_shape[:3])
    capacity, alignment_bytes = spec.dram.banks * spec.dram.usable_bytes, min(spec.dram.alignment_bytes, 32)
    for what, rows, columns, data_format in (
        ("input", inputs, call.in_channels, call.input.spec.data_format),
        ("output", outputs, call.out_channels, call.output_format),
        ("weight matrix", weight_rows, call.out_channels, call.weight_format),
    ):
        row_bytes = round_up(columns * (data_format.element_bytes or 1), alignment_bytes)  # at least, in tiles or not
        wanted = rows * row_bytes
        if wanted > capacity:
            raise OutOfMemoryError(
                f"{name}: the {what}, {rows} rows of {columns} channels, takes at least {wanted} B, more than the "
                f"{capacity} B of DRAM of {spec.name}; use smaller sizes or another format, or make several calls"
            )


def check_slices(call: ConvCall) -> None:
    """Raises ArgumentError if a slice of a transposed convolution has no outputs: the real library crashes on it."""
    config = call.slice_config
    if config is None or call.in_one_piece or call.plans_without_outputs:
        return
    if not 1 < config.num_slices <= slicing.most_slices(call, config.slice_type):
        return
    for index, part in enumerate(slicing.output_slices(call, config)):
        if (text := slice_refusal(call, config, index, part)) is not None:
            raise ArgumentError(text)


def slice_refusal(call: ConvCall, config: SliceConfig, index: int, part: slicing.OutputSlice) -> str | None:
    """Why a slice of a transposed convolution is not computed, on whose window the real library crashes."""
    try:
        if call.rules.transposed and not part.is_empty:
            slicing.slice_call(call, part).frame()
    except NoWindowError:
        return (
            f"conv_transpose2d: dram_slice_config: slice {index} of {config.num_slices} has no outputs of its own, "
            f"which the real library crashes on; {slicing.way_out(call)}"
        )
    return None


# Checks of folded windows


def _folded_override(call: ConvCall) -> Iterator[str]:
    if call.conv_config.override_output_sharding_config and not call.takes_l1_path:
        yield (
            "Conv2D DRAM slicing doesn't support override_output_sharding_config.\n"
            "conv_config.override_output_sharding_config: put the input in L1, or leave the override out"
        )


def folded_lengths(call: ConvCall) -> Iterator[str]:
    """Images that do not consist of whole windows."""
    top, bottom, left, right = call.padding
    for name, length, stride in (
        ("height", call.input_height + top + bottom, call.stride[0]),
        ("width", call.input_width + left + right, call.stride[1]),
    ):
        if length % stride:
            yield (
                f"Padded input {name} ({length}) must be divisible by stride ({stride}) for kernel stride folding.\n"
                f"{UNFOLD}, or pad to whole windows"
            )


def _folded(call: ConvCall) -> Iterator[str]:
    """Images that can not be folded, nor an input that is folded as it is with other than four axes."""
    if not call.folds:
        return
    yield from folded_lengths(call)
    if call.stride[0] > call.kernel_size[0] or call.stride[1] > call.kernel_size[1]:
        yield (
            "Conv2D kernel stride folding: Stride must be less than or equal to kernel size\n"
            f"{UNFOLD}: windows of {call.kernel_size} at stride {call.stride} leave pixels out"
        )
    spec, place = call.input.spec, call.input.spec.memory_config
    if not call.input.on_host and spec.shape[1:3] != (call.input_height, call.input_width):
        text = view_refusal(spec, call.image_shape)
        if text is not None:
            yield text
    high_shards = place.is_sharded() and place.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED
    if (call.padding[0] or call.padding[2]) and spec.layout is Layout.TILE and not high_shards:
        yield f"ttnn.pad: on device tile padding does not support front padding\n{UNFOLD}, or give rows"
    shape, stride = spec.shape, call.stride[0]
    ours = f"input_tensor: give it as [N, H, W, C], not with the shape {list(shape)}; or {FOLDING_WAY_OUT}"
    if len(shape) < IMAGE_AXES:
        yield f"{no_such_axis(len(shape))}\n{ours}"
    elif len(shape) > IMAGE_AXES and shape[1] % stride:
        yield f"Fold: logical H ({shape[1]}) must be divisible by stride_h ({stride}).\n{ours}"


def _not_simulated(call: ConvCall) -> Iterator[str]:
    """Folded windows in some shards."""
    spec, place = call.input.spec, call.input.spec.memory_config
    in_shards = call.folds and not call.input.on_host and place.is_sharded()
    high = place.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED
    kept = spec.shape == call.image_shape if high else place.buffer_type is BufferType.DRAM  # by the plan, or refused
    if in_shards and not kept and spec.layout is Layout.ROW_MAJOR and spec.matrix[1] != call.in_channels:
        yield (
            f"folding windows of shards that are wider than {call.in_channels} channels is not simulated; "
            f"{FOLDING_WAY_OUT}"
        )


INPUT_CHECKS: Final[tuple[Check, ...]] = (_rows_of_blocks, _input_volume, input_in_dram, _rows_of_the_image)
