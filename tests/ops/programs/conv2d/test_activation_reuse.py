"""What activation reuse asks of blocks, and the buffers of its readers (calls of the real library)."""

import pytest

from device.cores import first_cores
from device.errors import DeviceError
from device.memory.memory_config import ShardOrientation
from device.numbers.formats import BFLOAT8_B, BFLOAT16
from ops.programs.conv2d.buffers import reuse_refusal, reuse_tiles
from ops.programs.conv2d.estimates import check_estimated_format
from ops.programs.conv2d.parallel_config import BLOCK, HEIGHT, WIDTH, ParallelConfig
from ops.programs.conv2d.partition import check_reuse
from ops.window import PaddedAxis, PaddedInput


def cores(scheme):
    return ParallelConfig(
        scheme=scheme,
        nhw_cores=1 if scheme is WIDTH else 2,
        channel_cores=2 if scheme is WIDTH else 1,
        cores=first_cores(2, 8, 8),
        orientation=ShardOrientation.ROW_MAJOR,
    )


def frame(**columns):
    rows = PaddedAxis(input_length=11, before=2, after=2, kernel=5)
    return PaddedInput(batch=1, rows=rows, columns=PaddedAxis(input_length=11, before=1, after=1, kernel=5, **columns))


def test_a_block_must_be_higher_than_a_row_of_the_image():
    check_reuse(cores(HEIGHT), act_h_tiles=2, columns=32)
    check_reuse(cores(BLOCK), act_h_tiles=1, columns=320)
    with pytest.raises(DeviceError, match=r"act block h \(2\) to be bigger than output image width in tiles \(2\) for"):
        check_reuse(cores(HEIGHT), act_h_tiles=2, columns=33)


def test_a_block_float_has_no_bytes_to_count():
    check_estimated_format(BFLOAT16)
    with pytest.raises(DeviceError, match="datum for bfp2, bfp4, bfp8 is invalid"):
        check_estimated_format(BFLOAT8_B)


def test_a_reader_keeps_a_row_of_the_image_and_what_others_add():
    """5x5 over 11x9 outputs of 32 channels: 90112 B for each of two readers with a tile row each."""
    tiles = reuse_tiles(BFLOAT16, act_h_tiles=1, act_w_tiles=25, columns=9, channels=32, kernel=(5, 5))
    assert tiles * BFLOAT16.tile_bytes == 90112


@pytest.mark.parametrize(
    ("scheme", "columns", "split", "text"),
    [
        (HEIGHT, {}, True, None),
        (HEIGHT, {}, False, "requires split reader to be on"),
        (HEIGHT, {"stride": 2}, False, "is not supported for stride > 1"),
        (HEIGHT, {"stride": 2, "dilation": 2}, True, "is not supported for dilation > 1"),
        (BLOCK, {"dilation": 2}, True, "is not supported for block sharded"),
        (WIDTH, {"dilation": 2}, False, None),
    ],
)
def test_programs_that_can_not_reuse(scheme, columns, split, text):
    found = reuse_refusal(cores(scheme), frame(**columns), split_reader=split)
    assert found is None if text is None else text in found.splitlines()[0]
