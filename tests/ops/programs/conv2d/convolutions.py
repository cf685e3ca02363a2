"""Convolutions that tests share, laid out as the library lays them out; figures of a machine to time them by hand."""

from typing import Any

from device.memory.memory_config import TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B, BFLOAT16
from device.spec.device_spec import DeviceSpec, load_spec
from ops.programs.conv2d.cycles import conv_cycles
from ops.programs.conv2d.op import Conv2dOp
from ops.programs.conv2d.partition import (
    HEIGHT,
    ConvOptions,
    ConvPartition,
    ConvProblem,
    choose_cores,
    partition_conv,
    scheme_alignment,
)
from ops.window import PaddedInput, convolution_axis, transposed_axis

SPEC = load_spec("wormhole_n150")


def conv_problem(frame: PaddedInput, channels: tuple[int, int] = (64, 64), **fields: Any) -> ConvProblem:
    """A convolution of bfloat16 rows."""
    formats = dict.fromkeys(("in_format", "weight_format", "out_format"), BFLOAT16)
    return ConvProblem(
        frame=frame, in_channels=channels[0], out_channels=channels[1], **{**formats, "row_major": True, **fields}
    )


def doubled(height: int = 8, width: int = 8, batch: int = 1, kernel: int = 3) -> PaddedInput:
    """The frame of images that a transposed convolution makes twice as large."""
    rows, columns = (
        transposed_axis(input_length=length, kernel=kernel, stride=2, padding=(1, 1), output_padding=1, dilation=1)
        for length in (height, width)
    )
    return PaddedInput(batch=batch, rows=rows, columns=columns)


def column(outputs: int, kernel: tuple[int, int] = (1, 1), dilation: int = 1) -> PaddedInput:
    """A frame of so many outputs below each other."""
    reach = (kernel[1] - 1) * dilation
    rows = convolution_axis(
        input_length=outputs + kernel[0] - 1, kernel=kernel[0], stride=1, padding=(0, 0), dilation=1
    )
    columns = convolution_axis(input_length=reach + 1, kernel=kernel[1], stride=1, padding=(0, 0), dilation=dilation)
    return PaddedInput(batch=1, rows=rows, columns=columns)


def partitioned(
    problem: ConvProblem,
    scheme: TensorMemoryLayout,
    spec: DeviceSpec = SPEC,
    *,
    alignment: int | None = None,
    matmul: bool = False,
    choices: ConvOptions | None = None,
    **options: Any,
) -> ConvPartition:
    """A convolution with the library's cores and blocks; choices are given together or one by one."""
    alignment, choices = (
        alignment or scheme_alignment(problem, scheme, matmul=matmul),
        choices or ConvOptions(**options),
    )
    config = choose_cores(problem, choices, spec, scheme, alignment=alignment, matmul=matmul)
    return partition_conv(problem, choices, spec, config, alignment=alignment, matmul=matmul)


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
    conv_costs_receiver_cycles=4,
    conv_costs_packet_cycles=30,
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
