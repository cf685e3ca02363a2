"""Which calls are refused before anything is planned, in the order the real library looks.

A refusal's first line is the real library's; the second names the argument, its value and what would work. Some
refusals need a plan to be seen (too many slices, blocks that do not divide); they are raised there.

Then what the library accepts and crashes on, hangs in or gets wrong, as far as it holds for both convolutions. Each
has a ``require_possible`` for what nothing can be computed for, and a ``require_sane`` (a device's strict mode) for
what the real library computes wrongly without a word.

Evidence: every first line was read from a call of the real library, version 0.81.1.
"""

from collections.abc import Callable, Iterator
from math import prod

from device.errors import ArgumentError
from device.memory.memory_config import BufferType, Layout, TensorMemoryLayout
from device.memory.tiles import TILE
from ops.calls.convolution.arguments import ConvArguments
from ops.calls.convolution.image_checks import image_refusals
from ops.calls.convolution.output_checks import CORE_GRID_HINT, output_override, rows_of_blocks
from ops.calls.convolution.problem import is_matmul, needs_new_shards, takes_l1_path
from ops.calls.convolution.slicing import given_slices, too_many

SHARD_LAYOUTS = (
    TensorMemoryLayout.HEIGHT_SHARDED,
    TensorMemoryLayout.BLOCK_SHARDED,
    TensorMemoryLayout.WIDTH_SHARDED,
)
IMAGE_AXES = 4

Check = Callable[[ConvArguments], Iterator[str]]


def raise_first(arguments: ConvArguments, *groups: tuple[Check, ...]) -> None:
    """Raises ArgumentError with the first text that a check gives."""
    for group in groups:
        for check in group:
            for text in check(arguments):
                raise ArgumentError(text)


def _slices(call: ConvArguments) -> int:
    """How many slices are given; 0 if that is left to the library."""
    return call.slice_config.num_slices if call.slice_config else 0


def input_in_dram(call: ConvArguments) -> Iterator[str]:
    """An input of slices that is not where they are cut out; with no number given, it may be the L1 path."""
    if takes_l1_path(call) or call.input.on_host:
        return
    if is_matmul(call):
        return  # no slices are cut for it
    searched = call.slice_config is not None and not _slices(call)
    if not (searched and call.rules.one_slice_skips_dram):
        yield from image_refusals(call)


def _input_volume(call: ConvArguments) -> Iterator[str]:
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


def stride_given(call: ConvArguments) -> Iterator[str]:
    """A stride moves."""
    if 0 in call.stride:
        yield f"stride must be greater than 0, got {call.stride}\nstride: each of the two numbers must be at least 1"


def rows_of_block_operands(call: ConvArguments) -> Iterator[str]:
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


def bias_format_known(call: ConvArguments) -> Iterator[str]:
    """A bias is prepared in the format that its config says, which no tensor says instead."""
    if call.conv_config.weights_format is None:
        yield "bad optional access\nconv_config.weights_dtype: set it; the bias is prepared in the same data type"


def _sharded_in_l1(call: ConvArguments) -> bool:
    """Whether the call runs in one piece on shards that are in L1 already."""
    in_one_piece = takes_l1_path(call) or is_matmul(call)
    return in_one_piece and not call.input.on_host and call.input.spec.memory_config.is_sharded()


def _shard_layout(call: ConvArguments) -> Iterator[str]:
    layout = call.conv_config.shard_layout
    if not _sharded_in_l1(call) and layout not in (None, *SHARD_LAYOUTS):
        yield _no_shard_layout(layout)


def _new_shard_layout(call: ConvArguments) -> Iterator[str]:
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


def _core_grid(call: ConvArguments) -> Iterator[str]:
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


def _block_height(call: ConvArguments) -> Iterator[str]:
    height = call.conv_config.act_block_h_override
    if height % TILE:
        yield (
            f"Config Error: act_block_h_override ({height}) must be a multiple of {TILE} (tile height).\n"
            f"conv_config.act_block_h_override: {max(height // TILE, 1) * TILE} would do, 0 takes all rows of a core"
        )


def _block_width(call: ConvArguments) -> Iterator[str]:
    config, place = call.conv_config, call.input.spec.memory_config
    kept = place.memory_layout if takes_l1_path(call) and place.is_sharded() else config.shard_layout
    if config.act_block_w_div == 0 and kept in (None, TensorMemoryLayout.WIDTH_SHARDED):
        yield (
            "Config Error: act_block_w_div must be greater than 0.\n"
            "conv_config.act_block_w_div: 1 leaves the block whole"
        )


def _placing(call: ConvArguments) -> Iterator[str]:
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


def _searching(call: ConvArguments) -> Iterator[str]:
    """What the estimates for a number of slices meet."""
    config = call.conv_config
    yield from _block_height(call)
    if config.shard_layout is None:
        yield from output_override(call)
    yield from _block_width(call)
    if config.core_grid is not None:  # else it is refused once the number is known
        yield from output_override(call)


def _input_rank(call: ConvArguments) -> Iterator[str]:
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


def claimed_shape(call: ConvArguments) -> str:
    """What the call says of its input, as text."""
    return (
        f"batch_size={call.batch_size}, input_height={call.input_height}, input_width={call.input_width}, "
        f"in_channels={call.in_channels}"
    )


def claimed_volume(call: ConvArguments) -> int:
    """Elements that the call says its input has."""
    return prod((call.batch_size, call.input_height, call.input_width, call.in_channels))


INPUT_CHECKS: tuple[Check, ...] = (rows_of_blocks, input_in_dram, _input_volume)
SIZE_CHECKS: tuple[Check, ...] = (stride_given,)
CONFIG_CHECKS: tuple[Check, ...] = (_placing,)
SEARCH_CHECKS: tuple[Check, ...] = (_shard_layout, _searching)  # before a number of slices is looked for
BLOCK_CHECKS: tuple[Check, ...] = (_block_height, _block_width)
INPUT_RANK_CHECKS: tuple[Check, ...] = (_input_rank,)  # once its cores are known
