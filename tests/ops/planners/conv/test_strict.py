"""Calls that the real library gets wrong or crashes on: by recorded outputs, and by what the arguments say."""

import re
from dataclasses import replace
from typing import Any

import pytest

from device.errors import ArgumentError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, Layout, TensorMemoryLayout
from device.numbers.formats import BFLOAT4_B, BFLOAT8_B, BFLOAT16, INT32
from device.spec.device_spec import load_spec
from ops.planners.conv.arguments import ConvConfig, SliceConfig, SliceType
from ops.planners.conv.checks import check_possible, check_strict
from ops.planners.conv.plan import plan_convolution
from ops.planners.conv.plan_checks import check_strict_plan, plan_fault
from tests.build import call, operand, sized_call
from tests.shards import box

SPEC = load_spec("wormhole_n150")
SCHEMES = {one.name[0]: one for one in TensorMemoryLayout if one.name.endswith("_SHARDED")}


def image_call(channels=64, kernel=3, stride=2, padding=1, slices=None, size=(8, 8), scheme=None, **config):
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
    found = fault(image_call(channels, kernel, padding=0, size=(3, 4), scheme="W", act_block_w_div=parts))
    assert (found is None) is right
    assert right or "use a divisor of" in (found or "")


def test_what_ends_with_an_error_of_the_real_library_is_left_to_it():
    assert fault(image_call(scheme="W", act_block_w_div=2)) is None


@pytest.mark.parametrize(("scheme", "right"), [("H", True), ("W", True), ("B", False)])
def test_full_inner_dim_is_wrong_with_block_shards(scheme, right):
    assert (fault(image_call(scheme=scheme, full_inner_dim=True)) is None) is right


@pytest.mark.parametrize(("channels", "right"), [(33, False), (49, True)])
def test_block_shards_hold_the_channels_that_their_weights_stand_for(channels, right):
    """64 channels on three columns of cores are 24 each; weights of 33 channels stand for 16 on each, of 49 for 24."""
    made = image_call(channels, stride=1, scheme="B", override_sharding_config=True, core_grid=box(3, 2))
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
    found = fault(image_call(slices=slices, size=size, scheme=scheme, override_sharding_config=True, core_grid=grid))
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
    made = image_call(
        kernel=kernel, stride=stride, padding=padding, slices=(kind, 2), size=size, replicate_padding=True
    )
    assert (fault(made) is None) is right
    zeros = replace(made, conv_config=replace(made.conv_config, replicate_padding=False))
    assert fault(zeros) is None


def test_the_way_out_leaves_out_only_what_was_given():
    made = image_call(slices=(SliceType.DRAM_HEIGHT, 2), replicate_padding=True)
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
    made = image_call(channels, slices=slices and (SliceType.DRAM_HEIGHT, slices))
    spec = TensorSpec(made.input.spec.shape, BFLOAT16, layout, made.input.spec.memory_config)
    made = replace(made, input=replace(made.input, spec=spec), out_format=out_format)
    found = fault(made)
    assert (found is None) is right
    assert right or f"its rows of {channels} channels are dealt to shards that hold {-(-channels // 8) * 8}" in found


IMPOSSIBLE: list[tuple[dict[str, Any], str]] = [
    ({"in_channels": 0}, "in_channels must be at least 1, not 0"),
    ({"kernel_size": (0, 3)}, "kernel_size must be at least (1, 1), not (0, 3)"),
    ({"groups": 3}, "groups must divide in_channels, but 32 is no multiple of 3"),
    ({"groups": 8, "out_channels": 36}, "groups must divide out_channels, but 36 is no multiple of 8"),
    ({"padding": (9, 9, 1, 1), "output_padding": (0, 0)}, "padding (9, 9, 1, 1) leaves no output: it would be -1 high"),
]


@pytest.mark.parametrize(("changes", "text"), IMPOSSIBLE)
def test_calls_that_crash_the_real_library(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(f"conv_transpose2d: {text}")):
        check_possible(call(**changes))


SILENT: list[tuple[str, dict[str, Any], str]] = [
    ("groups 0", {"groups": 0}, "groups must be at least 1, not 0"),
    ("dilation 0", {"dilation": (1, 0)}, "dilation must be at least (1, 1), not (1, 0)"),
    (
        "padding",
        {"padding": (1, 3, 1, 1)},
        "padding must not exceed dilation * (kernel_size - 1), which is 2 here, not 3",
    ),
    (
        "1x1",
        {"kernel_size": (1, 1), "stride": (1, 1), "padding": (0, 0, 0, 0), "weight": operand(32, 32, 1, 1)},
        "output_padding (1, 1) is ignored by a 1x1",
    ),
    ("smaller image", {"input_height": 7}, "input_height=7, input_width=8, in_channels=32 are 1792 elements"),
    (
        "larger image in L1",
        {"input": operand(1, 1, 64, 32, place=L1_MEMORY_CONFIG), "batch_size": 2},
        "are 4096 elements, but input_tensor has 2048",
    ),
    ("NCHW", {"input": operand(1, 32, 8, 8)}, "input_tensor must be channels-last"),
    ("integers", {"input": operand(1, 1, 64, 32, data_format=INT32)}, "input_tensor must be a floating-point type"),
    ("integer weights_dtype", {"conv_config": ConvConfig(weights_format=INT32)}, "conv_config.weights_dtype must be a"),
    ("weights I", {"weight": operand(16, 32, 3, 3)}, "weight_tensor must have the shape [32, 32, 3, 3]"),
    ("weights kernel", {"weight": operand(32, 32, 2, 2)}, "weight_tensor must have the shape [32, 32, 3, 3]"),
    ("weights not grouped", {"groups": 2}, "weight_tensor must have the shape [32, 16, 3, 3]"),
    ("weights in tiles", {"weight": operand(32, 32, 3, 3, layout=Layout.TILE)}, "weight_tensor on the host must be in"),
    (
        "prepared for another call",
        {"weight": operand(1, 1, 288, 64, place=DRAM_MEMORY_CONFIG, layout=Layout.TILE)},
        "weight_tensor on the device must be prepared for out_channels = 32",
    ),
    (
        "weights without axes",
        {"weight": operand(place=DRAM_MEMORY_CONFIG, layout=Layout.TILE)},
        "weight_tensor on the device must be prepared for out_channels = 32, the size of its last axis, not have the "
        "shape []",
    ),
    (
        "bias without axes",
        {"bias": operand(place=DRAM_MEMORY_CONFIG, layout=Layout.TILE)},
        "bias_tensor on the device must be prepared for out_channels = 32: it is TILE with shape []",
    ),
    (
        "raw bias on the device",
        {"bias": operand(1, 1, 1, 32, place=DRAM_MEMORY_CONFIG)},
        "bias_tensor on the device must be prepared for out_channels = 32",
    ),
]


@pytest.mark.parametrize(("changes", "text"), [row[1:] for row in SILENT], ids=[row[0] for row in SILENT])
def test_calls_that_the_real_library_gets_wrong(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(text)):
        check_strict(call(**changes))


def test_a_sane_call() -> None:
    check_possible(call())
    check_strict(call())
    check_strict(call(output_padding=(2, 2)))  # the real library computes this rightly
    check_strict(call(conv_config=ConvConfig(full_inner_dim=True)))  # it is wrong for some plans: soundness
