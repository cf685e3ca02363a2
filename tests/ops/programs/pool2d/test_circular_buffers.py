"""Circular buffers of a pool program, worked by hand."""

import pytest

from device.cores import first_cores
from device.numbers.formats import BFLOAT8_B, BFLOAT16
from ops.programs.pool2d import PoolSizes, pool_buffers

CORES = first_cores(4, 8, 8)


def sizes(taps=4, channels=40, out_shard=(9, 64), tiled=False):
    data_format = BFLOAT8_B if tiled else BFLOAT16
    return PoolSizes(taps=taps, channels=channels, out_shard=out_shard, data_format=data_format, tiled=tiled)


@pytest.mark.parametrize(
    ("taps", "channels", "window_bytes"),
    [
        (4, 40, 2048),  # two tiles across, four rows: 256 elements, a tile's worth at least
        (16, 256, 8192),  # 8 tiles across, 16 rows
        (17, 64, 4096),  # whole tiles of 32 rows
        (9, 512, 6144),  # 16 tiles across are reduced 8 at a time: 9 rows of 256, rounded up to tiles
    ],
)
def test_windows_are_whole_tiles(taps, channels, window_bytes):
    assert sizes(taps, channels).window_bytes == window_bytes


def test_all_that_is_no_view_of_an_input():
    """Scalars (two tiles), the least number (one), four windows, and 9 x 64 results of 2 bytes."""
    assert sizes().l1_bytes == 3 * 2048 + 4 * 2048 + 1152


def test_buffers_in_order_of_allocation():
    made = pool_buffers(
        sizes(out_shard=(32, 64), tiled=True), halo="halo", halo_bytes=800, indices="lists", indices_bytes=38,
        output="output", cores=CORES,
    )  # fmt: skip
    assert [(one.name, one.size_bytes, one.view_of) for one in made] == [
        ("scalar", 4096, None),
        ("least", 2048, None),
        ("sticks", 800, "halo"),
        ("reader_indices", 20, "lists"),  # half a list, in words of 4 bytes
        ("windows_0", 4096, None),
        ("windows_1", 4096, None),
        ("untilized", 4096, None),
        ("output", 2176, "output"),
    ]
