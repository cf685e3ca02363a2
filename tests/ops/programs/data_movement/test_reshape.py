"""Another shape: what a reshape of a convolution runs, its buffers, its map, its shards."""

from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st

from device.memory.memory_config import BufferType
from device.plan import Free
from ops.builder import PlanBuilder
from ops.op_models import load_spec
from ops.programs.data_movement.placement import flattened
from ops.programs.data_movement.reshape import Reshape, map_tiles, reshaped, segments_per_page, tile_map
from tests.build import tensor_spec

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


def planned(source, shape):
    """The plan, released tensors and the result of a reshape of "x" to "y"."""
    builder = PlanBuilder(SPEC, {"x": tensor_spec(source)})
    result = reshaped(builder, builder.tensor("x"), shape, "y")
    plan = builder.finish({"output": result})
    return plan, [step.tensor for step in plan.steps if isinstance(step, Free)], result


def test_tiles_move_with_a_resident_map():
    plan, *_ = planned("5x10x28x192 tile height/64x192/8x4", (1, 1, 1400, 192))
    (step,) = plan.steps
    assert (step.outputs[0].buffer.num_cores, step.outputs[0].buffer.size_bytes) == (22, 540672)
    (resident,) = step.resident
    assert (resident.buffer.buffer_type, resident.buffer.page_bytes) == (BufferType.DRAM, 1792)


def test_bytes_are_those_of_tiles_that_pieces_come_from_and_of_the_map():
    """1400 rows in images of 28, in and out of tiles of 32: rows of tiles begin 50 and 44 times, 7 times together.

    Six tiles a row; each of 44 * 6 output tiles has a page of the map.
    """
    source, target = tensor_spec("5x10x28x192 tile"), tensor_spec("1x1x1400x192 tile")
    reads = Reshape(target.shape).movement(source, target, SPEC).reads
    assert reads.moved_bytes == (50 + 44 - 7) * 6 * 2048 + 44 * 6 * 1792


def test_volumes_must_agree():
    with pytest.raises(ValueError, match="two shapes with different volumes"):
        planned("1x1x4x8", (1, 1, 5, 8))
    assert flattened((2, 3, 4, 5)) == (1, 1, 24, 5)


def test_every_output_tile_has_a_page_of_the_map():
    assert map_tiles((7, 7, 33)) == 14


def test_rows_that_stay_as_long_are_counted_whole():
    """16 faces a row, in 795 x 8 tiles; rows of tiles begin 795 and 791 times, in every 32nd image 5 times together."""
    counted = tile_map((1, 1, 25281, 256), (1, 159, 159, 256))
    assert counted == (25281 * 16 / (795 * 8), (795 + 791 - 5 * 5) / 795)


def test_rows_that_change_their_length_are_sampled():
    """Of 6360 tiles, all counted: 63.6 pieces a tile, each two of them from another tile than the two before."""
    pieces, fetched = tile_map((1, 1, 25281, 256), (1, 159, 318, 128))
    assert pieces == pytest.approx(63.6, rel=0.01)
    assert fetched == pytest.approx(31.8, rel=0.01)
