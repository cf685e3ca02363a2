"""Plans that the real library carries out and gets wrong, by recorded outputs; slices that it crashes on."""

from dataclasses import replace

import pytest

from device.errors import ArgumentError
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT4_B, BFLOAT8_B, BFLOAT16
from device.spec.device_spec import load_spec
from ops.planners.conv.arguments import SliceType
from ops.planners.conv.checks import check_slices
from ops.planners.conv.plan import plan_convolution
from ops.planners.conv.strict import plan_fault
from tests.build import changed, cut, operand, sized_call
from tests.shards import BLOCK, HEIGHT, WIDTH, box

SPEC = load_spec("wormhole_n150")
DOWN, ACROSS = SliceType.DRAM_HEIGHT, SliceType.DRAM_WIDTH


def image_call(channels=64, kernel=3, stride=2, padding=1, slices=None, size=(8, 8), **changes):
    """Slices are out of DRAM; else the image is in L1."""
    place = DRAM_MEMORY_CONFIG if slices else L1_MEMORY_CONFIG
    sizes = {"stride": (stride, stride), "padding": (padding,) * 4, "slice_config": slices}
    return sized_call(size, (channels, 32), (kernel, kernel), place=place, **sizes, **changes)


def rows_call(side, kernel, stride=1, padding=0, slices=1):
    """Slices of an image in rows, HEIGHT sharded."""
    more = {"output_layout": Layout.ROW_MAJOR, "shard_layout": HEIGHT}
    return changed(image_call(32, kernel, stride, padding, cut(slices), (side, side)), **more)


def fault(made):
    return plan_fault(plan_convolution(made, SPEC, free_l1_bytes=1300000), made) or ""


def on_grid(columns, rows, **changes):
    return image_call(override_sharding_config=True, core_grid=box(columns, rows), **changes)


def held(channels, on):
    """BLOCK shards of a tensor of 64 channels, of which the call says fewer."""
    result = on_grid(3, 2, channels=channels, stride=1, shard_layout=BLOCK)
    return replace(result, input=operand(1, 1, 64, on, place=L1_MEMORY_CONFIG))


def channels_call(channels, out_format, layout=Layout.ROW_MAJOR, slices=None):
    result = image_call(channels, slices=slices, out_format=out_format)
    return replace(
        result, input=operand(*result.input.spec.shape, place=result.input.spec.memory_config, layout=layout)
    )


def behind(channels):
    return f"its rows of {channels} channels are dealt to shards that hold {-(-channels // 8) * 8}"


DIVISOR = "use a divisor of"
FULL = "conv_config.full_inner_dim reads the weights of a BLOCK_SHARDED transposed convolution"
EDGES = "padding_mode Replicate repeats pixels at the edges of every slice"


# fmt: off
WRONG = [
    # parts of a WIDTH shard must be whole tiles
    (image_call(4096, 2, padding=0, size=(3, 4), shard_layout=WIDTH, act_block_w_div=2), ""),
    (image_call(2080, 2, padding=0, size=(3, 4), shard_layout=WIDTH, act_block_w_div=2), ""),
    (image_call(6144, 2, padding=0, size=(3, 4), shard_layout=WIDTH, act_block_w_div=3), ""),
    (image_call(6144, 2, padding=0, size=(3, 4), shard_layout=WIDTH, act_block_w_div=2), DIVISOR),
    (image_call(1024, 4, padding=0, size=(3, 4), shard_layout=WIDTH, act_block_w_div=2), DIVISOR),
    (image_call(shard_layout=WIDTH, act_block_w_div=2), ""),  # an error of the real library's own is left to it
    (image_call(shard_layout=HEIGHT, full_inner_dim=True), ""),
    (image_call(shard_layout=WIDTH, full_inner_dim=True), ""),
    (image_call(shard_layout=BLOCK, full_inner_dim=True), FULL),
    # 64 channels on three columns of cores are 24 each; weights of 33 channels stand for 16 on each, of 49 for 24
    (held(33, 64), "holds 24 of its channels, and the weights are prepared for 16"),
    (held(49, 64), ""),
    # HEIGHT slices that leave more than an eighth of given cores idle; recorded right: 1 of 8 and of 16 idle
    (on_grid(2, 2, slices=cut(2), shard_layout=HEIGHT), ""),
    (on_grid(8, 1, slices=cut(2), shard_layout=HEIGHT), ""),
    (on_grid(4, 2, slices=cut(2, ACROSS), size=(4, 33), shard_layout=HEIGHT), ""),
    (on_grid(4, 4, slices=cut(2), size=(16, 16), shard_layout=HEIGHT), ""),
    (on_grid(7, 1, slices=cut(2), shard_layout=HEIGHT), "leaves 3 of its 7 "),
    # recorded right on Wormhole; the last slice leaves 9
    (on_grid(4, 4, slices=cut(3), size=(12, 8), shard_layout=HEIGHT), "leaves 8 of its 16 "),
    # recorded right on Wormhole, wrong on Blackhole
    (on_grid(4, 4, slices=cut(2, ACROSS), size=(4, 33), shard_layout=HEIGHT), "leaves 9 of its 16 "),
    (on_grid(2, 1, slices=cut(2), shard_layout=WIDTH), ""),
    (on_grid(2, 4, slices=cut(2), size=(16, 16), shard_layout=BLOCK), ""),
    (on_grid(4, 4, shard_layout=HEIGHT), ""),
    # slices repeat edges that the whole image does not have
    (image_call(3, 3, 1, 1, cut(2), replicate_padding=True), ""),
    (image_call(64, 4, 2, 1, cut(2), replicate_padding=True), ""),
    *((image_call(64, kernel, stride, padding, cut(2), replicate_padding=True), EDGES)
      for kernel, stride, padding in ((3, 2, 1), (3, 2, 2), (2, 2, 0), (5, 2, 2), (4, 4, 0))),
    (image_call(64, 3, 2, 1, cut(2, ACROSS), (4, 33), replicate_padding=True), EDGES),
    (image_call(64, 3, 2, 1, cut(2, ACROSS), (4, 33)), ""),
    # channels that no program writes share exponents; recorded both ways
    *((channels_call(channels, BFLOAT8_B), behind(channels)) for channels in (3, 5, 12, 20)),
    *((channels_call(channels, BFLOAT8_B), "") for channels in (8, 16, 24, 32, 40)),
    (channels_call(3, BFLOAT4_B), behind(3)),
    (channels_call(3, BFLOAT16), ""),  # what is not written meets zero weights
    (channels_call(3, BFLOAT8_B, Layout.TILE), ""),  # tiles are full of zeros
    (channels_call(3, BFLOAT8_B, slices=cut(2)), ""),  # slices are cut with zeros behind their channels
    # slices of common layers are whole; seen on the real library: the third of four gives two of its three rows
    *((rows_call(16, 3, stride=2, padding=1, slices=slices), "") for slices in (1, 2, 4)),
    (rows_call(8, 4, slices=4), "a slice that stands for 3 x 11 outputs computes 2 x 11, so"),
    (rows_call(3, 1, stride=3, slices=7), "of 49 outputs are never written, because a slice reads no input"),
]
# fmt: on


@pytest.mark.parametrize(("made", "text"), WRONG)
def test_what_comes_out_wrong(made, text):
    found = fault(made)
    assert text in found
    assert not found or text


def test_the_way_out_leaves_out_only_what_was_given():
    result = image_call(slices=cut(2), replicate_padding=True)
    plan = plan_convolution(result, SPEC, free_l1_bytes=1300000)
    assert "leave dram_slice_config out" in plan_fault(plan, result)
    assert "give a dram_slice_config with another number" in plan_fault(plan, replace(result, slice_config=None))


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (rows_call(8, 4, slices=6), "slice 4 of 6 has no outputs of its own, which the real library crashes"),
        (rows_call(8, 5, stride=2, slices=10), "of 10 has no outputs"),
    ],
)
def test_a_slice_without_rows_is_refused(made, text):
    """Seen on the real library: the process dies."""
    with pytest.raises(ArgumentError, match=text):
        check_slices(made)


@pytest.mark.parametrize("slices", [cut(0, SliceType.L1_FULL), cut(0), cut(1000), cut(4), cut(1), None])
def test_other_slices_are_left_to_the_plan(slices):
    check_slices(replace(rows_call(8, 4), slice_config=slices))
