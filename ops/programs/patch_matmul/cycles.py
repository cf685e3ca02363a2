"""What the patch programs take: a matmul whose one operand is gathered stick by stick and tilized on the way.

The readers gather and write, the compute threads tilize, multiply and untilize; they walk through the K blocks as those
of a matmul do, every block with its share of a core's sticks, tiles and rows. Every pass gathers its slices anew. Zeros
of a frame are not read from DRAM but filled from the core's own L1.
"""

from dataclasses import dataclass
from math import prod

from device.cores import first_cores
from device.memory.memory_config import TILE
from device.numbers.formats import BFLOAT16, FLOAT32, div_up
from device.spec.device_spec import DeviceSpec
from device.time.engine import task_of
from device.time.network import shared_cycles, side_by_side_cycles
from device.time.stages import CoreGroupCycles, OperationCycles, Stage, StageCycles, binding_stage
from ops.programs.buffer_shapes import uniform_cycles
from ops.programs.kernel_costs import (
    ComputeCosts,
    StickCosts,
    TransferCosts,
    read_stick_cycles,
    tilize_tile_cycles,
    untilize_tile_cycles,
    write_stick_cycles,
)
from ops.programs.matmul.cycles import (
    MatmulCosts,
    MatmulSteps,
    multiply_tasks,
    second_task,
    send_cycles,
    walk_blocks,
    with_shared_dram,
)
from ops.programs.matmul.op import MatmulOp, Place, Places, operands_of
from ops.programs.patch_matmul.op import FillRows, Patches, PatchMatmul, PixelMatmul, SumSections
from ops.window import output_phases


@dataclass(frozen=True, slots=True)
class CoreShare:
    """The work of one core, and the operations of all cores."""

    sticks: float  # Sticks of a core that come from DRAM
    zeros: float  # Sticks that it fills with zeros
    stick_bytes: int
    tiles: int
    sent: int  # Tiles it sends on to other cores
    rows: int
    row_bytes: int
    out_tiles: int
    read_bytes: int  # Gathered by all cores
    written_bytes: int  # Written by all cores


def core_share(op: PatchMatmul | PixelMatmul) -> CoreShare:
    """The work of a core: one operand is gathered by every core for its own part, or by one of those that share it.

    The first operand of a patch matmul is gathered, and the second of a pixel matmul.
    """
    patches, config, problem, passes = op.patches, op.matmul.config, op.matmul.problem, len(op.slicing.passes)
    again, sends, readers = (
        both[0 if isinstance(op, PatchMatmul) else 1] for both in (op.matmul.passes, op.matmul.sends, op.matmul.sharers)
    )
    if isinstance(op, PatchMatmul):
        positions, taps, side = min(config.per_core_m * TILE, patches.rows), patches.tap_count, config.per_core_m
        all_rows, core_rows, columns = patches.rows, positions, op.out_channels // patches.bundles
        itemsize = op.out_format.storage.itemsize
    else:
        positions, side = problem.k_tiles // passes * TILE, config.per_core_n
        taps = min(patches.tap_count, div_up(config.per_core_n * TILE, patches.tap_columns))
        channels, columns = op.channels // patches.bundles, patches.tap_count * patches.channels // patches.bundles
        all_rows, core_rows = op.sections * channels, min(config.per_core_m * TILE, channels)
        itemsize = (op.out_format if op.sections == 1 else FLOAT32).storage.itemsize
    present, tiles = present_share(patches), problem.k_tiles * side * again
    stick_bytes = patches.channels // patches.bundles * op.slicing.part_format.storage.itemsize
    gathered = patches.rows * patches.tap_count * present * again * passes * (1 if sends else readers)
    return CoreShare(
        sticks=positions * again * passes * taps * present,
        zeros=positions * again * passes * taps * (1 - present),
        stick_bytes=stick_bytes,
        tiles=tiles,
        sent=tiles if sends else 0,
        rows=core_rows,
        row_bytes=min(config.per_core_n * TILE, columns) * itemsize,
        out_tiles=config.per_core_m * config.per_core_n,
        read_bytes=round(gathered * stick_bytes),
        written_bytes=all_rows * columns * itemsize,
    )


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
    """Outputs under which a tap that begins at ``start`` lies inside the image."""
    first = max(0, div_up(-start, step))
    return max(0, min(outputs, div_up(size - start, step)) - first)


def product_cycles(op: PatchMatmul | PixelMatmul, spec: DeviceSpec, *, contention: bool = True) -> OperationCycles:
    """Cycles of all bundles of a program in sequence; with `contention` the cores share the bandwidth of DRAM."""
    matmul, share, patches = op.matmul, core_share(op), op.patches
    operands = operands_of(matmul, Places(first=Place.OWN, output=Place.OWN))
    steps = _steps(matmul, share, spec)
    free = timing = walk_blocks("patch_matmul", steps)
    if contention:
        moved = share.read_bytes, operands.second_read_bytes, share.written_bytes
        left_over = spec.costs_of(StickCosts).dram_stick_share  # by gathering sticks
        timing = walk_blocks("patch_matmul", with_shared_dram(steps, spec, *moved, left_over))
    bundles, start_cycles = patches.bundles, steps.start.cycles
    stages = tuple(stage if stage.stage is Stage.START else _times(stage, bundles) for stage in timing.stages)
    cycles = start_cycles + bundles * (timing.cycles - start_cycles)
    used = first_cores(matmul.cores, matmul.config.grid.cols, matmul.config.grid.rows)
    others = op.out_channels if isinstance(op, PatchMatmul) else op.channels
    met = patches.rows * patches.tap_count * present_share(patches)
    return OperationCycles(
        cycles=cycles,
        groups=(CoreGroupCycles(cores=used, cycles=cycles, stages=stages),),
        bound_by=binding_stage(stage for stage in stages if stage.stage is not Stage.START),
        dram_read_bytes=bundles * (operands.second_read_bytes + share.read_bytes),
        dram_written_bytes=bundles * share.written_bytes,
        network_bytes=bundles * (operands.sent_bytes + share.read_bytes + share.written_bytes),
        issued_flops=bundles * matmul.issued_flops,
        # Multiplications and additions of the definition, without padding, inserted zeros and further passes.
        useful_flops=round(2 * met * patches.channels * others / patches.groups),
        contention_cycles=bundles * max(0.0, timing.cycles - free.cycles),
    )


def fill_rows_cycles(op: FillRows, spec: DeviceSpec, *, contention: bool = True) -> OperationCycles:
    """Cycles of a program whose cores write rows from a stick of their own; arguments as of `product_cycles`."""
    rows, row_bytes = (
        op.batch * prod(axis.outputs for axis in op.axes),
        op.out_channels * op.out_format.storage.itemsize,
    )
    cores, costs = min(rows, spec.grid.cores), spec.costs_of(StickCosts)
    write = div_up(rows, cores) * write_stick_cycles(spec, row_bytes)
    dram = shared_cycles(spec, rows * row_bytes, costs.dram_write_share) if contention else 0.0
    return uniform_cycles(
        first_cores(cores, spec.grid.cols, spec.grid.rows),
        max(write, dram),
        {Stage.WRITER: write, Stage.DRAM: dram},
        spec,
        dram_written_bytes=rows * row_bytes,
        contention_cycles=max(0.0, dram - write),
    )


def sum_sections_cycles(op: SumSections, spec: DeviceSpec, *, contention: bool = True) -> OperationCycles:
    """Cycles of a program that reads rows of all bands, adds and writes them; arguments as of `product_cycles`."""
    cores = min(op.rows, spec.grid.cores)
    share = div_up(op.rows, cores)
    in_bytes, out_bytes = (op.columns * data_format.storage.itemsize for data_format in (FLOAT32, op.out_format))
    read = read_stick_cycles(spec, in_bytes)
    write = write_stick_cycles(spec, out_bytes)
    moved = op.rows * (op.sections * in_bytes + out_bytes)
    tiles = div_up(share, TILE) * div_up(op.columns, TILE) * op.sections
    stages = {
        Stage.READER: share * op.sections * read,
        Stage.MATH: tiles * spec.costs_of(ComputeCosts).add_tile_cycles,
        Stage.WRITER: share * write,
        Stage.DRAM: shared_cycles(spec, moved) if contention else 0.0,
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
    return StageCycles(
        stage.stage, count * stage.busy_cycles, count * stage.stall_cycles, count * stage.critical_cycles
    )


def _steps(matmul: MatmulOp, gather: CoreShare, spec: DeviceSpec) -> MatmulSteps:
    """The steps of a core that has the bandwidth of DRAM for itself: a core's share of everything, block by block."""
    link, outs, depth = spec.noc.link_bytes_per_cycle, matmul.out_blocks, matmul.k_blocks
    blocks = outs * depth
    part = FLOAT32 if matmul.problem.in_format == FLOAT32 else BFLOAT16
    stick_cycles = read_stick_cycles(spec, gather.stick_bytes)
    zeros_cycles = max(spec.costs_of(TransferCosts).stateful_issue_cycles, gather.stick_bytes / link)
    first = {Stage.READER: (gather.sticks * stick_cycles + gather.zeros * zeros_cycles) / blocks}
    if gather.sent:
        first[Stage.ACT_MULTICAST] = send_cycles(spec, gather.sent * part.tile_bytes / blocks, matmul.receivers[0])
    tilize = {Stage.TILIZE: gather.tiles * tilize_tile_cycles(spec, part, part) / blocks}
    product, between, last = (
        task_of({**tilize, **task.path}, {**tilize, **task.busy}) for task in multiply_tasks(matmul, spec)
    )
    untilize_cycles = untilize_tile_cycles(spec, matmul.config.out_block_w)
    write_cycles = write_stick_cycles(spec, gather.row_bytes)
    return MatmulSteps(
        out_blocks=outs,
        k_blocks=depth,
        start=task_of({Stage.START: spec.costs_of(MatmulCosts).start_cycles}),
        first=task_of(first),
        second=second_task(matmul, spec),
        multiply=(product, between, last),
        finish=task_of({Stage.UNTILIZE: gather.out_tiles * untilize_cycles / outs}),
        write=task_of({Stage.WRITER: gather.rows * write_cycles / outs}),
        processors=spec.data_movement.processors,
    )
