"""Data movement of a convolution: over the networks, and between the L1 of its cores and their registers."""

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.memory.memory_config import TILE, ShardOrientation
from device.numbers.formats import div_up
from device.spec.device_spec import DeviceSpec
from device.time.links import multicast_transfer, spread_transfer
from device.time.network import FIRST, SECOND
from device.time.stages import TileWork, Transfer, work_together
from ops.op_model import PRODUCT_FLOPS
from ops.programs import kernel_costs
from ops.programs.conv2d.block_costs import (
    gathering_cores,
    gathers_of,
    issued_flops,
    product_block,
    sent_activation_bytes,
    sent_weight_bytes,
    weight_bytes,
    weight_reader_cores,
    window_bursts,
)
from ops.programs.conv2d.op import Conv2dOp
from ops.programs.conv2d.partition import BLOCK, WIDTH
from ops.programs.conv2d.walk import fetches_partials


def conv_transfers(op: Conv2dOp, spec: DeviceSpec) -> tuple[Transfer, ...]:
    """Transfers of weights from DRAM to their readers and on to all cores that use them, and of activation blocks.

    The processor that reads weights uses the first network, the one that sends activations the second.
    """
    transfers = weight_transfers(op, spec, weight_bytes(op), sent_weight_bytes(op))
    if sent := sent_activation_bytes(op):
        holding = _lines(op, op.layout.config.cores, across=True)
        transfers = (*transfers, multicast_transfer(spec, SECOND, holding, sent))
    return transfers


def weight_transfers(op: Conv2dOp, spec: DeviceSpec, read_bytes: int, sent_bytes: int) -> tuple[Transfer, ...]:
    """Bytes of weights or bias from DRAM to their readers, and bytes that the readers send on."""
    readers = weight_reader_cores(op)
    read = spread_transfer(spec, readers, read_bytes, in_dram=True, writes=False)
    if not sent_bytes:
        return (read,)
    return read, multicast_transfer(spec, FIRST, _lines(op, readers, across=False), sent_bytes)


def _lines(op: Conv2dOp, senders: CoreRangeSet, *, across: bool) -> list[tuple[CoreCoord, CoreRangeSet]]:
    """Each sender with its receivers: in a BLOCK program the cores with the same rows (``across``) or channels."""
    out = op.layout.out_config
    if out.scheme is not BLOCK:
        return [(core, out.cores) for core in senders.cores()]
    box, along_row = out.cores.bounding_box(), across is (out.orientation is not ShardOrientation.COL_MAJOR)
    groups = []
    for core in senders.cores():
        first = CoreCoord(box.start.x, core.y) if along_row else CoreCoord(core.x, box.start.y)
        last = CoreCoord(box.end.x, core.y) if along_row else CoreCoord(core.x, box.end.y)
        groups.append((core, CoreRangeSet(CoreRange(first, last))))
    return groups


def conv_work(op: Conv2dOp, spec: DeviceSpec) -> TileWork:
    """The data that all cores gather, tilize, unpack and pack."""
    problem, blocks, products = op.problem, op.layout.blocks, issued_flops(op) // PRODUCT_FLOPS
    k_blocks = blocks.k_blocks
    multiplied = kernel_costs.product_work(
        spec,
        product_block(op),
        products=products,
        outputs=products // (blocks.act_w_tiles * k_blocks),
        k_blocks=k_blocks,
        reloads=sum(fetches_partials(op, number) for number in range(k_blocks)),
        partials=op.partials_format,
        row=problem.weight_format if problem.bias else None,
    )
    gathered, tile_rows = _gathered(op)
    tilized = kernel_costs.converted_work(tile_rows * blocks.act_w_tiles, problem.act_format, problem.out_format)
    outputs = products // (blocks.act_w_tiles * k_blocks) if op.options.untilize_out else 0
    untilized = kernel_costs.converted_work(outputs, problem.out_format, problem.out_format)
    return work_together((multiplied, tilized, untilized, TileWork(copied_bytes=gathered)))


def _gathered(op: Conv2dOp) -> tuple[int, int]:
    """Bytes that all cores gather from their own L1, and the tile rows of blocks that they become."""
    layout, times = op.layout, op.out_blocks * gathers_of(op)
    heights = (1, 0) if layout.scheme is WIDTH else layout.reader_tile_rows
    windows, again = (bursts * size for bursts, size in (window_bursts(op), window_bursts(op, 1)))
    row_tiles = div_up(op.problem.frame.columns.outputs, TILE)
    reuses = op.options.reuses_activations(layout.scheme)
    size, rows = 0.0, 0.0
    for shares, cores in gathering_cores(op).items():
        for share, height in zip(shares, heights, strict=True):
            whole = min(height, row_tiles) if reuses else height
            count = cores.num_cores() * share * times
            size += count * TILE * (whole * windows + (height - whole) * again)
            rows += count * height
    return round(size), round(rows)
