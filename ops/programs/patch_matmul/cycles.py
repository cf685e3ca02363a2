"""What the patch programs take: a matmul whose one operand is gathered stick by stick and tilized on the way.

The readers gather and write, the compute threads tilize, multiply and untilize, in turn; both sides run side by side,
block by block, as far as the matmul's constants say. Every pass gathers its slices anew. Zeros of
a frame are not read from DRAM but filled from the core's own L1.
"""

from dataclasses import dataclass
from math import prod

from device.cores import CoreRangeSet, first_cores
from device.memory.tiles import TILE
from device.numbers.formats import BFLOAT16, FLOAT32, DataFormat
from device.numbers.integers import div_up
from device.spec.device_spec import DeviceSpec
from device.time.dram import shared_cycles
from device.time.stages import CoreGroupCycles, OperationCycles, Stage, StageCycles, binding_stage
from ops.frame.output_phases import output_phases
from ops.programs.actions.costs import CoreCosts, StickCosts, UntilizeCosts
from ops.programs.matmul.config import MatmulProgram, MatmulWork
from ops.programs.matmul.costs import MatmulCosts
from ops.programs.matmul.cycles import matmul_cycles
from ops.programs.patch_matmul.work import FillRows, Patches, PatchMatmul, PixelMatmul, SumSections

NARROW_TILES = 8  # rows of up to so many tiles are untilized by the packer


@dataclass(frozen=True, slots=True)
class _Gather:
    """What one core gathers and writes, and what all cores do.

    Attributes:
        sticks: Sticks of a core that come from DRAM.
        zeros: Sticks that it fills with zeros.
        stick_bytes: Of either.
        tiles: Tiles it tilizes.
        sent: Tiles it sends on to other cores.
        rows: Rows it writes.
        row_bytes: Of each.
        out_tiles: Tiles it untilizes.
        read_bytes: Gathered by all cores.
        written_bytes: Written by all cores.
    """

    sticks: float
    zeros: float
    stick_bytes: int
    tiles: int
    sent: int
    rows: int
    row_bytes: int
    out_tiles: int
    read_bytes: int
    written_bytes: int


def patch_matmul_cycles(work: PatchMatmul, spec: DeviceSpec, *, contention: bool = True) -> OperationCycles:
    """Cycles of a patch matmul.

    Args:
        work: The program.
        spec: The machine.
        contention: Whether the cores share the bandwidth of DRAM.
    """
    return _program(work.matmul, _patches(work), work.patches, spec, _useful(work), contention=contention)


def pixel_matmul_cycles(work: PixelMatmul, spec: DeviceSpec, *, contention: bool = True) -> OperationCycles:
    """Cycles of a pixel matmul; arguments as of `patch_matmul_cycles`."""
    return _program(work.matmul, _pixels(work), work.patches, spec, _useful(work), contention=contention)


def fill_rows_cycles(work: FillRows, spec: DeviceSpec, *, contention: bool = True) -> OperationCycles:
    """Cycles of a program that fills rows; arguments as of `patch_matmul_cycles`."""
    rows = work.batch * prod(axis.outputs for axis in work.axes)
    return _written(rows, work.out_channels * work.out_format.storage.itemsize, spec, contention=contention)


def sum_sections_cycles(work: SumSections, spec: DeviceSpec, *, contention: bool = True) -> OperationCycles:
    """Cycles of a program that reads rows of all bands, adds and writes them; arguments as of `patch_matmul_cycles`."""
    cores, costs = min(work.rows, spec.grid.cores), spec.costs_of(StickCosts)
    share = div_up(work.rows, cores)
    in_bytes, out_bytes = (work.columns * one.storage.itemsize for one in (FLOAT32, work.out_format))
    read = costs.stick_read_cycles + in_bytes / costs.stick_read_bytes_per_cycle
    write = max(costs.stick_write_cycles, out_bytes / spec.noc.link_bytes_per_cycle)
    moved = work.rows * (work.sections * in_bytes + out_bytes)
    tiles = div_up(share, TILE) * div_up(work.columns, TILE) * work.sections
    stages = {
        Stage.READER: share * work.sections * read,
        Stage.MATH: tiles * spec.costs_of(CoreCosts).bias_tile_cycles,
        Stage.WRITER: share * write,
        Stage.DRAM: shared_cycles(spec.dram, moved) if contention else 0.0,
    }
    return _operation(
        stages,
        costs.start_cycles + max(stages.values()),
        costs.start_cycles,
        _grid_cores(cores, spec),
        read_bytes=work.rows * work.sections * in_bytes,
        written_bytes=work.rows * out_bytes,
    )


def _patches(work: PatchMatmul) -> _Gather:
    """The first operand is gathered: by every core for its own rows, or by one core of each row of cores."""
    patches, config, passes = work.patches, work.matmul.config, len(work.slicing.passes)
    again = div_up(config.per_core_n, config.out_block_w) * passes
    sends = config.program in (MatmulProgram.MCAST_2D, MatmulProgram.MCAST_IN0)
    readers = 1 if sends else div_up(work.matmul.problem.n_tiles, config.per_core_n)
    rows = min(config.per_core_m * TILE, patches.rows)
    stick_bytes = _stick_bytes(patches, work.slicing.part_format)
    present = _present(patches)
    tiles = config.per_core_m * work.matmul.problem.k_tiles * div_up(config.per_core_n, config.out_block_w)
    columns = min(config.per_core_n * TILE, work.out_channels // patches.bundles)
    itemsize = work.out_format.storage.itemsize
    return _Gather(
        sticks=rows * again * patches.tap_count * present,
        zeros=rows * again * patches.tap_count * (1 - present),
        stick_bytes=stick_bytes,
        tiles=tiles,
        sent=tiles if sends else 0,
        rows=rows,
        row_bytes=columns * itemsize,
        out_tiles=config.per_core_m * config.per_core_n,
        read_bytes=round(patches.rows * patches.tap_count * present * again * readers * stick_bytes),
        written_bytes=patches.rows * work.out_channels // patches.bundles * itemsize,
    )


def _pixels(work: PixelMatmul) -> _Gather:
    """The second operand is gathered: by every core for its own columns, or by one core of each column of cores."""
    patches, config, passes = work.patches, work.matmul.config, len(work.slicing.passes)
    problem = work.matmul.problem
    again = div_up(config.per_core_m, config.out_block_h) * passes
    sends = config.program in (MatmulProgram.MCAST_2D, MatmulProgram.MCAST_IN1)
    readers = 1 if sends else div_up(problem.m_tiles, config.per_core_m)
    pixels = problem.k_tiles // passes * TILE
    taps = min(patches.tap_count, div_up(config.per_core_n * TILE, patches.tap_columns))
    tiles = problem.k_tiles * config.per_core_n * div_up(config.per_core_m, config.out_block_h)
    stick_bytes = _stick_bytes(patches, work.slicing.part_format)
    present = _present(patches)
    itemsize = (work.out_format if work.sections == 1 else FLOAT32).storage.itemsize
    rows = min(config.per_core_m * TILE, work.channels // patches.bundles)
    columns = patches.tap_count * patches.channels // patches.bundles
    return _Gather(
        sticks=pixels * again * taps * present,
        zeros=pixels * again * taps * (1 - present),
        stick_bytes=stick_bytes,
        tiles=tiles,
        sent=tiles if sends else 0,
        rows=rows,
        row_bytes=min(config.per_core_n * TILE, columns) * itemsize,
        out_tiles=config.per_core_m * config.per_core_n,
        read_bytes=round(patches.rows * patches.tap_count * present * again * readers * stick_bytes),
        written_bytes=work.sections * work.channels // patches.bundles * columns * itemsize,
    )


def _stick_bytes(patches: Patches, data_format: DataFormat) -> int:
    """One slice of one tap of one bundle."""
    return patches.channels // patches.bundles * data_format.storage.itemsize


def _present(patches: Patches) -> float:
    """The part of all taps of all patches that meets the image."""
    share = 1.0
    for axis in patches.axes:
        met = sum(
            _met(start, phase.axis.step, phase.axis.outputs, axis.input_length)
            for phase in output_phases(axis)
            for start in phase.starts
        )
        share *= met / (axis.outputs * axis.taps)
    return share


def _met(start: int, step: int, outputs: int, size: int) -> int:
    """Outputs under which a tap that begins at ``start`` lies inside the image."""
    first = max(0, div_up(-start, step))
    return max(0, min(outputs, div_up(size - start, step)) - first)


def _useful(work: PatchMatmul | PixelMatmul) -> int:
    """Multiplications and additions of the definition: neither padding nor zeros nor passes."""
    patches = work.patches
    others = work.out_channels if isinstance(work, PatchMatmul) else work.channels
    met = patches.rows * patches.tap_count * _present(patches)
    return round(2 * met * patches.channels * others / patches.groups)


def _program(
    matmul: MatmulWork, gather: _Gather, patches: Patches, spec: DeviceSpec, useful_flops: int, *, contention: bool
) -> OperationCycles:
    """All bundles of a program, one after the other."""
    costs, link = spec.costs_of(MatmulCosts), spec.noc.link_bytes_per_cycle
    core, sticks, untilize = spec.costs_of(CoreCosts), spec.costs_of(StickCosts), spec.costs_of(UntilizeCosts)
    whole = matmul_cycles(matmul, spec, in_sharded=True, out_sharded=True, contention=False)
    by_stage = {one.stage: one.busy_cycles for one in whole.slowest.stages}
    part = FLOAT32 if matmul.problem.in_format == FLOAT32 else BFLOAT16
    tile_cycles = core.tilize_factor * spec.reader.tilize_cycles(part.name, part.name, fp32_dest=True)
    narrow = matmul.config.out_block_w <= NARROW_TILES
    untilize_cycles = untilize.untilize_narrow_tile_cycles if narrow else untilize.untilize_wide_tile_cycles
    read = gather.sticks * max(
        sticks.stick_read_cycles, gather.stick_bytes / sticks.stick_read_bytes_per_cycle
    ) + gather.zeros * max(core.read_issue_cycles, gather.stick_bytes / link)
    stages = {
        Stage.READER: read,
        Stage.ACT_MULTICAST: gather.sent * part.tile_bytes / costs.multicast_bytes_per_cycle,
        Stage.TILIZE: gather.tiles * tile_cycles,
        Stage.WEIGHT_READER: by_stage.get(Stage.WEIGHT_READER, 0.0),
        Stage.NETWORK: by_stage.get(Stage.NETWORK, 0.0),
        Stage.MATH: by_stage.get(Stage.MATH, 0.0),
        Stage.UNPACK: by_stage.get(Stage.UNPACK, 0.0),
        Stage.UNTILIZE: gather.out_tiles * untilize_cycles,
        Stage.WRITER: gather.rows * max(sticks.stick_write_cycles, gather.row_bytes / link),
    }
    moved = whole.dram_read_bytes + gather.read_bytes + gather.written_bytes
    stages[Stage.DRAM] = shared_cycles(spec.dram, moved, sticks.dram_stick_share) if contention else 0.0
    compute = stages[Stage.TILIZE] + max(stages[Stage.MATH], stages[Stage.UNPACK]) + stages[Stage.UNTILIZE]
    readers = stages[Stage.READER] + stages[Stage.ACT_MULTICAST] + stages[Stage.NETWORK]
    free = _overlapped(compute, max(readers, stages[Stage.WEIGHT_READER] + stages[Stage.WRITER]), costs.overlap_power)
    body = _overlapped(
        compute,
        max(readers, stages[Stage.WEIGHT_READER] + stages[Stage.WRITER], stages[Stage.DRAM]),
        costs.overlap_power,
    )
    bundles = patches.bundles
    return _operation(
        {stage: bundles * cycles for stage, cycles in stages.items()},
        costs.start_cycles + bundles * body,
        costs.start_cycles,
        whole.slowest.cores,
        read_bytes=bundles * (whole.dram_read_bytes + gather.read_bytes),
        written_bytes=bundles * gather.written_bytes,
        network_bytes=bundles * (whole.network_bytes + gather.read_bytes + gather.written_bytes),
        issued_flops=bundles * whole.issued_flops,
        useful_flops=useful_flops,
        contention_cycles=bundles * (body - free),
    )


def _overlapped(compute: float, moving: float, power: float) -> float:
    """Cycles of two things that overlap."""
    larger = max(compute, moving)
    body: float = larger * ((compute / larger) ** power + (moving / larger) ** power) ** (1 / power)
    return body


def _written(rows: int, row_bytes: int, spec: DeviceSpec, *, contention: bool) -> OperationCycles:
    """Rows that every core writes from a stick of its own."""
    cores, costs = min(rows, spec.grid.cores), spec.costs_of(StickCosts)
    write = div_up(rows, cores) * max(costs.stick_write_cycles, row_bytes / spec.noc.link_bytes_per_cycle)
    dram = shared_cycles(spec.dram, rows * row_bytes, costs.dram_write_share) if contention else 0.0
    return _operation(
        {Stage.WRITER: write, Stage.DRAM: dram},
        costs.start_cycles + max(write, dram),
        costs.start_cycles,
        _grid_cores(cores, spec),
        written_bytes=rows * row_bytes,
        contention_cycles=max(0.0, dram - write),
    )


def _grid_cores(count: int, spec: DeviceSpec) -> CoreRangeSet:
    return first_cores(count, spec.grid.cols, spec.grid.rows)


def _operation(
    stages: dict[Stage, float],
    cycles: float,
    start_cycles: float,
    cores: CoreRangeSet,
    *,
    read_bytes: int = 0,
    written_bytes: int = 0,
    network_bytes: int = 0,
    issued_flops: int = 0,
    useful_flops: int = 0,
    contention_cycles: float = 0.0,
) -> OperationCycles:
    shown = tuple(StageCycles(stage, busy) for stage, busy in stages.items() if busy)
    return OperationCycles(
        cycles=cycles,
        groups=(CoreGroupCycles(cores=cores, cycles=cycles, stages=(StageCycles(Stage.START, start_cycles), *shown)),),
        bound_by=binding_stage(shown),
        dram_read_bytes=read_bytes,
        dram_written_bytes=written_bytes,
        network_bytes=network_bytes,
        issued_flops=issued_flops,
        useful_flops=useful_flops,
        contention_cycles=contention_cycles,
    )
