"""Convolutions to be timed, with the library's blocks."""

from device.numbers.formats import BFLOAT8_B
from device.spec.device_spec import load_spec
from ops.programs.conv2d.cycles import conv_cycles
from ops.programs.conv2d.op import Conv2dOp
from ops.programs.conv2d.partition import HEIGHT
from ops.window import PaddedInput, convolution_axis, transposed_axis
from tests.ops.programs.conv2d.convolutions import conv_problem, partitioned

SPECS = [load_spec("wormhole_n150"), load_spec("blackhole_p100")]
# Figures that are easy to reckon with: links of 30 bytes a cycle; tiles of 1088 bytes are unpacked in
# 21.25 cycles, of 2048 in 40 and packed in 32; a tile is tilized in 75; DRAM answers after 400.
HAND = load_spec("wormhole_n150").replace(
    noc_hop_cycles=10,
    noc_interface_cycles=100,
    dram_access_ns=80,
    compute_unpack_bytes_per_cycle=51.2,
    compute_unpack_tile_cycles=16,
    compute_pack_bytes_per_cycle=64,
    transfer_costs_stateful_issue_cycles=20,
    transfer_costs_page_issue_cycles=45,
    transfer_costs_multicast_receiver_cycles=3,
    compute_costs_tilize_call_cycles=50,
    compute_costs_tilize_row_cycles=40,
    compute_costs_tilize_tile_cycles=3,
    compute_costs_matmul_call_cycles=10,
    compute_costs_block_cycles=100,
    compute_costs_subblock_cycles=80,
    compute_costs_reload_cycles=100,
    compute_costs_reload_tile_cycles=20,
    conv_costs_start_cycles=800,
    conv_costs_multicast_cycles=400,
)


def conv(
    spec,
    scheme=HEIGHT,
    *,
    channels=(64, 64),
    side=32,
    batch=1,
    kernel=3,
    stride=None,
    dilation=1,
    fidelity_phases=1,
    bias=True,
    weight_format=BFLOAT8_B,
    alignment=None,
    **options,
):
    """A convolution with the library's blocks; with a stride a transposed one."""
    sizes = {"input_length": side, "kernel": kernel, "dilation": dilation}
    if stride is None:
        axis = convolution_axis(**sizes, stride=1, padding=(dilation * (kernel // 2),) * 2)
    else:
        axis = transposed_axis(**sizes, stride=stride, padding=(0, 0), output_padding=0)
    frame = PaddedInput(batch=batch, rows=axis, columns=axis)
    problem = conv_problem(frame, channels, weight_format=weight_format, bias=bias)
    return Conv2dOp.of(
        partitioned(problem, scheme, spec, alignment=alignment, **options), fidelity_phases=fidelity_phases
    )


def total(spec, facts, **changes):
    return conv_cycles(conv(spec, **{**facts, **changes}), spec).cycles
