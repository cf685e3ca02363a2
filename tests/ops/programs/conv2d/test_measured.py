"""Convolutions whose time on a card is public, beyond the rows that the constants were fitted to."""

import pytest

from device.memory.memory_config import TILE
from device.numbers.formats import BFLOAT16
from device.spec.device_spec import load_spec
from ops.programs.conv2d.cycles import conv_cycles
from ops.programs.conv2d.op import Conv2dOp
from ops.programs.conv2d.partition import BLOCK, HEIGHT, ConvProblem
from ops.window import PaddedInput, convolution_axis
from tests.ops.programs.conv2d.convolutions import partitioned

N150 = load_spec("wormhole_n150")


@pytest.mark.parametrize(
    ("kernel", "padding", "scheme", "block_tiles", "microseconds"),
    [
        (2, (0, 1), BLOCK, 64, 428),
        (2, (0, 1), HEIGHT, 2, 103),
        (3, (1, 1), BLOCK, 64, 875),
        (3, (1, 1), HEIGHT, 2, 220),
    ],
)
def test_block_shards_beside_height_shards(kernel, padding, scheme, block_tiles, microseconds):
    """tt-mlir #7474 and #7701: 256 to 128 channels, 128 x 128 outputs, 8 x 8 cores, HiFi4, bfloat16.

    Blocks in BLOCK shards are 64 tiles high: all 2,048 rows of a core, the height that the library chooses. The first
    pair is the convolution of conv_transpose2d with a kernel and a stride of 2 on 64 x 64.
    """
    axis = convolution_axis(input_length=128, kernel=kernel, stride=1, padding=padding, dilation=1)
    problem = ConvProblem(
        frame=PaddedInput(batch=1, rows=axis, columns=axis),
        in_channels=256,
        out_channels=128,
        in_format=BFLOAT16,
        weight_format=BFLOAT16,
        out_format=BFLOAT16,
        row_major=False,
        bias=False,
    )
    height = 0 if scheme is BLOCK else 2 * TILE
    op = Conv2dOp.of(partitioned(problem, scheme, N150, act_block_h_override=height), fidelity_phases=4)
    assert op.layout.blocks.act_h_tiles == block_tiles
    assert conv_cycles(op, N150).cycles / N150.clock_hz * 1e6 == pytest.approx(microseconds, rel=0.10)
