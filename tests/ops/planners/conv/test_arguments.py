"""A call as a convolution: defaults, geometry, and what every option becomes."""

from dataclasses import replace

import pytest

from device.cores import first_cores
from device.errors import DeviceError
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT16
from device.plan import Operation
from device.spec.device_spec import load_spec
from device.spec.parts import GridSpec
from ops.planners.conv.arguments import CONV2D, ComputeConfig
from ops.planners.conv.plan import plan_convolution
from ops.programs.conv2d.block_costs import useful_flops
from ops.programs.conv2d.partition import ConvOptions
from tests.build import changed, cut, operand, sized_call
from tests.shards import HEIGHT, WIDTH, in_box

GRID = first_cores(4, 8, 8)


def two_images(*, in_format=BFLOAT16, raw_format=BFLOAT16, **changes):
    """4x6 pixels of 16 channels, twice, under a 3x2 kernel."""
    tensors = {
        "input": operand(1, 1, 48, 16, data_format=in_format, place=DRAM_MEMORY_CONFIG),
        "weight": operand(16, 8, 3, 2, data_format=raw_format),
    }
    return changed(sized_call((4, 6), (16, 8), (3, 2), batch=2), **tensors | changes)


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


SPEC = load_spec("wormhole_n150")
FREE = SPEC.l1.bytes - SPEC.l1.base_bytes
DRAM, L1 = DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG


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


@pytest.mark.parametrize("groups", [1, 2])
def test_zeros_that_fill_up_a_folded_kernel_are_not_useful(groups):
    """3x3 taps on 32 channels become 2x2 on 128, of which 16 * 32 - 9 * 32 weights are zeros; there are 7x7 outputs."""
    result = plan(L1, groups=groups, **kernel(3, 3, ins=32 // groups), **FOLDS, **PLAIN)
    (problem,) = (step.op.problem for step in result.steps if isinstance(step, Operation) and "Conv2d" in step.name)
    assert (problem.kernel, problem.in_channels) == ((2, 2), 128)
    assert useful_flops(problem) == 2 * 49 * 9 * 32 * 64 // groups


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


@pytest.mark.parametrize(("rows", "cores", "dealt", "shape"), [(64, 4, [], [16, 128]), (48, 6, ["Reshard"], [8, 128])])
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
    assert result.memory_config.shard_spec.shape == [untiled, 32]
