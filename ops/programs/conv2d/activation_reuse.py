"""Activation reuse: a reader keeps what the window rows of neighboring image rows share (docs/planning.md, Blocks).

All kernel rows of a HEIGHT shard are then one K block, and the buffers of both readers hold a row of the image and what
every further row adds to it.
"""

from device.errors import DeviceError
from device.memory.tiles import TILE
from device.numbers.formats import DataFormat
from device.numbers.integers import div_up
from ops.frame.frame import Frame
from ops.programs.conv2d.partition import BLOCK, HEIGHT, ParallelConfig


def check_reuse(config: ParallelConfig, *, act_h_tiles: int, columns: int) -> None:
    """Refuses blocks in which no second row of the image begins, for HEIGHT.

    Args:
        config: Cores of the input.
        act_h_tiles: Height of an activation block.

    Raises:
        DeviceError: The block is not higher than a row of the image.
    """
    row_tiles = div_up(columns, TILE)
    if config.scheme is HEIGHT and act_h_tiles <= row_tiles:
        raise DeviceError(
            f"Activation reuse needs act block h ({act_h_tiles}) to be bigger than output image width in tiles "
            f"({row_tiles}) for the optimization to give boost\n"
            "conv_config.enable_activation_reuse: leave it out, or give every core more rows of the output"
        )


def check_estimated_format(data_format: DataFormat) -> None:
    """Refuses a block float where L1 is estimated for two readers that reuse activations.

    Raises:
        DeviceError: The format has no bytes for an element.
    """
    if data_format.is_block:
        raise DeviceError(
            "datum for bfp2, bfp4, bfp8 is invalid\n"
            f"conv_config.enable_activation_reuse: the buffers of an input in {data_format} can not be estimated with "
            "it; leave it out, or use bfloat16"
        )


def reuse_tiles(
    data_format: DataFormat,
    *,
    act_h_tiles: int,
    act_w_tiles: int,
    columns: int,
    channels: int,
    kernel: tuple[int, int],
) -> int:
    """Tiles of the buffer of one reader.

    Args:
        data_format: Format of the halo output.
        act_h_tiles: Tile rows that the reader gathers of a block.
        act_w_tiles: Width of a block.
        channels: Padded channels of a tap.
        kernel: (kh, kw).
    """
    row_tiles = div_up(columns, TILE)
    element_bytes = data_format.element_bytes or 0
    added = channels * kernel[1] * (1 + -columns % TILE * kernel[0]) * element_bytes
    return row_tiles * act_w_tiles + div_up(div_up(act_h_tiles, row_tiles) * added, data_format.tile_bytes)


def reuse_refusal(config: ParallelConfig, frame: Frame, *, split_reader: bool) -> str | None:
    """Why the program can not reuse activations, in the real library's words and ours; None if it can, or is WIDTH."""
    if config.scheme not in (HEIGHT, BLOCK):
        return None
    axes, way_out = (frame.rows, frame.columns), "conv_config.enable_activation_reuse: leave it out"
    if config.scheme is BLOCK:
        return f"Activation data reuse is not supported for block sharded\n{way_out}, or use HEIGHT_SHARDED"
    if any(axis.spacing != 1 for axis in axes):
        return f"Activation data reuse is not supported for dilation > 1\n{way_out}"
    if any(axis.step != 1 for axis in axes):
        return f"Activation data reuse is not supported for stride > 1\n{way_out}"
    if not split_reader:
        return f"Activation data reuse requires split reader to be on\n{way_out}, or leave force_split_reader out"
    return None
