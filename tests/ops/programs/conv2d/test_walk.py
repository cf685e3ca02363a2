"""What a convolution takes, for small ones and single steps worked out by hand."""

import pytest

from device.errors import DeviceError
from device.time.engine import BEGIN, Slots
from device.time.stages import Stage
from ops.programs.conv2d.block_costs import ConvCosts, conv_steps
from ops.programs.conv2d.cycles import conv_cycles, time_conv
from ops.programs.conv2d.partition import BLOCK, HEIGHT, WIDTH
from ops.programs.kernel_costs import TransferCosts
from tests.ops.programs.conv2d.convolutions import HAND, SPECS, conv


def test_readers_of_the_last_core_have_less_to_read():
    op = conv(HAND, HEIGHT, side=20, force_split_reader=False)  # 400 outputs, 32 for each of 13 cores
    cycles = conv_cycles(op, HAND)
    context = {str(group.cores): group.stages for group in cycles.groups}
    assert list(context) == ["{[0-0 - 0-0]}", "{[1-0 - 7-0], [0-1 - 3-1]}", "{[4-1 - 4-1]}"]
    first, others, last = (
        next(stage for stage in stages if stage.stage is Stage.READER) for stages in context.values()
    )
    assert first.busy_cycles == others.busy_cycles == 3 * (100 + 32 * 20)
    assert last.busy_cycles == others.busy_cycles * (400 - 12 * 32) / 32
    assert last.busy_cycles + last.stall_cycles == others.busy_cycles + others.stall_cycles


def test_readers_of_the_last_core_share_what_is_left():
    """400 outputs on 8 cores are 64 each; the last of 7 has 16, which the first of two readers gathers."""
    row = HAND.replace(grid_rows=1)
    cycles = conv_cycles(conv(row, HEIGHT, side=20, force_split_reader=True), row)
    assert [str(group.cores) for group in cycles.groups] == ["{[0-0 - 0-0]}", "{[1-0 - 5-0]}", "{[6-0 - 6-0]}"]
    busy = [{stage.stage: stage.busy_cycles for stage in group.stages} for group in cycles.groups]
    tile_row = 3 * (100 + 32 * 20)
    assert [one[Stage.READER] for one in busy] == [tile_row, tile_row, tile_row / 2]
    assert [one.get(Stage.SECOND_READER, 0) for one in busy] == [tile_row, tile_row, 0]


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


MULTIPLY = (
    16 + (100 + (21.25 - 16) + 10) + (80 + 32)
)  # one product; streaming a tile in hides all but 0.75 of the packing


def test_a_height_sharded_program_by_hand():
    """32 to 32 channels of 8x8 pixels under a kernel of one: two cores, one tile row, one K block each."""
    op = conv(HAND, HEIGHT, channels=(32, 32), side=8, kernel=1, bias=False, force_split_reader=False)
    # The weights come last. Start; one tile of 1088 bytes from DRAM; its multicast to two cores, of which half the
    # handshake passes at the sender; then half of the rings, 11 links, and the other half of the handshake.
    sent = 800 + (400 + 45) + (200 + 2 * 3 + 1088 / 30)
    arrived = sent + 11 * 10 + 200
    # The activations are there before: a read of 32 sticks, 20 cycles apart, and the tilizing of one tile.
    tilized = 800 + (100 + 32 * 20) + (50 + 40 + 75)
    assert sent < tilized < arrived
    sender, others = conv_cycles(op, HAND).groups
    assert others.cycles == pytest.approx(arrived + MULTIPLY, rel=1e-12)
    assert sender.cycles == pytest.approx(tilized + MULTIPLY, rel=1e-12)


@pytest.mark.parametrize("bias", [False, True])
def test_a_bias_is_sent_as_weights_are(bias):
    """A tile of weights, and one of the bias."""
    op = conv(HAND, HEIGHT, channels=(32, 32), side=8, kernel=1, bias=bias, force_split_reader=False)
    busy = {stage.stage: stage.busy_cycles for stage in conv_cycles(op, HAND).groups[0].stages}
    assert busy[Stage.WEIGHT_MULTICAST] == pytest.approx((1 + bias) * (200 + 2 * 3 + 1088 / 30))
    assert busy[Stage.WEIGHT_READER] == pytest.approx((1 + bias) * (400 + 45))


def test_a_width_sharded_program_by_hand():
    """The same on one core: two tile rows, of which one is tilized while the next is read."""
    op = conv(HAND, WIDTH, channels=(32, 32), side=8, kernel=1, bias=False, force_split_reader=False)
    tilized = 800 + 2 * (100 + 32 * 20) + (50 + 40 + 75)
    # Two products; the column of weights stays while two activation tiles of 40 cycles stream past.
    multiply = 2 * 16 + (100 + (2 * 40 - 2 * 16) + 10) + (80 + 2 * 32)
    assert conv_cycles(op, HAND).cycles == pytest.approx(tilized + multiply, rel=1e-12)


def test_a_block_sharded_program_by_hand():
    """The same on two rows of four cores: each tilizes 8 channels, then all send in turn, one K block each."""
    op = conv(HAND, BLOCK, channels=(32, 32), side=8, kernel=1, bias=False, packer_l1_acc=True)
    assert op.layout.blocks.k_blocks == 4
    tilized = 800 + (100 + 32 * 20) + (50 + 40 + 75)
    # The first block of 2048 bytes is sent after the tilizing, half of a row's ring away, to the one core with outputs.
    first = tilized + (200 + 3 + 2048 / 30) + (5 * 10 + 200) + MULTIPLY
    # Each buffer holds one block: weights and activations follow when the product before is done. Weights take longer:
    # a core reads a tile and sends it down a column of two. The core below has each block later, and says soon enough
    # that it has room for the next.
    weights = (400 + 45) + (200 + 2 * 3 + 1088 / 30)
    activations = 5 * 10 + (200 + 3 + 2048 / 30) + (5 * 10 + 200)
    assert weights > activations
    # Without a bias the last block fetches what the packer has added up, and packs in its shadow.
    reload = 100 + 20 - 0.75
    above = first + 3 * (weights + MULTIPLY) + reload
    assert conv_cycles(op, HAND).cycles == pytest.approx(above + 6 * 10 + 200, rel=1e-12)


def test_readers_that_reuse_activations_read_one_kernel_row_again():
    op = conv(HAND, HEIGHT, channels=(32, 32), side=64, batch=4, activation_reuse=True)
    assert (op.layout.blocks.act_h_tiles, op.layout.blocks.k_blocks, op.layout.split_reader) == (8, 1, True)
    busy = {stage.stage: stage.busy_cycles for stage in conv_cycles(op, HAND).slowest.stages}
    # Four tile rows for each reader, two of them a row of the image: whole windows, then their last kernel row.
    expected = 2 * (100 + 3 * 32 * 20) + 2 * (100 + 32 * 20)
    assert busy[Stage.READER] == busy[Stage.SECOND_READER] == expected
    assert busy[Stage.TILIZE] == 8 * (40 + 9 * 75)


def test_a_reader_that_reuses_waits_until_its_row_of_the_image_is_tilized():
    op = conv(HAND, HEIGHT, channels=(32, 32), side=64, batch=4, activation_reuse=True, bias=False)
    full, again, tilized = 100 + 3 * 32 * 20, 100 + 32 * 20, 40 + 9 * 75
    # Two tile rows are read and tilized, the second reader's after the first's; while those of the second row are
    # tilized, the first reader waits for its own, then for nothing more.
    second_row_tilized = 800 + 2 * full + tilized
    assert 800 + full + 2 * tilized < 800 + 2 * full
    reader = time_conv(op, HAND).cores[0].reader
    assert reader.waited_cycles == tilized
    assert reader.now.cycles == second_row_tilized + 2 * again


WORMHOLE = SPECS[0]


def op_of(spec, scheme=HEIGHT, *, dilation=1, **options):
    """64 to 256 channels under a 3x3 kernel, 64 x 64 pixels."""
    return conv(spec, scheme, channels=(64, 256), side=64, bias=False, dilation=dilation, alignment=8, **options)


def test_a_reader_takes_a_burst_for_each_kernel_row_of_a_window():
    issue = WORMHOLE.costs_of(TransferCosts).stateful_issue_cycles
    steps = conv_steps(op_of(WORMHOLE, force_split_reader=False), WORMHOLE)
    rows = op_of(WORMHOLE).layout.blocks.act_h_tiles * 32
    assert steps.read.cycles == WORMHOLE.noc.interface_cycles + rows * max(issue, 64 * 2 * 3 / 30)
    assert steps.second_read is None

    dilated = conv_steps(op_of(WORMHOLE, dilation=2, force_split_reader=False), WORMHOLE)  # a burst for each tap
    assert dilated.read.cycles == pytest.approx(WORMHOLE.noc.interface_cycles + rows * 3 * issue)


def test_a_multicast_goes_half_round_the_rings_it_passes():
    handshake = WORMHOLE.costs_of(ConvCosts).multicast_cycles
    for scheme, weights, activations in ((HEIGHT, (10 + 12) / 2, (10 + 12) / 2), (BLOCK, 12 / 2, 10 / 2)):
        steps = conv_steps(op_of(WORMHOLE, scheme), WORMHOLE)
        for shipment, hops in ((steps.weights[1], weights), (steps.activations, activations)):
            assert shipment.notice.cycles == hops * WORMHOLE.noc.hop_cycles
            assert shipment.arrive.cycles == shipment.notice.cycles + handshake / 2
            assert shipment.send.cycles > handshake / 2
