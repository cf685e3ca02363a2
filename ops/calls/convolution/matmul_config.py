"""The program of a 1x1 convolution whose input is sharded: it follows the blocks of the convolution."""

from device.memory.memory_config import ShardOrientation
from device.spec.parts import GridSpec
from ops.programs.conv2d.layout import ConvLayout
from ops.programs.conv2d.partition import HEIGHT
from ops.programs.matmul.config import MatmulConfig, MatmulProgram


def sharded_config(layout: ConvLayout) -> MatmulConfig:
    """The program config for an input and an output that lie as a convolution's do.

    HEIGHT shards multiply by all weights, which are multicast; other shards multicast their channels as well, so that
    there is one K block for each core of a row.
    """
    blocks, shards, config = layout.blocks, layout.shards, layout.out_config
    box = config.cores.bounding_box()
    return MatmulConfig(
        program=MatmulProgram.MCAST_IN1 if layout.scheme is HEIGHT else MatmulProgram.MCAST_2D,
        grid=GridSpec(cols=box.cols, rows=box.rows),
        in0_block_w=blocks.act_w_tiles,
        out_block_h=shards.out_row_tiles,
        out_block_w=shards.out_col_tiles,
        out_subblock_h=blocks.subblock_h_tiles,
        out_subblock_w=blocks.subblock_w_tiles,
        per_core_m=shards.out_row_tiles,
        per_core_n=shards.out_col_tiles,
        transpose_mcast=config.orientation is ShardOrientation.COL_MAJOR,
    )
