"""A convolution laid out: what the pieces are given."""

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from device.errors import DeviceError
from device.memory.memory_config import BufferType, MemoryConfig, ShardOrientation, ShardSpec
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32
from device.spec.device_spec import load_spec
from ops.programs.conv2d.blocks import width_refusal
from ops.programs.conv2d.buffers import ConvBuffers
from ops.programs.conv2d.estimates import estimated_buffers
from ops.programs.conv2d.parallel_config import BLOCK, HEIGHT, WIDTH, ConvOptions, ConvProblem
from ops.programs.conv2d.partition import (
    choose_cores,
    partition_conv,
    scheme_alignment,
    sharded_input,
)
from ops.window import PaddedInput, transposed_axis
from tests.shards import box

SPEC = load_spec("wormhole_n150")
COL_MAJOR = ShardOrientation.COL_MAJOR


def frame(height=8, width=8, batch=1, kernel=3):
    rows, columns = (
        transposed_axis(input_length=length, kernel=kernel, stride=2, padding=(1, 1), output_padding=1, dilation=1)
        for length in (height, width)
    )
    return PaddedInput(batch=batch, rows=rows, columns=columns)


def problem(**changes):
    """8x8 pixels of 64 channels become 16x16 of 64."""
    facts = {
        "frame": frame(), "in_channels": 64, "out_channels": 64, "in_format": BFLOAT16, "weight_format": BFLOAT16,
        "out_format": BFLOAT16, "row_major": True,
    }  # fmt: skip
    return ConvProblem(**facts | changes)


def partitioned(scheme, facts=None, **choices):
    facts, options = facts or problem(), ConvOptions(**choices)
    alignment = scheme_alignment(facts, scheme)
    config = choose_cores(facts, options, SPEC, scheme, alignment=alignment)
    return partition_conv(facts, options, SPEC, config, alignment=alignment)


def test_sizes_of_a_problem():
    facts = problem(frame=frame(height=4, width=6, batch=3))
    assert (facts.in_rows, facts.out_rows, facts.kernel) == (72, 3 * 8 * 12, (3, 3))


def test_halo_keeps_float32_and_widens_block_floats():
    assert [problem(in_format=f).act_format for f in (BFLOAT16, FLOAT32, BFLOAT8_B)] == [BFLOAT16, FLOAT32, BFLOAT16]


@pytest.mark.parametrize(
    ("scheme", "orientation", "expected"),
    [(HEIGHT, ShardOrientation.ROW_MAJOR, (6, 1)), (WIDTH, ShardOrientation.ROW_MAJOR, (1, 6)),
     (BLOCK, ShardOrientation.ROW_MAJOR, (2, 3)), (BLOCK, COL_MAJOR, (3, 2))],
)  # fmt: skip
def test_cores_of_an_input_that_is_sharded_already(scheme, orientation, expected):
    memory = MemoryConfig(scheme, BufferType.L1, ShardSpec(box(3, 2), (32, 32), orientation))
    config = sharded_input(memory)
    assert (config.nhw_cores, config.channel_cores) == expected
    assert (config.cores, config.orientation, config.scheme) == (box(3, 2), orientation, scheme)


def test_the_callers_grid_is_taken_as_it_is():
    config = choose_cores(problem(), ConvOptions(core_grid=box(2, 3), transpose_shards=True), SPEC, BLOCK, alignment=32)
    assert (config.nhw_cores, config.channel_cores) == (2, 3)
    assert choose_cores(problem(), ConvOptions(core_grid=box(2, 3)), SPEC, HEIGHT, alignment=8).nhw_cores == 6


def test_transposed_shards_are_for_block_only():
    orientations = [partitioned(s, transpose_shards=True).config.orientation for s in (HEIGHT, BLOCK, WIDTH)]
    assert orientations == [ShardOrientation.ROW_MAJOR, COL_MAJOR, ShardOrientation.ROW_MAJOR]
    options = ConvOptions(core_grid=box(2, 3), transpose_shards=True)
    on_grid = choose_cores(problem(), options, SPEC, HEIGHT, alignment=8)
    assert on_grid.orientation is ShardOrientation.ROW_MAJOR


def test_the_program_runs_on_the_rectangle_of_both_sides():
    """BLOCK: 8 rows of cores, 8 channel cores for 64 channels in eights, 2 for 64 output channels."""
    layout = partitioned(BLOCK)
    assert (str(layout.config.cores), str(layout.out_config.cores)) == ("{[0-0 - 7-7]}", "{[0-0 - 1-7]}")
    assert str(layout.program_cores) == "{[0-0 - 7-7]}"
    wide = partitioned(WIDTH, problem(out_channels=320))
    assert (wide.config.channel_cores, wide.out_config.channel_cores) == (2, 10)
    assert str(wide.program_cores) == "{[0-0 - 7-1]}"


def test_a_width_program_runs_where_the_side_with_more_cores_lies():
    """A column of four cores: beside four or six of the output, which lie row by row, its rows do not count."""
    column = ConvOptions(core_grid=box(1, 4))
    for out_channels, cores in ((128, "{[0-0 - 3-0]}"), (192, "{[0-0 - 5-0]}"), (96, "{[0-0 - 0-3]}")):
        facts = problem(in_channels=128, out_channels=out_channels)
        config = choose_cores(facts, column, SPEC, WIDTH, alignment=32)
        assert str(partition_conv(facts, column, SPEC, config, alignment=32).program_cores) == cores


def test_where_tensors_lie():
    """256 outputs of 64 channels; a WIDTH shard is padded to whole tiles of rows only in its memory config."""
    height = partitioned(HEIGHT)
    assert height.input_memory.shard_spec == ShardSpec(height.config.cores, (32, 64), height.config.orientation)
    assert height.output_memory.shard_spec == ShardSpec(height.config.cores, (32, 64), height.config.orientation)
    width = partitioned(WIDTH, problem(frame=frame(height=3, width=3)))
    assert width.shards.out_rows == 36
    assert width.output_memory.shard_spec.shape == (64, 32)
    assert width.input_memory.shard_spec.shape == (9, 32)
    assert partitioned(WIDTH, problem(frame=frame(3, 3), row_major=False)).input_memory.shard_spec.shape == (32, 32)


@given(st.sampled_from([HEIGHT, BLOCK, WIDTH]), st.integers(1, 40), st.integers(1, 40), st.integers(1, 600))
def test_memory_configs_hold_the_tensors(scheme, height, width, channels):
    facts = problem(frame=frame(height, width), in_channels=channels, out_channels=channels)
    layout = partitioned(scheme, facts)
    for memory, rows in ((layout.input_memory, facts.in_rows), (layout.output_memory, facts.out_rows)):
        shards = memory.shard_spec
        config = sharded_input(memory)
        assert shards.shape[0] * config.nhw_cores >= rows
        assert shards.shape[1] * config.channel_cores >= channels
        assert memory.memory_layout is scheme
    assert layout.program_cores.bounding_box().end.x < SPEC.grid.cols
    assert layout.program_cores.bounding_box().end.y < SPEC.grid.rows


def test_float32_dst_halves_the_subblock():
    blocks = [partitioned(HEIGHT, problem(frame=frame(64, 64)), fp32_dest=on).blocks for on in (False, True)]
    assert [(b.subblock_h_tiles, b.subblock_w_tiles) for b in blocks] == [(4, 2), (2, 2)]


def test_blocks_higher_than_a_cores_output_are_refused():
    facts = problem(frame=frame(2, 2))
    config = choose_cores(facts, ConvOptions(), SPEC, WIDTH, alignment=32)
    options = ConvOptions(act_block_h_override=128)
    layout = partition_conv(facts, options, SPEC, config, alignment=32)
    refused = width_refusal(config, layout.shards, layout.blocks, facts.kernel) or ""
    assert refused.startswith("Output block height (in # of tiles) (1) should be greater than or equal to activation ")
    with pytest.raises(
        DeviceError,
        match=r"^Conv2d output block size 4 exceeds the per-core output size 1\nact_block_h_override=128 is ",
    ):
        estimated_buffers(layout, accumulation_blocks=1, tap_channels=32)


def test_split_reader_is_the_callers_or_the_rates_choice_and_never_a_matmuls():
    facts = problem(frame=frame(64, 64))
    assert partitioned(HEIGHT, facts, force_split_reader=True).split_reader
    assert not partitioned(HEIGHT, facts, force_split_reader=False).split_reader
    config = choose_cores(facts, ConvOptions(), SPEC, BLOCK, alignment=32)
    assert partition_conv(facts, ConvOptions(), SPEC, config, alignment=32).split_reader
    assert not partition_conv(facts, ConvOptions(), SPEC, config, alignment=32, matmul=True).split_reader


def test_block_counts_k_blocks_once_for_each_output_core():
    """That is how the real library decides on L1 accumulation."""
    counted = {}
    for scheme in (HEIGHT, BLOCK, WIDTH):
        layout = partitioned(scheme, problem(out_channels=96))
        given = ConvBuffers.of(layout, halo_bytes=1, reader_indices_bytes=2)
        assert (given.halo_bytes, given.reader_indices_bytes) == (1, 2)
        counted[scheme] = (layout.blocks.k_blocks, given.accumulation_blocks)
    assert counted == {HEIGHT: (3, 3), BLOCK: (24, 72), WIDTH: (2, 2)}


def test_alignment_of_an_input_that_is_yet_to_be_sharded():
    tiled = problem(row_major=False)
    assert [scheme_alignment(problem(), s) for s in (HEIGHT, BLOCK, WIDTH)] == [8, 8, 32]
    assert [scheme_alignment(tiled, s) for s in (HEIGHT, BLOCK, WIDTH)] == [32, 32, 32]
    assert scheme_alignment(replace(tiled, sliced=True), HEIGHT) == 8
    assert scheme_alignment(problem(), HEIGHT, matmul=True) == 32
