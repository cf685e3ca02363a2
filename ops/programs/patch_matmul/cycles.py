"""The cycles of the patch programs: a matmul with one operand that is gathered stick by stick and tilized.

The readers gather and write, the compute threads tilize, multiply and untilize; they process K blocks like those of a
matmul; every block has its share of a core's sticks, tiles and rows. Every pass gathers its slices again. Zeros of a
frame are not read from DRAM but filled from the core's own L1.
"""

from dataclasses import replace
from math import prod
from typing import NamedTuple

from device.cores import first_cores
from device.memory.memory_config import TILE
from device.numbers.formats import BFLOAT16, FLOAT32, div_up
from device.spec.device_spec import DeviceSpec
from device.time.engine import task_of
from device.time.links import spread_transfer
from device.time.network import shared_cycles, side_by_side_cycles
from device.time.stages import (
    CoreGroupCycles,
    OperationCycles,
    Stage,
    StageCycles,
    TileWork,
    Transfer,
    binding_stage,
    work_together,
)
from ops.programs import kernel_costs
from ops.programs.buffer_shapes import uniform_cycles
from ops.programs.matmul import cycles as matmul_cycles
from ops.programs.matmul.op import Place, Places, operands_of
from ops.programs.matmul.work import matmul_transfers, matmul_work
from ops.programs.patch_matmul.op import FillRows, Patches, PatchMatmul, PixelMatmul, SumSections
from ops.window import output_phases


class CoreShare(NamedTuple):
    """The work of one core, and the bytes of all cores."""

    sticks: float  # Sticks of a core, from DRAM or zeros
    stick_bytes: int
    tiles: int  # Tiles that it makes of them, and sends on if others share them
    rows: int
    row_bytes: int
    read_bytes: int  # Gathered by all cores
    written_bytes: int  # Written by all cores


def core_share(op: PatchMatmul | PixelMatmul, present: float) -> CoreShare:
    """The work of a core: one operand is gathered by every core for its own part, or by one core per shared part.

    The first operand of a patch matmul is gathered, and the second of a pixel matmul.
    """
    patches, config, problem, passes = op.patches, op.matmul.config, op.matmul.problem, len(op.slicing.passes)
    again, sends, readers = (both[_gathered(op)] for both in (op.matmul.passes, op.matmul.sends, op.matmul.sharers))
    if isinstance(op, PatchMatmul):
        positions, taps, side = min(config.per_core_m * TILE, patches.rows), patches.tap_count, config.per_core_m
        all_rows, core_rows, columns = patches.rows, positions, op.out_channels // patches.bundles
        out_format = op.out_format
    else:
        positions, side = problem.k_tiles // passes * TILE, config.per_core_n
        taps = min(patches.tap_count, div_up(config.per_core_n * TILE, patches.tap_columns))
        channels, columns = op.channels // patches.bundles, patches.tap_count * patches.channels // patches.bundles
        all_rows, core_rows = op.sections * channels, min(config.per_core_m * TILE, channels)
        out_format = op.out_format if op.sections == 1 else FLOAT32
    itemsize = out_format.storage.itemsize
    stick_bytes = patches.channels // patches.bundles * op.slicing.part_format.storage.itemsize
    read = patches.rows * patches.tap_count * present * again * passes * (1 if sends else readers)
    return CoreShare(
        sticks=positions * again * passes * taps,
        stick_bytes=stick_bytes,
        tiles=problem.k_tiles * side * again,
        rows=core_rows,
        row_bytes=min(config.per_core_n * TILE, columns) * itemsize,
        read_bytes=round(read * stick_bytes),
        written_bytes=all_rows * columns * itemsize,
    )


def _gathered(op: PatchMatmul | PixelMatmul) -> int:
    """Which operand is gathered."""
    return 0 if isinstance(op, PatchMatmul) else 1


def present_share(patches: Patches) -> float:
    """The part of all taps of all patches that meets the image."""
    share = 1.0
    for axis in patches.axes:
        met = sum(
            _met(start, phase.axis.stride, phase.axis.outputs, axis.input_length)
            for phase in output_phases(axis)
            for start in phase.starts
        )
        share *= met / (axis.outputs * axis.kernel)
    return share


def _met(start: int, step: int, outputs: int, size: int) -> int:
    """Number of outputs for which a tap that begins at ``start`` is inside the image."""
    first = max(0, div_up(-start, step))
    return max(0, min(outputs, div_up(size - start, step)) - first)


def product_cycles(op: PatchMatmul | PixelMatmul, spec: DeviceSpec) -> OperationCycles:
    """Cycles of all bundles of a program in sequence."""
    matmul, patches, grid, present = op.matmul, op.patches, op.matmul.config.grid, present_share(op.patches)
    share, operands = core_share(op, present), operands_of(matmul, Places(first=Place.OWN, output=Place.OWN))
    steps = _steps(op, share, present, spec)
    moved = share.read_bytes, operands.second_read_bytes, share.written_bytes
    left_over = spec.costs_of(kernel_costs.StickCosts).dram_stick_share  # by gathering sticks
    pages = share.stick_bytes, matmul.problem.weight_format.tile_bytes
    shared = matmul_cycles.with_shared_dram(steps, spec, moved, pages, left_over)
    timing = matmul_cycles.walk_blocks("patch_matmul", shared)
    bundles, start_cycles = patches.bundles, steps.start.cycles
    stages = tuple(stage if stage.stage is Stage.START else _times(stage, bundles) for stage in timing.stages)
    cycles = start_cycles + bundles * (timing.cycles - start_cycles)
    used = first_cores(matmul.cores, grid.cols, grid.rows)
    others = op.out_channels if isinstance(op, PatchMatmul) else op.channels
    return OperationCycles(
        cycles=cycles,
        groups=(CoreGroupCycles(cores=used, cycles=cycles, stages=stages),),
        bound_by=binding_stage(stage for stage in stages if stage.stage is not Stage.START),
        dram_read_bytes=bundles * (operands.read_bytes + share.read_bytes),
        dram_written_bytes=bundles * share.written_bytes,
        issued_flops=bundles * matmul.issued_flops,
        # Multiplications and additions of the definition, without padding, inserted zeros and further passes.
        useful_flops=round(
            2 * (patches.rows * patches.tap_count * present) * patches.channels * others / patches.groups
        ),
        contention_cycles=lambda: (
            bundles * max(0.0, timing.cycles - matmul_cycles.walk_blocks("patch_matmul", steps).cycles)
        ),
        transfers=lambda: tuple(_transfer_of_bundles(each, bundles) for each in _transfers(op, share, spec)),
        tile_work=lambda: work_together([_tile_work(op, share, spec)] * bundles),
    )


def _transfers(op: PatchMatmul | PixelMatmul, share: CoreShare, spec: DeviceSpec) -> tuple[Transfer, ...]:
    """The transfers of a bundle: gathered and written sticks, and its matmul's reads and sends."""
    cores = first_cores(op.matmul.cores, op.matmul.config.grid.cols, op.matmul.config.grid.rows)
    return (
        spread_transfer(spec, cores, share.read_bytes, in_dram=True, writes=False),
        spread_transfer(spec, cores, share.written_bytes, in_dram=True, writes=True),
        *matmul_transfers(op.matmul, spec, Places(first=Place.OWN, output=Place.OWN)),
    )


def _transfer_of_bundles(transfer: Transfer, bundles: int) -> Transfer:
    return replace(
        transfer,
        sent_bytes=bundles * transfer.sent_bytes,
        link_bytes=bundles * transfer.link_bytes,
        taken_bytes=bundles * transfer.taken_bytes,
    )


def _tile_work(op: PatchMatmul | PixelMatmul, share: CoreShare, spec: DeviceSpec) -> TileWork:
    """The products of a bundle, the tiles that its cores tilize, and the output that they untilize."""
    matmul = op.matmul
    part = FLOAT32 if matmul.problem.in_format == FLOAT32 else BFLOAT16
    tilized = kernel_costs.converted_work(round(matmul.cores * share.tiles), part, part)
    outputs = matmul.cores * matmul.config.per_core_m * matmul.config.per_core_n
    out_format = matmul.problem.out_format
    return work_together(
        (matmul_work(matmul, spec), tilized, kernel_costs.converted_work(outputs, out_format, out_format))
    )


def fill_rows_cycles(op: FillRows, spec: DeviceSpec) -> OperationCycles:
    """Cycles of a program whose cores write rows from a stick of their own."""
    rows, row_bytes = (
        op.batch * prod(axis.outputs for axis in op.axes),
        op.out_channels * op.out_format.storage.itemsize,
    )
    cores, costs = min(rows, spec.grid.cores), spec.costs_of(kernel_costs.StickCosts)
    write = div_up(rows, cores) * kernel_costs.write_stick_cycles(spec, row_bytes)
    dram = shared_cycles(spec, rows * row_bytes, costs.dram_write_share)
    return uniform_cycles(
        first_cores(cores, spec.grid.cols, spec.grid.rows),
        max(write, dram),
        {Stage.WRITER: write, Stage.DRAM: dram},
        spec,
        dram_written_bytes=rows * row_bytes,
        contention_cycles=max(0.0, dram - write),
    )


def sum_sections_cycles(op: SumSections, spec: DeviceSpec) -> OperationCycles:
    """Cycles of a program that reads rows of all bands, adds and writes them."""
    cores = min(op.rows, spec.grid.cores)
    share = div_up(op.rows, cores)
    in_bytes, out_bytes = (op.columns * data_format.storage.itemsize for data_format in (FLOAT32, op.out_format))
    moved = op.rows * (op.sections * in_bytes + out_bytes)
    tiles = div_up(share, TILE) * div_up(op.columns, TILE) * op.sections
    stages = {
        Stage.READER: share * op.sections * kernel_costs.read_stick_cycles(spec, in_bytes),
        Stage.MATH: tiles * spec.costs_of(kernel_costs.ComputeCosts).add_tile_cycles,
        Stage.WRITER: share * kernel_costs.write_stick_cycles(spec, out_bytes),
        Stage.DRAM: shared_cycles(spec, moved),
    }
    moving = side_by_side_cycles(spec, stages[Stage.READER], stages[Stage.WRITER])
    return uniform_cycles(
        first_cores(cores, spec.grid.cols, spec.grid.rows),
        max(moving, *stages.values()),
        stages,
        spec,
        dram_read_bytes=op.rows * op.sections * in_bytes,
        dram_written_bytes=op.rows * out_bytes,
    )


def _times(stage: StageCycles, count: int) -> StageCycles:
    """A stage that repeats its work."""
    spent = (stage.busy_cycles, stage.stall_cycles, stage.critical_cycles)
    return StageCycles(stage.stage, *(count * cycles for cycles in spent))


def _steps(
    op: PatchMatmul | PixelMatmul, share: CoreShare, present: float, spec: DeviceSpec
) -> matmul_cycles.MatmulSteps:
    """The steps of a core that has the bandwidth of DRAM for itself: a core's share of everything, block by block."""
    matmul, config, link = op.matmul, op.matmul.config, spec.noc.link_bytes_per_cycle
    blocks = matmul.out_blocks * matmul.k_blocks
    part = FLOAT32 if matmul.problem.in_format == FLOAT32 else BFLOAT16
    zeros_cycles = max(spec.costs_of(kernel_costs.TransferCosts).stateful_issue_cycles, share.stick_bytes / link)
    read = share.sticks * present * kernel_costs.read_stick_cycles(spec, share.stick_bytes)
    first = {Stage.READER: (read + share.sticks * (1 - present) * zeros_cycles) / blocks}
    if matmul.sends[_gathered(op)]:
        first[Stage.ACT_MULTICAST] = matmul_cycles.send_cycles(
            spec, share.tiles * part.tile_bytes / blocks, matmul.receivers[0]
        )
    tilize = {Stage.TILIZE: share.tiles * kernel_costs.tilize_tile_cycles(spec, part, part) / blocks}
    product, between, last = (
        task_of({**tilize, **task.path}, {**tilize, **task.busy}) for task in matmul_cycles.multiply_tasks(matmul, spec)
    )
    untilize_cycles = (
        config.per_core_m * config.per_core_n * kernel_costs.untilize_tile_cycles(spec, config.out_block_w)
    )
    return matmul_cycles.MatmulSteps(
        out_blocks=matmul.out_blocks,
        k_blocks=matmul.k_blocks,
        start=task_of({Stage.START: spec.costs_of(matmul_cycles.MatmulCosts).start_cycles}),
        first=task_of(first),
        second=matmul_cycles.second_task(matmul, spec),
        multiply=(product, between, last),
        finish=task_of({Stage.UNTILIZE: untilize_cycles / matmul.out_blocks}),
        write=task_of(
            {Stage.WRITER: share.rows * kernel_costs.write_stick_cycles(spec, share.row_bytes) / matmul.out_blocks}
        ),
        processors=spec.data_movement.processors,
    )
