"""Plans of conv2d: sequences of the real library, version 0.81.1, and windows that are folded into channels."""

import pytest

from device.errors import DeviceError
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, Layout
from device.plan import Free, Operation
from device.spec.device_spec import load_spec
from ops.planners.conv.arguments import CONV2D
from ops.planners.conv.plan import plan_convolution
from tests.build import changed, cut, operand, sized_call
from tests.shards import HEIGHT, WIDTH, in_box

SPEC = load_spec("wormhole_n150")
FREE = SPEC.l1.bytes - SPEC.l1.base_bytes
DRAM, L1 = DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG


def test_output_sizes():
    def size(**changes):
        return sized_call((8, 8), (32, 64), rules=CONV2D, **{"padding": (1, 1, 1, 1)} | changes).output_size

    assert size() == (8, 8)
    assert size(stride=(2, 3), dilation=(2, 1), padding=(0, 1, 2, 0)) == (3, 3)
    assert size(
        enable_kernel_stride_folding=True, kernel_size=(2, 3), stride=(2, 3), padding=(0, 0, 0, 1), dilation=(2, 1)
    ) == (4, 3)


def embedding(**changes):
    """A patch embedding: an 8x8 image of 16 channels, windows of 4x4 side by side."""
    result = sized_call((8, 8), (16, 32), (4, 4), rules=CONV2D, stride=(4, 4))
    return changed(result, **changes)


def image(place=DRAM, layout=Layout.ROW_MAJOR):
    return {"input": operand(1, 1, 64, 16, place=place, layout=layout)}


@pytest.mark.parametrize(
    ("changes", "folded"),
    [
        ({}, True),
        ({"stride": (2, 2)}, False),
        ({"kernel_size": (1, 1), "stride": (1, 1)}, False),
        ({"kernel_size": (0, 2), "stride": (0, 2)}, False),  # refused later
        ({"dilation": (2, 2)}, False),
        ({"input_height": 7}, False),
        ({"padding": (1, 1, 1, 1)}, False),
        ({"padding": (2, 2, 2, 2)}, True),
        ({"padding": (2, 2, 2, 2)} | image(layout=Layout.TILE), False),
        (image(layout=Layout.TILE), True),
        (image(L1), False),
        (image(in_box(HEIGHT, (32, 16), 2)), True),
        ({"enable_kernel_stride_folding": False}, False),
        ({"enable_kernel_stride_folding": True, "stride": (2, 2)}, True),
        ({"enable_kernel_stride_folding": True, "kernel_size": (3, 3), "stride": (1, 1)}, False),
    ],
)
def test_windows_that_fold(changes, folded):
    """Side by side they fold by themselves, but the config has the last word."""
    assert embedding(**changes).folds is folded


def plan(place=L1, **changes):
    """16x16 pixels of 32 channels, kernel 3, stride 2, padding 1."""
    result = sized_call((16, 16), (32, 64), rules=CONV2D, place=place, stride=(2, 2), padding=(1, 1, 1, 1))
    return plan_convolution(changed(result, **changes), SPEC, free_l1_bytes=FREE, returns_weights=False)


def kernel(*sides, ins=32):
    return {"kernel_size": sides, "weight": operand(64, ins, *sides)}


def names(made):
    return [step.name.removesuffix("DeviceOperation") for step in made.steps if isinstance(step, Operation)]


SHARD, UNSHARD = "InterleavedToSharded", "ShardedToInterleaved"
PLAIN = {"padding": (0, 0, 0, 0)}
FOLDS = {"enable_kernel_stride_folding": True}


@pytest.mark.parametrize(
    ("place", "changes", "wanted"),
    [
        (L1, {}, [SHARD, "Halo", "Conv2d"]),
        (L1, {"shard_layout": WIDTH}, [SHARD, "Halo", "Conv2d"]),
        (L1, {"shard_layout": WIDTH} | PLAIN, [SHARD, "Conv2d"]),
        (DRAM, {}, [SHARD, "Halo", "Conv2d", UNSHARD]),
        (DRAM, {"slice_config": cut(1)}, [SHARD, "Halo", "Conv2d", UNSHARD]),
        (DRAM, kernel(2, 2) | PLAIN, ["Fold", "Tilize", "Matmul"]),
        (DRAM, kernel(2, 2), ["Pad", "Fold", "TilizeWithValPadding", "Matmul"]),
        (DRAM, kernel(1, 1) | PLAIN | {"stride": (1, 1)}, ["Tilize", "Matmul"]),
        # windows that overlap leave a convolution of stride 1
        (L1, FOLDS | PLAIN, ["Fold", SHARD, "Halo", "Conv2d"]),
        (DRAM, FOLDS | PLAIN, ["Fold", SHARD, "Halo", "Conv2d", UNSHARD]),
    ],
)
def test_operations(place, changes, wanted):
    result = plan(place, **changes)
    assert names(result) == wanted
    if place is DRAM:
        assert result.tensors[result.results["output"]].memory_config == DRAM


def test_folded_windows_are_released_and_have_folded_weights():
    result = plan(DRAM, **kernel(2, 2))
    assert result.tensors["input.folded"].shape == (1, 9, 9, 128)
    assert result.tensors["weight.prepared"].shape == (1, 1, 128, 64)
    frees = [step.tensor for step in result.steps if isinstance(step, Free)]
    assert frees[0] == "input.padded"
    assert set(frees) == {"input.padded", "input.tiled", "input.folded", "weight.prepared"}
    assert plan(**FOLDS, **PLAIN).tensors["weight.prepared"].shape == (1, 1, 2 * 2 * 128, 64)


def test_weights_are_not_folded_with_an_image_in_dram():
    """32 channels of a 3x3 kernel in rows of blocks for 2 x 128 channels; windows side by side do not fit a matmul."""
    result = plan(DRAM, shard_layout=HEIGHT, **FOLDS, **PLAIN).tensors["weight.prepared"]
    assert (result.shape, result.padded_shape) == ((1, 1, 288, 64), (1, 1, 768, 64))
    result = plan(DRAM, shard_layout=HEIGHT, **kernel(2, 2), **FOLDS, **PLAIN)
    last = [step for step in result.steps if isinstance(step, Operation)][-1]
    assert last.refused.startswith("K dimension in tiles must match between input A (4) and input B (8)")
    in_l1 = plan(shard_layout=HEIGHT, **kernel(2, 2), **FOLDS, **PLAIN)
    assert in_l1.tensors["weight.prepared"].padded_shape == (1, 1, 128, 64)


def test_kernel_rows_wider_than_a_block_are_refused():
    few = {"input": operand(1, 1, 256, 2, place=DRAM), "in_channels": 2, "shard_layout": HEIGHT}
    with pytest.raises(DeviceError, match="Block height 32 must be >= inner dimension 64"):
        plan(**few, **kernel(2, 2, ins=2), **FOLDS, **PLAIN)


@pytest.mark.parametrize(("channels", "begins"), [(20, ["UntilizeWithUnpadding"]), (24, [])])
def test_tiles_are_folded_unless_their_rows_split_words(channels, begins):
    """A row of 20 numbers of two bytes does not end where the next may begin."""
    tiles = operand(1, 1, 144, channels, layout=Layout.TILE, place=DRAM)
    sizes = {"in_channels": channels, "input_height": 12, "input_width": 12}
    result = plan(input=tiles, **kernel(2, 2, ins=channels), **sizes, **PLAIN)
    assert names(result)[: len(begins) + 2] == ["ReshapeView", *begins, "Fold"]


@pytest.mark.parametrize(("rows", "cores", "dealt", "shape"), [(64, 4, [], (16, 128)), (48, 6, ["Reshard"], (8, 128))])
def test_shards_are_dealt_anew_where_they_do_not_hold_whole_rows_of_windows(rows, cores, dealt, shape):
    """Two rows of 16 pixels: 48 rows of a shard are not whole windows, 64 are."""
    result = plan(in_box(HEIGHT, (rows, 32), cores), shard_layout=HEIGHT, **kernel(2, 2), **FOLDS, **PLAIN)
    assert names(result)[: len(dealt) + 1] == [*dealt, "Fold"]
    assert result.tensors["input.folded"].memory_config.shard_spec.shape == shape


@pytest.mark.parametrize(("rows", "cores", "untiled"), [(96, 4, 3 * 24), (32, 12, 32)])
def test_shards_of_tiles_keep_several_rows_of_the_image(rows, cores, untiled):
    """Rows of 24 pixels fill 32 of a tile; 12 of them in shards of one each come to whole tiles."""
    tiles = operand(1, 12, 24, 32, layout=Layout.TILE, place=in_box(HEIGHT, (rows, 32), 4, cores // 4))
    sizes = {"input": tiles, "input_height": 12, "input_width": 24, "shard_layout": HEIGHT}
    result = plan(**sizes, **kernel(2, 2), **FOLDS, **PLAIN).tensors["input.untiled"]
    assert result.memory_config.shard_spec.shape == (untiled, 32)
