from itertools import pairwise
from math import prod

import pytest
from hypothesis import given, settings, strategies as st

from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, BufferType, Layout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32
from device.plan import Free, Operation
from device.spec.device_spec import load_spec
from ops.builder import PlanBuilder
from ops.programs.movement.reshape import flattened, is_view, reshaped, segments_per_page
from tests.shards import HEIGHT, WIDTH, in_box

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
