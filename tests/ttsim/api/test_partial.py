"""One of several equal slices of a tensor, to shards and back, and views: plans of ttnn 0.81.1, numbers by numpy."""

import numpy as np
import pytest

import ttsim as ttnn
from tests.build import place
from tests.ttsim.api.calls import buffers, operations, put, put_all, refusal

SCHEMES = {name: ttnn.TensorMemoryLayout[f"{name.upper()}_SHARDED"] for name in ("height", "width", "block")}
BY_ROWS, BY_COLUMNS = ttnn.ShardOrientation.ROW_MAJOR, ttnn.ShardOrientation.COL_MAJOR


def sliced(x, grid, shard, count, index, scheme="height", orientation=BY_ROWS, **named):
    return ttnn.interleaved_to_sharded_partial(x, grid, shard, count, index, SCHEMES[scheme], orientation, **named)


# A tensor, a grid, a shard, slices and scheme; the shards that the real library makes
SLICED = [
    ("1x1x128x64 tile", (8, 1), (32, 64), (2, 1), "height", "height/32x64/2"),
    ("2x3x64x64 tile", (8, 1), (32, 64), (2, 1), "height", "height/32x64/6"),
    ("1x1x100x50 tile", (8, 1), (32, 64), (2, 1), "height", "height/32x64/2"),
    ("1x1x256x96 bfloat8_b tile L1", (4, 2), (64, 32), (4, 2), "width", "width/64x32/3"),
]


@pytest.mark.parametrize(("words", "grid", "shard", "slices", "scheme", "shards"), SLICED)
def test_a_slice_becomes_shards(device, words, grid, shard, slices, scheme, shards):
    """Slices count rows of all images with their padding, which has zeros here."""
    x, (count, index) = put(device, words), slices
    assert operations(lambda: sliced(x, grid, shard, *slices, scheme)) == ["InterleavedToShardedPartial"]
    y = sliced(x, grid, shard, *slices, scheme)
    padded = np.pad(x.to_numpy(), [(0, whole - side) for side, whole in zip(x.shape, x.padded_shape, strict=True)])
    rows = padded.reshape(count, 1, -1, padded.shape[-1])[index : index + 1]
    assert y.memory_config() == place(shards)
    assert np.array_equal(y.to_numpy(), rows)


@pytest.mark.parametrize(("words", "dtype"), [("1x1x64x64 tile", ttnn.bfloat16), ("2x1x32x64 tile", ttnn.float32)])
def test_shards_become_a_slice(device, words, dtype):
    """The tensor keeps its place and data type, whatever the call asks for, and its other slices."""
    x = ttnn.reshape(put(device, words), (1, 1, 64, 64))
    x = ttnn.to_memory_config(x, place("height/32x64/2"))
    whole = ttnn.ones((1, 3, 64, 64), dtype=dtype, layout=ttnn.TILE_LAYOUT, device=device)
    write = lambda: ttnn.sharded_to_interleaved_partial(x, whole, 3, 1, memory_config=ttnn.L1_MEMORY_CONFIG)  # noqa: E731
    assert operations(write) == ["ShardedToInterleavedPartial"]
    assert write() is whole
    assert whole.dtype == dtype
    assert whole.memory_config() == ttnn.DRAM_MEMORY_CONFIG
    values = whole.to_numpy()
    assert np.array_equal(values[0, 1], x.to_numpy()[0, 0])
    assert (values[0, ::2] == 1).all()


@pytest.mark.parametrize("where", ["", "height/192x64/1", "height/96x64/2 dram"])
def test_shards_are_converted_for_a_slice_wherever_it_lies(device, where):
    x, whole = put_all(device, f"1x1x64x64 tile height/32x64/2 + 1x1x192x64 float32 tile {where}")
    sizes = buffers(lambda: ttnn.sharded_to_interleaved_partial(x, whole, 3, 1))
    assert sizes == [(2 * 2048, 1), (2 * 4096, 0)]
    assert np.array_equal(whole.to_numpy()[0, 0, 64:128], x.to_numpy()[0, 0])


WHOLE, TILES = "1x1x128x64 tile", "1x1x64x64 tile height/32x64/2"
REFUSED = [
    (WHOLE, lambda x: sliced(x, (8, 1), (32, 64), 2, 2), "Slice index and num_slices don't match! Index = 2 num_slices "
     "= 2"),
    (WHOLE, lambda x: sliced(x, (8, 1), (32, 64), 3, 0), "Total height of a tensor must be divisible by num_slices!"),
    (WHOLE, lambda x: sliced(x, (1, 1), (32, 64), 2, 0), "Target number of cores 2 is greater than total number of "
     "available cores 1"),
    (WHOLE, lambda x: sliced(x, (2, 0), (32, 64), 2, 0), "Start core must be within grid size"),
    (WHOLE, lambda x: sliced(x, (99, 1), (32, 64), 2, 0), "Grid size for sharding must be less than or equal to total "
     "grid available"),
    (WHOLE, lambda x: sliced(x, place("height/32x64/2").shard_spec.grid, (32, 64), 2, 0), "Unsupported type for grid. "
     "CoreRangeSet not supported. Switch to a different type."),
    ("1x1x128x64 rows", lambda x: sliced(x, (8, 1), (32, 64), 2, 0), "Currently, only tile layout is supported for "
     "partial I->S"),
    (TILES, lambda x: sliced(x, (8, 1), (32, 64), 1, 0), "Input tensor must be Interleaved"),
    ("128x64 tile", lambda x: sliced(x, (8, 1), (32, 64), 1, 0), "ShapeBase[] index out of range. 2 not in [-4, 2)"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "call", "text"), REFUSED)
def test_errors_begin_as_those_of_the_real_library(device, words, call, text):
    x = put(device, words)
    assert refusal(lambda: call(x)).startswith(f"Device: {text}")


def test_slices_of_parts_of_tiles_are_refused_by_name(device):
    """The real library takes them, and misplaces tiles."""
    x, small = put(device, WHOLE), put(device, TILES)
    assert refusal(lambda: sliced(x, (8, 1), (32, 64), 8, 0)).startswith(
        "NotSimulated: interleaved_to_sharded_partial: ttsim does not simulate slices of 16 rows"
    )
    assert refusal(lambda: ttnn.sharded_to_interleaved_partial(small, x, 4, 0)).startswith(
        "NotSimulated: sharded_to_interleaved_partial: ttsim does not simulate where a slice of another size"
    )


@pytest.mark.parametrize(
    ("dtype", "held"),
    [
        (None, []),  # nothing but the view
        (ttnn.bfloat8_b, [(2176, 1), (4096, 0)]),
    ],
)
def test_a_program_that_changes_the_format_holds_both(device, dtype, held):
    x = put(device, WHOLE)
    assert sorted(buffers(lambda: sliced(x, (8, 1), (32, 64), 2, 0, output_dtype=dtype))) == held


def test_blackhole_reads_tiles_into_a_buffer_of_their_own():
    device = ttnn.open_device(spec="blackhole_p150")  # four tiles with room to align each
    x = put(device, WHOLE)
    assert sorted(buffers(lambda: sliced(x, (8, 1), (32, 64), 2, 0))) == [(4096, 1), (4 * (2048 + 64), 0)]
    ttnn.close_device(device)


VIEWED = [
    ("1x4x229x100 bfloat8_b tile", (4, 229, -1)),
    ("2x32x192 tile height/32x192/2", (1, 1, 64, 192)),
    ("4x3x33x3 rows", (396, 3)),
]
NO_VIEWS = [
    ("1x3x1x160x64 tile", (1, 1, 1, 30720), "The last dimension can not change in view, attempting to change last "
     "dimension from 64 to 30720, use reshape instead"),
    ("4x1x281x352 tile", (1, 1, 1124, 352), "Invalid second last dims for TILED reshape, from 281 to 1124, use"),
    ("2x32x64 tile", (1, 32, 64), "Invalid arguments to reshape"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "shape"), VIEWED)
def test_a_view_shares_its_buffer(device, words, shape):
    x = put(device, words)
    y = ttnn.view(x, shape)
    assert y.buffer_address() == x.buffer_address()
    assert np.array_equal(y.to_numpy(), x.to_numpy().reshape(shape))
    assert ttnn.view(x, tuple(x.shape)) is x


@pytest.mark.parametrize(("words", "shape", "text"), NO_VIEWS)
def test_what_is_no_view_is_refused(device, words, shape, text):
    x = put(device, words)
    assert refusal(lambda: ttnn.view(x, shape)).startswith(f"Device: {text}")
