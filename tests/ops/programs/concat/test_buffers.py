"""Buffers of concatenations, worked by hand on a grid of 8 x 8 cores."""

from device.cores import CoreCoord
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT16
from ops.meanings import load_spec
from ops.programs.concat.buffers import page_buffers, ragged_buffers

SPEC = load_spec("wormhole_n150")


def tensor(rows, columns, layout):
    return TensorSpec((1, 1, rows, columns), BFLOAT16, layout, DRAM_MEMORY_CONFIG)


def test_two_rows_pass_through_each_core_aligned_as_dram_has_them():
    (pages,) = page_buffers(tensor(100, 40, Layout.ROW_MAJOR), SPEC)
    assert (pages.page_bytes, pages.size_bytes) == (96, 192)  # 80 bytes up to a multiple of 32
    assert pages.cores.num_cores() == 64


def test_tiles_go_to_a_core_each_column_by_column():
    (pages,) = page_buffers(tensor(64, 160, Layout.TILE), SPEC)
    assert (pages.page_bytes, pages.size_bytes) == (2048, 4096)
    assert set(pages.cores.cores()) == {*(CoreCoord(0, row) for row in range(8)), CoreCoord(1, 0), CoreCoord(1, 1)}


def test_columns_that_end_within_tiles_are_joined_as_sticks():
    """Twice 2 tiles of which the second holds 8 columns give 3 tiles; 70 rows of tiles are two for each of 35 cores."""
    part, made = tensor(70 * 32, 40, Layout.TILE), tensor(70 * 32, 80, Layout.TILE)
    found = ragged_buffers([part, part], made, SPEC)
    assert {one.name: one.size_bytes // 2048 for one in found} == {"tiles": 8, "sticks": 4, "joined": 3, "result": 6}
    assert {one.cores.num_cores() for one in found} == {35}
