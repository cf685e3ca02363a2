"""Single steps of the convolution program, worked out by hand."""

from dataclasses import replace

import pytest

from device.numbers.formats import BFLOAT8_B, BFLOAT16
from device.spec.device_spec import load_spec
from device.time.network import read_latency_cycles
from device.time.stages import Stage
from ops.programs.conv2d.block_costs import ConvCosts, conv_steps
from ops.programs.conv2d.op import Conv2dOp
from ops.programs.conv2d.parallel_config import BLOCK, HEIGHT, ConvOptions, ConvProblem
from ops.programs.conv2d.partition import ConvPartition, choose_cores, partition_conv
from ops.programs.kernel_costs import ProductBlock, TransferCosts, multiply_task
from ops.window import PaddedInput, convolution_axis

WORMHOLE, BLACKHOLE = load_spec("wormhole_n150"), load_spec("blackhole_p100")


def op(spec, scheme=HEIGHT, *, subblock=None, weight_format=BFLOAT8_B, dilation=1, **options):
    """64 to 256 channels under a 3x3 kernel, 64 x 64 pixels."""
    axis = convolution_axis(input_length=64, kernel=3, stride=1, padding=(dilation,) * 2, dilation=dilation)
    problem = ConvProblem(
        frame=PaddedInput(batch=1, rows=axis, columns=axis),
        in_channels=64,
        out_channels=256,
        in_format=BFLOAT16,
        weight_format=weight_format,
        out_format=BFLOAT16,
        row_major=True,
    )
    chosen = ConvOptions(**options)
    layout: ConvPartition = partition_conv(
        problem, chosen, spec, choose_cores(problem, chosen, spec, scheme, alignment=8), alignment=8
    )
    if subblock is not None:
        height, width = subblock
        layout = replace(layout, blocks=replace(layout.blocks, subblock_h_tiles=height, subblock_w_tiles=width))
    return Conv2dOp.of(layout, fidelity_phases=1, k_blocks=())


def test_a_reader_takes_a_burst_for_each_kernel_row_of_a_window():
    issue = WORMHOLE.costs_of(TransferCosts).stateful_issue_cycles
    steps = conv_steps(op(WORMHOLE, force_split_reader=False), WORMHOLE)
    rows = op(WORMHOLE).layout.blocks.act_h_tiles * 32
    assert steps.read.cycles == WORMHOLE.noc.interface_cycles + rows * max(issue, 64 * 2 * 3 / 30)
    assert steps.second_read is None


def test_dilated_windows_take_a_burst_for_each_tap():
    issue = WORMHOLE.costs_of(TransferCosts).stateful_issue_cycles
    dilated = op(WORMHOLE, dilation=2, force_split_reader=False)
    rows = dilated.layout.blocks.act_h_tiles * 32
    assert conv_steps(dilated, WORMHOLE).read.cycles == pytest.approx(WORMHOLE.noc.interface_cycles + rows * 3 * issue)


def test_a_split_reader_deals_the_rows():
    steps = conv_steps(op(WORMHOLE, BLOCK), WORMHOLE)
    assert steps.second_read is not None
    assert steps.second_tilize is not None
    assert steps.read.cycles >= steps.second_read.cycles


def test_products_are_those_of_a_matmul():
    """64 channels under three taps: six K tiles; sub-blocks of the layout; activations were tilized to bfloat16."""
    made = op(WORMHOLE, subblock=(2, 4))
    block = ProductBlock(
        subblock_height=2,
        subblock_width=4,
        subblocks=made.layout.blocks.act_h_tiles // 2 * 2,
        depth=6,
        first_format=BFLOAT16,
        second_format=BFLOAT8_B,
        packed_format=BFLOAT16,
        fidelity_phases=1,
    )
    steps = conv_steps(made, WORMHOLE)
    assert steps.matmul.cycles == multiply_task(WORMHOLE, block, reload=False).cycles
    assert steps.matmul_reload.cycles == multiply_task(WORMHOLE, block, reload=True).cycles


def test_readers_of_weights_share_dram():
    crowded = WORMHOLE.replace(dram_bank_bytes_per_second=1e9)
    alone, _ = conv_steps(op(crowded, BLOCK), crowded, contention=False).weights
    together, _ = conv_steps(op(crowded, BLOCK), crowded).weights
    assert together.cycles > alone.cycles
    assert together.path[Stage.DRAM] > 0 == alone.path[Stage.DRAM]


def test_a_multicast_goes_half_round_the_rings_it_passes():
    handshake = WORMHOLE.costs_of(ConvCosts).multicast_cycles
    for scheme, weights, activations in ((HEIGHT, (10 + 12) / 2, (10 + 12) / 2), (BLOCK, 12 / 2, 10 / 2)):
        steps = conv_steps(op(WORMHOLE, scheme), WORMHOLE)
        for shipment, hops in ((steps.weights[1], weights), (steps.activations, activations)):
            assert shipment.notice.cycles == hops * WORMHOLE.noc.hop_cycles
            assert shipment.arrive.cycles == shipment.notice.cycles + handshake / 2
            assert shipment.send.cycles > handshake / 2


def test_a_longer_ring_delays_multicasts():
    longer = WORMHOLE.replace(noc_hop_cycles=2 * WORMHOLE.noc.hop_cycles)
    near, far = (conv_steps(op(spec, BLOCK), spec).activations for spec in (WORMHOLE, longer))
    assert far.notice.cycles == 2 * near.notice.cycles
    assert far.send.cycles == near.send.cycles


def test_indices_in_dram_are_fetched_first():
    assert conv_steps(op(WORMHOLE), WORMHOLE).config is None
    fetched = conv_steps(op(WORMHOLE, config_tensors_in_dram=True), WORMHOLE).config
    assert fetched is not None
    assert fetched.cycles == read_latency_cycles(WORMHOLE)
