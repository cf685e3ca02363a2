"""Circular buffers of conv2d by hand (docs/reference/planning.md, Circular buffers), and the L1 estimated by them."""

from dataclasses import replace

import pytest

from device.cores import first_cores
from device.memory.memory_config import ShardOrientation
from ops.programs.conv2d.op import ConvBuffers, buffer_requests, placed_buffers, reuse_refusal
from ops.programs.conv2d.partition import BLOCK, HEIGHT, WIDTH, Blocks, ConvOptions, ParallelConfig, Shards
from ops.window import PaddedAxis, PaddedInput, convolution_axis
from tests.ops.programs.conv2d.convolutions import column, conv_problem, partitioned

SIZES = ("in_format", "weight_format", "out_format", "bias")
GIVEN = ("multicast", "accumulation_blocks")
BLOCKS = Blocks(act_h_tiles=3, act_w_tiles=5, subblock_h_tiles=1, subblock_w_tiles=2, k_blocks=3)


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
