"""The walk through K, which must agree with how the weights are prepared; what a WIDTH program cannot walk through."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from device.numbers.formats import FLOAT32
from ops.programs.conv2d.op import k_block_order, weight_rows, weight_rows_of, width_refusal
from ops.programs.conv2d.partition import BLOCK, HEIGHT, WIDTH
from ops.programs.conv2d.weights import WeightsLayout, prepare_weights
from tests.ops.programs.conv2d.convolutions import SPEC, column, conv_problem, partitioned

SMALL = SPEC.replace(grid_cols=3, grid_rows=2)


def example(scheme, in_channels, kernel, rows=64, **choices):
    return partitioned(conv_problem(column(rows, kernel), (in_channels, 32)), scheme, alignment=32, **choices)


@st.composite
def walks(draw):
    """A small convolution on six cores."""
    scheme, kernel = (
        draw(st.sampled_from([HEIGHT, BLOCK, WIDTH])),
        draw(st.tuples(st.integers(1, 3), st.integers(1, 3))),
    )
    alignment = 32 if scheme is WIDTH else draw(st.sampled_from([8, 16, 32]))
    problem = conv_problem(column(draw(st.integers(1, 3000)), kernel), (draw(st.integers(1, 200)), 32))
    layout = partitioned(problem, scheme, SMALL, alignment=alignment)
    choices = {}
    if scheme is WIDTH:
        tiles = layout.shards.in_width // 32
        choices["act_block_w_div"] = draw(st.sampled_from([d for d in range(1, tiles + 1) if tiles % d == 0]))
    if scheme is BLOCK and layout.shards.in_width * kernel[1] % 32 == 0:
        choices["full_inner_dim"] = draw(st.booleans())
    return partitioned(problem, scheme, SMALL, alignment=alignment, **choices)


def columns_of(block, kernel):
    """(kernel row, kernel column, channel) of every column of a K block, and the weight row it meets."""
    for tap, (row, across) in enumerate((r, c) for r in block.kernel_rows for c in range(kernel[1])):
        for channel in range(block.channels):
            met = block.weight_row + tap * block.weight_stride + channel
            yield (row, across, block.first_channel + channel), met


@given(walks())
def test_k_blocks_meet_every_weight_once_and_where_it_was_prepared(layout):
    kernel, channels, padded = layout.problem.kernel, layout.problem.in_channels, layout.shards.in_channels
    order = k_block_order(layout, kernel)
    assert len(order) == layout.blocks.k_blocks
    met = [pair for block in order for pair in columns_of(block, kernel)]
    assert len({place for place, _ in met}) == len(met) == kernel[0] * kernel[1] * padded
    prepared = WeightsLayout(
        in_channels=channels,
        out_channels=1,
        kernel=kernel,
        mirror=False,
        scheme=layout.scheme,
        padded_in_channels=padded,
        padded_out_channels=32,
        channel_shards=layout.config.channel_cores,
        k_block_rows=layout.blocks.act_w_tiles * 32,
        data_format=FLOAT32,
    )
    raw = np.arange(1, channels * kernel[0] * kernel[1] + 1, dtype=np.float32).reshape(channels, 1, *kernel)
    matrix = prepare_weights(raw, prepared)[:, 0]
    assert len(matrix) == weight_rows(layout, kernel)
    for (row, across, channel), weight_row in met:
        assert matrix[weight_row] == (raw[channel, 0, row, across] if channel < channels else 0)


@pytest.mark.parametrize(
    ("scheme", "kernel", "choices", "walk"),
    [
        (HEIGHT, (3, 2), {}, [(0, 1, 0, 0), (1, 1, 0, 128), (2, 1, 0, 256)]),
        # BLOCK goes through all channel cores before the next kernel row.
        (BLOCK, (2, 3), {}, [(0, 1, 0, 0), (0, 1, 32, 192), (1, 1, 0, 96), (1, 1, 32, 288)]),
        (BLOCK, (2, 3), {"full_inner_dim": True}, [(0, 2, 0, 0), (0, 2, 32, 192)]),
        (WIDTH, (2, 3), {}, [(0, 2, 0, 0), (0, 2, 32, 32)]),
    ],
)
def test_order_of_k_blocks(scheme, kernel, choices, walk):
    """(first kernel row, kernel rows, first channel, weight row) of every K block of 64 channels."""
    order = k_block_order(example(scheme, 64, kernel, **choices), kernel)
    assert [(b.kernel_rows.start, len(b.kernel_rows), b.first_channel, b.weight_row) for b in order] == walk


def test_parts_that_are_no_whole_tiles_meet_the_wrong_weights():
    """Three tiles of channels on a core, four taps, two parts of 48 channels.

    Of the six tiles of a block the reader fills four, one for each tap; the next part begins one tile further on.
    """
    layout = example(WIDTH, 64 * 96, (2, 2), act_block_w_div=2)
    order = k_block_order(layout, (2, 2))
    assert (layout.blocks.act_w_tiles, len(order)) == (6, 128)
    part, core = 1, 3
    block = order[part * 64 + core]
    assert (block.first_channel, block.channels) == (3 * 96 + 48, 48)
    first_tile = core * 2 + part
    expected = [32 * first_tile + tap * 64 * 96 + row for tap in range(4) for row in range(32)] + [-1] * 64
    assert weight_rows_of([block], [np.arange(192)], (2, 2)).tolist() == expected
    assert weight_rows_of([], [], (2, 2)).tolist() == []


UNMATCHED = "The width of tensor a needs to match the height of tensor b"


@pytest.mark.parametrize(
    ("in_channels", "rows", "choices", "facts", "text"),
    [
        # A tile of channels under nine taps is nine tiles, which two parts do not divide; recorded runs.
        *(
            (
                channels, 64, {"act_block_w_div": parts}, {},
                f"Number of Act Blocks along the Width {blocks} should be divisible by the number of cores "
                f"{channels // 32}",
            )
            for channels, parts, blocks in ((128, 2, 9), (128, 4, 18), (512, 2, 36))
        ),
        (32, 64, {"act_block_w_div": 2}, {}, UNMATCHED),  # a half of nine tiles is four; seen of the real library
        (32, 64, {}, {"prepared_rows": 288}, None),
        (32, 64, {}, {"prepared_rows": 320}, UNMATCHED),
        (32, 64, {}, {"given_width": 32}, None),
        (32, 64, {}, {"given_width": 64}, UNMATCHED),
        (
            64, 100, {"act_block_h_override": 96}, {},
            "act_matrix_height_ntiles 4 should be divisible by act_block_h_ntiles 3",
        ),
        (64, 100, {}, {}, None),
        (
            64, 16, {"act_block_h_override": 128}, {},
            "Output block height (in # of tiles) (1) should be greater than or equal to activation block height "
            "(in # of tiles) (4)",
        ),
    ],
)  # fmt: skip
def test_what_a_width_program_cannot_walk_through(in_channels, rows, choices, facts, text):
    layout = example(WIDTH, in_channels, (3, 3), rows, **choices)
    refused = width_refusal(layout, (3, 3), **facts)
    assert (refused and refused.splitlines()[0]) == text
    height = partitioned(layout.problem, HEIGHT)
    assert width_refusal(replace(height, blocks=layout.blocks), (3, 3), **facts) is None
