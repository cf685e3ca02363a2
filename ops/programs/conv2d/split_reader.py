"""Whether a second data-movement processor helps to read activations: reference, section 3.7.

The real library compares the cycles until the first matmul can start, with one reader and with two, from transfer
rates measured once.
"""

from device.memory.memory_config import TensorMemoryLayout
from device.memory.tiles import TILE
from device.numbers.formats import DataFormat
from device.spec.parts import ReaderRates, TransferRate
from ops.programs.conv2d.partition import BLOCK, WIDTH

SMALLEST_TRANSFER_BYTES = 16  # the rates grow linearly from here to their peak


def transfer_rate(rate: TransferRate, transfer_bytes: int) -> float:
    """Bytes per nanosecond of transfers of one size: linear between the floor at 16 bytes and the peak."""
    size = min(max(transfer_bytes, SMALLEST_TRANSFER_BYTES), rate.peak_at_bytes)
    slope = (rate.peak_bytes_per_ns - rate.floor_bytes_per_ns) / (rate.peak_at_bytes - SMALLEST_TRANSFER_BYTES)
    return rate.floor_bytes_per_ns + slope * (size - SMALLEST_TRANSFER_BYTES)


def uses_split_reader(
    scheme: TensorMemoryLayout,
    rates: ReaderRates,
    *,
    act_h_tiles: int,
    act_w_tiles: int,
    out_w_tiles: int,
    padded_channels: int,
    kernel_w: int,
    dilation_w: int,
    act_format: DataFormat,
    weight_format: DataFormat,
    out_format: DataFormat,
    fp32_dest: bool,
    forced: bool | None,
) -> bool:
    """Whether both data-movement processors read activations.

    Args:
        scheme: The shard scheme; WIDTH never splits, BLOCK always does.
        rates: Measured rates of the device.
        act_h_tiles: Height of an activation block; a single tile row can not be split.
        act_w_tiles: Width of an activation block.
        out_w_tiles: Width of an output block.
        padded_channels: C_pad.
        kernel_w: Kernel width.
        dilation_w: Dilation along the width; above 1 a window row is not contiguous.
        act_format: Format of the halo output.
        weight_format: Format of the weights.
        out_format: Output format, into which activations are tilized.
        fp32_dest: Dst accumulates in float32.
        forced: `force_split_reader` of the config; None lets the rates decide.
    """
    if scheme is WIDTH or act_h_tiles == 1:
        return False
    if forced is not None:
        return forced
    if scheme is BLOCK:
        return True
    stick_bytes = (act_format.element_bytes or 0) * padded_channels
    act_bytes = stick_bytes * act_h_tiles * TILE * kernel_w
    burst_bytes = stick_bytes * (kernel_w if dilation_w == 1 else 1)
    act_cycles = rates.clock_ghz * act_bytes / transfer_rate(rates.local, burst_bytes)
    weight_bytes = out_w_tiles * act_w_tiles * weight_format.tile_bytes
    ns_per_byte = 1 / transfer_rate(rates.dram, weight_format.tile_bytes) + 1 / transfer_rate(
        rates.multicast, weight_bytes
    )
    weight_cycles = rates.clock_ghz * weight_bytes * ns_per_byte
    tilize_cycles = (
        act_w_tiles * act_h_tiles * rates.tilize_cycles(act_format.name, out_format.name, fp32_dest=fp32_dest)
    )
    return act_cycles / 2 + max(weight_cycles, tilize_cycles) < max(act_cycles + tilize_cycles, weight_cycles)
