"""Copies: blocks of tiles, what a core moves of them, the values of operations that move."""

from dataclasses import replace

import pytest

from device.numbers.formats import BFLOAT8_B, BFLOAT16
from device.spec.device_spec import load_spec
from ops.programs.data_movement.copy import Conversion, CopyTensor, tile_blocks
from tests.build import tensor_spec

N150 = load_spec("wormhole_n150")


def blocks_of(name, shape, spec=N150, **options):
    """The blocks of one shape, tilized from bfloat16, or untilized from float32."""
    conversion, data_format = Conversion(name), "float32" if name == "Untilize" else ""
    ends = [tensor_spec(f"{shape} {layout} {data_format}") for layout in ("rows", "tile")]
    return tile_blocks(conversion, *(reversed(ends) if name == "Untilize" else ends), spec, **options)


def test_rows_that_fill_l1_are_cut():
    """512 tiles of two formats take 2 MiB; rows would occupy all 64 cores, 60 blocks do not."""
    blocks = blocks_of("Tilize", "4096x16384")
    assert (blocks.side, blocks.num_cores, list(blocks.cores_by_width(N150))) == (35, 60, [35, 22])


@pytest.mark.parametrize("grid", [(1, 1), (2, 1)])
def test_a_grid_too_small_for_blocks_has_rows(grid):
    spec = replace(N150, grid=replace(N150.grid, cols=grid[0], rows=grid[1]))
    blocks = blocks_of("Tilize", "32x1280", spec=spec)
    assert blocks is None or blocks.num_cores <= spec.grid.cores
    assert blocks_of("Tilize", "32x1280", on_one_core=True) is None


@pytest.mark.parametrize(
    ("conversion", "formats", "measured_as"),
    [
        ("Tilize", (BFLOAT16, BFLOAT16), ""),
        ("Tilize", (BFLOAT16, BFLOAT8_B), "Tilize, format changed"),
        ("Typecast", (BFLOAT16, BFLOAT8_B), ""),
        ("UntilizeCodegen", None, ""),
    ],
)
def test_a_program_that_changes_formats_on_its_way_is_a_class_of_its_own(conversion, formats, measured_as):
    assert CopyTensor(Conversion(conversion), formats).measured_as == measured_as
