"""Circular buffers of conv2d by hand (docs/reference/planning.md, Circular buffers), and the L1 estimated by them."""

from dataclasses import replace

import pytest

from device.cores import first_cores
from device.errors import DeviceError
from device.memory.memory_config import ShardOrientation
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32
from ops.programs.conv2d.op import ConvBuffers, buffer_requests, estimate_l1, placed_buffers, reuse_refusal
from ops.programs.conv2d.partition import BLOCK, HEIGHT, WIDTH, Blocks, ConvOptions, ParallelConfig, Shards
from ops.window import PaddedAxis, PaddedInput, convolution_axis
from tests.ops.programs.conv2d.convolutions import SPEC, column, conv_problem, doubled, partitioned

SIZES = ("in_format", "weight_format", "out_format", "bias")
GIVEN = ("multicast", "accumulation_blocks")
BLOCKS = Blocks(act_h_tiles=3, act_w_tiles=5, subblock_h_tiles=1, subblock_w_tiles=2, k_blocks=3)
ACCUMULATES = {"packer_l1_acc": True, "fp32_dest": True}


def arguments(scheme, **changes):
    """Shares of 6 by 2 tiles, activation blocks of 3 by 5 tiles under 7x3 taps, bfloat16 everywhere."""
    axis = convolution_axis(input_length=30, kernel=7, stride=1, padding=(0, 0), dilation=1)
    problem = {name: changes.pop(name) for name in SIZES if name in changes}
    given_fields = {name: changes.pop(name) for name in GIVEN if name in changes}
    partition = replace(
        partitioned(conv_problem(column(256)), scheme, alignment=32),
        problem=conv_problem(PaddedInput(batch=1, rows=axis, columns=axis), (64, 128), **problem),
        shards=Shards(in_rows=0, in_channels=64, in_width=32, out_rows=192, out_channels=128, out_width=64),
        blocks=changes.pop("blocks", BLOCKS),
        split_reader=changes.pop("split_reader", False),
        options=ConvOptions(**changes),
    )
    fields = {"multicast": scheme is not HEIGHT, "accumulation_blocks": 3, "reader_indices_bytes": 120}
    return ConvBuffers(layout=partition, kernel=(7, 3), tap_channels=64, halo_bytes=5000, **fields | given_fields)


def buffers(scheme, **changes):
    requests = buffer_requests(arguments(scheme, **changes))
    return {buffer.name: buffer for buffer in placed_buffers(requests, output="y", halo="x", reader_indices="i")}


TILES = {"weights": 10, "partials": 6, "act": 15, "act_tilized": 15, "out": 12}


@pytest.mark.parametrize(
    ("scheme", "changes", "different"),
    [
        (HEIGHT, {}, {"weights": 70}),  # two blocks above each other keep the weights of all seven kernel rows
        (HEIGHT, {"weights_double_buffer": True}, {"weights": 70}),
        (
            HEIGHT, {"blocks": replace(BLOCKS, act_h_tiles=6), "weights_double_buffer": True},
            {"weights": 20, "partials": 12, "act": 30, "act_tilized": 30},
        ),
        (HEIGHT, {"blocks": replace(BLOCKS, act_h_tiles=6)}, {"partials": 12, "act": 30, "act_tilized": 30}),
        (HEIGHT, {"bias": True}, {"weights": 70, "bias": 2}),
        # Three tile rows: two for the first reader, one for the second; BLOCK needs the halves only where it converts
        (HEIGHT, {"split_reader": True}, {"weights": 70, "act": 10, "act_second_reader": 5}),
        (
            HEIGHT, {"split_reader": True, "act_double_buffer": True},
            {"weights": 70, "act": 20, "act_second_reader": 10},
        ),
        (BLOCK, {}, {}),  # it gathers where it multicasts from
        (BLOCK, {"split_reader": True}, {}),
        (BLOCK, {"act_double_buffer": True}, {"act": 30}),
        (BLOCK, {"out_format": FLOAT32}, {"act_row_major": 15}),
        (BLOCK, {"split_reader": True, "out_format": FLOAT32}, {"act_second_reader": 5, "act_row_major": 10}),
        (BLOCK, {"multicast": False}, {"act": None, "act_row_major": 15}),
        (WIDTH, {}, {"act_row_major": 10}),  # two rows of tiles
        (WIDTH, {"weights_double_buffer": True}, {"weights": 20, "act_row_major": 10}),
        # Readers keep a row of the image, 5 tiles, and 64 x 3 x (1 + 8 x 7) numbers for each of their tile rows
        (
            HEIGHT, {"activation_reuse": True, "split_reader": True},
            {"act": 5 + -(-2 * 21888 // 2048), "act_second_reader": 5 + -(-21888 // 2048)},
        ),
    ],
)  # fmt: skip
def test_tiles_of_each_buffer(scheme, changes, different):
    tiles = {
        buffer.name: buffer.size_bytes // buffer.page_bytes
        for buffer in buffers(scheme, **changes).values()
        if buffer.page_bytes == buffer.data_format.tile_bytes
    }
    assert tiles == {name: count for name, count in (TILES | different).items() if count}


@pytest.mark.parametrize(
    ("changes", "view_of", "data_format"),
    [
        ({"untilize_out": True}, None, BFLOAT16),
        ({"packer_l1_acc": True}, "y", BFLOAT16),
        ({"packer_l1_acc": True, "out_format": BFLOAT8_B}, None, BFLOAT16),
        (ACCUMULATES, None, FLOAT32),
        # There must be something to add that is not reloaded anyway
        *((ACCUMULATES | {"bias": False, "accumulation_blocks": blocks}, "y", BFLOAT16) for blocks in (1, 2)),
        (ACCUMULATES | {"bias": True, "accumulation_blocks": 1}, "y", BFLOAT16),
        (ACCUMULATES | {"bias": True, "accumulation_blocks": 2}, None, FLOAT32),
        ({"fp32_dest": True}, "y", BFLOAT16),
    ],
)
def test_partials_lie_on_the_output_only_if_it_can_hold_them(changes, view_of, data_format):
    partials = buffers(HEIGHT, **changes)["partials"]
    assert (partials.view_of, partials.data_format) == (view_of, data_format)
    assert partials.offset_bytes == (6 * 2048 if view_of else 0)
    assert arguments(HEIGHT, **changes).partials_format is data_format


@pytest.mark.parametrize(
    ("scheme", "columns", "split", "text"),
    [
        (HEIGHT, {}, True, None),
        (HEIGHT, {}, False, "requires split reader to be on"),
        (HEIGHT, {"stride": 2}, False, "is not supported for stride > 1"),
        (HEIGHT, {"stride": 2, "dilation": 2}, True, "is not supported for dilation > 1"),
        (BLOCK, {"dilation": 2}, True, "is not supported for block sharded"),
        (WIDTH, {"dilation": 2}, False, None),
    ],
)
def test_programs_that_can_not_reuse_activations(scheme, columns, split, text):
    rows = PaddedAxis(input_length=11, before=2, after=2, kernel=5)
    across = PaddedAxis(input_length=11, before=1, after=1, kernel=5, **columns)
    config = ParallelConfig(scheme, 2, 1, first_cores(2, 8, 8), ShardOrientation.ROW_MAJOR)
    refused = reuse_refusal(config, PaddedInput(batch=1, rows=rows, columns=across), split_reader=split)
    assert refused is None if text is None else text in refused.splitlines()[0]


def estimate(sizes, scheme, *, matmul=False, **choices):
    return estimate_l1(sizes, ConvOptions(**choices), SPEC, scheme, matmul=matmul)


@pytest.mark.parametrize(
    ("scheme", "choices", "changes", "halo", "output", "own"),
    [
        # 128 x 32 outputs of 3 tiles: 2 tile rows on each of 64 cores; blocks of 6 K tiles, two readers
        (HEIGHT, {}, {}, 17408, 2 * 3, 18 + 6 + 6 + 12),
        (HEIGHT, ACCUMULATES, {"bias": True}, 17408, 2 * 3, 18 + 2 * 6 + 6 + 6 + 12 + 3),
        (HEIGHT, {"activation_reuse": True}, {}, 17408, 2 * 3, 54 + 19 + 19 + 36),
        (BLOCK, {}, {}, 9792, 16, 3 + 16 + 16 - 2),  # 8 channels on a core; one K block of a tile for each kernel row
        (BLOCK, ACCUMULATES, {}, 9792, 16, 3 + 16 + 16 - 2 + 2 * 16),
        (WIDTH, {}, {}, 282880, 128, 9 + 9 * 128 * 2 + 2 * 9),
    ],
)
def test_estimates_by_hand(scheme, choices, changes, halo, output, own):
    """Tiles of 2048 bytes besides the halo, and 64 bytes of scratch; reader indices lie on their tensor."""
    found = estimate(conv_problem(doubled(64, 16), (64, 96), **changes), scheme, **choices)
    assert (found.halo_bytes, found.output_bytes) == (halo, output * 2048)
    assert found.buffers_bytes - 64 == own * 2048
    assert found.total_bytes == found.halo_bytes + found.output_bytes + found.buffers_bytes


@pytest.mark.parametrize(
    ("sizes", "choices", "text"),
    [
        (
            (conv_problem(doubled(2, 2)), WIDTH),
            {"act_block_h_override": 128},
            r"^Conv2d output block size 4 exceeds the per-core output size 1\nact_block_h_override=128 is ",
        ),
        (
            (conv_problem(doubled(64, 8), in_format=BFLOAT8_B), HEIGHT),
            {"activation_reuse": True, "act_block_h_override": 64},
            r"^datum for bfp2, bfp4, bfp8 is invalid\nconv_config.enable_activation_reuse: .* in bfloat8_b can not be ",
        ),
    ],
)
def test_programs_that_can_not_be_estimated(sizes, choices, text):
    with pytest.raises(DeviceError, match=text):
        estimate(*sizes, **choices)
