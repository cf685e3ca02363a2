"""A convolution laid out: every row and channel is dealt, to as many cores as do not stay empty, in whole blocks."""

import pytest

from device.errors import DeviceError
from device.spec.device_spec import load_spec
from device.spec.parts import GridSpec
from ops.programs.conv2d.partition import BLOCK, HEIGHT
from tests.ops.programs.conv2d.convolutions import column, conv_problem, partitioned

P150 = load_spec("blackhole_p150")


@pytest.mark.parametrize(("down", "channels"), [(False, 13), (True, 7)])
def test_cores_of_the_output(down, channels):
    """13 tiles of output channels on a grid of 13 columns and 10 rows; the caller may give a grid for BLOCK."""
    problem = conv_problem(column(320), (64, 416))
    layout = partitioned(problem, BLOCK, P150, alignment=32, transpose_shards=down)
    assert layout.out_config.channel_cores == channels
    grid = GridSpec(cols=10, rows=4) if down else GridSpec(cols=4, rows=10)
    given = partitioned(problem, BLOCK, P150, alignment=32, transpose_shards=down, output_grid=grid)
    assert given.out_config.channel_cores == 4
    with pytest.raises(DeviceError, match=r"^NHW cores must match .*\n.*it has 9 cores .* lies on 10;"):
        partitioned(problem, BLOCK, P150, transpose_shards=down, output_grid=GridSpec(cols=9, rows=9))
    with pytest.raises(DeviceError, match=r"^Output sharding config override is only supported for BLOCK_SHARDED"):
        partitioned(problem, HEIGHT, P150, output_grid=grid)
