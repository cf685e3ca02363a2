"""Circular buffers of output phases, worked by hand."""

import pytest

from device.memory.memory_config import Layout
from device.numbers.formats import BFLOAT8_B

TILE = 2048


def tiles(planned):
    return {name: one.size_bytes // TILE for name, one in planned.buffers().items() if one.page_bytes == TILE}


def test_each_is_as_large_as_the_phase_that_needs_most(planned):
    """3x3 at stride 2 on 8 x 8 pixels: K blocks of two taps at most, one tile each; a block of one tile of rows."""
    made = planned(kernel=(3, 3))
    assert tiles(made) == {"weights": 2, "partials": 1, "act": 2, "act_tilized": 2, "out_sticks": 1, "out": 1}


def test_an_output_in_tiles_has_its_shard_as_sticks_first(planned):
    made = planned(output_layout=Layout.TILE)
    found = tiles(made)
    assert (found["out_rows"], found["out_sticks"]) == (1, 2)  # two phases beside each other
    assert made.buffers()["out"].view_of == "output"
    assert made.buffers()["out_rows"].view_of is None


def test_block_floats_are_sticks_of_bfloat16(planned):
    made = planned(output_layout=Layout.TILE, made=BFLOAT8_B)
    assert made.buffers()["out_rows"].page_bytes == TILE
    assert made.buffers()["out"].page_bytes == 1088


def test_a_bias_is_held_once(planned):
    assert tiles(planned(bias=True))["bias"] == 1


@pytest.mark.parametrize("scheme", ["HEIGHT_SHARDED", "BLOCK_SHARDED", "WIDTH_SHARDED"])
def test_the_halo_lies_under_the_reader(planned, scheme):
    made = planned((16, 16), scheme=scheme)
    frame = planned((16, 16), scheme=scheme, phases=False)
    assert made.buffers()["act_sharded"].view_of == "halo"
    assert made.buffers()["act_sharded"].size_bytes < frame.buffers()["act_sharded"].size_bytes
    assert made.buffers()["out"].size_bytes == frame.buffers()["out"].size_bytes
