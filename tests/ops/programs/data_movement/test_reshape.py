"""Another shape: what a reshape of a convolution runs, its buffers, its map, its shards."""

from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st

from device.memory.memory_config import BufferType
from device.plan import Free
from ops.builder import PlanBuilder
from ops.op_models import load_spec
from ops.programs.data_movement.placement import flattened
from ops.programs.data_movement.reshape import is_view, map_tiles, reshaped, segments_per_page, tile_map
from tests.build import place, programs, tensor_spec

SPEC = load_spec("wormhole_n150")


def stored(page, row, col, rows, cols):
    """Tile and offset in it of an element of a [pages, rows, cols] tensor."""
    tile = (page * -(-rows // 32) + row // 32) * -(-cols // 32) + col // 32
    row, col = row % 32, col % 32
    return tile, (row // 16 * 2 + col // 16) * 256 + row % 16 * 16 + col % 16


def slow_segments(before, after):
    """Segments of the map, element by element."""
    most = {}
    _, high, cols = after
    tiles_high, tiles_wide = -(-high // 32), -(-cols // 32)
    for tile in range(after[0] * tiles_high * tiles_wide):
        image, rest = divmod(tile, tiles_high * tiles_wide)
        top, left = rest // tiles_wide * 32, rest % tiles_wide * 32
        walk = []
        for row in range(top, min(top + 32, high)):
            for col in range(left, min(left + 32, cols)):
                line, in_col = divmod((image * high + row) * cols + col, before[2])
                source = stored(line // before[1], line % before[1], in_col, before[1], before[2])
                walk.append((*source, stored(image, row, col, high, cols)[1]))
        segments = {walk[0][0]: 1}
        for (tile_a, in_a, out_a), (tile_b, in_b, out_b) in pairwise(walk):
            if (tile_a, in_a + 1, out_a + 1) != (tile_b, in_b, out_b):
                segments[tile_b] = segments.get(tile_b, 0) + 1
        most[tile] = len(segments) * max(segments.values())
    largest = max(most.values())
    return largest + largest % 16


CHANNELS = st.sampled_from([1, 8, 15, 16, 17, 31, 32, 33, 48, 64, 80])


@given(st.integers(1, 5), st.integers(1, 40), CHANNELS, st.booleans(), st.integers(1, 3))
@settings(deadline=None, max_examples=40)
def test_segments_are_counted_as_element_by_element(images, width, channels, flatten, parts):
    image, flat = (images, width, channels * parts), (1, images * width * parts, channels)
    before, after = (image, flat) if flatten else (flat, image)
    assert segments_per_page(before, after) == slow_segments(before, after)


@pytest.mark.parametrize(
    ("before", "after", "segments"),
    [
        ((28, 28, 128), (1, 784, 128), 112),  # a recorded run keeps a map with pages of 1792 bytes
        ((1, 64, 128), (1, 128, 64), 64),  # 16 rows of one tile lie 2 apart: two pieces each of two tiles' 16 rows
        ((3, 96, 160), (1, 3, 15360), 6 + 6),  # a row of each of three images, two faces wide
        ((1, 1, 32), (1, 1, 32), 2 + 2),  # two faces
        ((1, 2, 32), (1, 4, 16), 4 + 4),  # a face each, and four rows in one tile
    ],
)
def test_segments_by_hand(before, after, segments):
    assert segments_per_page(before, after) == segments


def planned(source, shape):
    """The plan, released tensors and the result of a reshape of "x" to "y"."""
    builder = PlanBuilder(SPEC, {"x": tensor_spec(source)})
    result = reshaped(builder, builder.tensor("x"), shape, "y")
    plan = builder.finish({"output": result})
    return plan, [step.tensor for step in plan.steps if isinstance(step, Free)], result


@pytest.mark.parametrize(
    ("source", "target", "view"),
    [
        ("2x3x5x8", (1, 1, 30, 8), True),
        ("2x3x5x8", (1, 1, 60, 4), False),
        ("2x3x5x8 tile", (1, 1, 30, 8), False),
        ("2x3x32x8 tile", (1, 1, 192, 8), True),
        ("1x1x5x8 tile", (5, 8), True),
    ],
)
def test_a_view_moves_nothing(source, target, view):
    assert is_view(tensor_spec(source), target) is view
    plan, _, result = planned(source, target)
    assert (bool(plan.steps), result.name, result.spec.shape) == (not view, "x" if view else "y", target)


@pytest.mark.parametrize(
    ("source", "shape", "names", "freed", "after"),
    [
        ("1x9x9x40 float32 tile l1", (1, 1, 81, 40), "ReshapeView", "", "l1"),
        # padding is zeroed only where there is some
        ("96x40 bfloat8_b tile", (6, 16, 40), "Typecast ReshapeView FillPad Typecast", "y.moved y.bfloat16", "dram"),
        ("6x16x64 bfloat8_b tile", (96, 64), "Typecast ReshapeView Typecast", "y.moved y.bfloat16", "dram"),
        # as a call of the real library: 5x10 rows of 28 pixels fill 25 of 32 shards, and 22 when they are flattened
        ("5x10x28x192 tile height/64x192/8x4", (1, 1, 1400, 192), "ReshapeView", "", "height/64x192/8x4"),
        (  # as a call of conv2d: 7 images of 2x2 pixels, 180 channels on 15 cores
            "7x2x2x180 bfloat8_b tile width/448x32/3x5", (1, 1, 28, 180),
            "ShardedToInterleaved Typecast ReshapeView FillPad Typecast InterleavedToSharded",
            "y.interleaved y.moved y.narrow y.bfloat16", "width/32x32/3x5",
        ),
        (
            "8x32 height/4x32/2", (1, 1, 16, 16), "ShardedToInterleaved ReshapeView InterleavedToSharded",
            "y.moved y.interleaved", "height/8x16/2",
        ),
    ],
)  # fmt: skip
def test_programs_of_a_reshape(source, shape, names, freed, after):
    plan, released, result = planned(source, shape)
    assert (programs(plan), released) == (names.split(), freed.split())
    assert (result.spec.memory_config, result.spec.data_format) == (place(after), tensor_spec(source).data_format)


def test_tiles_move_with_a_resident_map():
    plan, *_ = planned("5x10x28x192 tile height/64x192/8x4", (1, 1, 1400, 192))
    (step,) = plan.steps
    assert (step.outputs[0].buffer.num_cores, step.outputs[0].buffer.size_bytes) == (22, 540672)
    (resident,) = step.resident
    assert (resident.buffer.buffer_type, resident.buffer.page_bytes) == (BufferType.DRAM, 1792)


def test_volumes_must_agree():
    with pytest.raises(ValueError, match="two shapes with different volumes"):
        planned("1x1x4x8", (1, 1, 5, 8))
    assert flattened((2, 3, 4, 5)) == (1, 1, 24, 5)


def test_every_output_tile_has_a_page_of_the_map():
    assert map_tiles((7, 7, 33)) == 14


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
    counted = tile_map(source, target)
    assert counted == (segments, fetched)


def test_large_tensors_are_sampled():
    counted = tile_map((1, 1, 25281, 256), (1, 159, 159, 256))
    assert 60 < counted[0] < 64
    assert 1.9 < counted[1] < 2.0
