"""Data movement of a matmul: over the networks, and between the L1 of its cores and their registers."""

from typing import Final

from device.cores import CoreCoord, CoreRange, CoreRangeSet, first_cores
from device.spec.device_spec import DeviceSpec
from device.time.links import multicast_transfer, spread_transfer
from device.time.network import FIRST, SECOND
from device.time.stages import TileWork, Transfer, work_together
from ops.op_model import PRODUCT_FLOPS
from ops.programs import kernel_costs
from ops.programs.matmul.op import (
    MatmulOp,
    MatmulProgram,
    Place,
    Places,
    operands_of,
    reader_cores,
)

# Whether programs read either operand over the network that is placed for writing, and write over the other one.
CROSSED: Final = {MatmulProgram.SINGLE_TILES: (False, False, False), MatmulProgram.REUSE: (False, True, False)}
MULTICAST_CROSSED: Final = (True, False, True)


def product_block(op: MatmulOp, k_block: int) -> kernel_costs.ProductBlock:
    """The tiles that a core multiplies in a K block."""
    problem, config, (height, width, depth) = op.problem, op.config, op.block_tiles
    return kernel_costs.ProductBlock(
        subblock_height=config.out_subblock_h,
        subblock_width=config.out_subblock_w,
        subblocks=height * width / (config.out_subblock_h * config.out_subblock_w),
        depth=depth,
        first_format=problem.in_format,
        second_format=problem.weight_format,
        packed_format=problem.out_format if k_block == op.k_blocks - 1 else op.partials_format,
        fidelity_phases=op.fidelity_phases,
    )


def matmul_work(op: MatmulOp, spec: DeviceSpec) -> TileWork:
    """The tiles that all cores unpack and pack; a first operand that the program transposes passes both once more."""
    problem, products = op.problem, op.issued_flops // PRODUCT_FLOPS
    k_blocks = op.k_blocks
    multiplied = kernel_costs.product_work(
        spec,
        product_block(op, k_blocks - 1),
        products=products,
        outputs=products // problem.k_tiles,
        k_blocks=k_blocks,
        reloads=sum(map(op.reloads, range(k_blocks))),
        partials=op.partials_format,
        row=problem.added_format if problem.bias else None,
    )
    turned = products // op.config.per_core_n * op.passes[0] if problem.transpose_first else 0
    return work_together((multiplied, kernel_costs.converted_work(turned, problem.in_format, problem.in_format)))


def matmul_transfers(op: MatmulOp, spec: DeviceSpec, places: Places) -> tuple[Transfer, ...]:
    """The transfers over the networks: operands to their readers and on to receivers, and the output."""
    moved, grid = operands_of(op), spec.grid
    crossed = CROSSED.get(op.config.program, MULTICAST_CROSSED)
    used = first_cores(op.cores, grid.cols, grid.rows)
    sizes = (moved.first_read_bytes, moved.second_read_bytes, moved.written_bytes)
    transfers = [
        spread_transfer(spec, cores, size, in_dram=place is Place.DRAM, writes=writes, crossed=across)
        for cores, size, place, writes, across in zip(
            (reader_cores(op, grid, 0), reader_cores(op, grid, 1), used),
            sizes,
            (places.first, places.second, places.output),
            (False, False, True),
            crossed,
            strict=True,
        )
        if place is not Place.OWN
    ]
    if moved.added_read_bytes:
        readers, in_dram = reader_cores(op, grid, 1), places.added is Place.DRAM
        transfers.append(
            spread_transfer(spec, readers, moved.added_read_bytes, in_dram=in_dram, writes=False, crossed=crossed[1])
        )
    for number in (0, 1):
        if op.sends[number] and op.receivers[number] > 1:
            network = SECOND if crossed[number] else FIRST
            own = (places.first, places.second)[number] is Place.OWN  # every core sends what it holds
            senders = used if own else reader_cores(op, grid, number)
            transfers.append(multicast_transfer(spec, network, _receiving(op, senders, used, number), sizes[number]))
    return tuple(transfers)


def _receiving(
    op: MatmulOp, senders: CoreRangeSet, used: CoreRangeSet, number: int
) -> list[tuple[CoreCoord, CoreRangeSet]]:
    """Each sender of blocks of an operand, with its receivers: all cores, or the cores of its row or column."""
    if op.config.program is not MatmulProgram.MCAST_2D:
        return [(core, used) for core in senders.cores()]
    far, along_row = op.receivers[number] - 1, (number == 0) is not op.config.transpose_mcast
    rows = [(core, CoreCoord(0, core.y), CoreCoord(far, core.y)) for core in senders.cores()]
    columns = [(core, CoreCoord(core.x, 0), CoreCoord(core.x, far)) for core in senders.cores()]
    return [(core, CoreRangeSet(CoreRange(first, last))) for core, first, last in (rows if along_row else columns)]
