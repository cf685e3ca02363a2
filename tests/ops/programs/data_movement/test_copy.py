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


@pytest.mark.parametrize(
    ("conversion", "shape", "by_width"),
    [
        ("Tilize", "32x1024", None),  # 32 tiles across: not wide
        ("Tilize", "32x1280", {1: "{[0-0 - 4-7]}"}),
        ("Tilize", "32x2048", {2: "{[0-0 - 3-7]}"}),  # 64 blocks of a tile would leave no core over
        ("Tilize", "2x32x2048", {2: "{[0-0 - 3-7]}"}),  # the same blocks of two images
        ("Tilize", "64x1280", {2: "{[0-0 - 2-3], [0-4 - 1-7]}"}),
        ("Tilize", "4096x4096", None),  # rows of tiles occupy all 64 cores
        (  # 34 tiles: six blocks of five, and one of four
            "Tilize",
            "1088x1088",
            {
                5: "{[0-0 - 5-0], [0-1 - 4-1], [0-2 - 3-2], [0-3 - 2-3], [0-4 - 1-4], [0-5 - 0-5], [0-7 - 5-7], "
                "[1-6 - 5-6], [2-5 - 5-5], [3-4 - 5-4], [4-3 - 5-3], [5-2 - 5-2]}",
                4: "{[0-6 - 0-6], [1-5 - 1-5], [2-4 - 2-4], [3-3 - 3-3], [4-2 - 4-2], [5-1 - 5-1], [6-0 - 6-0]}",
            },
        ),
        ("Untilize", "96x1088", {2: "{[0-0 - 7-3], [0-4 - 1-4]}"}),  # row by row
    ],
)
def test_wide_rows_are_cut_into_blocks(conversion, shape, by_width):
    blocks = blocks_of(conversion, shape)
    if by_width is None:
        assert blocks is None
        return
    cores = blocks.cores_by_width(N150)
    assert {width: str(of_width) for width, of_width in cores.items()} == by_width
    assert sum(of_width.num_cores() for of_width in cores.values()) == blocks.num_cores


@pytest.mark.parametrize(
    ("images", "in_blocks"), [(47, True), (48, False), (53, True), (54, False), (59, True), (60, False)]
)
def test_untilize_counts_the_blocks_of_all_images(images, in_blocks):
    """48 rows of 34 tiles would be 6x8 blocks of six, no more cores than rows; 53 would be 6x9, which is more."""
    blocks = blocks_of("Untilize", f"{images}x1x32x1088")
    assert (blocks and (blocks.side, blocks.num_cores)) == ((1, 34) if in_blocks else None)


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
        ("Tilize", (BFLOAT16, BFLOAT16), "Tilize"),
        ("Tilize", None, "Tilize"),
        ("Tilize", (BFLOAT16, BFLOAT8_B), ""),  # changes the format on the way
        ("Typecast", (BFLOAT16, BFLOAT8_B), "Typecast"),
        ("UntilizeCodegen", None, ""),
        ("Pad", None, ""),
    ],
)
def test_a_program_is_measured_as_it_is_around_convolutions(conversion, formats, measured_as):
    assert CopyTensor(Conversion(conversion), formats).measured_as == measured_as
