"""A call as a convolution: defaults, geometry, and what every option becomes."""

from dataclasses import replace

import pytest

from device.cores import first_cores
from device.errors import DeviceError
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT16, FLOAT32
from device.plan import Free, Operation
from device.spec.device_spec import load_spec
from device.spec.parts import GridSpec
from ops.planners.conv.arguments import CONV2D, ComputeConfig, ConvConfig
from ops.planners.conv.plan import plan_convolution
from ops.programs.conv2d.partition import ConvOptions
from tests.build import TWO_SLICES, call, changed, cut, operand, sized_call
from tests.shards import HEIGHT, WIDTH, in_box

GRID = first_cores(4, 8, 8)


def two_images(*, in_format=BFLOAT16, raw_format=BFLOAT16, **changes):
    """4x6 pixels of 16 channels, twice, under a 3x2 kernel."""
    tensors = {
        "input": operand(1, 1, 48, 16, data_format=in_format, place=DRAM_MEMORY_CONFIG),
        "weight": operand(16, 8, 3, 2, data_format=raw_format),
    }
    return changed(sized_call((4, 6), (16, 8), (3, 2), batch=2), **tensors | changes)


@pytest.mark.parametrize(
    ("in_format", "weights", "fp32_dest"),
    [(FLOAT32, FLOAT32, True), (FLOAT32, BFLOAT16, False), (BFLOAT16, FLOAT32, False), (BFLOAT16, BFLOAT16, False)],
)
def test_without_a_compute_config_only_float32_throughout_gets_a_float32_dst(in_format, weights, fp32_dest):
    got = two_images(weights_format=weights, in_format=in_format).compute
    assert got == ComputeConfig(fidelity_phases=4, fp32_dest=fp32_dest, packer_l1_acc=False)


@pytest.mark.parametrize(
    ("change", "matmul"),
    [
        ({}, True),
        ({"output_padding": (1, 0)}, True),
        ({"groups": 2}, True),
        ({"shard_layout": HEIGHT}, True),
        ({"kernel_size": (1, 2)}, False),
        ({"kernel_size": (2, 1)}, False),
        ({"stride": (2, 1)}, False),
        ({"stride": (1, 2)}, False),
        ({"dilation": (1, 2)}, False),
        ({"padding": (1, 0, 0, 0)}, False),
        ({"padding": (0, 0, 0, 1)}, False),
        ({"shard_layout": WIDTH}, False),
    ],
)
def test_a_matmul_is_pointwise_in_every_way(change, matmul):
    assert two_images(**{"kernel_size": (1, 1)} | change).is_matmul is matmul


def test_frame_of_an_uneven_call():
    """Rows: reach 4, top 1, bottom 3; columns: reach 1, no padding; the axes do not mix."""
    window = {"stride": (2, 3), "padding": (1, 3, 0, 0), "output_padding": (1, 2), "dilation": (2, 1)}
    frame = two_images(**window, replicate_padding=True).frame()
    rows, columns = frame.rows, frame.columns
    assert (frame.batch, frame.replicate) == (2, True)
    assert (rows.before, rows.after, rows.input_dilation, rows.trailing) == (3, 1, 2, 1)
    assert (columns.before, columns.after, columns.input_dilation, columns.trailing) == (1, 1, 3, 2)
    assert (rows.outputs, columns.outputs) == (3 * 2 - 4 + 4 + 1 + 1, 5 * 3 + 1 + 2 + 1)


OPTIONS = [
    ({"act_block_h_override": 64}, {"act_block_h_override": 64}),
    ({"act_block_w_div": 2}, {"act_block_w_div": 2}),
    ({"transpose_shards": True}, {"transpose_shards": True}),
    ({"output_layout": Layout.ROW_MAJOR}, {"untilize_out": True}),
    ({"enable_act_double_buffer": True}, {"act_double_buffer": True}),
    ({"enable_weights_double_buffer": True}, {"weights_double_buffer": True}),
    ({"full_inner_dim": True}, {"full_inner_dim": True}),
    ({"enable_activation_reuse": True}, {"activation_reuse": True}),
    ({"force_split_reader": False}, {"force_split_reader": False}),
    ({"config_tensors_in_dram": True}, {"config_tensors_in_dram": True}),
    ({"core_grid": GRID, "override_sharding_config": True}, {"core_grid": GRID}),
    ({"core_grid": GRID, "override_output_sharding_config": True}, {"output_grid": GridSpec(cols=4, rows=1)}),
    ({"core_grid": GRID}, {}),
    ({"compute_config": ComputeConfig(fp32_dest=True)}, {"fp32_dest": True}),
    ({"compute_config": ComputeConfig(packer_l1_acc=True)}, {"packer_l1_acc": True}),
]


@pytest.mark.parametrize(("given", "made"), OPTIONS)
def test_each_field_becomes_one_option_and_no_other(given, made):
    _, options = two_images(**given).lower()
    assert options == replace(ConvOptions(), **made)


def test_a_slice_is_tiled_and_keeps_what_the_call_settled():
    """The window of a bfloat8_b input is bfloat16, which must change neither the output's format nor Dst."""
    whole = two_images(
        in_format=FLOAT32,
        raw_format=FLOAT32,
        memory_config=L1_MEMORY_CONFIG,
        slice_config=TWO_SLICES,
        conv_config=ConvConfig(output_layout=Layout.ROW_MAJOR, reallocate_halo_output=False, act_block_h_override=64),
    )
    source = operand(1, 1, 24, 16, place=DRAM_MEMORY_CONFIG)
    part = whole.as_slice(source)
    assert (part.input, part.memory_config, part.slice_config) == (source, None, None)
    config = part.conv_config
    assert (config.output_layout, config.deallocate_activation) == (Layout.TILE, True)
    assert (config.reallocate_halo_output, config.act_block_h_override) == (True, 64)
    assert (part.output_format, part.weight_format) == (FLOAT32, FLOAT32)
    assert part.compute == whole.compute == ComputeConfig(fidelity_phases=4, fp32_dest=True)


PADDED = sized_call((33, 5), (16, 32), (4, 15), stride=(7, 3), padding=(0, 0, 14, 14))


@pytest.mark.parametrize(
    ("made", "lengths", "unsigned"),
    [
        (call(), (16, 16), (16, 16)),
        (call(padding=(0, 1, 2, 3), dilation=(2, 1)), (19, 13), (19, 13)),
        # a kernel of 5 on 4 columns: -1 + 1 of them with stride 1, and a fourth of 2**32 with stride 4
        (sized_call((6, 4), (32, 32), (5, 5), rules=CONV2D), (2, 0), (2, 0)),
        (sized_call((6, 4), (32, 32), (5, 5), rules=CONV2D, stride=(3, 4)), (1, 0), (1, 2**30)),
        (PADDED, (228, -1), (228, 2**32 - 1)),
    ],
)
def test_outputs_with_and_without_a_sign(made, lengths, unsigned):
    assert (made.output_lengths(), made.output_lengths(unsigned=True)) == (lengths, unsigned)
    assert made.wraps is (lengths != unsigned)


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
