"""Operations on tensors as users call them: their numbers, the device operations that run, and where results lie."""

import ml_dtypes
import numpy as np
import pytest

import ttsim as ttnn
from tests.build import place
from tests.shards import BLOCK, high, in_box, wide
from tests.ttsim.api.calls import buffers, captured, conv, numbers, operations, put, put_all
from ttsim.graph import RunMode

DRAM, L1 = ttnn.DRAM_MEMORY_CONFIG, ttnn.L1_MEMORY_CONFIG
TWO_HIGH, TWO_WIDE = place("height/32x64/2"), place("width/64x32/2")
CUT = "UntilizeWithUnpadding"
AROUND = ((0, 0), (0, 13), (1, 0), (0, 4))


def windows(array, rows, columns):
    """Windows of images as channels."""
    batch, height, width, channels = array.shape
    split = array.reshape(batch, height // rows, rows, width // columns, columns, channels)
    return split.transpose(0, 1, 3, 2, 4, 5).reshape(batch, height // rows, width // columns, -1)


def grown(image, down, across):
    return image.repeat(down, axis=1).repeat(across, axis=2)


def joined(axis):
    return lambda *arrays: np.concatenate(arrays, axis)


def same(array):
    return array


# Tensors, a call, its numbers by numpy, and its device operations where they are of interest
VALUES = [
    ("2x2x32x32 tile + 2x2x32x64 tile", lambda *x: ttnn.concat(x, 3), joined(3), "Concat"),
    ("2x1x32x32 tile + 2x2x32x32 tile", lambda *x: ttnn.concat(x, 1), joined(1), None),
    ("1x1x40x32 tile + 1x1x20x32 tile", lambda *x: ttnn.concat(x, 2), joined(2),
     f"{CUT} {CUT} Concat TilizeWithValPadding"),
    ("64 tile + 64 tile", lambda *x: ttnn.concat(x, -1), joined(0), f"{CUT} {CUT} Concat TilizeWithValPadding"),
    ("32 tile + 32 tile + 5 tile", lambda *x: ttnn.concat(x, 0), joined(0), None),
    ("1x1x64x32 tile height/32x32/2 + 1x1x64x64 tile height/32x64/2",
     lambda *x: ttnn.concat(x, -1, memory_config=place("height/32x96/2")), joined(-1), "Concat"),
    ("1x1x64x32 tile height/32x32/2 + 1x1x64x64 tile height/32x64/2", lambda *x: ttnn.concat(x, -1), joined(-1),
     "Concat ShardedToInterleaved"),
    ("1x1x64x64 tile height/32x64/2 + 1x1x64x32 tile height/32x32/2", lambda *x: ttnn.concat(x, -1, groups=2),
     lambda a, b: np.concatenate([a[..., :32], b[..., :16], a[..., 32:], b[..., 16:]], -1), None),
    ("1x1x64x64 tile + 1x1x64x32 tile", lambda *x: ttnn.concat(x, -1, groups=2), joined(-1), None),
    ("1x1x32x20 rows + 1x1x32x12 rows", lambda *x: ttnn.concat(x, 3), joined(3), "Permute Permute Concat Permute"),
    ("3x38x24 rows + 3x38x24 rows", lambda *x: ttnn.concat(x, -1), joined(-1), None),
    ("1x1x64x32 tile height/32x32/2 + 1x1x64x32 tile height/32x32/2", lambda *x: ttnn.concat(x, 2), joined(2),
     "ShardedToInterleaved ShardedToInterleaved Concat"),
    ("1x1x64x64 rows width/64x32/2 + 1x1x64x64 rows", lambda *x: ttnn.concat(x, 3), joined(3),
     "ShardedToInterleaved Concat"),
    ("288x33 tile height/32x64/64 + 288x96 tile height/32x96/64", lambda *x: ttnn.concat(x, -1), joined(-1),
     f"{CUT} {CUT} Transpose Transpose ShardedToInterleaved ShardedToInterleaved Concat Permute TilizeWithValPadding"),
    ("64x32 rows + 64x32 rows", lambda *x: ttnn.concat(x, 1, memory_config=TWO_WIDE), joined(1),
     "Concat InterleavedToSharded"),
    ("64x30 rows + 64x34 rows", lambda *x: ttnn.concat(x, 1, memory_config=TWO_WIDE), joined(1),
     "Permute Permute Concat InterleavedToSharded Transpose"),
    ("64x30 tile + 64x34 tile", lambda *x: ttnn.concat(x, 1, memory_config=TWO_HIGH), joined(1),
     f"{CUT} {CUT} Permute Permute Concat Transpose TilizeWithValPadding"),
    ("64x40 tile bfloat8_b", lambda x: ttnn.concat([x, x], 1), lambda a: np.concatenate([a, a], 1), None),
    ("32x64 tile + 32x64 tile", lambda *x: ttnn.stack(x, 0), lambda *a: np.stack(a, 0), "Concat"),
    ("32x64 tile + 32x64 tile", lambda *x: ttnn.stack(x, -3), lambda *a: np.stack(a, -3), "Concat"),
    ("32x64 tile + 32x64 tile", lambda *x: ttnn.stack(x, 1), lambda *a: np.stack(a, 1),
     f"ReshapeView ReshapeView {CUT} {CUT} Concat TilizeWithValPadding"),
    ("32x64 tile + 32x64 tile", lambda *x: ttnn.stack(x, -1), lambda *a: np.stack(a, -1),
     "ReshapeView ReshapeView Concat"),
    ("32x64 rows + 32x64 rows", lambda *x: ttnn.stack(x, 2), lambda *a: np.stack(a, 2),
     "ReshapeView ReshapeView Permute Permute Concat Permute"),
    ("2x8x12x16 rows", lambda x: ttnn.fold(x, 2, 3), lambda a: windows(a, 2, 3), None),
    ("2x8x12x16 rows height/64x16/3", lambda x: ttnn.fold(x, 2, 2, collapse_output=True),
     lambda a: windows(a, 2, 2).reshape(1, 1, 48, 64), None),
    ("2x8x12x16 rows", lambda x: ttnn.fold(x, 2, 2, padding=(1, 1, 0, 0, 0, 16), override_memory_config=L1),
     lambda a: windows(np.pad(a, ((0, 0), (1, 1), (0, 0), (0, 16))), 2, 2), None),
    ("2x8x12x16 rows height/64x16/3", lambda x: ttnn.fold(x, 2, 2, padding=(1, 3, 2, 0)),
     lambda a: windows(np.pad(a, ((0, 0), (1, 3), (2, 0), (0, 0))), 2, 2), None),
    *((f"2x3x32x64 {words}", lambda x, axes=axes: ttnn.permute(x, axes), lambda a, axes=axes: a.transpose(axes), None)
      for words in ("rows", "tile", "rows height/32x64/6", "tile height/32x64/6")
      for axes in ((0, 2, 3, 1), (0, 1, 3, 2), (1, 0, 2, 3), (3, 2, 1, 0))),
    ("2x3x32x64 rows height/32x64/6", lambda x: ttnn.permute(x, (0, 3, 1, 2)), lambda a: a.transpose(0, 3, 1, 2), None),
    ("2x3x32x64 tile height/32x64/6", lambda x: ttnn.transpose(x, 1, -1), lambda a: a.swapaxes(1, 3), None),
    ("2x3x32x64 tile", lambda x: ttnn.transpose(x, -2, -1), lambda a: a.swapaxes(2, 3), "Transpose"),
    ("2x3x32x64 rows", lambda x: ttnn.transpose(x, -2, -1), lambda a: a.swapaxes(2, 3), "Permute"),
    ("2x1x3x32x64 rows", lambda x: ttnn.transpose(x, 2, 4), lambda a: a.swapaxes(2, 4), None),
    ("1x1 rows block/32x32/1x1", lambda x: ttnn.permute(x, (1, 0)), np.transpose, "ShardedToInterleaved"),
    ("2x3x32x64 rows", lambda x: ttnn.transpose(x, 1, 1, memory_config=L1), same, ""),
    ("2x3x32x64 tile bfloat8_b", lambda x: ttnn.transpose(x, 3, 3), same, "Typecast Typecast"),
    ("2x3x32x64 rows", lambda x: ttnn.pad(x, AROUND, 1.5), lambda a: np.pad(a, AROUND, constant_values=1.5), "Pad"),
    ("1x1x8x128 rows width/8x64/2", ttnn.experimental.convert_to_hwc, lambda a: a.swapaxes(2, 3), None),
    ("1x1x128x32 tile height/64x32/2", lambda x: ttnn.experimental.convert_to_chw(x, dtype=ttnn.bfloat16),
     lambda a: a.swapaxes(2, 3), None),
    *((f"2x3x40x64 {words}", lambda x, to=shape: ttnn.reshape(x, to), lambda a, to=shape: a.reshape(to), None)
      for words in ("rows", "tile") for shape in ((6, 40, 64), (1, 1, 240, 64), (2, 3, 64, 40), (1, -1, 96))),
    ("2x3x40x64 rows", lambda x: ttnn.reshape(x, (15360,)), np.ravel, None),
    ("13x3 tile bfloat8_b", lambda x: ttnn.reshape(x, (39,)), np.ravel, None),
    ("50 tile bfloat8_b", lambda x: ttnn.reshape(x, (5, 10)), lambda a: a.reshape(5, 10), None),
    ("1x3x40x64 tile", lambda x: ttnn.unsqueeze(x, -1), lambda a: a[..., None], None),
    ("1x3x40x64 tile", lambda x: ttnn.unsqueeze_to_4D(ttnn.squeeze(x)), same, None),
    ("1x60 tile height/32x64/1", lambda x: ttnn.squeeze(x, 0), np.ravel, None),
    *((f"2x3x40x64 {words}", lambda x, index=index: x[index], lambda a, index=index: a[index], None)
      for words in ("rows", "tile")
      for index in (np.s_[:, 1:, 3:17], np.s_[1, ..., 5], np.s_[:, :, ::2, 1::3], np.s_[..., -7:-2], np.s_[:])),
    ("2x3x40x64 rows height/120x64/2", lambda x: x[:, :, 8:22], lambda a: a[:, :, 8:22], None),
    ("2x3x40x64 rows", lambda x: ttnn.slice(x, starts=(0,) * 4, ends=(2, 3, 40, 64), steps=(1, 1, 2, 1)),
     lambda a: a[:, :, ::2], None),
    ("50 tile", lambda x: ttnn.slice(x, [3], [40]), lambda a: a[3:40], None),
    *((f"2x3x32x64 {words}", lambda x: ttnn.upsample(x, (2, 3)), lambda a: grown(a, 2, 3), None)
      for words in ("rows", "tile", "rows height/96x64/2", "rows width/192x32/2")),
    ("2x3x32x64 rows", lambda x: ttnn.upsample(x, [1.0, 1.5]), lambda a: a[:, :, np.arange(48) * 2 // 3], None),
    ("1x1x64x64 tile", lambda x: ttnn.to_memory_config(x, TWO_HIGH), same, "InterleavedToSharded"),
    ("1x1x64x64 tile height/32x64/2", lambda x: ttnn.reshard(x, place("height/64x64/1")), same, "Reshard"),
    ("1x1x64x64 tile height/32x64/2", ttnn.sharded_to_interleaved, same, "ShardedToInterleaved"),
    ("1x1x64x64 tile", lambda x: ttnn.to_memory_config(x, L1), same, "Copy"),
    ("1x1x64x64 tile", lambda x: ttnn.to_layout(x, ttnn.ROW_MAJOR_LAYOUT), same, "UntilizeCodegen"),
    ("1x1x64x64 tile", lambda x: ttnn.to_layout(ttnn.to_memory_config(x, DRAM), x.layout), same, ""),
    ("1x1x64x64 rows", ttnn.tilize, same, "Tilize"),
    ("64x160 rows width/64x96/2", lambda x: ttnn.to_layout(x, ttnn.TILE_LAYOUT), same, "Tilize"),  # a ragged shard
    ("2x25x160 rows width/50x96/2", ttnn.tilize_with_zero_padding, same, None),
    ("1x1x64x64 tile", lambda x: ttnn.typecast(x, ttnn.float32), same, "Typecast"),
    # The older typecast copies, even into the same format
    ("1x1x64x64 tile", lambda x: ttnn.experimental.typecast(x, ttnn.bfloat16, L1), same, "Copy"),
    ("1x1x64x64 tile", lambda x: ttnn.experimental.typecast(x, ttnn.float32), same, "Copy"),
    ("96x64 rows height/32x64/24", lambda x: ttnn.typecast(x, ttnn.float32, memory_config=high((32, 64), 8)), same,
     None),
    ("1x1x64x64 tile", lambda x: ttnn.untilize_with_unpadding(x, [0, 0, 39, 49]), lambda a: a[:, :, :40, :50], CUT),
    ("64 rows", ttnn.tilize_with_zero_padding, same, None),
    ("64 rows", lambda x: ttnn.tilize_with_val_padding(x, [32, 64], 0.0), same, None),
    ("64x40 rows block/32x16/3x2", lambda x: ttnn.reshard(x, in_box(BLOCK, (32, 24), 2, 2)), same, None),
    ("28x128 rows width/28x24/6", lambda x: ttnn.tilize_with_zero_padding(x, memory_config=L1), same, None),
    ("2x50x60 tile", ttnn.untilize, same, "UntilizeCodegen"),
    ("2x50x60 tile bfloat8_b", ttnn.untilize, same, CUT),
    ("2x50x60 tile float32", ttnn.untilize, same, CUT),
    ("2x50x60 tile", lambda x: ttnn.untilize(x, use_multicore=False), same, CUT),
    ("2x50x60 tile", lambda x: ttnn.untilize(x, memory_config=high((32, 60), 4)), same, CUT),
    ("2x50x60 tile height/32x64/4", lambda x: ttnn.untilize(x, memory_config=DRAM), same, "Untilize"),
    ("2x50x60 tile block/32x32/2x4", lambda x: ttnn.untilize(x, memory_config=DRAM), same, "Untilize"),
    ("1x50x60 tile height/32x64/2", ttnn.untilize, same, None),
    ("1x50x32 tile height/64x32/1", lambda x: ttnn.untilize(x, use_multicore=False), same, None),
    ("1x1x2x32x64 tile", ttnn.untilize, same, None),
    ("2x50x60 tile", lambda x: ttnn.untilize_with_unpadding(x, [1, 39, 29], use_multicore=False),
     lambda a: a[:, :40, :30], None),
    ("2x50x60 tile", lambda x: ttnn.untilize_with_unpadding(
        x, [1, 39, 29], memory_config=high((32, 60), 4), use_multicore=False), lambda a: a[:, :40, :30], None),
    ("32x32 tile bfloat8_b", lambda x: ttnn.to_layout(x, ttnn.ROW_MAJOR_LAYOUT), same, None),
    ("1x1x8x12 tile", lambda x: 7 - (2 * x - 1), lambda a: 7 - (2 * a - 1), None),
    ("1x1x8x12 tile", lambda x: (x > 3) + 2 * (x <= 5) + 4 * (x == 7) + 8 * (x != 7), lambda a: (
        (a > 3) + 2.0 * (a <= 5) + 4 * (a == 7) + 8 * (a != 7)), None),
    ("1x1x8x12 tile", lambda x: 8 / (2 * (x < 3) + 4 * (x >= 3)), lambda a: np.where(a < 3, 4.0, 2.0), None),
    ("1x1x32x32 tile int32", lambda x: ttnn.relu(x + x), lambda a: a + a, None),
    ("1x1x64x64 rows height/32x64/2", lambda x: ttnn.add(x, 1), lambda a: a + 1, "Tilize BinaryNg Untilize"),
    ("1x1x32x32 tile", ttnn.neg, np.negative, None),
    ("1x1x32x32 tile", lambda x: ttnn.leaky_relu(ttnn.neg(x), 0.5), lambda a: -a / 2, None),
    ("1x1x32x32 tile", lambda x: ttnn.leaky_relu(ttnn.neg(x), negative_slope=0.25), lambda a: -a / 4, None),
]  # fmt: skip


@pytest.mark.parametrize(("tensors", "call", "wanted", "names"), VALUES, ids=range(len(VALUES)))
def test_numbers_and_device_operations(device, tensors, call, wanted, names):
    placed = put_all(device, tensors)
    arrays = [tensor.to_numpy() for tensor in placed]
    ran, result, _ = captured(lambda: call(*placed))
    expected = wanted(*arrays)
    assert np.array_equal(result.to_numpy(), expected)
    assert tuple(result.shape) == expected.shape
    if names is not None:
        assert " ".join(ran) == names


# Tensors, a call, and its result's words: data type, padded shape, shape of its shards, or memory
PLACES = [
    ("64x40 tile bfloat8_b", lambda x: ttnn.concat([x, x], 1), "BFLOAT16"),
    ("2x8x12x16 rows height/64x16/3", lambda x: ttnn.fold(x, 2, 2), "[6, 64]"),  # eight rows of windows of 24 pixels
    ("2x3x40x64 rows height/120x64/2", lambda x: x[:, :, 8:22], "[42, 64]"),  # 2 * 3 * 14 rows on two cores
    ("2x3x40x64 tile bfloat8_b", lambda x: x[..., 32:], "BFLOAT8_B"),
    ("2x3x40x64 tile bfloat8_b", lambda x: x[..., 31:], "BFLOAT16"),
    ("2x3x32x64 rows height/96x64/2", lambda x: ttnn.upsample(x, (2, 3)), "[576, 64]"),
    ("2x3x32x64 rows width/192x32/2", lambda x: ttnn.upsample(x, (2, 3)), "[1152, 32]"),
    ("1x1x64x64 tile height/32x64/2", lambda x: ttnn.sharded_to_interleaved(x, L1, ttnn.float32), "FLOAT32"),
    ("1x1x64x64 tile", lambda x: ttnn.sharded_to_interleaved(x, L1), "DRAM"),
    ("28x128 rows width/28x24/6", lambda x: ttnn.tilize_with_zero_padding(x, memory_config=L1), "(32, 160)"),
    ("64 rows", ttnn.tilize_with_zero_padding, "(32, 64)"),
    ("2x25x160 rows width/50x96/2", ttnn.tilize_with_zero_padding, "[64, 96]"),
    ("2x50x60 tile", ttnn.untilize, "(2, 50, 60)"),
    ("2x50x60 tile height/32x64/4", lambda x: ttnn.untilize(x, memory_config=DRAM), "(2, 64, 64)"),
    ("1x50x60 tile height/32x64/2", ttnn.untilize, "(1, 50, 64)"),
    ("32x32 tile bfloat8_b", lambda x: ttnn.to_layout(x, ttnn.ROW_MAJOR_LAYOUT), "BFLOAT16"),
    ("1x3x32x64 tile bfloat8_b", lambda x: ttnn.permute(x, (0, 2, 3, 1)), "BFLOAT8_B"),
    # Shards of 40 columns hold 224: the interleaved result is padded to 240 rows
    ("1x4x32x224 rows block/128x40/6x1", lambda x: ttnn.transpose(x, -2, -1, memory_config=L1), "(1, 4, 240, 32)"),
    ("4x32x224 rows block/128x40/6x1", lambda x: ttnn.transpose(x, -2, -1, memory_config=L1), "(4, 240, 32)"),
    ("5x1x28x64 tile height/32x64/5", lambda x: ttnn.reshape(x, (1, 1, 140, 64)), "[32, 64]"),
    ("5x1x28x64 tile width/160x32/2", lambda x: ttnn.reshape(x, (1, 1, 140, 64)), "[160, 32]"),
    ("1x1x140x64 tile width/160x32/2", lambda x: ttnn.reshape(x, (1, 1, 70, 128)), "[96, 64]"),
    ("2x3x40x64 rows", lambda x: ttnn.reshape(x, (6, 64, 40), memory_config=L1), "L1"),
    # A matmul lies on as many cores as it has blocks
    ("1x6x37x160 tile height/32x160/3x6", lambda x: conv(
        x.device(), (6, 37), (160, 32), (1, 1), (1, 1), input_tensor=x), "{[0-0 - 2-1], [0-2 - 0-2]}"),
    ("2x3x40x64 rows", lambda x: ttnn.slice(x, [0] * 4, [1] * 4, memory_config=L1), "L1"),
]  # fmt: skip


@pytest.mark.parametrize(("tensors", "call", "words"), PLACES, ids=range(len(PLACES)))
def test_formats_padding_and_places(device, tensors, call, words):
    result = call(*put_all(device, tensors))
    config = result.memory_config()
    shards = [str(config.shard_spec.shape), str(config.shard_spec.grid)] if config.shard_spec else []
    assert words in (result.dtype.name, str(tuple(result.padded_shape)), *shards, config.buffer_type.name)


# Tensors, a call, and whether it returns its first tensor, or another that lies in the same buffer
VIEWS = [
    ("2x3x32x64 rows", lambda x: ttnn.permute(x, (0, 1, 2, 3)), "itself"),
    ("1x1x32x64 rows", lambda x: ttnn.transpose(x, 0, 1), "itself"),
    ("64 rows", lambda x: ttnn.transpose(x, 0, -1), "itself"),
    ("1x1x64x64 tile", ttnn.tilize_with_zero_padding, "itself"),
    ("1x1x64x64 tile", lambda x: ttnn.tilize_with_val_padding(x, [1, 1, 64, 64], 0.0), "itself"),
    ("1x1x64x64 tile", lambda x: ttnn.sharded_to_interleaved(x, L1), "itself"),
    ("2x3x40x64 rows", lambda x: ttnn.reshape(x, (2, 3, 40, 64)), "itself"),
    ("2x3x40x64 rows", lambda x: ttnn.reshape(x, (6, 40, 64)), "a view"),
    ("1x1x4x60 rows width/4x24/3", lambda x: ttnn.squeeze(x, 2), "itself"),  # though shards cut its rows
    ("1x64x32 tile uint16", lambda x: ttnn.reshape(x, (2, 32, 32)), "a view"),
    ("1x64x32 rows uint8", lambda x: ttnn.reshape(x, (2, 32, 32)), "a view"),
    ("2x40x1 rows", lambda x: ttnn.squeeze(x, -1), "a copy"),  # pages of 2 bytes become one of 80
    ("1x1x64x64 tile", lambda x: ttnn.squeeze(x, [0, 1]), "a view"),
    ("1x1x32x32 tile + 1x1x32x32 tile", lambda x, y: ttnn.add(y, -1.0, output_tensor=x), "itself"),
    ("1x1x32x32 tile + 1x1x32x32 tile", lambda x, y: ttnn.relu(y, output_tensor=x), "itself"),
    ("1x1x32x32 tile + 1x1x32x32 tile", ttnn.add_, "itself"),
]  # fmt: skip


@pytest.mark.parametrize(("tensors", "call", "kind"), VIEWS, ids=range(len(VIEWS)))
def test_results_that_are_the_tensor_itself_or_share_its_buffer(device, tensors, call, kind):
    first, *others = put_all(device, tensors)
    result = call(first, *others)
    shares = result.buffer_address() == first.buffer_address()
    assert ("itself" if result is first else "a view" if shares else "a copy") == kind


@pytest.mark.parametrize(
    ("shape", "shards"),
    [("384", "width/1x77/5"), ("64x100", "block/32x40/3x2"), ("2x32x100", "block/32x40/3x2"),
     ("1x1x16x128", "width/16x24/6"), ("1x16x33", "height/4x40/4"), ("1x1x60", "width/1x24/3")],
)  # fmt: skip
def test_views_keep_the_padding_of_uneven_shards(device, shape, shards):
    """unsqueeze_to_4D and squeeze see shape and padded shape anew, where reshape and unsqueeze refuse other rows."""
    x = put(device, f"{shape} rows {shards}")
    squeezes = x.shape[0] == 1
    seen = ttnn.squeeze(x, 0) if squeezes else ttnn.unsqueeze_to_4D(x)
    sides = list(x.shape)
    wanted = sides[1:] if squeezes else [1] * (4 - len(sides)) + sides
    assert (seen.shape, seen.padded_shape) == (wanted, [*wanted[:-1], x.padded_shape[-1]])
    assert seen.padded_shape[-1] > sides[-1]
    assert seen.buffer_address() == x.buffer_address()
    assert np.array_equal(seen.to_numpy(), numbers(*sides).reshape(wanted))
    back = (lambda: ttnn.unsqueeze(seen, 0)) if squeezes else (lambda: ttnn.reshape(x, tuple(wanted)))
    with pytest.raises(
        ttnn.DeviceError, match=r"^(Changing the last dimension of a sharded|For valid non-interleaved)"
    ):
        back()


def test_views_of_tiles_that_were_filled_up_are_read_under_their_axes(device):
    filled = ttnn.pad(put(device, "6x37x64 tile"), ((0, 0), (0, 3), (0, 0)), 5.0)
    for shape in ((1, 6, 40, 64), (3, 2, 40, 64)):
        seen = ttnn.reshape(filled, shape)
        assert seen.buffer_address() == filled.buffer_address()
        assert np.array_equal(seen.to_numpy(), filled.to_numpy().reshape(shape))
    tensor = put(device, "2x1x32x1 tile")
    padded, view = ttnn.pad(tensor, ((0, 0), (0, 0), (0, 0), (0, 1)), 0.0), ttnn.reshape(tensor, (1, 1, 64, 1))
    assert np.array_equal(view.to_numpy(), numbers(1, 1, 64, 1))
    ttnn.add_(tensor, 2.0)
    with pytest.raises(ttnn.DeviceError, match="shares its memory with a tensor of shape"):
        padded.to_numpy()


def test_a_view_goes_with_its_buffer_and_a_loop_over_a_tensor_ends(device):
    x = put(device, "2x3x4x64 rows")
    assert [part.to_numpy()[0, 0, 0] for part in x] == [0.0, float(3 * 4 * 64 % 251)]
    seen = ttnn.reshape(x, (6, 4, 64))
    ttnn.deallocate(x)
    assert not seen.is_allocated()


def test_block_floats_are_packed_along_their_new_rows(device):
    """Within 16 neighbors of a row, 1 and 2**-6 stay; turned, 2**-10 stands beside 1 and is lost."""
    values = np.full((1, 1, 32, 32), 2.0**-10, np.float32)
    values[..., 0, :] = 1
    turned = ttnn.transpose(put(device, "1x1x32x32 tile bfloat8_b", values), 2, 3).to_numpy()
    assert set(turned[..., 0].ravel()) == {1.0}
    assert not turned[0, 0, 0, 1:16].any()
    assert (turned[0, 0, 0, 16:] == 2.0**-10).all()


def test_channels_last_in_another_data_type_are_its_numbers(device):
    pixels = np.random.default_rng(0).standard_normal((1, 1, 8, 128)).astype(np.float32)
    last = ttnn.experimental.convert_to_hwc(put(device, "1x1x8x128 width/8x64/2", pixels), dtype=ttnn.float32)
    assert np.array_equal(last.to_numpy(), pixels.swapaxes(2, 3).astype(ml_dtypes.bfloat16).astype(np.float32))


def test_padding_between_images_in_shards_becomes_rows_of_the_result():
    with ttnn.open_device(strict=False) as lenient:
        result = ttnn.untilize(put(lenient, "2x50x60 tile height/32x64/4")).to_numpy()
    values = numbers(2, 50, 60)
    assert np.array_equal(result[0], values[0])
    assert not result[1, :14].any()  # the 14 rows of padding behind the first image
    assert np.array_equal(result[1, 14:], values[1, :36])


@pytest.mark.parametrize(("number", "call", "kept"), [
    (1 + 2**-10, lambda rows, tiles: ttnn.upsample(rows, (2, 1)), 1 + 2**-10),
    (1 + 2**-10, lambda rows, tiles: ttnn.upsample(tiles, (2, 1)), 1),  # of ten bits behind the point bfloat16 keeps 7
])  # fmt: skip
def test_tiles_of_float32_are_cut_by_an_upsample(number, call, kept):
    with ttnn.open_device(l1_small_size=32768, strict=False) as device:
        image = np.full((1, 1, 32, 32), number, np.float32)
        tensors = (
            ttnn.Tensor(image, ttnn.float32, device, layout) for layout in (ttnn.ROW_MAJOR_LAYOUT, ttnn.TILE_LAYOUT)
        )
        assert (call(*tensors).to_numpy() == kept).all()


def test_lists_of_an_upsample_lie_beside_all_channel_cores(device):
    """64 pixels of 40 channels in shards of 32 x 16: 2 x 3 of 4 x 5 cores hold pixels, 2 x 5 get a list."""
    source = put(device, "1x8x8x40 rows block/32x16/5x4")
    _, result, nodes = captured(lambda: ttnn.upsample(source, 2))
    sizes = [node["params"]["size"] for node in nodes if node["node_type"] == "buffer_allocate"]
    assert sizes[-1] == 2 * 5 * 48
    assert np.array_equal(result.to_numpy(), grown(numbers(1, 8, 8, 40), 2, 2))


def own_buffers(nodes):
    """Kinds and bytes of the buffers that no tensor has."""
    return [
        (node["node_type"].partition("_")[0], int(node["params"]["size"]))
        for node in nodes
        if node["node_type"].endswith(("buffer_allocate", "scratchpad_allocate")) and "page_size" not in node["params"]
    ]


def test_a_move_takes_the_pages_of_shards_as_dealt_to_all_banks(device):
    """64 rows move up by 512 bytes, into shards of 832: a bank of 64 would hold 256 bytes of them."""
    above = put(device, "256x256 tile bfloat8_b l1", np.zeros((256, 256)))  # 1,088 bytes of each bank
    x = put(device, "64x64 float32 l1")
    ttnn.deallocate(above)
    names, moved, nodes = captured(lambda: ttnn.move(x, memory_config=in_box(BLOCK, (13, 16), 6, 5)))
    assert (names, own_buffers(nodes)) == (["Move"], [("circular", 2 * 256)])
    assert np.array_equal(moved.to_numpy(), numbers(64, 64))


def test_a_tensor_moves_into_the_room_above_it(device):
    above, x = put_all(device, "1x1x64x64 tile l1 + 1x1x64x64 tile l1")
    address = above.buffer_address()
    ttnn.deallocate(above)
    names, moved, _ = captured(lambda: ttnn.reallocate(x))
    assert (names, moved.buffer_address(), x.is_allocated()) == (["Move"], address, False)
    assert np.array_equal(moved.to_numpy(), numbers(1, 1, 64, 64, first=7))


def test_sticks_are_aligned_in_a_scratchpad(device):
    ttnn.graph.begin_graph_capture(RunMode.NO_DISPATCH)
    x = put(device, "1x1x64x64 rows")
    ttnn.graph.end_graph_capture()
    names, _, nodes = captured(lambda: ttnn.interleaved_to_sharded(x, TWO_HIGH), RunMode.NO_DISPATCH)
    assert names == ["InterleavedToSharded"]
    assert own_buffers(nodes) == [("dataflow", 32 * 128), ("scratchpad", 4 * (128 + 32))]


def test_shards_are_dealt_anew_into_a_tensor_that_is_there(device):
    x, target = put_all(device, "1x1x64x64 tile height/32x64/2 + 1x1x64x64 tile height/64x64/1")
    address = target.buffer_address()
    output = ttnn.reshard(x, target.memory_config(), target)
    assert (output is target, output.buffer_address()) == (True, address)
    assert (output.to_numpy() == x.to_numpy()).all()


def test_shards_are_given_whole_or_by_their_cores(device):
    """The dtype is the third argument after a memory config, the sixth after a grid."""
    x, by_rows = put(device, "1x1x64x64 tile"), ttnn.ShardOrientation.ROW_MAJOR
    by_height, grid = ttnn.TensorMemoryLayout.HEIGHT_SHARDED, TWO_HIGH.shard_spec.grid
    whole = ttnn.interleaved_to_sharded(x, TWO_HIGH, ttnn.float32)
    cores = ttnn.interleaved_to_sharded(x, grid, (32, 64), by_height, by_rows, ttnn.float32)
    for result in (whole, cores):
        assert (result.dtype, result.memory_config()) == (ttnn.float32, TWO_HIGH)
        assert np.array_equal(result.to_numpy(), x.to_numpy())
    columns = ttnn.interleaved_to_sharded(x, ttnn.CoreCoord(2, 1), (32, 64), by_height, by_rows)
    assert columns.memory_config() == TWO_HIGH
    for arguments in ((TWO_HIGH, (32, 64)), (grid, (32, 64), by_height), ()):
        with pytest.raises(TypeError, match=r"\ninterleaved_to_sharded: "):
            ttnn.interleaved_to_sharded(x, *arguments)


RELU = ttnn.UnaryWithParam(ttnn.UnaryOpType.RELU)
ACTIVATED = {"input_tensor_b_activations": ["relu"]}


# Tensors, a call, and size and place (in a tensor or not) of its circular buffers
BUFFERS = [
    ("1x1x64x64 tile + 1x1x1x64 tile", ttnn.add, [(4096, 0)] * 4),  # the row is spread in a buffer of its own
    ("1x1x64x64 tile", lambda x: ttnn.multiply(x, 0.5), [(4096, 0), (2048, 0), (4096, 0)]),
    ("1x1x64x64 tile + 1x1x64x64 tile", ttnn.multiply, [(4096, 0)] * 3),
    ("1x1x64x64 tile height/32x64/2", lambda x: ttnn.add(x, x), []),  # worked on in place: views alone are not shown
    ("1x1x64x64 tile height/32x64/2", lambda x: ttnn.add(x, 1.0), [(4096, 1), (2048, 0), (4096, 1)]),
    ("1x1x64x64 tile height/32x64/2 dram", lambda x: ttnn.add(x, 2), [(4096, 0), (2048, 0), (4096, 0)]),
    ("1x1x64x64 tile", lambda x: ttnn.add(x, x, input_tensor_a_activations=[RELU]),
     [(4096, 0), (2048, 0), (4096, 0), (4096, 0)]),
    # Activated operands in shards wait in as many tiles as Dst holds
    ("1x1x64x64 tile height/32x64/2", lambda x: ttnn.add(x, x, **ACTIVATED),
     [(4096, 1), (4096, 1), (16384, 0), (4096, 1)]),
    ("1x1x64x64 tile height/32x64/2", lambda x: ttnn.multiply(x, x, **ACTIVATED),
     [(4096, 1), (4096, 1), (4096, 0), (4096, 1)]),
    ("1x1x64x64 tile height/32x64/2", lambda x: ttnn.add(x, x, dtype=ttnn.float32, **ACTIVATED),
     [(4096, 1), (4096, 1), (8192, 0), (8192, 1)]),
]  # fmt: skip


@pytest.mark.parametrize(("tensors", "call", "wanted"), BUFFERS, ids=range(len(BUFFERS)))
def test_circular_buffers(device, tensors, call, wanted):
    placed = put_all(device, tensors)
    assert buffers(lambda: call(*placed)) == wanted


@pytest.mark.parametrize(("shape", "in_place"), [("64x1", 1), ("1x1", 1), ("1x64", 0), ("64x64", 0)])
def test_shards_are_worked_on_in_place_beside_columns_and_numbers_elsewhere(device, shape, in_place):
    x, other = put(device, "1x1x64x64 tile height/32x64/2"), put(device, f"1x1x{shape} tile")
    first, *_, last = buffers(lambda: ttnn.add(x, other))
    assert first == last
    assert first[1] == in_place
    assert shape != "1x1" or buffers(lambda: ttnn.add(x, other, **ACTIVATED))[2:3] == [
        (2048, 0)
    ]  # tiles are added one by one


def test_functions_with_an_underscore_write_into_the_first_tensor(device):
    x, y = put(device, "32x32 tile", np.full((32, 32), 3.0)), put(device, "32x32 tile", np.full((32, 32), 2.0))
    assert ttnn.add_(x, y).buffer_address() == x.buffer_address()
    assert ttnn.mul_(x, 4.0).to_numpy().max() == ttnn.sub_(x, y).to_numpy().max() + 2.0 == 20.0
    assert ttnn.add_(x, 1.0, input_tensor_a_activations=["neg"]).to_numpy().max() == -17.0
    assert ttnn.mul(2.0, y).to_numpy().max() == ttnn.add(2, y, fast_and_approximate_mode=True).to_numpy().max() == 4.0
    assert (y @ y).to_numpy().max() == 128.0


def test_the_accurate_sigmoid_has_two_names_and_one_program(device):
    x = put(device, "32x32 tile", np.linspace(-4, 4, 1024).reshape(32, 32))
    usual = ttnn.sigmoid(x, vector_mode=4, mode=ttnn.SigmoidMode.Accurate).to_numpy()
    _, accurate, nodes = captured(lambda: ttnn.sigmoid_accurate(x))
    fast = ttnn.sigmoid(x, mode=ttnn.SigmoidMode.AccurateWithFastExp)
    assert np.array_equal(accurate.to_numpy(), usual)
    assert np.array_equal(fast.to_numpy(), usual)
    assert ttnn.graph.extract_calltrace(nodes)[:2] == ["ttnn.sigmoid_accurate", "UnaryDeviceOperation"]
    assert "circular_buffer_allocate" not in [node["node_type"] for node in nodes]
    assert ttnn.elu(x, alpha=2.0).shape == [32, 32]


def test_a_vector_mode_leaves_columns_as_they_are(device):
    x = put(device, "32x64 tile", np.linspace(-4, 4, 2048).reshape(32, 64))
    sigmoid = ttnn.sigmoid(x).to_numpy()
    of_columns = ttnn.sigmoid(x, vector_mode=2).to_numpy()
    computed = np.arange(64) % 32 < 16
    assert np.array_equal(of_columns[:, computed], sigmoid[:, computed])
    assert np.array_equal(of_columns[:, ~computed], x.to_numpy()[:, ~computed])


def test_variants_of_gelu(device):
    x = put(device, "1x1x32x64 tile", np.linspace(-4, 4, 2048).reshape(1, 1, 32, 64))
    numbers = x.to_numpy().astype(np.float64)
    expected = 0.5 * numbers * (1 + np.tanh(np.sqrt(2 / np.pi) * (numbers + 0.044715 * numbers**3)))
    assert np.abs(ttnn.gelu(x, variant=ttnn.GeluVariant.Tanh).to_numpy() - expected).max() < 2**-7
    gated = ttnn.geglu(x, variant=ttnn.GeluVariant.Tanh).to_numpy()
    assert np.abs(gated - numbers[..., :32] * expected[..., 32:]).max() < 2**-4


def test_sums_are_rounded_to_the_nearest_on_request(device):
    x = put(device, "32x32 tile", np.full((32, 32), 1.0078125))
    for function, expected in ((ttnn.add, 1.015625), (ttnn.subtract, 1.0), (ttnn.rsub, -1.0)):
        y = put(device, "32x32 tile", np.full((32, 32), 0.00390625))  # half of the last bit: ties go to even numbers
        assert function(x, y, fast_and_approximate_mode=False).to_numpy().max() == expected


PADDED = [
    ("float32 rows", (2, 30), 1.5, "as two numbers of bfloat16"),
    ("float32 rows", (2, 30), 0, ""),
    ("float32 tile", (2, 30), 1.5, ""),
    ("bfloat16 rows", (2, 30), 1.5, ""),
    ("bfloat8_b tile", (2, 30), 100, "written behind the 31 columns of the result"),
    ("bfloat4_b tile", (2, 30), 100, "written behind the 31 columns of the result"),
    ("bfloat8_b tile", (2, 31), 100, ""),  # 32 columns: what is lost beside 100 is lost in any such row
    ("bfloat8_b tile", (2, 30), 0, ""),
]


@pytest.mark.parametrize(("words", "shape", "value", "refusal"), PADDED)
def test_padding_that_comes_out_as_another_number_is_refused(words, shape, value, refusal):
    """Without strictness it is what the real library has: 1.5 is 0x3FC03FC0, and small neighbors of 100 are 0."""
    for strict in (True, False):
        with ttnn.open_device(strict=strict) as device:
            x, padding = put(device, f"0 {words}", np.full((1, 1, *shape), 0.125)), ((0, 0), (0, 0), (0, 0), (0, 1))
            if strict and refusal:
                with pytest.raises(ttnn.ArgumentError, match=f"^pad: value {value:g} .*{refusal}"):
                    ttnn.pad(x, padding, value)
                continue
            row = ttnn.pad(x, padding, value).to_numpy()[0, 0, 0].tolist()
            number = 1.501945495605469 if words == "float32 rows" and value else 96 if "bfloat4" in words else value
            beside = 0.0 if "_b" in words and value else 0.125
            assert row == [0.125] * 16 + [beside] * (shape[1] - 16) + [pytest.approx(number, rel=1e-7)]


@pytest.mark.parametrize(("dtype", "channels", "held"), [(ttnn.bfloat16, 3, 8), (ttnn.float32, 6, 8)])
def test_channels_last_that_are_never_written_are_not_read(dtype, channels, held):
    for strict in (True, False):
        with ttnn.open_device(strict=strict) as device:
            pixels = ttnn.Tensor(np.ones((1, 1, channels, 128)), dtype, device, mem_config=wide((channels, 64), 2))
            last = ttnn.experimental.convert_to_hwc(pixels)
            assert last.shape == [1, 1, 128, held]
            for use in (ttnn.relu, ttnn.Tensor.cpu, lambda view: ttnn.reshape(view, (1, 128, 1, held)).to_numpy()):
                if strict:
                    with pytest.raises(ttnn.ArgumentError, match=f"has {held} channels, and the tensor {channels}:"):
                        use(last)
                else:
                    use(last)


@pytest.mark.parametrize(("asked", "refused"), [(3, False), (4, True)])
def test_a_convolution_ignores_channels_that_are_never_written(asked, refused):
    """As vanilla_unet and unet_shallow in tt-metal begin: the weights of the channels behind the third are zeros."""
    with ttnn.open_device(l1_small_size=32768) as device:
        pixels = ttnn.Tensor(np.ones((1, 1, 3, 64)), ttnn.bfloat16, device, mem_config=wide((3, 32), 2))
        last = ttnn.experimental.convert_to_hwc(pixels)
        weights = ttnn.from_numpy(np.ones((32, asked, 3, 3)), ttnn.bfloat16)
        arguments = {
            "input_tensor": last, "weight_tensor": weights, "device": device, "in_channels": asked, "out_channels": 32,
            "batch_size": 1, "input_height": 8, "input_width": 8, "kernel_size": (3, 3), "padding": (1, 1),
        }  # fmt: skip
        if refused:
            with pytest.raises(ttnn.ArgumentError, match="the result has 8 channels, and the tensor 3:"):
                ttnn.conv2d(**arguments)
        else:
            output = ttnn.conv2d(**arguments).to_numpy().reshape(8, 8, 32)
            assert (output[1:-1, 1:-1] == 27.0).all()  # 3 x 3 pixels of 3 channels


def test_what_lies_where_the_result_goes_is_not_released(device):
    """The first tensor is gathered in DRAM, where the second lies."""
    first, second = put_all(device, "1x1x64x64 rows width/64x32/2 + 1x1x64x64 rows")
    assert operations(lambda: ttnn.concat([first, second], 3)) == ["ShardedToInterleaved", "Concat"]
    assert first.is_allocated()
    assert second.is_allocated()


def test_sides_with_padding_change_nothing_of_a_reshape_of_tiles(device):
    tensor = ttnn.Tensor(np.arange(80.0).reshape(1, 2, 4, 10), ttnn.bfloat16, device, ttnn.TILE_LAYOUT)
    expected = ttnn.reshape(tensor, (1, 1, 8, 10))
    result = ttnn.reshape(tensor, ttnn.Shape([1, 1, 8, 10]), ttnn.Shape([1, 1, 32, 32]))
    assert result.padded_shape == expected.padded_shape
    assert np.array_equal(result.to_numpy(), expected.to_numpy())


def test_reshard_writes_into_the_shards_of_an_output(device):
    """Whatever place it is given; the call allocates nothing, and its output has 4,096 bytes on each of two cores."""
    numbers = np.arange(64 * 64.0).reshape(1, 1, 64, 64) % 251
    rows = ttnn.from_numpy(numbers, ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device,
                            memory_config=place("height/32x64/2"))  # fmt: skip
    columns = ttnn.zeros((1, 1, 64, 64), ttnn.bfloat16, ttnn.TILE_LAYOUT, device, place("width/64x32/2"))
    blocks = place("block/32x32/2x2")
    query = ttnn.graph.query_op_constraints(
        lambda x, y: ttnn.reshard(x, blocks, output_tensor=y), device, rows, columns
    )
    assert list(query.resource_usage) == [0, 0, 0, 4096]
    assert ttnn.reshard(rows, blocks, output_tensor=columns) is columns
    assert np.array_equal(columns.to_numpy(), numbers)


def test_divisions_by_the_number_0(device):
    x = put(device, "32x32 tile", np.tile([-1.0, 0.0, 2.0, 0.0], (32, 8)))
    with np.errstate(all="ignore"):
        assert np.array_equal(ttnn.floor_div(x, 0).to_numpy()[0, [0, 2]], [-np.inf, np.inf])
    assert not ttnn.div_no_nan(x, 0).to_numpy().any()


def test_block_floats_that_are_drawn_in_rows_become_bfloat16(device):
    drawn = ttnn.rand((32, 32), device, dtype=ttnn.bfloat8_b, layout=ttnn.ROW_MAJOR_LAYOUT)
    assert (drawn.dtype, drawn.layout) == (ttnn.bfloat16, ttnn.ROW_MAJOR_LAYOUT)


@pytest.mark.parametrize(
    ("before", "after", "numbers", "expected"),
    [
        (ttnn.bfloat16, ttnn.uint16, [1.0, -2.0], [0x3F80, 0xC000]),
        (ttnn.uint16, ttnn.bfloat16, [0x3F80, 0xC000], [1.0, -2.0]),
        (ttnn.float32, ttnn.int32, [1.0, -2.0], [0x3F800000, -0x40000000]),
        (ttnn.uint32, ttnn.float32, [0x3F800000, 0xC0000000], [1.0, -2.0]),
        (ttnn.int32, ttnn.uint32, [1, -1], [1, 0xFFFFFFFF]),
    ],
)
def test_bits_are_seen_as_another_data_type(device, before, after, numbers, expected):
    result = ttnn.bitcast(ttnn.Tensor(np.array([numbers]), before, device, ttnn.TILE_LAYOUT), after)
    assert (result.dtype, result.to_list()) == (after, [expected])


def test_a_view_takes_its_four_sides_one_by_one(device):
    rows = ttnn.ones((4, 8, 32), device=device)
    seen = ttnn.experimental.view(rows, 2, -1, H=8, W=32)
    assert (seen.shape, seen.buffer_address()) == ((2, 2, 8, 32), rows.buffer_address())
    with pytest.raises(ttnn.ArgumentTypeError, match=r"^ttnn.experimental.view\(\): incompatible function arguments"):
        ttnn.experimental.view(rows, 4, 8, 32)
