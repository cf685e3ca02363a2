"""Circular buffers of the micro-op, by hand from the table in section 3.5 of the reference."""

from dataclasses import replace
from itertools import product

import pytest

from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32
from ops.programs.conv2d.buffers import ConvBuffers, buffer_requests, local_bytes, placed_buffers
from ops.programs.conv2d.partition import BLOCK, HEIGHT, WIDTH, Blocks, ConvOptions, Shards
from ops.window import PaddedInput, convolution_axis
from tests.ops.programs.conv2d.convolutions import column, conv_problem, partitioned

SMALL = {"reader_indices_bytes": 120, "halo_bytes": 5000}
SIZES = ("in_format", "weight_format", "out_format", "bias")


def arguments(scheme, **changes):
    """Shares of 6 by 2 tiles, activation blocks of 3 by 5 tiles under 7x3 taps, bfloat16 everywhere."""
    axis = convolution_axis(input_length=30, kernel=7, stride=1, padding=(0, 0), dilation=1)
    layout = {
        "shards": Shards(in_rows=192, in_channels=64, in_width=32, out_rows=192, out_channels=128, out_width=64),
        "blocks": Blocks(act_h_tiles=3, act_w_tiles=5, subblock_h_tiles=1, subblock_w_tiles=2, k_blocks=3),
        "split_reader": False,
    }
    given = {"multicast": scheme is not HEIGHT, "accumulation_blocks": 3, **SMALL}
    problem = {name: changes.pop(name) for name in SIZES if name in changes}
    layout |= {name: changes.pop(name) for name in layout if name in changes}
    given |= {name: changes.pop(name) for name in given if name in changes}
    frame = PaddedInput(batch=1, rows=axis, columns=axis)
    partition = replace(
        partitioned(conv_problem(column(256)), scheme, alignment=32),
        problem=conv_problem(frame, (64, 128), **problem),
        options=ConvOptions(**changes),
        **layout,
    )
    return ConvBuffers(layout=partition, kernel=(7, 3), tap_channels=64, **given)


def buffers(scheme, **changes):
    return placed_buffers(buffer_requests(arguments(scheme, **changes)), output="y", halo="x", reader_indices="i")


def tiles(scheme, **changes):
    """Tiles of each buffer that is made of tiles."""
    result = buffers(scheme, **changes)
    return {b.name: b.size_bytes // b.page_bytes for b in result if b.page_bytes == b.data_format.tile_bytes}


def test_height():
    """Two blocks above each other keep the weights of all seven kernel rows."""
    assert tiles(HEIGHT) == {"weights": 70, "partials": 6, "act": 15, "act_tilized": 15, "out": 12}
    single = Blocks(act_h_tiles=6, act_w_tiles=5, subblock_h_tiles=1, subblock_w_tiles=2, k_blocks=3)
    assert tiles(HEIGHT, blocks=single)["weights"] == 10
    assert tiles(HEIGHT, blocks=single, weights_double_buffer=True)["weights"] == 20
    assert tiles(HEIGHT, weights_double_buffer=True)["weights"] == 70


def test_block_gathers_where_it_multicasts_from():
    assert tiles(BLOCK) == {"weights": 10, "partials": 6, "act": 15, "act_tilized": 15, "out": 12}
    assert tiles(BLOCK, out_format=FLOAT32) == {
        "weights": 10, "partials": 6, "act": 15, "act_tilized": 15, "act_row_major": 15, "out": 12,
    }  # fmt: skip


def test_block_of_one_channel_core_has_nothing_to_multicast():
    assert tiles(BLOCK, multicast=False) == {
        "weights": 10, "partials": 6, "act_tilized": 15, "act_row_major": 15, "out": 12,
    }  # fmt: skip


def test_width_gathers_two_rows_of_tiles():
    assert tiles(WIDTH) == {
        "weights": 10, "partials": 6, "act": 15, "act_tilized": 15, "act_row_major": 10, "out": 12,
    }  # fmt: skip


def test_split_readers_share_a_block():
    """Three tile rows: two for the first reader, one for the second; BLOCK needs the halves only where it converts."""
    assert {k: v for k, v in tiles(HEIGHT, split_reader=True).items() if "act" in k} == {
        "act": 10, "act_second_reader": 5, "act_tilized": 15,
    }  # fmt: skip
    assert tiles(BLOCK, split_reader=True) == tiles(BLOCK)
    converting = tiles(BLOCK, split_reader=True, out_format=BFLOAT8_B)
    assert {k: v for k, v in converting.items() if "act" in k} == {
        "act": 15, "act_second_reader": 5, "act_tilized": 15, "act_row_major": 10,
    }  # fmt: skip


def test_double_buffers():
    doubled = tiles(HEIGHT, act_double_buffer=True, split_reader=True)
    assert (doubled["act"], doubled["act_second_reader"], doubled["act_tilized"]) == (20, 10, 15)
    assert tiles(BLOCK, act_double_buffer=True)["act"] == 30
    assert tiles(WIDTH, weights_double_buffer=True)["weights"] == 20


def test_formats():
    """Activations come in the halo's format and are tilized into the output's; weights and bias have their own."""
    changes = {"in_format": FLOAT32, "weight_format": BFLOAT8_B, "out_format": BFLOAT16, "bias": True}
    formats = {scheme: {b.name: b.data_format for b in buffers(scheme, **changes)} for scheme in (HEIGHT, BLOCK, WIDTH)}
    for result in formats.values():
        assert (result["weights"], result["bias"]) == (BFLOAT8_B, BFLOAT8_B)
        assert (result["act_tilized"], result["partials"], result["out"]) == (BFLOAT16, BFLOAT16, BFLOAT16)
        assert result["act_sharded"] is FLOAT32
    assert formats[HEIGHT]["act"] is FLOAT32
    assert (formats[BLOCK]["act"], formats[BLOCK]["act_row_major"]) == (BFLOAT16, FLOAT32)
    assert (formats[WIDTH]["act"], formats[WIDTH]["act_row_major"]) == (BFLOAT16, FLOAT32)


def test_views():
    result = {b.name: b for b in buffers(HEIGHT)}
    assert {name: b.view_of for name, b in result.items() if b.view_of is not None} == {
        "partials": "y", "out": "y", "reader_indices": "i", "act_sharded": "x",
    }  # fmt: skip
    assert (result["reader_indices"].size_bytes, result["act_sharded"].size_bytes, result["l1_array"].size_bytes) == (
        120,
        5000,
        64,
    )
    assert result["partials"].offset_bytes == 6 * 2048
    assert local_bytes(buffers(HEIGHT)) == (70 + 15 + 15) * 2048 + 64


def test_partials_lie_on_the_output_only_if_it_can_hold_them():
    def place(**changes):
        return next(b for b in buffers(HEIGHT, **changes) if b.name == "partials")

    assert place(untilize_out=True).view_of is None
    accumulating = place(packer_l1_acc=True, fp32_dest=True)
    assert (accumulating.view_of, accumulating.data_format, accumulating.offset_bytes) == (None, FLOAT32, 0)
    assert place(packer_l1_acc=True).view_of == "y"
    assert place(packer_l1_acc=True, out_format=BFLOAT8_B).view_of is None


def test_reader_indices_in_dram_need_a_buffer():
    result = {b.name: b for b in buffers(HEIGHT, config_tensors_in_dram=True)}
    assert result["reader_indices"].view_of is None


@pytest.mark.parametrize(
    ("bias", "k_blocks", "effective"),
    [(False, 1, False), (False, 2, False), (False, 3, True), (True, 1, False), (True, 2, True), (True, 3, True)],
)
def test_l1_accumulation_needs_something_to_add(bias, k_blocks, effective):
    for asked, fp32_dest in product((True, False), repeat=2):
        given = arguments(
            HEIGHT, packer_l1_acc=asked, fp32_dest=fp32_dest, bias=bias, accumulation_blocks=k_blocks,
            out_format=BFLOAT8_B,
        )  # fmt: skip
        assert given.l1_accumulation is (asked and effective)
        wide = FLOAT32 if fp32_dest else BFLOAT16
        assert given.partials_format is (wide if asked and effective else BFLOAT8_B)


@pytest.mark.parametrize(
    ("scheme", "in_channels", "out_channels", "multicast"),
    [(HEIGHT, 64, 64, False), (BLOCK, 64, 32, True), (BLOCK, 32, 64, True), (BLOCK, 32, 32, False),
     (WIDTH, 64, 32, True), (WIDTH, 32, 32, False)],
)  # fmt: skip
def test_activations_travel_if_channels_are_dealt(scheme, in_channels, out_channels, multicast):
    layout = partitioned(conv_problem(column(256), (in_channels, out_channels)), scheme, alignment=32)
    assert layout.multicasts_activations is multicast
    assert ConvBuffers.of(layout).multicast is multicast
