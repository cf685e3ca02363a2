"""fold by transpositions; plans from ttnn 0.81.1."""

import re

import numpy as np
import pytest

import ttsim
from ttsim import BufferType, CoreCoord, CoreRange, CoreRangeSet, MemoryConfig, ShardOrientation, ShardSpec

HEIGHT = ttsim.TensorMemoryLayout.HEIGHT_SHARDED


def images(device, shape, cores=4):
    batch, channels, height, width = shape
    values = np.random.default_rng(0).standard_normal(shape, np.float32)
    grid = CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(cores - 1, cores - 1))])
    rows = -(-batch * channels * height // cores**2)
    place = MemoryConfig(HEIGHT, BufferType.L1, ShardSpec(grid, [rows, width], ShardOrientation.ROW_MAJOR))
    tensor = ttsim.from_numpy(values, ttsim.bfloat16)
    return tensor.to_numpy().astype(np.float32), tensor.to(device, place), grid


def folded(values, padding, behind, window=2):
    padded = np.pad(values, ((0, 0), (0, behind), (padding, padding), (padding, padding)))
    batch, channels, height, width = padded.shape
    split = padded.reshape(batch, channels, height // window, window, width // window, window)
    return split.transpose(0, 2, 4, 3, 5, 1).reshape(batch, height // window, width // window, -1)


def test_windows_become_channels_by_transpositions():
    """Columns of a window are faster than rows, as in a fold of one program; the fourth channel is zero."""
    with ttsim.open_device() as device:
        values, tensor, grid = images(device, (2, 3, 32, 32))
        with ttsim.profile(device) as profile:
            result = ttsim.fold(tensor, 2, 2, True, padding=[3, 3, 3, 3, 0, 1], grid_size=grid)
        assert [op.name.removesuffix("DeviceOperation") for op in profile.network().operations] == [
            *("Pad", "Transpose", "Pad", "Transpose", "Transpose", "Transpose", "Slice")
        ]
        assert result.shape == [2, 19, 19, 16]
        assert result.memory_config().shard_spec.shape == [46, 16]  # 722 rows on 16 cores
        assert np.array_equal(result.to_numpy().astype(np.float32), folded(values, 3, 1))


def test_pages_are_folded_with_zeros_behind_them():
    """Of 32 rows and 30 columns; all tensors on the way but the padded one, in DRAM, live until the end."""
    with ttsim.open_device() as device:
        values = ttsim.from_numpy(np.random.default_rng(0).standard_normal((1, 6, 32, 30), np.float32), ttsim.bfloat16)
        with ttsim.profile(device) as profile:
            result = ttsim.fold(values.to(device), 2, 4, True, output_shape=[1, 16, 7, 48])
        assert [op.name.removesuffix("DeviceOperation") for op in profile.network().operations] == [
            *("Pad", "Permute", "Permute", "Reshape", "Permute", "Slice")  # rows of 32 are seen, those of 8 moved
        ]
        padded = np.pad(values.to_numpy().astype(np.float32), ((0, 0), (0, 0), (0, 0), (0, 2)))
        wanted = padded.reshape(1, 6, 16, 2, 8, 4).transpose(0, 2, 4, 3, 5, 1).reshape(1, 16, 8, 48)[:, :, :7]
        assert np.array_equal(result.to_numpy().astype(np.float32), wanted)
        assert result.memory_config() == ttsim.L1_MEMORY_CONFIG


def test_windows_that_do_not_fill_padded_images():
    """Of 32 columns 30 are folded in windows of three. Of 32 rows, the first elements of all columns are."""
    with ttsim.open_device(values="off") as device:
        images = ttsim.ones((1, 4, 32, 32), device=device)
        assert ttsim.fold(images, 2, 3, True).shape == [1, 16, 10, 24]
        with pytest.raises(ttsim.ArgumentError, match=r"^fold: windows of 3 rows do not fill the 32 rows"):
            ttsim.fold(images, 3, 3, True)
    with ttsim.open_device(strict=False, values="off") as device:
        assert ttsim.fold(ttsim.ones((1, 4, 32, 32), device=device), 3, 3, True).shape == [1, 10, 10, 36]


def test_images_that_fill_no_square_do_not_fit():
    """The library pads columns as far as it pads rows."""
    with ttsim.open_device() as device, pytest.raises(ttsim.DeviceError, match="Output size cannot fit"):
        ttsim.fold(images(device, (1, 4, 64, 32))[1], 2, 2, True)


def shards(layout, shape, end, buffer=BufferType.L1):
    grid = CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(*end))])
    return MemoryConfig(layout, buffer, ShardSpec(grid, shape, ShardOrientation.ROW_MAJOR))


LAYOUTS = ttsim.TensorMemoryLayout


@pytest.mark.parametrize(
    ("sides", "place", "window", "options", "line"),
    [
        ((1, 4, 3, 3), shards(LAYOUTS.WIDTH_SHARDED, (128, 32), (0, 0)), (1, 2), {},
         "Shard height 6 must match physical height 4 for width sharded"),
        ((1, 6, 3, 4), shards(LAYOUTS.BLOCK_SHARDED, (96, 32), (0, 2)), (3, 2), {},
         "Can only write unbatched output for BLOCK_SHARDED -> BLOCK_SHARDED"),
        ((2, 4, 3, 8), shards(HEIGHT, (64, 32), (5, 0), BufferType.DRAM), (2, 2), {},
         "HEIGHT_SHARDED -> HEIGHT_SHARDED output must be in L1; got buffer_type=BufferType::DRAM"),
        ((2, 15, 3, 4), shards(HEIGHT, (192, 32), (4, 0)), (4, 3), {},
         "Number of shards along height 8 must not exceed number of cores 7"),
        ((1, 32, 32, 16), shards(HEIGHT, (224, 32), (4, 0), BufferType.DRAM), (2, 2),
         {"padding": (1, 1), "use_transpose_as_fold": True},
         "ttnn.pad: on device tile padding does not support front padding"),
        ((1, 4, 16, 8), shards(HEIGHT, (64, 32), (1, 0), BufferType.DRAM), (1, 4), {"use_transpose_as_fold": True},
         "Physical shard shape (8, 16) must be tile {32, 32} sized!"),
        ((2, 4, 32, 4), shards(HEIGHT, (96, 32), (5, 0), BufferType.DRAM), (4, 4), {"use_transpose_as_fold": True},
         "Shard width 32 must match physical width 64 for height sharded"),
        ((1, 9, 8, 32), shards(HEIGHT, (64, 32), (4, 0), BufferType.DRAM), (1, 1),
         {"padding": [0, 1, 1, 0], "use_transpose_as_fold": True},
         "ttnn.pad: on device tile padding does not support front padding"),
    ],
)  # fmt: skip
def test_tiles_become_rows_before_windows_are_looked_at(sides, place, window, options, line):
    """The first lines of the library for tiles in shards; those of the shards of the result are before the windows'."""
    with ttsim.open_device(values="off") as device:
        image = ttsim.zeros(sides, layout=ttsim.TILE_LAYOUT, device=device, memory_config=place)
        with pytest.raises(ttsim.DeviceError, match=f"^{re.escape(line)}"):
            ttsim.fold(image, *window, **options)


@pytest.mark.parametrize(
    ("sides", "window", "padding", "line"),
    [
        ((8, 32), (2, 2), None, "ShapeBase[] index out of range. 2 not in [-4, 2)"),
        ((8, 8, 32), (2, 2), [1, 1], "ttnn.pad: padding len can't be larger than input tensor rank"),
        ((8, 8, 32), (0, 2), None, "Fold: stride_h (0) and stride_w (2) must be > 0."),
    ],
)
def test_images_of_fewer_axes(sides, window, padding, line):
    with ttsim.open_device(values="off") as device:
        image = ttsim.ones(sides, device=device)
        with pytest.raises(ttsim.DeviceError, match=f"^{re.escape(line)}"):
            ttsim.fold(image, *window, padding=padding or (0, 0))


@pytest.mark.parametrize(("dtype", "wanted"), [("uint32", "bfloat16"), ("uint16", "uint16"), ("float32", "float32")])
def test_integers_become_bfloat16(dtype, wanted):
    with ttsim.open_device(values="off") as device:
        tensor = ttsim.zeros((2, 4, 32, 16), getattr(ttsim, dtype), device=device)
        assert ttsim.fold(tensor, 2, 1).dtype is getattr(ttsim, wanted)


def in_tiles(device, shape, dtype, first=0):
    """Integers in tiles, 32 rows of which lie on each of two cores from column ``first`` on."""
    grid = CoreRangeSet([CoreRange(CoreCoord(first, 0), CoreCoord(first + 1, 0))])
    place = MemoryConfig(HEIGHT, BufferType.L1, ShardSpec(grid, [32, 32], ShardOrientation.ROW_MAJOR))
    values = np.random.default_rng(0).integers(0, 50, shape)
    return values, ttsim.from_numpy(values, dtype, layout=ttsim.TILE_LAYOUT, device=device, memory_config=place)


@pytest.mark.parametrize("dtype", [ttsim.bfloat16, ttsim.bfloat8_b], ids=["bfloat16", "bfloat8_b"])
def test_tiles_in_shards_get_zeros_around_their_images(dtype):
    with ttsim.open_device(l1_small_size=32768) as device:
        values, tensor = in_tiles(device, (1, 2, 32, 32), dtype)
        result = ttsim.fold(tensor, 1, 1, padding=(1, 1))
        assert result.dtype == ttsim.bfloat16
        wanted = np.pad(values, ((0, 0), (1, 1), (1, 1), (0, 0)))
        assert np.array_equal(result.to_numpy().astype(int), wanted)


@pytest.mark.parametrize(
    ("channels", "dtype", "padding", "first", "text"),
    [
        (32, ttsim.bfloat16, (1, 1), 1, "Sliding-window shard grid core 0 is 1-0 but"),
        (16, ttsim.bfloat16, (1, 1), 0, "Attempting to reshape between two shapes"),  # 16 columns of tiles are padding
        # 32 rows of 32 numbers of 4 bytes on 32 rows of 32 of 2 bytes
        (32, ttsim.int32, (0, 0), 0, "DFB 'dst0' (entry_size 128 * num_entries 32 = 4096 bytes)"),
    ],
)
def test_shards_of_images_are_refused_in_the_words_of_the_library(channels, dtype, padding, first, text):
    with ttsim.open_device(l1_small_size=32768, values="off") as device:
        _, tensor = in_tiles(device, (1, 2, 32, channels), dtype, first)
        with pytest.raises(ttsim.DeviceError, match=f"^{re.escape(text)}"):
            ttsim.fold(tensor, 1, 1, padding=padding)


def test_zeros_beside_channels_of_haloed_images_have_no_numbers():
    padding = (1, 1, 1, 1, 0, 16)
    with ttsim.open_device(l1_small_size=32768) as device:
        _, tensor = in_tiles(device, (1, 2, 32, 32), ttsim.bfloat16)
        with pytest.raises(ttsim.NotSimulatedError, match="ttsim does not calculate numbers of images in HEIGHT"):
            ttsim.fold(tensor, 1, 1, padding=padding)
    with ttsim.open_device(l1_small_size=32768, values="off") as device:
        _, tensor = in_tiles(device, (1, 2, 32, 32), ttsim.bfloat16)
        assert ttsim.fold(tensor, 1, 1, padding=padding).shape == [1, 4, 34, 48]


def test_zeros_around_tiles_with_padding_are_written():
    """Tiles of images with padding below their columns are moved together first."""
    with ttsim.open_device(l1_small_size=32768) as device:
        numbers, tensor = in_tiles(device, (1, 2, 30, 32), ttsim.bfloat16)
        folded = ttsim.fold(tensor, 1, 1, padding=(1, 1))
        wanted = np.pad(numbers, ((0, 0), (1, 1), (1, 1), (0, 0)))
        np.testing.assert_array_equal(folded.to_numpy().astype(np.float32).reshape(wanted.shape), wanted)


def test_windows_that_do_not_fill_rows_of_shards():
    """Rows of 27 bfloat16 lie in the 32 that they are transposed in."""
    text = "For valid non-interleaved buffers page size 54 must equal buffer size 20480. "
    with ttsim.open_device(values="off") as device:
        image = ttsim.zeros((1, 9, 32, 32), device=device, memory_config=shards(HEIGHT, (72, 32), (3, 0)))
        with pytest.raises(ttsim.DeviceError, match=f"^{re.escape(text)}"):
            ttsim.fold(image, 1, 3, use_transpose_as_fold=True)
