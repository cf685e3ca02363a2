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
    ("rows", "doubled", "within"), [(0, False, 0.10), (64, True, 0.15)], ids=["64 tiles", "64 rows, double buffers"]
)
@pytest.mark.parametrize(("kernel", "padding", "block_us", "height_us"), [(2, (0, 1), 428, 103), (3, (1, 1), 875, 220)])
def test_block_shards_beside_height_shards(kernel, padding, block_us, height_us, rows, doubled, within):
    """tt-mlir #7474 and #7701: 256 to 128 channels, 128 x 128 outputs, 8 x 8 cores, HiFi4, bfloat16.

    The issues' "ABH=64" is read in two ways: as blocks of 64 tiles in BLOCK shards (all 2,048 rows of a core, the
    height that the library chooses) with single buffers, and as 64 rows with double buffers. The first pair is the
    convolution of conv_transpose2d with a kernel and a stride of 2 on 64 x 64.
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
    found = []
    for scheme, height in ((BLOCK, rows), (HEIGHT, 64)):
        layout = partitioned(
            problem, scheme, N150, act_block_h_override=height, act_double_buffer=doubled, weights_double_buffer=doubled
        )
        op = Conv2dOp.of(layout, fidelity_phases=4)
        assert op.layout.blocks.act_h_tiles == (height // TILE or 64)
        found.append(conv_cycles(op, N150).cycles / N150.clock_hz * 1e6)
    assert found == pytest.approx([block_us, height_us], rel=within)
    assert found[0] / found[1] == pytest.approx(block_us / height_us, rel=within)
