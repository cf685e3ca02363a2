"""What a convolution is refused for by its output: rows of block floats, shards that it can not have."""

from collections.abc import Iterator
from typing import Final

from device.memory.memory_config import Layout, TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, DataFormat
from ops.calls.convolution.arguments import ConvArguments
from ops.calls.convolution.problem import is_matmul, needs_new_shards, output_format, takes_l1_path

CORE_GRID_HINT: Final = "\nconv_config.core_grid: give a CoreRangeSet, or leave the override out"
TILES_HINT: Final = "\noutput_layout: a block float exists in TILE only; use TILE_LAYOUT, or another dtype"
ROWS_OF_BLOCKS: Final = f"Only TILE layout is supported for BFLOAT8_B dtype!{TILES_HINT}"


def rows_of_blocks(call: ConvArguments) -> Iterator[str]:
    """Rows of a block float; the L1 path refuses them when the output is made, and a matmul makes tiles anyway."""
    if takes_l1_path(call) or is_matmul(call):
        return
    searched = call.slice_config is not None and not call.slice_config.num_slices
    if not (searched and call.rules.one_slice_skips_dram):  # else it may be the L1 path
        yield from rows_in_dram(call)


def rows_in_dram(call: ConvArguments) -> Iterator[str]:
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


def output_override(call: ConvArguments) -> Iterator[str]:
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
