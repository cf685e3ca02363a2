"""Rules by recorded outputs: 8x8, 64 channels, and the WIDTH calls of section G3 of the review."""

from dataclasses import replace

import pytest

from device.errors import ArgumentError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, Layout, TensorMemoryLayout
from device.numbers.formats import BFLOAT4_B, BFLOAT8_B, BFLOAT16
from device.spec.device_spec import load_spec
from ops.planners.conv.arguments import ConvConfig, SliceConfig, SliceType
from ops.planners.conv.plan import plan_convolution
from ops.planners.conv.strict import check_strict_plan, plan_fault
from tests.ops.planners.conv.good_call import operand, sized_call
from tests.shards import box

SPEC = load_spec("wormhole_n150")
SCHEMES = {one.name[0]: one for one in TensorMemoryLayout if one.name.endswith("_SHARDED")}


def call(channels=64, kernel=3, stride=2, padding=1, slices=None, size=(8, 8), scheme=None, **config):
    return sized_call(
        size,
        (channels, 32),
        (kernel, kernel),
        place=DRAM_MEMORY_CONFIG if slices else L1_MEMORY_CONFIG,
        stride=(stride, stride),
        padding=(padding,) * 4,
        conv_config=ConvConfig(shard_layout=None if scheme is None else SCHEMES[scheme], **config),
        slice_config=None if slices is None else SliceConfig(slice_type=slices[0], num_slices=slices[1]),
    )


def fault(made):
    return plan_fault(plan_convolution(made, SPEC, free_l1_bytes=1300000), made)


@pytest.mark.parametrize(
    ("channels", "kernel", "parts", "right"),
    [
        (4096, 2, 2, True),
        (2080, 2, 2, True),
        (6144, 2, 3, True),
        (6144, 2, 2, False),
        (1024, 4, 2, False),
    ],
)
def test_parts_of_a_width_shard_must_be_whole_tiles(channels, kernel, parts, right):
    found = fault(call(channels, kernel, padding=0, size=(3, 4), scheme="W", act_block_w_div=parts))
    assert (found is None) is right
    assert right or "use a divisor of" in (found or "")


def test_what_ends_with_an_error_of_the_real_library_is_left_to_it():
    assert fault(call(scheme="W", act_block_w_div=2)) is None


@pytest.mark.parametrize(("scheme", "right"), [("H", True), ("W", True), ("B", False)])
def test_full_inner_dim_is_wrong_with_block_shards(scheme, right):
    assert (fault(call(scheme=scheme, full_inner_dim=True)) is None) is right


@pytest.mark.parametrize(("channels", "right"), [(33, False), (49, True)])
def test_block_shards_hold_the_channels_that_their_weights_stand_for(channels, right):
    """64 channels on three columns of cores are 24 each; weights of 33 channels stand for 16 on each, of 49 for 24."""
    made = call(channels, stride=1, scheme="B", override_sharding_config=True, core_grid=box(3, 2))
    found = fault(replace(made, input=operand(1, 1, 64, 64, place=L1_MEMORY_CONFIG)))
    assert (found is None) is right
    assert right or "holds 24 of its channels, and the weights are prepared for 16" in (found or "")


@pytest.mark.parametrize(
    ("size", "slices", "columns", "rows", "scheme", "idle"),
    [
        ((8, 8), (SliceType.DRAM_HEIGHT, 2), 2, 2, "H", 0),
        ((8, 8), (SliceType.DRAM_HEIGHT, 2), 8, 1, "H", 0),  # recorded right, as the next two: 1 of 8 and of 16 idle
        ((4, 33), (SliceType.DRAM_WIDTH, 2), 4, 2, "H", 0),
        ((16, 16), (SliceType.DRAM_HEIGHT, 2), 4, 4, "H", 0),
        ((8, 8), (SliceType.DRAM_HEIGHT, 2), 7, 1, "H", 3),
        ((12, 8), (SliceType.DRAM_HEIGHT, 3), 4, 4, "H", 8),  # recorded right on Wormhole; the last slice leaves 9
        ((4, 33), (SliceType.DRAM_WIDTH, 2), 4, 4, "H", 9),  # recorded right on Wormhole, wrong on Blackhole
        ((8, 8), (SliceType.DRAM_HEIGHT, 2), 2, 1, "W", 0),
        ((16, 16), (SliceType.DRAM_HEIGHT, 2), 2, 4, "B", 0),
        ((8, 8), None, 4, 4, "H", 0),
    ],
)
def test_height_slices_that_leave_cores_of_a_given_grid_idle_are_unreliable(size, slices, columns, rows, scheme, idle):
    grid = box(columns, rows)
    found = fault(call(slices=slices, size=size, scheme=scheme, override_sharding_config=True, core_grid=grid))
    assert (found is None) is (not idle)
    assert not idle or f"leaves {idle} of its {columns * rows} " in (found or "")


@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "kind", "right"),
    [
        (3, 1, 1, SliceType.DRAM_HEIGHT, True),
        (4, 2, 1, SliceType.DRAM_HEIGHT, True),
        (3, 2, 1, SliceType.DRAM_HEIGHT, False),
        (3, 2, 2, SliceType.DRAM_HEIGHT, False),
        (2, 2, 0, SliceType.DRAM_HEIGHT, False),
        (5, 2, 2, SliceType.DRAM_HEIGHT, False),
        (4, 4, 0, SliceType.DRAM_HEIGHT, False),
        (3, 2, 1, SliceType.DRAM_WIDTH, False),
    ],
)
def test_slices_repeat_edges_that_the_whole_image_does_not_have(kernel, stride, padding, kind, right):
    size = (8, 8) if kind is SliceType.DRAM_HEIGHT else (4, 33)
    made = call(kernel=kernel, stride=stride, padding=padding, slices=(kind, 2), size=size, replicate_padding=True)
    assert (fault(made) is None) is right
    zeros = replace(made, conv_config=replace(made.conv_config, replicate_padding=False))
    assert fault(zeros) is None


def test_the_way_out_leaves_out_only_what_was_given():
    made = call(slices=(SliceType.DRAM_HEIGHT, 2), replicate_padding=True)
    plan = plan_convolution(made, SPEC, free_l1_bytes=1300000)
    with pytest.raises(ArgumentError, match="leave dram_slice_config out"):
        check_strict_plan(plan, made)
    with pytest.raises(ArgumentError, match="give a dram_slice_config with another number"):
        check_strict_plan(plan, replace(made, slice_config=None))


@pytest.mark.parametrize(
    ("channels", "out_format", "layout", "slices", "right"),
    [
        *((channels, BFLOAT8_B, Layout.ROW_MAJOR, None, False) for channels in (3, 5, 12, 20)),  # recorded, both ways
        *((channels, BFLOAT8_B, Layout.ROW_MAJOR, None, True) for channels in (8, 16, 24, 32, 40)),
        (3, BFLOAT4_B, Layout.ROW_MAJOR, None, False),
        (3, BFLOAT16, Layout.ROW_MAJOR, None, True),  # what is not written meets zero weights
        (3, BFLOAT8_B, Layout.TILE, None, True),  # tiles are full of zeros
        (3, BFLOAT8_B, Layout.ROW_MAJOR, 2, True),  # slices are cut with zeros behind their channels
    ],
)
def test_channels_that_no_program_writes_share_exponents(channels, out_format, layout, slices, right):
    made = call(channels, slices=slices and (SliceType.DRAM_HEIGHT, slices))
    spec = TensorSpec(made.input.spec.shape, BFLOAT16, layout, made.input.spec.memory_config)
    made = replace(made, input=replace(made.input, spec=spec), out_format=out_format)
    found = fault(made)
    assert (found is None) is right
    assert right or f"its rows of {channels} channels are dealt to shards that hold {-(-channels // 8) * 8}" in found
