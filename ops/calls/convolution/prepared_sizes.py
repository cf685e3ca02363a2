"""Why a program can not read weights and bias of the size that they were prepared in, in the real library's words."""

from collections.abc import Sequence

from device.memory.memory_config import ShardOrientation
from device.memory.tiles import TILE
from ops.programs.conv2d.layout import ConvLayout
from ops.programs.conv2d.partition import BLOCK, WIDTH

WAY_OUT = "prepare the weights for this call, or pass them on the host"


def size_refusal(layout: ConvLayout, out_channels: int, prepared: Sequence[tuple[int, ...]]) -> str | None:
    """Why the program does not take what was prepared; None if it does (which need not mean that it is right).

    Args:
        prepared: Padded shapes of the weights and, if there is one, of the bias.
    """
    columns = prepared[0][-1] // TILE
    block, cores = layout.shards.out_col_tiles, layout.out_config.channel_cores
    if out_channels > columns * TILE:
        return (
            "Invalid weight shape. Incorrect weight tensor.\n"
            f"weight_tensor: it has {columns * TILE} columns for {out_channels} output channels; {WAY_OUT}"
        )
    if prepared[0][:2] != (1, 1):
        return (
            "Conv weight matrix shape is invalid\n"
            f"weight_tensor: on the device it has to be prepared, not of the shape {list(prepared[0])}; {WAY_OUT}"
        )
    if columns % block:
        name = "weight_+matrix" if layout.scheme is WIDTH else "weight_matrix"
        return (
            f"{name}_width_ntiles {columns} should be divisible by weight_block_w_ntiles {block}\n"
            f"weight_tensor: the call computes {block} tiles of output channels on a core; {WAY_OUT}"
        )
    if layout.scheme is WIDTH:
        if columns // block == cores:
            return None
        return (
            f"num_blocks_output_w {cores} should be equal to num_blocks_weight_w {columns // block}\n"
            f"weight_tensor: it was prepared for other cores; {WAY_OUT}"
        )
    return _other_cores(layout, columns, prepared[-1][-1] // TILE)


def _other_cores(layout: ConvLayout, columns: int, bias_columns: int) -> str | None:
    """Why HEIGHT and BLOCK programs do not deal the weights' columns to their cores."""
    slices, box = columns // layout.shards.out_col_tiles, layout.out_config.cores.bounding_box()
    turned = layout.out_config.orientation is ShardOrientation.COL_MAJOR
    axis, cores = ("y", box.rows) if turned else ("x", box.cols)
    if layout.scheme is BLOCK and cores % slices:
        return (
            f"num_cores_{axis} {cores} should be divisible by num_weight_slices_width {slices}\n"
            f"weight_tensor: it was prepared for {slices} cores of output channels; {WAY_OUT}"
        )
    if layout.scheme is not BLOCK and slices != 1:
        return (
            f"num_blocks_weight_w_per_core 1 should be equal to num_blocks_weight_w {slices}\n"
            f"weight_tensor: it was prepared for {slices} cores of output channels; {WAY_OUT}"
        )
    if bias_columns != columns:
        return (
            f"Bias tiles ({bias_columns}) must equal weight matrix width in tiles ({columns})\n"
            f"weight_tensor, bias_tensor: they were prepared for other cores; {WAY_OUT}"
        )
    return None
