"""The buffers of a program that folds windows, by hand, and the shards that it wants."""

import pytest

from ops.op_models import load_spec
from ops.programs.data_movement.fold import folds_tiles, whole_windows
from tests.build import place, tensor_spec

SPEC = load_spec("wormhole_n150")


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
