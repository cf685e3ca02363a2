"""Functions that lay tensors out anew, as users call them: what runs, what it makes, what is refused."""

import numpy as np
import pytest

import ttsim as ttnn
from tests.shards import BLOCK, WIDTH, high, in_box, wide
from tests.ttsim.api.captured import captured
from ttsim.graph import RunMode, begin_graph_capture, end_graph_capture

VALUES = np.arange(64 * 64, dtype=np.float32).reshape(1, 1, 64, 64) % 128


def placed(device, layout=ttnn.TILE_LAYOUT, place=None):
    return ttnn.from_torch(VALUES, ttnn.bfloat16, layout=layout, device=device, memory_config=place)


def buffers(nodes):
    """Kinds and bytes of the buffers that no tensor has."""
    return [
        (node["node_type"].partition("_")[0], int(node["params"]["size"]))
        for node in nodes
        if node["node_type"].endswith(("buffer_allocate", "scratchpad_allocate")) and "page_size" not in node["params"]
    ]


def test_every_change_is_a_device_operation_and_keeps_the_values(device):
    shards, other = high((32, 64), 2), high((64, 64), 1)
    x = placed(device)
    for call, name in (
        (lambda: ttnn.to_memory_config(x, shards), "InterleavedToSharded"),
        (lambda: ttnn.reshard(ttnn.to_memory_config(x, shards), other), "Reshard"),
        (lambda: ttnn.sharded_to_interleaved(ttnn.to_memory_config(x, shards)), "ShardedToInterleaved"),
        (lambda: ttnn.to_memory_config(x, ttnn.L1_MEMORY_CONFIG), "Copy"),
        (lambda: ttnn.to_layout(x, ttnn.ROW_MAJOR_LAYOUT), "UntilizeCodegen"),
        (lambda: ttnn.tilize(ttnn.to_layout(x, ttnn.ROW_MAJOR_LAYOUT)), "Tilize"),
        (lambda: ttnn.typecast(x, ttnn.float32), "Typecast"),
    ):  # fmt: skip
        names, result, _ = captured(call)
        assert names[-1] == name
        assert np.array_equal(result.to_numpy(), VALUES)


def test_a_move_takes_the_pages_of_shards_as_dealt_to_all_banks(device):
    """64 rows move up by 512 bytes, into shards of 832: a bank of 64 would hold 256 bytes of them."""
    tiles = np.zeros((256, 256), np.float32)  # 1,088 bytes of each bank
    above = ttnn.from_torch(
        tiles, ttnn.bfloat8_b, layout=ttnn.TILE_LAYOUT, device=device, memory_config=ttnn.L1_MEMORY_CONFIG
    )
    x = ttnn.from_torch(VALUES, ttnn.float32, device=device, memory_config=ttnn.L1_MEMORY_CONFIG)
    ttnn.deallocate(above)
    grid = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(5, 4))])
    shards = ttnn.ShardSpec(grid, (13, 16), ttnn.ShardOrientation.ROW_MAJOR)
    place = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.BLOCK_SHARDED, ttnn.BufferType.L1, shards)
    names, moved, nodes = captured(lambda: ttnn.move(x, memory_config=place))
    assert names == ["Move"]
    assert buffers(nodes) == [("circular", 2 * 256)]
    assert np.array_equal(moved.to_numpy(), VALUES)


def test_a_move_that_overlaps_needs_whole_pages(device):
    """1,300 rows of 33 parts of 16 bytes: a core of 64 has 671 parts, 10,736 bytes, no whole number of rows."""
    tiles = np.zeros((256, 256), np.float32)  # 1,088 bytes of each bank
    above = ttnn.from_torch(
        tiles, ttnn.bfloat8_b, layout=ttnn.TILE_LAYOUT, device=device, memory_config=ttnn.L1_MEMORY_CONFIG
    )
    rows = np.zeros((1300, 260), np.float32)
    x = ttnn.from_torch(rows, ttnn.bfloat16, device=device, memory_config=ttnn.L1_MEMORY_CONFIG)
    ttnn.deallocate(above)
    with pytest.raises(
        ttnn.DeviceError, match=r"^Total circular buffer size 10736 B must be divisible by page size 528 B"
    ):
        ttnn.move(x, memory_config=in_box(WIDTH, (1300, 8), 8, 7))


@pytest.mark.parametrize(
    ("shape", "padded", "first"),
    [
        (
            (64, 64),
            [32, 64],
            r"Output tensor shape Shape\(\[32, 64\]\) must be greater than or equal to input shape Shape",
        ),
        (
            (60,),
            [64, 32],
            r"Output tensor shape Shape\(\[64, 32\]\) must be greater .* Shape\(\[60\]\) in each dimension",
        ),
        ((50, 60), [64, 60], r"To be tilizable output tensor shape Shape\(\[64, 60\]\) must be divisible by tile size"),
        ((2, 50, 60), [64, 64], r"ShapeBase\[\] index out of range. 2 not in \[-4, 2\)"),
    ],
)
def test_padded_shapes_hold_the_tensor_in_whole_tiles(device, shape, padded, first):
    rows = ttnn.from_torch(np.zeros(shape, np.float32), ttnn.bfloat16, device=device)
    with pytest.raises(ttnn.DeviceError, match=f"^{first}"):
        ttnn.tilize_with_val_padding(rows, padded, 0.0)


def test_vectors_are_tilized_with_padding_alone(device):
    rows = ttnn.from_torch(VALUES[0, 0, 0], ttnn.bfloat16, device=device)
    with pytest.raises(ttnn.DeviceError, match=r"^Input tensor height \(1\) must be divisible by tile height \(32\)"):
        ttnn.tilize(rows)
    with pytest.raises(ttnn.DeviceError, match=r"^Input tensor height \(1\)"):
        ttnn.tilize(
            ttnn.to_memory_config(rows, in_box(WIDTH, (1, 32), 2)),
            memory_config=ttnn.L1_MEMORY_CONFIG,
            use_multicore=False,
        )
    for tiles in (ttnn.tilize_with_zero_padding(rows), ttnn.tilize_with_val_padding(rows, [32, 64], 0.0)):
        assert (tiles.shape, tiles.padded_shape) == ((64,), (32, 64))
        assert np.array_equal(tiles.to_numpy(), VALUES[0, 0, 0])


def test_tiles_and_rows_stay_what_they_are(device):
    tiles, rows = placed(device), placed(device, ttnn.ROW_MAJOR_LAYOUT)
    assert ttnn.tilize_with_zero_padding(tiles) is tiles
    assert ttnn.tilize_with_val_padding(tiles, [1, 1, 64, 64], 0.0) is tiles
    for call in (lambda: ttnn.untilize(rows), lambda: ttnn.untilize_with_unpadding(rows, [0, 0, 9, 9])):
        with pytest.raises(ttnn.DeviceError, match=r"^Can only untilize tile major data"):
            call()
    with pytest.raises(ttnn.DeviceError, match=r"^Can only tilize row major data"):
        ttnn.tilize(tiles)
    bytes_in_rows = ttnn.from_torch(np.zeros((50, 60), np.uint8), ttnn.uint8, device=device)
    with pytest.raises(ttnn.DeviceError, match=r"^Can only tilize bfloat16/float32 or int32/uint32/uint16"):
        ttnn.tilize_with_zero_padding(bytes_in_rows)


def test_shards_are_dealt_anew_into_a_tensor_that_is_there(device):
    x = ttnn.to_memory_config(placed(device), high((32, 64), 2))
    place = high((64, 64), 1)
    target = ttnn.to_memory_config(ttnn.zeros_like(x), place)
    address = target.buffer_address()
    output = ttnn.reshard(x, place, target)
    assert output is target
    assert output.buffer_address() == address
    assert (output.to_numpy() == x.to_numpy()).all()


def test_tiles_are_cut_to_the_rows_that_are_asked_for(device):
    names, result, _ = captured(lambda: ttnn.untilize_with_unpadding(placed(device), [0, 0, 39, 49]))
    assert names == ["UntilizeWithUnpadding"]
    assert np.array_equal(result.to_numpy(), VALUES[:, :, :40, :50])


def test_nothing_runs_where_nothing_changes(device):
    x = placed(device)
    names, result, _ = captured(lambda: ttnn.to_layout(ttnn.to_memory_config(x, x.memory_config()), x.layout))
    assert (names, result is x) == ([], True)


def test_shards_are_given_whole_or_by_their_cores(device):
    """The dtype is the third argument after a memory config, the sixth after a grid."""
    x, place = placed(device), high((32, 64), 2)
    by_height, by_rows = ttnn.TensorMemoryLayout.HEIGHT_SHARDED, ttnn.ShardOrientation.ROW_MAJOR
    whole = ttnn.interleaved_to_sharded(x, place, ttnn.float32)
    cores = ttnn.interleaved_to_sharded(x, place.shard_spec.grid, (32, 64), by_height, by_rows, ttnn.float32)
    for result in (whole, cores):
        assert (result.dtype, result.memory_config()) == (ttnn.float32, place)
        assert np.array_equal(result.to_numpy(), VALUES)
    columns = ttnn.interleaved_to_sharded(x, ttnn.CoreCoord(2, 1), (32, 64), by_height, by_rows)
    assert columns.memory_config() == place
    for arguments in ((place, (32, 64)), (place.shard_spec.grid, (32, 64), by_height), ()):
        with pytest.raises(TypeError, match=r"\ninterleaved_to_sharded: "):
            ttnn.interleaved_to_sharded(x, *arguments)


def test_interleaved_tensors_stay_interleaved(device):
    x = placed(device)
    assert ttnn.sharded_to_interleaved(x, ttnn.L1_MEMORY_CONFIG) is x
    shards = ttnn.to_memory_config(x, high((32, 64), 2))
    assert ttnn.sharded_to_interleaved(shards, ttnn.L1_MEMORY_CONFIG, ttnn.float32).dtype is ttnn.float32


def test_a_copy_changes_the_data_type_of_tiles_alone(device):
    rows = placed(device, ttnn.ROW_MAJOR_LAYOUT)
    with pytest.raises(ttnn.DeviceError, match=r"^Only tile layout supports dtype conversion"):
        ttnn.to_memory_config(rows, ttnn.L1_MEMORY_CONFIG, ttnn.float32)


def test_sticks_are_aligned_in_a_scratchpad(device):
    begin_graph_capture(RunMode.NO_DISPATCH)
    x = placed(device, ttnn.ROW_MAJOR_LAYOUT)
    end_graph_capture()
    names, _, nodes = captured(lambda: ttnn.interleaved_to_sharded(x, high((32, 64), 2)), RunMode.NO_DISPATCH)
    assert names == ["InterleavedToSharded"]
    assert buffers(nodes) == [("dataflow", 32 * 128), ("scratchpad", 4 * (128 + 32))]


def test_a_tensor_moves_into_the_room_above_it(device):
    above, x = placed(device, place=ttnn.L1_MEMORY_CONFIG), placed(device, place=ttnn.L1_MEMORY_CONFIG)
    high = above.buffer_address()
    ttnn.deallocate(above)
    names, moved, _ = captured(lambda: ttnn.reallocate(x))
    assert (names, moved.buffer_address(), x.is_allocated()) == (["Move"], high, False)
    assert np.array_equal(moved.to_numpy(), VALUES)


def test_the_first_lines_of_refusals_are_the_librarys(device):
    x = placed(device)
    with pytest.raises(ttnn.DeviceError, match=r"^Physical shard shape \(16, 64\) must be tile"):
        ttnn.to_memory_config(x, high((16, 64), 4))
    with pytest.raises(ttnn.DeviceError, match=r"^Typecast operation requires Input and Output memory layout to match"):
        ttnn.typecast(x, ttnn.float32, memory_config=high((32, 64), 2))
    with pytest.raises(ttnn.DeviceError, match=r"^Input tensor must be interleaved"):
        ttnn.interleaved_to_sharded(ttnn.to_memory_config(x, high((32, 64), 2)), high((64, 64), 1))


@pytest.mark.parametrize("change", [ttnn.reshard, ttnn.to_memory_config])
def test_rows_that_the_real_library_misplaces_are_refused(device, change):
    """40 columns in shards of 16 go to shards of 24, of two columns of cores that a grid of four has."""
    place = in_box(BLOCK, (32, 16), 3, 2)
    x = ttnn.from_torch(np.ones((1, 1, 64, 40)), ttnn.bfloat16, device=device, memory_config=place)
    with pytest.raises(ttnn.ArgumentError, match=r"^reshard: rows of 40 do not fill their shards"):
        change(x, in_box(BLOCK, (32, 24), 4, 2))
    assert change(x, in_box(BLOCK, (32, 24), 2, 2)).to_numpy().min() == 1.0


def test_what_the_library_refuses_is_refused_in_its_words_before_what_it_misplaces(device):
    place = in_box(BLOCK, (32, 20), 3, 2)
    x = ttnn.from_torch(np.ones((1, 1, 64, 44)), ttnn.bfloat16, device=device, memory_config=place)
    with pytest.raises(ttnn.DeviceError, match=r"^Input row-major shard width 20 with data type DataType::BFLOAT16"):
        ttnn.reshard(x, in_box(BLOCK, (32, 24), 4, 2))


def test_rows_that_the_real_library_loses_are_refused_on_a_lenient_device():
    with ttnn.open_device(strict=False) as device:
        place = in_box(WIDTH, (2, 40), 2)
        x = ttnn.from_torch(np.ones((1, 1, 2, 80)), ttnn.bfloat16, device=device, memory_config=place)
        with pytest.raises(ttnn.DeviceError, match=r"^unordered_map::at"):
            ttnn.reshard(x, in_box(BLOCK, (1, 24), 5, 2))


def test_a_row_that_fills_no_aligned_page_is_not_resharded(device):
    x = ttnn.from_torch(np.ones((50,)), ttnn.bfloat16, device=device, memory_config=high((1, 50), 8))
    with pytest.raises(ttnn.DeviceError, match=r"^DataflowBufferSpec 'shard' has num_entries = 0\."):
        ttnn.reshard(x, high((1, 50), 48))


@pytest.mark.parametrize("layout", [ttnn.TILE_LAYOUT, ttnn.ROW_MAJOR_LAYOUT])
def test_shards_are_converted_on_as_many_cores(device, layout):
    x = ttnn.from_torch(
        np.ones((96, 64)), ttnn.bfloat16, layout=layout, device=device, memory_config=high((32, 64), 24)
    )
    with pytest.raises(ttnn.DeviceError, match=r"^Output tensor should have same number of cores 8 as input tensor 24"):
        ttnn.typecast(x, ttnn.bfloat16, memory_config=high((32, 64), 8))
    assert ttnn.typecast(x, ttnn.float32, memory_config=high((32, 64), 8)).to_numpy().min() == 1.0


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (in_box(BLOCK, (64, 32), 6, 5), "Changing the last dimension of a sharded tensor is not supported"),
        (high((64, 192), 5), "For valid non-interleaved buffers page size 380 must equal buffer size 122880"),
    ],
)
def test_more_than_four_axes_lose_the_padding_of_their_shards_before_they_are_tilized(device, place, text):
    x = ttnn.from_torch(np.ones((2, 1, 1, 160, 190)), ttnn.bfloat16, device=device, memory_config=place)
    for change in (ttnn.tilize_with_zero_padding, lambda one: ttnn.to_layout(one, ttnn.TILE_LAYOUT)):
        with pytest.raises(ttnn.DeviceError, match=f"^{text}"):
            change(x)


def test_tiles_keep_the_padding_of_the_shards_that_they_leave(device):
    x = ttnn.from_torch(np.ones((28, 128)), ttnn.bfloat16, device=device, memory_config=wide((28, 24), 6))
    tiles = ttnn.tilize_with_zero_padding(x, memory_config=ttnn.L1_MEMORY_CONFIG)
    assert (tiles.shape, tiles.padded_shape) == ([28, 128], [32, 160])
    assert np.array_equal(tiles.to_numpy(), np.ones((28, 128)))
