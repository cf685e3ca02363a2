"""Tiles with padding, and what the program that fills it holds."""

from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.numbers.formats import BFLOAT16
from ops.op_models import load_spec
from ops.programs.movement.filling import fill_buffers, ragged_tiles

SPEC = load_spec("wormhole_n150")
RAGGED = TensorSpec((1, 5, 33, 47), BFLOAT16, Layout.TILE)


def test_only_tiles_with_padding_count():
    assert ragged_tiles((1, 1, 1024, 24)) == 32
    assert ragged_tiles((1, 5, 33, 47)) == 5 * (2 * 2 - 1)
    assert ragged_tiles((2, 64, 32)) == 0
    assert ragged_tiles((39,)) == 2  # a vector is one row of tiles


def test_a_mask_for_each_side():
    assert [one.size_bytes for one in fill_buffers(RAGGED, SPEC)] == [4096, 2048, 2048, 4096]
    across = TensorSpec((1, 1, 1024, 24), BFLOAT16, Layout.TILE)
    assert [one.name for one in fill_buffers(across, SPEC)] == ["read", "right", "written"]
    assert fill_buffers(across, SPEC)[0].cores.num_cores() == 32
