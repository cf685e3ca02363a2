"""Where a sharded tensor goes whose axes are swapped."""

import pytest

from device.cores import CoreRangeSet, first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    L1_MEMORY_CONFIG,
    BufferType,
    Layout,
    MemoryConfig,
    ShardOrientation,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import BFLOAT16
from ops.op_models import load_spec
from ops.programs.rearrange.turned_shards import (
    LAST_TWO,
    MIDDLE_TWO,
    adjusted,
    even_shards,
    is_native,
    place_of_swap,
    with_shards,
)

SPEC = load_spec("wormhole_n150")
HEIGHT, WIDTH = TensorMemoryLayout.HEIGHT_SHARDED, TensorMemoryLayout.WIDTH_SHARDED
BLOCK = TensorMemoryLayout.BLOCK_SHARDED


def shards(cores, rows, columns):
    return ShardSpec(CoreRangeSet(first_cores(cores, 8, 8).ranges), (rows, columns))


def placed(layout, held):
    return MemoryConfig(layout, BufferType.L1, held)


SIXTY_FOUR = shards(64, 32, 64)


def tensor(shape, layout, place):
    return TensorSpec(shape, BFLOAT16, layout, place)


def test_native_are_full_shards_in_l1_of_whole_tiles_worth():
    rows = tensor((1, 3, 64, 64), Layout.ROW_MAJOR, placed(HEIGHT, shards(12, 16, 64)))
    assert is_native(rows)
    assert is_native(rows, placed(HEIGHT, shards(12, 16, 64)))
    assert not is_native(rows, placed(HEIGHT, shards(11, 32, 64)))  # other cores
    assert not is_native(tensor((1, 1, 50, 70), Layout.ROW_MAJOR, placed(HEIGHT, shards(13, 4, 70))))  # 280 elements
    assert not is_native(tensor((1, 1, 96, 64), Layout.TILE, placed(HEIGHT, shards(2, 64, 64))))  # half a shard


@pytest.mark.parametrize(
    ("shape", "layout", "place", "swapped", "result"),
    [
        ((1, 1, 128, 64), Layout.TILE, placed(HEIGHT, shards(4, 32, 64)), LAST_TWO, placed(WIDTH, shards(4, 64, 32))),
        ((1, 3, 64, 64), Layout.TILE, placed(HEIGHT, shards(2, 96, 64)), LAST_TWO, placed(HEIGHT, shards(2, 96, 64))),
        ((1, 2, 64, 96), Layout.TILE, placed(HEIGHT, shards(4, 32, 96)), LAST_TWO, L1_MEMORY_CONFIG),  # 48 rows
        ((1, 32, 64, 64), Layout.TILE, placed(HEIGHT, SIXTY_FOUR), MIDDLE_TWO, placed(HEIGHT, SIXTY_FOUR)),
        ((1, 1, 50, 70), Layout.ROW_MAJOR, placed(HEIGHT, shards(13, 4, 70)), LAST_TWO, placed(HEIGHT, None)),
        ((2, 2, 64, 64), Layout.TILE, placed(HEIGHT, shards(8, 32, 64)), (0, 1), placed(HEIGHT, shards(8, 32, 64))),
    ],
)  # fmt: skip
def test_places_of_swaps(shape, layout, place, swapped, result):
    assert place_of_swap(tensor(shape, layout, place), swapped) == result


def test_as_many_shards_of_another_shape():
    held = shards(2, 1024, 32)
    assert adjusted(held, (1, 16, 64, 64), (1, 16, 64, 32)).shape == [1024, 16]
    assert adjusted(shards(4, 256, 64), (1, 16, 64, 64), (1, 1, 31, 64)) is None  # a quarter of 31 rows


def test_shards_that_the_program_chooses():
    """70 rows as tiles are three shards; a chain goes on with their share of 70 images of 64 padded rows."""
    given = tensor((1, 1, 50, 70), Layout.ROW_MAJOR, placed(HEIGHT, shards(13, 4, 70)))
    first = with_shards(given, (1, 1, 70, 50), placed(HEIGHT, None), SPEC)
    assert first.shard_spec == shards(3, 32, 64)
    second = tensor((1, 70, 1, 50), Layout.ROW_MAJOR, first)
    assert with_shards(second, (1, 70, 64, 1), placed(HEIGHT, None), SPEC).shard_spec == shards(3, 2048, 1)
    assert with_shards(second, (1, 70, 64, 1), L1_MEMORY_CONFIG, SPEC) == L1_MEMORY_CONFIG


def test_even_shards_on_the_grid():
    along = ShardOrientation.ROW_MAJOR
    assert even_shards((1, 1, 128, 640), WIDTH, along, SPEC.grid) == shards(20, 128, 32)
    held = even_shards((1, 1, 128, 640), BLOCK, along, SPEC.grid)
    assert (held.shape, held.grid.bounding_box().rows, held.grid.bounding_box().cols) == ([32, 96], 4, 7)
    turned = even_shards((1, 1, 128, 640), BLOCK, ShardOrientation.COL_MAJOR, SPEC.grid)
    assert (turned.shape, turned.grid.bounding_box().rows, turned.grid.bounding_box().cols) == ([32, 96], 7, 4)


def test_even_shards_are_whole_tiles_on_fewer_cores_where_tiles_do_not_share_out():
    """Of 3200 rows (100 tiles) 64 cores have 50 each, which is two tiles: 50 cores hold them all."""
    along, around = ShardOrientation.ROW_MAJOR, ShardOrientation.COL_MAJOR
    assert even_shards((1, 1, 3200, 64), HEIGHT, along, SPEC.grid) == shards(50, 64, 64)
    assert even_shards((2, 50, 32, 40), HEIGHT, along, SPEC.grid) == shards(50, 64, 64)
    assert even_shards((1, 1, 40, 3200), WIDTH, along, SPEC.grid) == shards(50, 64, 64)
    held = even_shards((1, 1, 3200, 64), HEIGHT, around, SPEC.grid)
    assert held == ShardSpec(first_cores(50, 8, 8, row_wise=False), (64, 64), around)
    blocks = even_shards((1, 1, 300, 300), BLOCK, along, SPEC.grid)  # 38 rows and columns a core are two tiles
    assert (blocks.shape, blocks.grid.bounding_box().rows, blocks.grid.bounding_box().cols) == ([64, 64], 5, 5)
