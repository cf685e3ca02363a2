"""Single steps of the convolution program, worked out by hand."""

from dataclasses import replace

import pytest

from device.numbers.formats import BFLOAT8_B, BFLOAT16
from device.spec.device_spec import load_spec
from device.time.dram import read_latency_cycles
from device.time.stages import Stage
from ops.frame.axis import convolution_axis
from ops.frame.frame import Frame
from ops.programs.actions.compute import unpack_tile_cycles
from ops.programs.actions.costs import ComputeCosts, TransferCosts
from ops.programs.conv2d.block_costs import conv_steps
from ops.programs.conv2d.costs import ConvCosts
from ops.programs.conv2d.layout import ConvLayout, choose_cores, lay_out
from ops.programs.conv2d.partition import BLOCK, HEIGHT
from ops.programs.conv2d.problem import ConvOptions, ConvProblem
from ops.programs.conv2d.work import ConvWork

WORMHOLE, BLACKHOLE = load_spec("wormhole_n150"), load_spec("blackhole_p100")


def work(spec, scheme=HEIGHT, *, subblock=None, weight_format=BFLOAT8_B, dilation=1, **options):
    """64 to 256 channels under a 3x3 kernel, 64 x 64 pixels."""
    axis = convolution_axis(input_length=64, kernel=3, stride=1, padding=(dilation,) * 2, dilation=dilation)
    problem = ConvProblem(
        frame=Frame(batch=1, rows=axis, columns=axis),
        in_channels=64,
        out_channels=256,
        in_format=BFLOAT16,
        weight_format=weight_format,
        out_format=BFLOAT16,
        row_major=True,
    )
    chosen = ConvOptions(**options)
    layout: ConvLayout = lay_out(
        problem, chosen, spec, choose_cores(problem, chosen, spec, scheme, alignment=8), alignment=8
    )
    if subblock is not None:
        height, width = subblock
        layout = replace(layout, blocks=replace(layout.blocks, subblock_h_tiles=height, subblock_w_tiles=width))
    return ConvWork(
        problem=problem,
        options=chosen,
        layout=layout,
        k_blocks=(),
        fidelity_phases=1,
        partials_format=BFLOAT16,
        l1_accumulation=False,
    )


def test_a_reader_takes_a_burst_for_each_kernel_row_of_a_window():
    issue = WORMHOLE.costs_of(TransferCosts).stateful_issue_cycles
    steps = conv_steps(work(WORMHOLE, force_split_reader=False), WORMHOLE)
    rows = work(WORMHOLE).layout.blocks.act_h_tiles * 32
    assert steps.read.cycles == WORMHOLE.noc.interface_cycles + rows * max(issue, 64 * 2 * 3 / 30)
    assert steps.second_read is None


def test_dilated_windows_take_a_burst_for_each_tap():
    issue = WORMHOLE.costs_of(TransferCosts).stateful_issue_cycles
    dilated = work(WORMHOLE, dilation=2, force_split_reader=False)
    rows = dilated.layout.blocks.act_h_tiles * 32
    assert conv_steps(dilated, WORMHOLE).read.cycles == pytest.approx(WORMHOLE.noc.interface_cycles + rows * 3 * issue)


def test_a_split_reader_deals_the_rows():
    steps = conv_steps(work(WORMHOLE, BLOCK), WORMHOLE)
    assert steps.second_read is not None
    assert steps.second_tilize is not None
    assert steps.read.cycles >= steps.second_read.cycles


@pytest.mark.parametrize(
    ("spec", "subblock", "streams", "grouped"),
    [
        (WORMHOLE, (1, 8), 8, 0),  # one row stays, eight columns stream
        (WORMHOLE, (2, 4), 4, 2),  # two rows stay together, so that four columns stream once
        (WORMHOLE, (4, 2), 4, 2),  # two columns stay, four rows stream
        (BLACKHOLE, (1, 8), 8, 0),
        (BLACKHOLE, (2, 4), 8, 0),  # one row after the other
    ],
)
def test_tiles_that_stream_past_those_that_stay(spec, subblock, streams, grouped):
    costs = spec.costs_of(ComputeCosts)
    made = work(spec, subblock=subblock)
    steps = conv_steps(made, spec)
    blocks = made.layout.blocks
    subblocks = blocks.act_h_tiles // subblock[0] * (8 // subblock[1])
    tile = unpack_tile_cycles(spec, (BFLOAT8_B if subblock[1] >= subblock[0] else BFLOAT16).tile_bytes)
    unpack = streams * tile + grouped * costs.stationary_tile_cycles + costs.matmul_call_cycles
    assert steps.matmul.busy[Stage.UNPACK] == pytest.approx(subblocks * blocks.act_w_tiles * unpack)


def test_a_reload_adds_its_tiles():
    costs, steps = WORMHOLE.costs_of(ComputeCosts), conv_steps(work(WORMHOLE), WORMHOLE)
    blocks = work(WORMHOLE).layout.blocks
    tiles = blocks.subblock_h_tiles * blocks.subblock_w_tiles
    subblocks = blocks.act_h_tiles * 8 // tiles
    expected = subblocks * (costs.reload_cycles + tiles * costs.reload_tile_cycles)
    assert steps.matmul_reload.cycles - steps.matmul.cycles == pytest.approx(expected)


def test_readers_of_weights_share_dram():
    crowded = WORMHOLE.replace(dram_bank_bytes_per_second=1e9)
    alone, _ = conv_steps(work(crowded, BLOCK), crowded, contention=False).weights
    together, _ = conv_steps(work(crowded, BLOCK), crowded).weights
    assert together.cycles > alone.cycles
    assert together.path[Stage.DRAM] > 0 == alone.path[Stage.DRAM]


def test_a_multicast_goes_half_round_the_rings_it_passes():
    handshake = WORMHOLE.costs_of(ConvCosts).multicast_cycles
    for scheme, weights, activations in ((HEIGHT, (10 + 12) / 2, (10 + 12) / 2), (BLOCK, 12 / 2, 10 / 2)):
        steps = conv_steps(work(WORMHOLE, scheme), WORMHOLE)
        for shipment, hops in ((steps.weights[1], weights), (steps.activations, activations)):
            assert shipment.notice.cycles == hops * WORMHOLE.noc.hop_cycles
            assert shipment.arrive.cycles == shipment.notice.cycles + handshake / 2
            assert shipment.send.cycles > handshake / 2


def test_a_longer_ring_delays_multicasts():
    longer = WORMHOLE.replace(noc_hop_cycles=2 * WORMHOLE.noc.hop_cycles)
    near, far = (conv_steps(work(spec, BLOCK), spec).activations for spec in (WORMHOLE, longer))
    assert far.notice.cycles == 2 * near.notice.cycles
    assert far.send.cycles == near.send.cycles


def test_indices_in_dram_are_fetched_first():
    assert conv_steps(work(WORMHOLE), WORMHOLE).config is None
    fetched = conv_steps(work(WORMHOLE, config_tensors_in_dram=True), WORMHOLE).config
    assert fetched is not None
    assert fetched.cycles == read_latency_cycles(WORMHOLE)
