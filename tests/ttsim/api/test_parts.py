"""Tensors repeated, copied and cut into parts: numbers by numpy, device operations as ttnn 0.81.1 runs them."""

import numpy as np
import pytest

import ttsim as ttnn
from tests.build import place
from tests.ttsim.api.calls import buffers, numbers, operations, put, put_all, refusal

GENERATED = "RepeatCodegen"
# A tensor, counts, the device operations
REPEATED = [
    ("1x1x64x64 tile", (1, 1, 2, 1), GENERATED),
    ("1x3x32x64 tile", (2, 2, 1, 1), GENERATED),  # images that one program repeats
    ("2x3x32x64 tile", (2, 2, 1, 1), f"{GENERATED} {GENERATED}"),
    ("1x2x33x50 tile", (2, 1, 1, 1), GENERATED),  # ragged tiles are whole images
    ("1x2x33x50 tile", (2, 1, 1, 3), f"UntilizeCodegen {GENERATED} {GENERATED} TilizeWithValPadding"),
    ("1x2x33x50 float32 tile", (1, 1, 2, 1), f"UntilizeWithUnpadding {GENERATED} TilizeWithValPadding"),
    ("33x50 float32 rows", (2, 1, 2), f"{GENERATED} {GENERATED}"),
    ("64 rows", (2,), "Repeat"),
    ("2x1x2x4x16 rows", (1, 1, 2, 1, 1), "Repeat"),
    ("1x1x128x64 tile height/32x64/4", (1, 1, 2, 1), GENERATED),
    ("1x1x2x32 rows", (1, 1, 1, 1), ""),
]


@pytest.mark.parametrize(("words", "counts", "steps"), REPEATED)
def test_a_tensor_is_repeated_along_its_axes(device, words, counts, steps):
    x = put(device, words)
    assert operations(lambda: ttnn.repeat(x, counts)) == steps.split()
    assert np.array_equal(ttnn.repeat(x, counts).to_numpy(), np.tile(x.to_numpy(), counts))


@pytest.mark.parametrize(
    ("shards", "counts", "repeated"),
    [
        ("height/128x64/4", (1, 1, 2, 1), "height/256x64/4"),  # each core repeats its image
        ("height/64x64/8", (1, 1, 2, 1), "height/32x64/32"),  # all cores share the rows
        ("width/512x32/2", (1, 1, 1, 4), "width/512x128/2"),
    ],
)
def test_shards_of_a_repeated_tensor(device, shards, counts, repeated):
    x = put(device, f"1x4x128x64 tile {shards}")
    y = ttnn.repeat(x, counts)
    assert y.memory_config() == place(repeated)
    assert np.array_equal(y.to_numpy(), np.tile(x.to_numpy(), counts))


@pytest.mark.parametrize(
    ("words", "axis", "steps"),
    [
        ("2x4x32x40 tile", -3, "RepeatInterleaveCodegen"),
        ("2x3x16 rows", 1, "RepeatInterleaveCodegen"),
        ("2x4x32x40 int32 tile", -3, "RepeatInterleaveCodegen"),
        ("1x1x64x32 tile", 2, "UntilizeCodegen Concat Tilize"),
        ("1x1x32x64 tile", 3, "Transpose UntilizeCodegen Concat Tilize Transpose"),
        ("1x1x32x64 bfloat8_b tile", 0, "Typecast UntilizeCodegen Concat Tilize Typecast"),
        ("96 tile", 0, "ReshapeView UntilizeWithUnpadding Concat TilizeWithValPadding ReshapeView"),
        ("96x1 rows", 0, "Concat"),
        ("1x1x64x32 tile height/32x32/2", 2, "ShardedToInterleaved UntilizeCodegen Concat Tilize"),
        ("2x3x8x16 rows height/8x16/6", 0, ""),  # UpsampleOperation
        ("2x3x8x16 rows width/48x8/2", 2, ""),
        ("2x3x8x16 rows height/8x16/6", 3, "Transpose Transpose"),
        ("2x3x8x16 rows height/8x16/6 dram", 0, "Copy Concat"),
    ],
)
def test_elements_of_an_axis_are_repeated(device, words, axis, steps):
    x = put(device, words)
    assert operations(lambda: ttnn.repeat_interleave(x, 2, axis)) == steps.split()
    assert np.array_equal(ttnn.repeat_interleave(x, 2, axis).to_numpy(), x.to_numpy().repeat(2, axis))


def test_sides_of_1_expand(device):
    x = put(device, "1x2x1x16 rows")
    y = ttnn.expand(x, (3, -1, 4, 16), memory_config=ttnn.L1_MEMORY_CONFIG)
    assert np.array_equal(y.to_numpy(), np.broadcast_to(x.to_numpy(), (3, 2, 4, 16)))
    assert ttnn.expand(x, (1, 2, 1, 16)).buffer_address() == x.buffer_address()
    for wanted, text in (
        ((2, 16), "Output rank must be >= input rank for expand"),
        ((-4,), "Output rank must be >= input rank for expand"),
        ((1, 3, 1, 16), "Only size 1 dimensions can be"),
        ((1, -3, 1, 8), "Only size 1 dimensions can be"),  # the last side is looked at first
        ((-2, 2, 1, 16), "Expand dimension size must be -1 or non-negative (got -2)"),
        ((-1, 1, 2, 1, 16), "Leading dimension must be non-negative (got -1); it has no corresponding input dimension"),
        ((-1, -2, 1, 2, 1, 16), "Leading dimension must be non-negative (got -2)"),
    ):
        assert refusal(lambda wanted=wanted: ttnn.expand(x, wanted)).startswith(f"Device: {text}")


def test_nothing_is_left_of_a_tensor_that_is_repeated_no_times(device):
    assert ttnn.repeat(put(device, "1x1x2x16 rows"), (1, 0, 1, 1)).shape == [1, 0, 2, 16]


@pytest.mark.parametrize(
    ("words", "size", "axis", "steps"),
    [
        ("1x1x128x192 tile", 64, -1, "Split"),
        ("1x4x128x128 tile", [64, 64], 3, "Split"),
        ("1x1x32x128 tile", 64, -1, "Slice Slice"),  # one row of tiles
        ("1x1x128x192 tile", [64, 128], -1, "Slice Slice"),
        ("3x7 rows", 3, -1, "Slice Slice Slice"),
        ("2x130 rows", 2, -1, 66 * "Slice "),  # a block and its 64 parts, and a block that is the last part
        ("2x128 rows", 2, -1, 64 * "Slice "),
        ("2x129 rows", 2, -1, 65 * "Slice "),  # the last part is shorter
    ],
)
def test_a_tensor_is_split(device, words, size, axis, steps):
    x = put(device, words)
    assert operations(lambda: ttnn.split(x, size, axis)) == steps.split()
    values = x.to_numpy()
    at = np.cumsum(size)[:-1] if isinstance(size, list) else range(size, values.shape[axis], size)
    for part, wanted in zip(ttnn.split(x, size, axis), np.split(values, at, axis), strict=True):
        assert np.array_equal(part.to_numpy(), wanted)


@pytest.mark.parametrize(
    ("words", "size", "axis", "shards", "steps"),
    [
        ("192x64 tile height/32x64/6", 32, 1, "height/32x32/6", "Split"),
        ("192x64 tile width/192x32/2", 32, 1, "", "Split"),  # half a tile
        ("2x3x64x128 rows width/384x32/4", 1, 1, "width/128x32/4", "Slice Slice Slice"),
        ("192x64 tile height/32x64/6", [64, 128], 0, "", "Slice Slice"),
        ("192x64 tile height/32x64/6", 64, 0, "", "ShardedToInterleaved Slice Slice Slice"),
        ("1x160 rows width/1x28/6 dram", [80, 40, 40], 1, "", 3 * "Copy Slice Copy "),  # those in DRAM are cut there
        ("2x200 rows height/1x200/2", 1, 1, "", "ShardedToInterleaved " + 204 * "Slice "),  # of 200 parts in L1
    ],
)
def test_parts_of_shards_are_smaller_shards_or_lie_in_dram(device, words, size, axis, shards, steps):
    x = put(device, words)
    assert operations(lambda: ttnn.split(x, size, axis)) == steps.split()
    parts = ttnn.split(x, size, axis)
    assert {part.memory_config() for part in parts} == {place(shards)}
    assert np.array_equal(np.concatenate([part.to_numpy() for part in parts], axis), x.to_numpy())


@pytest.mark.parametrize(("rows", "in_dram"), [(10213, False), (10214, True)])
def test_many_parts_leave_an_l1_that_would_not_hold_them(rows, in_dram):
    """Four parts take 4 x 4 tiles beside their bytes: 10,213 rows of 128 bytes leave 32 of a core's L1."""
    with ttnn.open_device(l1_small_size=32768, values="off") as device:
        x = ttnn.zeros((1, 1, rows, 64), device=device, memory_config=ttnn.L1_MEMORY_CONFIG)
        assert (ttnn.split(x, 16, -1)[0].memory_config() == ttnn.DRAM_MEMORY_CONFIG) is in_dram


@pytest.mark.parametrize(
    ("words", "shifts", "axes", "steps"),
    [
        ("2x3x64x64 tile height/64x64/6", [1, 32], [0, 2], "Roll Roll"),
        ("2x3x64x64 tile height/64x64/6", -3, 3, "Untilize Roll Tilize"),
        ("2x3x8x16 rows width/48x8/2", 1, 3, "Roll"),
        ("2x3x50x64 tile height/64x64/6", 1, 0, "ShardedToInterleaved Slice Slice Concat InterleavedToSharded"),
        ("2x3x64x64 tile height/64x64/6", 64, 3, ""),
    ],
)
def test_shards_are_rolled_where_they_lie_unless_they_are_ragged(device, words, shifts, axes, steps):
    x = put(device, words)
    assert operations(lambda: ttnn.roll(x, shifts, axes)) == steps.split()
    rolled = ttnn.roll(x, shifts, axes)
    assert rolled.memory_config() == x.memory_config()
    assert np.array_equal(rolled.to_numpy(), np.roll(x.to_numpy(), shifts, axes))


@pytest.mark.parametrize(("layout", "shift", "count"), [("tile", 32, 1), ("rows", 3, 3)])
def test_shards_in_dram_are_rolled_through_as_much_l1(device, layout, shift, count):
    x = put(device, f"128x64 {layout} height/64x64/2 dram")
    assert buffers(lambda: ttnn.roll(x, shift, 0)) == [(8192, 0)] * count
    assert np.array_equal(ttnn.roll(x, shift, 0).to_numpy(), np.roll(x.to_numpy(), shift, 0))


def test_a_core_that_rolls_its_shard_holds_two_rows_of_it(device):
    """Of two tiles, and 64 bytes to align them."""
    x = put(device, "2x3x64x64 tile height/64x64/6")
    assert buffers(lambda: ttnn.roll(x, 1, 0)) == [(8192, 1), (8192, 1), (2 * 2 * 2048 + 64, 0)]


@pytest.mark.parametrize(
    ("words", "steps", "layout"),
    [
        ("2x64x64 tile + 2x64x64 rows", "Tilize Concat", ttnn.TILE_LAYOUT),
        ("2x64x64 rows + 2x64x64 tile", "UntilizeCodegen Concat", ttnn.ROW_MAJOR_LAYOUT),
        ("2x64x60 tile + 2x64x60 rows", "UntilizeWithUnpadding Concat", ttnn.ROW_MAJOR_LAYOUT),
    ],
)
def test_tensors_of_two_layouts_are_joined_in_the_first_ones_unless_it_pads(device, words, steps, layout):
    tensors = put_all(device, words)
    assert operations(lambda: ttnn.concat(tensors, 0)) == steps.split()
    joined = ttnn.concat(tensors, 0)
    assert joined.layout == layout
    assert np.array_equal(joined.to_numpy(), np.concatenate([tensor.to_numpy() for tensor in tensors]))


def test_chunks_and_rings(device):
    x = put(device, "2x5x16 rows")
    assert [part.shape[1] for part in ttnn.chunk(x, 2, 1)] == [3, 2]
    assert np.array_equal(ttnn.chunk(x, 2, 1)[1].to_numpy(), x.to_numpy()[:, 3:])
    assert ttnn.chunk(ttnn.zeros((0, 32), device=device), 2, 0) == []
    for shifts, axes in ((1, 1), (-7, 0), ([1, 3], [0, 2])):
        assert np.array_equal(ttnn.roll(x, shifts, axes).to_numpy(), np.roll(x.to_numpy(), shifts, axes))
    assert np.array_equal(ttnn.roll(x, 3).to_numpy(), np.roll(x.to_numpy(), 3))
    shards = put(device, "64x32 rows height/32x32/2")
    assert refusal(lambda: ttnn.roll(shards, 3)).startswith("Device: ttnn::roll without dims does not support sharded")


REFUSED = [
    (lambda x: ttnn.split(x, [64, 32], -1), "Device: split_sizes must sum exactly to the size of dimension 3 (192), "
     "but sizes {64, 32} under-cover it by 96"),
    (lambda x: ttnn.split(x, [192, 1], -1), "Device: split_sizes must sum exactly to the size of dimension 3 (192), "
     "but sizes {192, 1} over-cover it"),
    (lambda x: ttnn.split(x, 0, 9), "Device: split_size must be greater than 0, but got: 0"),
    (lambda x: ttnn.split(x, [64, 0], -1), "Device: split_size should be greater than 0, instead got: {64, 0}"),
    (lambda x: ttnn.split(x, [], -1), "Device: split_sizes must not be empty"),
    (lambda x: ttnn.split(ttnn.zeros((0, 32), device=x.device()), 1), "Device: split_sizes must not be empty"),
    (lambda x: ttnn.chunk(x, 0, 1), "Device: Number of chunks must be greater than zero"),
    (lambda x: ttnn.roll(x, [1, 2], [1]), "Device: Roll expects shifts 2 and dims 1 to have the same length"),
    (lambda x: ttnn.roll(x, 1, 7), "Device: Invalid dimension index 7. The dimension must be within the range"),
    (lambda x: ttnn.repeat(x, (-1, 1)), "ArgumentType: ttnn.repeat(): incompatible function arguments."),
    (lambda x: ttnn.clone(x, dtype=ttnn.float32), "Device: Clone: data type conversion is only supported with tile"),
    (lambda x: ttnn.clone(x, memory_config=place("height/32x192/4")), "Device: Clone: mixed sharded/interleaved"),
    (lambda x: ttnn.copy(x, ttnn.zeros_like(ttnn.reshape(x, (128, 192)))), "Device: Input tensor shape "
     "Shape([1, 1, 128, 192]) does not match output tensor shape Shape([128, 192])"),
    (lambda x: ttnn.copy(x, ttnn.to_layout(x, ttnn.TILE_LAYOUT)), "Device: Input tensor layout (Layout::ROW_MAJOR) "
     "must equal output tensor layout (Layout::TILE)"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "text"), REFUSED)
def test_errors_begin_as_those_of_the_real_library(device, call, text):
    x = put(device, "1x1x128x192 rows")
    assert refusal(lambda: call(x)).startswith(text)


def test_a_clone_has_its_own_buffer_and_a_copy_fills_another(device):
    x = put(device, "1x1x64x64 tile")
    twin = ttnn.clone(x, dtype=ttnn.float32, memory_config=ttnn.L1_MEMORY_CONFIG)
    assert (twin.dtype, twin.buffer_address() == x.buffer_address()) == (ttnn.float32, False)
    assert np.array_equal(twin.to_numpy(), numbers(1, 1, 64, 64))
    target = ttnn.zeros_like(x)
    assert operations(lambda: ttnn.copy(x, target)) == ["Copy"]
    assert np.array_equal(target.to_numpy(), numbers(1, 1, 64, 64))
    ttnn.assign(ttnn.zeros_like(x), target)
    assert not target.to_numpy().any()


def test_bits_of_another_kind_of_number_are_refused():
    for strict in (True, False):
        with ttnn.open_device(strict=strict) as device:
            x = put(device, "32x32 tile")
            if strict:
                with pytest.raises(ttnn.ArgumentError, match="clone: the real library copies the bits of bfloat16 to"):
                    ttnn.clone(x, dtype=ttnn.int32)
            else:
                assert ttnn.clone(x, dtype=ttnn.int32).dtype == ttnn.int32


def test_arrays_in_place_of_other_arguments_are_refused(device):
    array = np.zeros(3)
    for call, text in (
        (
            lambda: ttnn.from_torch(np.zeros((2, 2), np.float32), col_tilize=array),
            "from_torch: col_tilize must be a bool",
        ),
        (lambda: ttnn.record_event(device, array), "record_event: cq_id must be an integer"),
        (lambda: ttnn.load_tensor(array), "load_tensor: file_name must be a path"),
    ):
        with pytest.raises(ttnn.ArgumentTypeError, match=f"^{text}"):
            call()


@pytest.mark.parametrize(
    ("words", "size", "axis", "scheme", "wanted"),
    [
        ("256x160 tile l1", [64, 192], 0, "HEIGHT", "dram"),
        ("256x160 tile l1", 64, 0, "HEIGHT", "height/32x160/2"),
        ("256x128 tile l1", 64, 1, "WIDTH", "width/256x32/2"),
        ("1x1x256x128 tile block/64x64/2x4", 64, 3, "BLOCK", "block/64x32/2x4"),  # as large as parts of its own shards
        ("96x64 tile width/96x32/2", 96, 0, "WIDTH", "width/96x32/2"),
    ],
)
def test_parts_in_a_scheme_get_even_shards_if_they_are_equal(device, words, size, axis, scheme, wanted):
    x = put(device, words)
    bare = getattr(ttnn, f"L1_{scheme}_SHARDED_MEMORY_CONFIG")
    assert ttnn.split(x, size, axis, memory_config=bare)[0].memory_config() == place(wanted)


@pytest.mark.parametrize(
    ("words", "wanted"), [("128x256 tile", "height/32x256/4"), ("128x256 tile height/64x256/2", "height/64x256/2")]
)
def test_a_tensor_that_is_not_repeated_gets_the_shards_that_a_repeated_one_gets(device, words, wanted):
    repeated = ttnn.repeat(put(device, words), (1, 1), memory_config=ttnn.L1_HEIGHT_SHARDED_MEMORY_CONFIG)
    assert repeated.memory_config() == place(wanted)


def test_tiles_without_elements_lie_in_the_shards_that_are_asked_for(device):
    wanted = place("height/32x32/8")
    assert ttnn.expand(put(device, "1x1x32x3 tile"), [0, 1, 1, -1, -1], memory_config=wanted).memory_config() == wanted


def test_a_tensor_that_is_repeated_once_has_any_axis(device):
    x = put(device, "4x32 tile")
    assert ttnn.repeat_interleave(x, 1, 4) is x


@pytest.mark.parametrize("words", ["128 block/1x32/4x1", "128 width/1x32/4"])
@pytest.mark.parametrize(("begin", "end"), [(0, 64), (8, 36)])
def test_parts_of_vectors_stay_in_shards_that_cut_them(device, words, begin, end):
    x = put(device, words)
    part = ttnn.slice(x, [begin], [end])
    assert part.memory_config() == x.memory_config()
    assert np.array_equal(part.to_numpy(), x.to_numpy()[begin:end])
