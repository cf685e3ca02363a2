"""What a convolution takes, for small ones and single steps worked out by hand."""

import pytest

from device.errors import DeviceError
from device.time.engine import BEGIN, Slots
from device.time.links import spread_link_bytes
from device.time.network import read_latency_cycles
from device.time.stages import Stage
from ops.programs.conv2d.block_costs import conv_steps, weight_reader_cores
from ops.programs.conv2d.cycles import conv_cycles, time_conv
from ops.programs.conv2d.partition import BLOCK, HEIGHT
from tests.ops.programs.conv2d.convolutions import HAND, SPECS, conv


@pytest.mark.parametrize(
    ("scheme", "name"),
    [
        *((HEIGHT, name) for name in ("act", "act_second_reader", "weights")),
        *((BLOCK, name) for name in ("act_row_major", "act_tilized", "act", "weights")),
    ],
)
def test_a_model_that_loses_a_block_is_found_out(monkeypatch, scheme, name):
    fill = Slots.fill

    def fill_twice(slots, moment):
        for _ in range(2 if slots.name == name else 1):
            fill(slots, moment)

    monkeypatch.setattr(Slots, "fill", fill_twice)
    monkeypatch.setattr(Slots, "reserve", lambda slots: BEGIN)
    op = conv(SPECS[0], scheme, side=64, force_split_reader=True)
    with pytest.raises(DeviceError, match=f"conv2d: circular buffer '{name}' still holds"):
        time_conv(op, SPECS[0])


@pytest.mark.parametrize("bias", [False, True])
def test_a_bias_is_sent_as_weights_are(bias):
    """A tile of weights, and one of the bias."""
    op = conv(HAND, HEIGHT, channels=(32, 32), side=8, kernel=1, bias=bias, force_split_reader=False)
    busy = {stage.stage: stage.busy_cycles for stage in conv_cycles(op, HAND).groups[0].stages}
    assert busy[Stage.WEIGHT_MULTICAST] == pytest.approx((1 + bias) * (200 + 2 * 4 / 2 + 2 * 3 + 1088 / 30))
    assert busy[Stage.WEIGHT_READER] == pytest.approx((1 + bias) * (400 + 45))


def test_weights_come_no_faster_than_the_busiest_link_carries_them():
    """Eleven readers in a row of a p100, from banks that cost nothing: their links meet in the columns of the banks."""
    spec = SPECS[1].replace(dram_bank_bytes_per_second=1e15, dram_request_ns=1e-6)
    op = conv(spec, BLOCK, channels=(352, 704), side=64)
    readers = weight_reader_cores(op)
    assert (readers.num_cores(), op.layout.blocks.act_w_tiles, op.layout.shards.out_col_tiles) == (11, 3, 2)
    moved = 11 * 6 * 1088
    on_link = spread_link_bytes(spec, readers, moved, in_dram=True, writes=False)
    read, _ = conv_steps(op, spec).weights
    assert on_link > 2 * moved / 11
    assert read.cycles == pytest.approx(read_latency_cycles(spec) + on_link / spec.noc.link_bytes_per_cycle)


def test_each_packet_of_activations_is_commanded_anew():
    """A core of a row of eight sends its block of 32 x 3 tiles of 2048 bytes once for each of three kernel rows."""
    op = conv(HAND, BLOCK, channels=(256, 256), side=64, force_split_reader=False, act_block_h_override=1024)
    blocks, packets = op.layout.blocks, 32 * 3 * 2048 / 8192
    assert (blocks.act_h_tiles, blocks.act_w_tiles, blocks.k_blocks, op.out_blocks) == (32, 3, 24, 1)
    busy = {stage.stage: stage.busy_cycles for stage in conv_cycles(op, HAND).slowest.stages}
    assert busy[Stage.ACT_MULTICAST] == 3 * (200 + 8 * 4 / 2 + packets * (30 + 8 * 3) + packets * 8192 / 30)


def test_readers_that_reuse_activations_read_one_kernel_row_again():
    op = conv(HAND, HEIGHT, channels=(32, 32), side=64, batch=4, activation_reuse=True)
    assert (op.layout.blocks.act_h_tiles, op.layout.blocks.k_blocks, op.layout.split_reader) == (8, 1, True)
    busy = {stage.stage: stage.busy_cycles for stage in conv_cycles(op, HAND).slowest.stages}
    # Four tile rows for each reader, two of them a row of the image: whole windows, then their last kernel row.
    expected = 2 * (100 + 3 * 32 * 20) + 2 * (100 + 32 * 20)
    assert busy[Stage.READER] == busy[Stage.SECOND_READER] == expected
    assert busy[Stage.TILIZE] == 8 * (40 + 9 * 75)
