"""The plan of conv3d: buffers as the real planner's, blocks that a call leaves open."""

from dataclasses import replace

import pytest

from device.errors import DeviceError
from device.memory.memory_config import L1_MEMORY_CONFIG, MemoryConfig, TensorMemoryLayout
from ops.op_models import load_spec
from ops.planners.conv3d import Conv3dArguments, plan_conv3d, usual_block
from tests.build import place, tensor_spec

# Calls of the real library: device, kernel, stride, block of positions, channels, output channels, bias, bytes of the
# circular buffers; the last buffer, if any, holds the positions under the windows of a block
RECORDED = [
    # Rows of 47 positions once more; too few rows for that; thirteen rows, which are as many as fit; no room at all
    ("wormhole_n150", (3, 1, 1), (2, 2, 2), (1, 7, 24), 32, 64, False, [12288, 18432, 12288, 24576, 24576, 234624]),
    ("wormhole_n150", (1, 3, 3), (2, 2, 2), (1, 14, 24), 128, 128, False,
     [147456, 73728, 294912, 90112, 90112, 363776]),
    ("wormhole_n150", (3, 3, 3), (1, 1, 1), (1, 24, 24), 64, 32, False, [110592, 663552, 110592, 36864, 36864, 302848]),
    ("wormhole_n150", (2, 2, 2), (1, 1, 1), (3, 16, 24), 96, 128, True,
     [49152, 98304, 196608, 294912, 294912, 8192]),
    # Eight banks
    ("blackhole_p150", (3, 3, 3), (1, 1, 1), (2, 4, 32), 96, 128, False,
     [165888, 165888, 663552, 65536, 65536, 156672]),
    ("blackhole_p150", (1, 1, 3), (2, 2, 2), (2, 4, 8), 128, 32, True,
     [24576, 24576, 24576, 4096, 4096, 2048, 182784]),
]  # fmt: skip


def planned(device, kernel, stride, block, channels, outputs, *, bias=False, place=None):
    taps = kernel[0] * kernel[1] * kernel[2]
    volumes = tensor_spec(f"1x9x90x90x{channels}")
    call = Conv3dArguments(
        volumes=volumes if place is None else volumes.changed(memory_config=place),
        weights=tensor_spec(f"{taps * channels}x{outputs} tile"),
        bias=tensor_spec(f"1x{outputs} tile") if bias else None,
        out_channels=outputs,
        kernel=kernel,
        stride=stride,
        in_block=channels,
        out_block=0,
        out_positions=block,
        grid=(4, 4),
    )
    (step,) = plan_conv3d(call, load_spec(device)).steps
    return [buffer.size_bytes for buffer in step.circular_buffers]


@pytest.mark.parametrize(("device", "kernel", "stride", "block", "channels", "outputs", "bias", "sizes"), RECORDED)
def test_buffers_are_those_of_the_real_library(device, kernel, stride, block, channels, outputs, bias, sizes):
    assert planned(device, kernel, stride, block, channels, outputs, bias=bias) == sizes


@pytest.mark.parametrize(
    ("device", "channels", "sizes"),
    [("blackhole_p150", 48, [256, 1920]), ("blackhole_p150", 32, [1280]), ("wormhole_n150", 48, [1920])],
)
def test_positions_that_dram_does_not_align_have_room_around_them(device, channels, sizes):
    """Recorded: 96 bytes at multiples of 64 are read as 128, between 64 on each side."""
    assert planned(device, (2, 2, 2), (1, 1, 1), (1, 1, 4), channels, 32)[5:] == sizes


def test_rows_of_shards_in_dram_are_refused_where_dram_does_not_align_them_and_need_no_room_around_them():
    """8 channels of 16 bytes are read nowhere; positions of 32 bytes in rows of 64 are, on Blackhole as well."""
    narrow, wide = place("width/96x8/4 dram"), place("height/96x32/1 dram")
    with pytest.raises(DeviceError, match=r"^Input row-major shard width 8 with data type DataType::BFLOAT16 gives"):
        small(volumes=tensor_spec("1x2x6x8x32").changed(memory_config=narrow))
    volumes = tensor_spec("1x2x6x8x32").changed(memory_config=wide)
    sizes = [
        sizes_of(plan_conv3d(small_call(volumes=each, in_block=16), load_spec("blackhole_p150")))
        for each in (volumes, tensor_spec("1x2x6x8x32"))
    ]
    assert sizes[0][:5] == sizes[1][:5]
    assert set(sizes[1]) - set(sizes[0]) == {192}


def test_blocks_that_l1_does_not_hold_are_named():
    with pytest.raises(DeviceError) as raised:
        planned("wormhole_n150", (3, 3, 3), (1, 1, 1), (2, 16, 32), 64, 256)
    assert str(raised.value).startswith(
        "conv3d: the static circular buffers need 2154496 B at out_subblock_h=1 (M_t=32, K_t=54, N_t=8, C_in blocks=1) "
        "but only 1393312 B of L1 lie above the allocator base; shrink the blocking"
    )


def test_volumes_in_l1_are_not_read_in_turn():
    """1 x 3 x 26 positions of 32 channels, twice in DRAM."""
    sizes = [
        planned("wormhole_n150", (1, 3, 3), (1, 1, 1), (1, 1, 24), 32, 32, place=place)[-1]
        for place in (None, L1_MEMORY_CONFIG)
    ]
    assert sizes == [2 * 3 * 26 * 64, 3 * 26 * 64]


def test_the_fewest_channels_whose_patches_fill_tiles():
    assert (usual_block((3, 3, 3)), usual_block((1, 3, 2))) == (32, 16)


def small(**changes):
    return plan_conv3d(small_call(**changes), load_spec("wormhole_n150"))


def small_call(**changes):
    call = Conv3dArguments(
        volumes=tensor_spec("1x2x6x8x32"),
        weights=tensor_spec("288x32 tile"),
        bias=None,
        out_channels=32,
        kernel=(1, 3, 3),
        padding=(0, 1, 1),
    )
    return replace(call, **changes)


def sizes_of(plan):
    return [buffer.size_bytes for buffer in plan.steps[0].circular_buffers]


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"halo": "56x32"}, "Halo buffer holds 56 pages but the [Htop|Hbot|Wleft|Wright] sections need 64 (N*T_in=2"),
        ({"halo": "64x64"}, "Halo buffer page size (128 B) must match the input's (64 B)"),
        ({"halo": "64x32 tile"}, "Halo buffer must be row-major."),
        ({"halo": "64x32 float32"}, "Halo buffer dtype must match the input dtype. got DataType::FLOAT32 vs"),
        ({"halo": "64x32", "padding_mode": "replicate"}, 'Halo mode requires padding_mode "zeros". got replicate'),
        ({"offset": "1x2"}, "Pad offset tensor must be uint32. got DataType::BFLOAT16"),
    ],
)
def test_surroundings_that_are_refused(changes, error):
    named = {name: tensor_spec(value) if name in ("halo", "offset") else value for name, value in changes.items()}
    with pytest.raises(DeviceError) as raised:
        small(**named)
    assert str(raised.value).startswith(error)


def test_the_place_of_the_result_comes_before_the_arguments():
    with pytest.raises(DeviceError, match=r"^MemoryConfig must have Shard Spec specified"):
        small(groups=5, place=MemoryConfig(TensorMemoryLayout.BLOCK_SHARDED))
    with pytest.raises(DeviceError, match=r"^Invalid DRAM shard grid: shard core \(0, 1\) is not on row 0"):
        small(groups=5, place=place("height/32x32/1x3 dram"))


def test_shards_of_a_result_have_no_columns_beyond_their_own():
    weights = tensor_spec("288x40 tile")
    padded = [
        small(out_channels=40, weights=weights, out_block=64, place=where).tensors["output"].padded_shape[-1]
        for where in (None, place("height/32x40/3"), place("width/96x8/5"))
    ]
    assert padded == [64, 40, 40]


def test_masks_of_parts_of_volumes_hold_the_place_of_a_part():
    plain, masked = (sizes_of(small(offset=tensor_spec("1x2 uint32"), masked=masked)) for masked in (False, True))
    assert masked == [*plain, 32]


def test_shards_are_read_and_their_numbers_left_out_where_they_part_channels():
    rows, parts = (
        small(volumes=tensor_spec("1x2x6x8x32 height/24x32/4")),
        small(volumes=tensor_spec("1x2x6x8x32 width/96x8/4")),
    )
    assert sizes_of(rows) == sizes_of(parts)
    assert rows.without_values is None
    assert parts.without_values is not None
