"""Functions that put numbers in another order, as users call them."""

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import ttsim as ttnn
from tests.shards import BLOCK, box, high, in_box, wide
from tests.ttsim.api.captured import captured, operations

IMAGE = np.arange(2 * 3 * 32 * 64, dtype=np.float32).reshape(2, 3, 32, 64) % 251


def placed(device, array=IMAGE, layout=ttnn.ROW_MAJOR_LAYOUT, place=None):
    return ttnn.from_torch(array, ttnn.bfloat16, layout=layout, device=device, memory_config=place)


@pytest.mark.parametrize("layout", [ttnn.ROW_MAJOR_LAYOUT, ttnn.TILE_LAYOUT])
@pytest.mark.parametrize("axes", [(0, 2, 3, 1), (0, 1, 3, 2), (1, 0, 2, 3), (3, 2, 1, 0)])
def test_axes_in_another_order(device, layout, axes):
    _, result, _ = captured(lambda: ttnn.permute(placed(device, layout=layout), axes))
    assert np.array_equal(result.to_numpy(), IMAGE.transpose(axes))


def test_tiles_have_a_program_that_swaps_two_axes(device):
    tiles, rows = placed(device, layout=ttnn.TILE_LAYOUT), placed(device)
    assert operations(lambda: ttnn.transpose(tiles, -2, -1)) == ["Transpose"]
    assert operations(lambda: ttnn.transpose(rows, -2, -1)) == ["Permute"]
    names, result, _ = captured(lambda: ttnn.permute(rows, (0, 1, 2, 3)))
    assert (names, result is rows) == ([], True)


def test_a_number_around_a_tensor(device):
    around = ((0, 0), (0, 13), (1, 0), (0, 4))
    names, result, _ = captured(lambda: ttnn.pad(placed(device), around, 1.5))
    assert names == ["Pad"]
    assert np.array_equal(result.to_numpy(), np.pad(IMAGE, around, constant_values=1.5))


def test_padding_that_is_no_pairs_is_refused(device):
    with pytest.raises(
        ttnn.ArgumentTypeError, match=r"^pad: padding must be pairs for at most 4 axes, not \(1\.5, 1\)$"
    ):
        ttnn.pad(placed(device), (1.5, 1), 1.5)


def test_channels_last_and_first_again(device):
    pixels = np.arange(8 * 128, dtype=np.float32).reshape(1, 1, 8, 128) % 251
    x = placed(device, pixels, place=wide((8, 64), 2))
    last = ttnn.experimental.convert_to_hwc(x)
    assert np.array_equal(last.to_numpy(), pixels.swapaxes(2, 3))
    tiles = placed(device, np.pad(pixels.swapaxes(2, 3), ((0, 0), (0, 0), (0, 0), (0, 24))), ttnn.TILE_LAYOUT)
    heights = ttnn.to_memory_config(tiles, high((64, 32), 2))
    first = ttnn.experimental.convert_to_chw(heights, dtype=ttnn.bfloat16)
    assert np.array_equal(first.to_numpy()[:, :, :8], pixels)


def test_channels_last_in_another_data_type_are_its_numbers(device):
    pixels = np.random.default_rng(0).standard_normal((1, 1, 8, 128)).astype(np.float32)
    last = ttnn.experimental.convert_to_hwc(
        ttnn.Tensor(pixels, ttnn.bfloat16, device, mem_config=wide((8, 64), 2)), dtype=ttnn.float32
    )
    assert np.array_equal(last.to_numpy(), pixels.swapaxes(2, 3).astype(ml_dtypes.bfloat16).astype(np.float32))
    four = ttnn.Tensor(pixels[:, :, :4], ttnn.float32, device, mem_config=wide((4, 64), 2))
    with pytest.raises(ttnn.DeviceError, match=r"^Output shard width 4 must be multiple of 8 to satisfy alignment"):
        ttnn.experimental.convert_to_hwc(four, dtype=ttnn.bfloat16)


@pytest.mark.parametrize(("dtype", "channels", "held"), [(ttnn.bfloat16, 3, 8), (ttnn.float32, 6, 8)])
def test_channels_last_that_are_never_written_are_refused(dtype, channels, held):
    for strict in (True, False):
        with ttnn.open_device(strict=strict) as device:
            pixels = ttnn.Tensor(np.ones((1, 1, channels, 128)), dtype, device, mem_config=wide((channels, 64), 2))
            if not strict:
                assert ttnn.experimental.convert_to_hwc(pixels).shape == [1, 1, 128, held]
                continue
            with pytest.raises(ttnn.ArgumentError, match=f"the result has {held} channels, and the tensor {channels}:"):
                ttnn.experimental.convert_to_hwc(pixels)


def test_tiles_that_are_more_than_the_padded_tensor_needs_are_refused(device):
    tall = ttnn.tilize_with_val_padding(placed(device, np.ones((1, 1, 11, 8), np.float32)), [1, 1, 64, 32], 3.0)
    with pytest.raises(ttnn.DeviceError, match=r"^Output size cannot fit input with offset"):
        ttnn.pad(tall, ((0, 0), (0, 0), (0, 0), (0, 1)), 0.0)


def test_refusals_name_the_rule(device):
    tiles = placed(device, layout=ttnn.TILE_LAYOUT)
    with pytest.raises(ttnn.DeviceError, match=r"^ttnn\.pad: on device tile padding does not support front padding"):
        ttnn.pad(tiles, ((0, 0), (0, 0), (1, 0), (0, 0)))
    with pytest.raises(ttnn.DeviceError, match=r"^The number of dimensions in the tensor input does not match"):
        ttnn.permute(tiles, (0, 1, 2))
    with pytest.raises(ttnn.DeviceError, match=r"^Input tensor must be sharded to infer output memory config"):
        ttnn.experimental.convert_to_chw(tiles)
    odd = wide((8, 72), 2)
    with pytest.raises(ttnn.DeviceError, match=r"^Shard height 72 must be multiple of tile width \(32\)"):
        ttnn.experimental.convert_to_hwc(placed(device, np.zeros((1, 1, 8, 144), np.float32), place=odd))


def test_images_that_put_channels_last_are_checked_in_the_librarys_order(device):
    def refusal(shape, place, layout=ttnn.ROW_MAJOR_LAYOUT, **more):
        with pytest.raises(ttnn.DeviceError) as caught:
            ttnn.experimental.convert_to_hwc(placed(device, np.zeros(shape, np.float32), layout, place), **more)
        return str(caught.value).splitlines()[0]

    pixels, last = wide((4, 64), 2), high((64, 8), 2)
    in_dram = replace(pixels, buffer_type=ttnn.BufferType.DRAM)
    explicit = "When input tensor is in DRAM, output memory_config must be explicitly specified"
    assert refusal((1, 1, 4, 128), in_dram) == explicit
    narrow = (
        "Output shard width must be rounded up to next multiple of 8 to satisfy alignment constraints (width was 4)"
    )
    assert refusal((1, 1, 4, 128), pixels, memory_config=high((64, 4), 2)) == narrow
    assert refusal((4, 128), pixels) == "ShapeBase[] index out of range. 2 not in [-4, 2)"
    assert refusal((1, 1, 40, 128), wide((40, 64), 2)) == "C must be less than or equal to 32 (was 40)"
    row_major = "Input tensor must be in row-major layout"
    assert refusal((1, 1, 32, 128), wide((32, 64), 2), ttnn.TILE_LAYOUT) == row_major
    by_height = "Output tensor must be height sharded"
    assert refusal((1, 1, 4, 128), pixels, memory_config=ttnn.L1_MEMORY_CONFIG) == by_height
    in_l1 = "Only L1 buffers can have an associated circular buffer!"
    in_dram = replace(last, buffer_type=ttnn.BufferType.DRAM)
    assert refusal((1, 1, 8, 128), wide((8, 64), 2), memory_config=in_dram) == in_l1  # channels that are all written


@pytest.mark.parametrize(
    ("shape", "shard", "layout", "first"),
    [
        ((1, 2, 64, 4), (64, 32), ttnn.TILE_LAYOUT, r"Expected input tensor to be shape \[1, 1, HW, C\]"),
        ((1, 1, 128, 40), (64, 64), ttnn.TILE_LAYOUT, r"C must be less than or equal to 32 \(was 40\)"),
        ((1, 1, 120, 4), (64, 32), ttnn.TILE_LAYOUT, "HW must be divisible by tile size"),
        ((1, 1, 128, 4), (64, 4), ttnn.ROW_MAJOR_LAYOUT, "Cannot set circular buffer size to 4096"),
    ],
)
def test_images_that_put_channels_first_are_checked(device, shape, shard, layout, first):
    with pytest.raises(ttnn.DeviceError, match=f"^{first}"):
        ttnn.experimental.convert_to_chw(placed(device, np.zeros(shape, np.float32), layout, high(shard, 2)))


def test_a_place_that_is_none_is_refused(device):
    with pytest.raises(ttnn.ArgumentTypeError, match=r"^transpose: memory_config must be a MemoryConfig, not \{\}$"):
        ttnn.transpose(placed(device), 2, 3, memory_config={})


def test_a_single_number_in_a_block_is_only_gathered(device):
    block = ttnn.MemoryConfig(
        ttnn.TensorMemoryLayout.BLOCK_SHARDED, ttnn.BufferType.L1, ttnn.ShardSpec(box(1), (32, 32))
    )
    number = placed(device, np.full((1, 1), 3.0), place=block)
    names, result, _ = captured(lambda: ttnn.permute(number, (1, 0)))
    assert names == ["ShardedToInterleaved"]
    assert (result.to_numpy().tolist(), result.is_sharded()) == ([[3.0]], False)


def test_axes_that_stay_are_cloned_to_another_memory(device):
    rows = placed(device)
    names, result, _ = captured(lambda: ttnn.transpose(rows, 1, 1, memory_config=ttnn.L1_MEMORY_CONFIG))
    assert (names, np.array_equal(result.to_numpy(), IMAGE)) == ([], True)  # captures name other operations alone
    assert result.memory_config() == ttnn.L1_MEMORY_CONFIG
    with pytest.raises(ttnn.DeviceError, match=r"^Clone: mixed sharded/interleaved layout not currently supported"):
        ttnn.transpose(rows, 1, 1, memory_config=high((96, 64), 2))


def test_block_floats_whose_axes_stay_are_converted_and_converted_back(device):
    tiles = ttnn.from_torch(IMAGE, ttnn.bfloat8_b, layout=ttnn.TILE_LAYOUT, device=device)
    names, result, _ = captured(lambda: ttnn.transpose(tiles, 3, 3))
    assert (names, result.to_numpy().tobytes()) == (["Typecast", "Typecast"], tiles.to_numpy().tobytes())


@pytest.mark.parametrize("shape", [(1, 4, 32, 224), (4, 32, 224), (128, 224)])
def test_the_padding_of_uneven_shards_is_transposed_with_the_rows(device, shape):
    """Six shards of 40 columns hold 224: the interleaved result is padded to 240 rows."""
    place = in_box(BLOCK, (128, 40), 6)
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) % 251
    x = ttnn.from_torch(values, ttnn.bfloat16, layout=ttnn.ROW_MAJOR_LAYOUT, device=device, memory_config=place)
    output = ttnn.transpose(x, -2, -1, memory_config=ttnn.L1_MEMORY_CONFIG)
    assert output.padded_shape == [*shape[:-2], 240, shape[-2]]
    assert np.array_equal(output.to_numpy(), values.swapaxes(-2, -1))


def test_only_tensors_are_transposed():
    with pytest.raises(ttnn.ArgumentTypeError, match="transpose: input_tensor must be a Tensor, not 5"):
        ttnn.transpose(5, 1, 2)


def test_vectors_in_tiles_are_not_transposed(device):
    vector = placed(device, IMAGE[0, 0, 0], layout=ttnn.TILE_LAYOUT)
    with pytest.raises(ttnn.DeviceError, match=r"^Can't convert shape rank\n"):
        ttnn.transpose(vector, 0, -1)
    rows = placed(device, IMAGE[0, 0, 0])
    assert ttnn.transpose(rows, 0, -1) is rows


@pytest.mark.parametrize(("axis", "index"), [(4, 4), (-5, 2**64 - 1)])
def test_axes_that_a_tensor_does_not_have(device, axis, index):
    message = f"Index is out of bounds for the rank, should be between 0 and 3 however is {index}\n"
    for call in (
        lambda x: ttnn.transpose(x, axis, 0),
        lambda x: ttnn.permute(x, (0, 1, 2, axis)),
        lambda x: ttnn.concat([x, x], axis),
    ):
        with pytest.raises(ttnn.DeviceError, match=f"^{message}"):
            call(placed(device))


PADDED = [
    (ttnn.float32, ttnn.ROW_MAJOR_LAYOUT, (2, 30), 1.5, "as two numbers of bfloat16"),
    (ttnn.float32, ttnn.ROW_MAJOR_LAYOUT, (2, 30), 0, ""),
    (ttnn.float32, ttnn.TILE_LAYOUT, (2, 30), 1.5, ""),
    (ttnn.bfloat16, ttnn.ROW_MAJOR_LAYOUT, (2, 30), 1.5, ""),
    (ttnn.bfloat8_b, ttnn.TILE_LAYOUT, (2, 30), 100, "written behind the 31 columns of the result"),
    (ttnn.bfloat4_b, ttnn.TILE_LAYOUT, (2, 30), 100, "written behind the 31 columns of the result"),
    (ttnn.bfloat8_b, ttnn.TILE_LAYOUT, (2, 31), 100, ""),  # 32 columns: what is lost beside 100 is lost in any such row
    (ttnn.bfloat8_b, ttnn.TILE_LAYOUT, (2, 30), 0, ""),
]


@pytest.mark.parametrize(("dtype", "layout", "shape", "value", "refusal"), PADDED)
def test_padding_that_comes_out_as_another_number_is_refused(dtype, layout, shape, value, refusal):
    """Without strictness it is what the real library has: 1.5 is 0x3FC03FC0, and small neighbors of 100 are 0."""
    for strict in (True, False):
        with ttnn.open_device(strict=strict) as device:
            x = ttnn.Tensor(np.full((1, 1, *shape), 0.125), dtype, device, layout)
            padding = ((0, 0), (0, 0), (0, 0), (0, 1))
            if strict and refusal:
                with pytest.raises(ttnn.ArgumentError, match=f"^pad: value {value:g} .*{refusal}"):
                    ttnn.pad(x, padding, value)
                continue
            row = ttnn.pad(x, padding, value).to_numpy()[0, 0, 0].tolist()
            halves = dtype is ttnn.float32 and layout is ttnn.ROW_MAJOR_LAYOUT and value
            number = 1.501945495605469 if halves else 96 if dtype is ttnn.bfloat4_b else value
            beside = 0.0 if dtype in (ttnn.bfloat8_b, ttnn.bfloat4_b) and value else 0.125
            assert row == [0.125] * 16 + [beside] * (shape[1] - 16) + [pytest.approx(number, rel=1e-7)]


def test_channels_last_in_fewer_bytes_do_not_fit_the_buffer_of_the_source(device):
    """The library counts the result in elements of the source."""
    x = ttnn.from_torch(np.ones((1, 1, 16, 1792)), ttnn.float32, device=device, memory_config=wide((16, 224), 8))
    message = r"^Cannot set circular buffer size to 14336\. This is larger than .* L1 buffer bank size of 7168 B"
    with pytest.raises(ttnn.DeviceError, match=message):
        ttnn.experimental.convert_to_hwc(x, dtype=ttnn.bfloat16)
    assert ttnn.experimental.convert_to_hwc(x).to_numpy().min() == 1.0
