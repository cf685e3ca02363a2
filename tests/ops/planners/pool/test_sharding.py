"""Which cores hold a pool, worked by hand."""

import pytest

from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout, TensorMemoryLayout
from device.numbers.formats import BFLOAT16
from device.spec.device_spec import load_spec
from ops.planners.pool import PoolArguments, chosen_cores, pool_shards

GRID = load_spec("wormhole_n150").grid
HEIGHT, WIDTH = TensorMemoryLayout.HEIGHT_SHARDED, TensorMemoryLayout.WIDTH_SHARDED


def pool(channels, image=(16, 16), stride=(2, 2), scheme=None, tiled=False):
    source = TensorSpec((1, 1, image[0] * image[1], channels), BFLOAT16, Layout.ROW_MAJOR)
    return PoolArguments(
        source=source, batch=1, image=image, channels=channels, kernel=(2, 2), stride=stride, padding=(0, 0, 0, 0),
        dilation=(1, 1), scheme=scheme, tiled=tiled,
    )  # fmt: skip


@pytest.mark.parametrize(("channels", "columns"), [(8, 16), (16, 16), (24, 32), (40, 64), (48, 48), (72, 96), (80, 80)])
def test_shards_of_whole_half_tiles_stay_as_wide_as_they_are(channels, columns):
    call = pool(channels, scheme=HEIGHT)
    assert pool_shards(call, chosen_cores(call, GRID)).columns == columns


def test_tiles_are_whole():
    call = pool(48, scheme=HEIGHT, tiled=True)
    shards = pool_shards(call, chosen_cores(call, GRID))
    assert (shards.rows, shards.columns) == (32, 64)


def test_the_scheme_that_takes_least_is_chosen():
    """64 results: 64 cores of one, or two cores of 64 rows and 16 channels, 2 KiB as a tile's rows of HEIGHT are."""
    assert chosen_cores(pool(32), GRID).scheme is HEIGHT
    assert chosen_cores(pool(32, image=(14, 16)), GRID).scheme is WIDTH  # 56 rows of 32 B are less than 32 of 64 B
