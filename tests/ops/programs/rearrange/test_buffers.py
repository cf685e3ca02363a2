"""Buffers of programs that put numbers in another order, worked by hand on a grid of 8 x 8 cores."""

from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT16
from ops.meanings import load_spec
from ops.programs.rearrange.buffers import pad_buffers, permute_buffers

SPEC = load_spec("wormhole_n150")


def tensor(*shape, layout=Layout.ROW_MAJOR):
    return TensorSpec(shape, BFLOAT16, layout, DRAM_MEMORY_CONFIG)


def sizes(buffers):
    return {one.name: (one.size_bytes, one.cores.num_cores()) for one in buffers}


def test_rows_that_stay_whole_pass_through_one_buffer():
    found = permute_buffers(tensor(1, 4, 5, 40), tensor(1, 5, 4, 40), (0, 2, 1, 3), SPEC)
    assert sizes(found) == {"rows": (2 * 96, 20)}  # 80 bytes up to a multiple of 32


def test_rows_that_are_cut_are_turned_in_blocks_of_a_tile():
    found = permute_buffers(tensor(1, 1, 64, 96), tensor(1, 1, 96, 64), (0, 1, 3, 2), SPEC)
    assert sizes(found) == dict.fromkeys(("read", "tiled", "turned"), (2 * 2048, 6))


def test_tiles_that_end_within_a_tile_are_filled():
    source, made = (tensor(*shape, layout=Layout.TILE) for shape in ((1, 40, 1, 32), (32, 1, 1, 40)))
    assert sizes(permute_buffers(source, made, (3, 0, 2, 1), SPEC))["fill"][0] == 16 * 2


def test_a_pad_reads_at_least_32_kib_at_once():
    assert sizes(pad_buffers(tensor(1, 4, 4, 40), SPEC)) == {"rows": (512 * 80, 16), "fill": (80, 16)}


def test_a_pad_of_tiles_has_two_tiles_and_one_of_the_number():
    found = sizes(pad_buffers(tensor(1, 1, 64, 64, layout=Layout.TILE), SPEC))
    assert found == {"tiles": (2 * 2048, 4), "fill": (2048, 4)}
