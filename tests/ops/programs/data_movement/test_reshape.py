"""Another shape: what a reshape runs, its buffers, its shards."""

from itertools import pairwise
from math import prod

import pytest
from hypothesis import given, settings, strategies as st

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    L1_MEMORY_CONFIG,
    BufferType,
    Layout,
    MemoryConfig,
    ShardOrientation,
    ShardSpec,
)
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32
from device.plan import Free, Operation
from ops.builder import PlanBuilder
from ops.op_models import load_spec
from ops.programs.data_movement.reshape import map_tiles, segments_per_page, stick_buffers, tile_buffers, tile_map
from ops.programs.data_movement.reshape_plan import flattened, is_view, reshaped, resharded_place
from tests.shards import BLOCK, HEIGHT, WIDTH, in_box

WORMHOLE = load_spec("wormhole_n150")


def place(page, row, col, rows, cols):
    """Tile and offset in it of an element of a [pages, rows, cols] tensor."""
    tile = (page * -(-rows // 32) + row // 32) * -(-cols // 32) + col // 32
    row, col = row % 32, col % 32
    return tile, (row // 16 * 2 + col // 16) * 256 + row % 16 * 16 + col % 16


def slow_segments(before, after):
    """The same count, element by element."""
    most = {}
    _, high, cols = after
    tiles_high, tiles_wide = -(-high // 32), -(-cols // 32)
    for tile in range(after[0] * tiles_high * tiles_wide):
        image, rest = divmod(tile, tiles_high * tiles_wide)
        top, left = rest // tiles_wide * 32, rest % tiles_wide * 32
        walk = []
        for row in range(top, min(top + 32, high)):
            for col in range(left, min(left + 32, cols)):
                flat_row = image * high + row
                source = place(flat_row // before[1], flat_row % before[1], col, before[1], cols)
                walk.append((*source, place(image, row, col, high, cols)[1]))
        segments = {walk[0][0]: 1}
        for (tile_a, in_a, out_a), (tile_b, in_b, out_b) in pairwise(walk):
            if (tile_a, in_a + 1, out_a + 1) != (tile_b, in_b, out_b):
                segments[tile_b] = segments.get(tile_b, 0) + 1
        most[tile] = len(segments) * max(segments.values())
    largest = max(most.values())
    return largest + largest % 16


@given(
    st.integers(1, 5), st.integers(1, 40), st.sampled_from([1, 8, 15, 16, 17, 31, 32, 33, 48, 64, 80]), st.booleans()
)
@settings(deadline=None, max_examples=40)
def test_segments_are_counted_as_element_by_element(images, width, channels, flatten):
    image, flat = (images, width, channels), (1, images * width, channels)
    before, after = (image, flat) if flatten else (flat, image)
    assert segments_per_page(before, after) == slow_segments(before, after)


def test_segments_of_a_recorded_map():
    # A recorded run flattens a 28x28 image of 128 channels and keeps a map with pages of 1792 bytes: 112 segments.
    assert segments_per_page((28, 28, 128), (1, 784, 128)) == 112


def begun(shape, data_format=BFLOAT16, layout=Layout.TILE, config=DRAM_MEMORY_CONFIG):
    builder = PlanBuilder(WORMHOLE, {"x": TensorSpec(shape, data_format, layout, config)})
    return builder, builder.tensor("x")


@pytest.mark.parametrize(
    ("shape", "layout", "target", "view"),
    [
        ((2, 3, 5, 8), Layout.ROW_MAJOR, (1, 1, 30, 8), True),
        ((2, 3, 5, 8), Layout.ROW_MAJOR, (1, 1, 60, 4), False),
        ((2, 3, 5, 8), Layout.TILE, (1, 1, 30, 8), False),
        ((2, 3, 32, 8), Layout.TILE, (1, 1, 192, 8), True),
        ((1, 1, 5, 8), Layout.TILE, (5, 8), True),
    ],
)
def test_a_view_moves_nothing(shape, layout, target, view):
    builder, source = begun(shape, layout=layout)
    assert is_view(source.spec, target) is view
    result = reshaped(builder, source, target, "y")
    assert result.spec.shape == target
    assert bool(builder.steps) is not view
    assert result.name == ("x" if view else "y")


def test_tiles_move_with_a_resident_map():
    builder, source = begun((1, 9, 9, 40), FLOAT32, config=L1_MEMORY_CONFIG)
    result = reshaped(builder, source, (1, 1, 81, 40), "y")
    (step,) = builder.steps
    assert step.name == "ReshapeViewDeviceOperation"
    assert [a.tensor for a in step.outputs] == ["y"]
    (kept,) = step.resident
    assert kept.buffer.buffer_type is BufferType.DRAM
    assert kept.buffer.page_bytes == 16 * segments_per_page((9, 9, 40), (1, 81, 40))
    assert result.spec.memory_config == L1_MEMORY_CONFIG


@pytest.mark.parametrize(("channels", "fills"), [(40, True), (64, False)])
def test_block_floats_go_through_bfloat16(channels, fills):
    # 3x32 rows flatten to whole tiles; padding is zeroed only where there is some. Shape 6x16 so that rows must move.
    builder, source = begun((1, 6, 16, channels), BFLOAT8_B)
    result = reshaped(builder, source, (1, 1, 96, channels), "y")
    names = [step.name.removesuffix("DeviceOperation") for step in builder.steps if isinstance(step, Operation)]
    assert names == ["Typecast", "ReshapeView", *(["FillPad"] if fills else []), "Typecast"]
    assert [step.tensor for step in builder.steps if isinstance(step, Free)] == ["y.moved", "y.bfloat16"]
    assert result.spec.data_format == BFLOAT8_B
    assert set(builder.finish({"output": "y"}).tensors) == {"x", "y", "y.moved", "y.moved.map", "y.bfloat16"}


def test_volumes_must_agree():
    with pytest.raises(ValueError, match="two shapes with different volumes"):
        reshaped(*begun((1, 1, 4, 8)), (1, 1, 5, 8), "y")


def names_of(builder):
    return [step.name.removesuffix("DeviceOperation") for step in builder.steps if isinstance(step, Operation)]


def test_sharded_tiles_move_between_shards():
    # As a call of the real library: 5x10 rows of 28 pixels fill 25 of 32 shards, and 22 when they are flattened.
    before = in_box(HEIGHT, (64, 192), 8, 4)
    builder, source = begun((5, 10, 28, 192), config=before)
    result = reshaped(builder, source, (1, 1, 1400, 192), "y")
    assert names_of(builder) == ["ReshapeView"]
    (step,) = builder.steps
    assert (step.outputs[0].buffer.num_cores, step.outputs[0].buffer.size_bytes) == (22, 540672)
    assert step.resident[0].buffer.page_bytes == 1792
    assert result.spec.memory_config == before


def test_sharded_block_floats_are_dealt_last():
    # As a call of conv2d: 7 images of 2x2 pixels, 180 channels on 15 cores.
    builder, source = begun((7, 2, 2, 180), BFLOAT8_B, config=in_box(WIDTH, (448, 32), 3, 5))
    result = reshaped(builder, source, (1, 1, 28, 180), "y")
    assert names_of(builder) == [
        "ShardedToInterleaved",
        "Typecast",
        "ReshapeView",
        "FillPad",
        "Typecast",
        "InterleavedToSharded",
    ]
    freed = [step.tensor for step in builder.steps if isinstance(step, Free)]
    assert freed == ["y.interleaved", "y.moved", "y.narrow", "y.bfloat16"]
    assert result.spec.memory_config == in_box(WIDTH, (32, 32), 3, 5)
    builder.finish({"output": "y"})


def test_sharded_rows_of_another_length_are_dealt_last():
    builder, source = begun((1, 1, 8, 32), layout=Layout.ROW_MAJOR, config=in_box(HEIGHT, (4, 32), 2))
    result = reshaped(builder, source, (1, 1, 16, 16), "y")
    assert names_of(builder) == ["ShardedToInterleaved", "ReshapeView", "InterleavedToSharded"]
    assert result.spec.memory_config == in_box(HEIGHT, (8, 16), 2)
    builder.finish({"output": "y"})


@given(st.lists(st.integers(1, 6), min_size=1, max_size=5))
def test_flattened_keeps_channels(shape):
    assert prod(flattened(tuple(shape))) == prod(shape)
    assert flattened(tuple(shape))[-1] == shape[-1]


SPEC = load_spec("wormhole_n150")


def sticks(before, after, data_format=BFLOAT16, place=DRAM_MEMORY_CONFIG):
    read, made = (TensorSpec(shape, data_format, Layout.ROW_MAJOR, place) for shape in (before, after))
    found = stick_buffers(read, made, SPEC)
    assert all(one.scratchpad and one.cores.num_cores() == 64 for one in found)
    return [one.size_bytes for one in found]


def test_one_processor_puts_odd_rows_together():
    """Rows of 140 bytes are read from multiples of 64 on, twice; rows of 100 have eight places."""
    assert sticks((1, 1, 50, 70), (1, 1, 70, 50)) == [2 * (128 + 128), 8 * (64 + 80)]


@pytest.mark.parametrize("place", [DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG])
def test_two_processors_move_rows_that_divide_each_other(place):
    sizes = [2 * (576 + 128), 61376 + 80]
    assert sticks((1, 3, 96, 160), (1, 1, 3, 15360), FLOAT32, place) == sizes * 2


def test_tiles_have_a_page_of_the_map_each():
    read, made = (TensorSpec(shape, BFLOAT16, Layout.TILE) for shape in ((1, 1, 49, 32), (1, 7, 7, 32)))
    found = tile_buffers(read, made, 16, SPEC)
    assert [(one.size_bytes, one.cores.num_cores(), one.scratchpad) for one in found] == [
        (256, 7, False),
        (2048, 7, False),
        (2048, 7, True),
    ]
    assert map_tiles((7, 7, 33)) == 14


@pytest.mark.parametrize(
    ("before", "after", "most"),
    [
        ((1, 64, 128), (1, 128, 64), 64),  # 16 rows of one tile lie 2 apart: two pieces each of two tiles' 16 rows
        ((3, 96, 160), (1, 3, 15360), 6),  # a row of each of three images, two faces wide
        ((1, 1, 32), (1, 1, 32), 2),  # two faces
        ((1, 2, 32), (1, 4, 16), 4),  # a face each, and four rows in one tile
    ],
)
def test_runs_of_neighbors(before, after, most):
    assert segments_per_page(before, after) == most + most % 16


ROW, COL = ShardOrientation.ROW_MAJOR, ShardOrientation.COL_MAJOR


def grid(cols, rows):
    return CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(cols - 1, rows - 1))])


@pytest.mark.parametrize(
    ("rows", "cols", "before", "after"),
    [
        (1400, 192, in_box(HEIGHT, (64, 192), 8, 4), in_box(HEIGHT, (64, 192), 8, 4)),
        (1408, 64, in_box(WIDTH, (1920, 32), 8, 7), in_box(WIDTH, (1408, 32), 8, 7)),
        (360, 32, in_box(BLOCK, (640, 32), 7, 3), in_box(BLOCK, (128, 32), 1, 3)),
        (42, 32, in_box(BLOCK, (64, 32), 2, 3, COL), in_box(BLOCK, (32, 32), 2, 1, COL)),
        (13944, 32, in_box(BLOCK, (12416, 32), 1, 3), in_box(BLOCK, (6976, 32), 1, 2)),
        (25, 32, in_box(HEIGHT, (32, 32), 6, 4), in_box(WIDTH, (32, 32), 6, 4)),  # one shard holds all rows
    ],
)
def test_shards_after_a_reshape(rows, cols, before, after):
    spec = TensorSpec((1, 1, rows, cols), BFLOAT16, Layout.TILE, L1_MEMORY_CONFIG)
    assert resharded_place(spec, before) == after


def test_a_grid_that_is_no_rectangle_gives_the_sharding_up():
    cores = CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(7, 0)), CoreRange(CoreCoord(0, 1), CoreCoord(2, 1))])
    before = MemoryConfig(HEIGHT, BufferType.L1, ShardSpec(cores, (32, 32)))
    spec = TensorSpec((1, 1, 300, 32), BFLOAT16, Layout.TILE, L1_MEMORY_CONFIG)
    assert resharded_place(spec, before) == L1_MEMORY_CONFIG


def test_rows_are_whole_words():
    spec = TensorSpec((1, 1, 6, 10), BFLOAT16, Layout.ROW_MAJOR, L1_MEMORY_CONFIG)
    assert resharded_place(spec, in_box(HEIGHT, (2, 30), 2, 2)) == in_box(HEIGHT, (2, 10), 2, 2)
    assert resharded_place(spec, in_box(WIDTH, (2, 10), 3)) == in_box(WIDTH, (6, 4), 3)


@pytest.mark.parametrize(
    ("source", "target", "segments", "fetched"),
    [
        ((1, 1, 64, 64), (1, 2, 32, 64), 64, 1),  # 32 rows in two faces, whole tiles
        ((1, 1, 10, 32), (1, 10, 1, 32), 2, 1),  # a row of its own
        ((1, 1, 10, 16), (1, 10, 1, 16), 1, 1),
        ((1, 1, 48, 32), (1, 2, 24, 32), 48, 1.5),  # the second image begins in the first tile and ends in the next
        ((1, 1, 19, 1280), (1, 19, 20, 64), 40, 20),  # each row of an output tile lies in another input tile
        ((1, 1, 1, 48), (1, 1, 2, 24), 5, 2),  # 16 and 8; 8 of the first tile, 8 and 8 of the second
    ],
)
def test_pieces_and_tiles(source, target, segments, fetched):
    found = tile_map(source, target)
    assert (found.segments, found.fetched) == (segments, fetched)


def test_large_tensors_are_sampled():
    found = tile_map((1, 1, 25281, 256), (1, 159, 159, 256))
    assert 60 < found.segments < 64
    assert 1.9 < found.fetched < 2.0
