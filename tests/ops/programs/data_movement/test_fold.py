"""The buffers of a program that folds windows, by hand, and the shards that it wants."""

import pytest

from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.numbers.formats import BFLOAT16
from ops.builder import PlanTensor
from ops.op_models import load_spec
from ops.programs.data_movement.fold import fold_buffers, folds_tiles, whole_windows
from tests.build import place, tensor_spec

SPEC = load_spec("wormhole_n150")


@pytest.mark.parametrize(
    ("image", "window", "to", "sizes"),
    [
        # three channels are 6 bytes, 32 apart: two windows of four, and one of them without gaps; 16 windows
        ("1x8x8x3 l1", (2, 2), "l1", [(2 * 4 * 32, 16), (4 * 6, 16)]),
        ("1x64x64x16 l1", (1, 2), "l1", [(2 * 2 * 32, 64)]),
        # 64 rows of images, a core each: two tiles, two tiles' rows, and 32 windows of two sticks of 32 bytes
        ("1x64x64x16 tile l1", (1, 2), "l1", [(4096, 64), (4096, 64), (2048, 64)]),
        ("1x64x64x16 bfloat8_b tile l1", (1, 2), "l1", [(2 * 1088, 64), (4096, 64), (2048, 64)]),
        # a hundred parts on 64 cores: two for each of 50, not one or two for each of 64
        ("1x20x20x16 l1", (2, 2), "l1", [(2 * 4 * 32, 50)]),
        ("1x200x64x16 tile l1", (2, 2), "l1", [(4096, 50), (4096, 50), (32 * 4 * 32, 50)]),
        # sticks of six bytes lie 16 apart in shards, four of them, 24 bytes, 32
        ("1x8x8x3 height/64x3/1", (2, 2), "height/16x12/1", [(64 * 16, 1), (16 * 32, 1)]),
    ],
)
def test_buffers_by_hand(image, window, to, sizes):
    source = PlanTensor("input", tensor_spec(image))
    batch, height, width, channels = source.spec.shape
    shape = (batch, height // window[0], width // window[1], window[0] * window[1] * channels)
    tensor = PlanTensor("output", TensorSpec(shape, BFLOAT16, Layout.ROW_MAJOR, place(to)))
    buffers = fold_buffers(source, tensor, window, SPEC)
    assert [(one.size_bytes, one.cores.num_cores()) for one in buffers] == sizes


@pytest.mark.parametrize(
    ("image", "window", "wanted"),
    [
        ("1x30x40x8 height/300x8/4", (2, 2), "height/80x8/15"),  # 15 rows of windows of 80 pixels
        ("1x64x64x16 height/64x16/64", (2, 1), "height/128x16/32"),
        ("1x64x64x16 height/256x16/16", (1, 2), "height/256x16/16"),  # they hold whole rows of windows already
    ],
)
def test_shards_hold_whole_rows_of_windows(image, window, wanted):
    assert whole_windows(tensor_spec(image), window, SPEC) == place(wanted)


@pytest.mark.parametrize(
    ("image", "taken"),
    [
        ("1x64x64x16 tile l1", True),
        ("1x8x8x3 tile l1", False),  # six bytes are no whole words
        ("1x8x8192x64 tile l1", False),  # 2 MB of a row of windows
        ("1x64x64x16 l1", False),
    ],
)
def test_which_tiles_are_taken_as_they_are(image, taken):
    assert folds_tiles(tensor_spec(image), (2, 2), SPEC) is taken
