"""What a core of a patch program gathers, tilizes and writes, in numbers of sticks, tiles and rows: no cycle yet."""

from dataclasses import dataclass

from device.memory.memory_config import TILE
from device.numbers.block_floats import div_up
from device.numbers.formats import FLOAT32, DataFormat
from ops.programs.matmul.op import MatmulProgram
from ops.programs.patch_matmul.work import Patches, PatchMatmul, PixelMatmul
from ops.window import output_phases


@dataclass(frozen=True, slots=True)
class CoreShare:
    """What one core gathers and writes, and what all cores do."""

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


def patch_share(work: PatchMatmul) -> CoreShare:
    """The first operand is gathered: by every core for its own rows, or by one core of each row of cores."""
    patches, config, passes = work.patches, work.matmul.config, len(work.slicing.passes)
    again = div_up(config.per_core_n, config.out_block_w) * passes
    sends = config.program in (MatmulProgram.MCAST_2D, MatmulProgram.MCAST_IN0)
    readers = 1 if sends else div_up(work.matmul.problem.n_tiles, config.per_core_n)
    rows = min(config.per_core_m * TILE, patches.rows)
    stick_bytes = _stick_bytes(patches, work.slicing.part_format)
    present = present_share(patches)
    tiles = config.per_core_m * work.matmul.problem.k_tiles * div_up(config.per_core_n, config.out_block_w)
    columns = min(config.per_core_n * TILE, work.out_channels // patches.bundles)
    itemsize = work.out_format.storage.itemsize
    return CoreShare(
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


def pixel_share(work: PixelMatmul) -> CoreShare:
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
    present = present_share(patches)
    itemsize = (work.out_format if work.sections == 1 else FLOAT32).storage.itemsize
    rows = min(config.per_core_m * TILE, work.channels // patches.bundles)
    columns = patches.tap_count * patches.channels // patches.bundles
    return CoreShare(
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
