"""Programs that move rows of tiles into other tiles, a line of a face at a time: their cycles.

Source: tt-metal 0.81.1 (data_movement/transpose and permute: the writers of tiles whose rows go elsewhere).
"""

from math import ceil, prod
from typing import Final

from device.cores import first_cores
from device.memory.memory_config import FACE, TILE
from device.numbers.formats import div_up
from device.spec.device_spec import DeviceSpec
from device.spec.releases import release_of
from device.time.stages import Stage
from ops.op_model import Ends
from ops.programs.buffer_shapes import in_dram, pipelined_cycles, volume_tiles
from ops.programs.data_movement.movement import Composed
from ops.programs.kernel_costs import (
    StickCosts,
    TransferCosts,
    burst_cycles,
    read_page_cycles,
    waited_read_cycles,
    write_latency_cycles,
)

Shape = tuple[int, ...]

# A program of its own, compiled for its shape, writes padding a face at a time (earlier releases: line by line). Others
# write it line by line, and take steps along the axes to find the place of a tile, or of a tile of padding
HEIGHT_SWAPPED: Final = (0, 2, 1, 3)


def composed_by_lines(shape: Shape, axes: Shape, ends: Ends, spec: DeviceSpec) -> Composed:
    """Tiles are read one by one; the rows of each tile are written by lines of faces, and awaited once."""
    height, width = shape[-2:]
    images, across = prod(shape[:-2]), div_up(width, TILE)
    tiles, line_faces = images * div_up(height, TILE) * across, TILE // FACE
    used = min(tiles, spec.grid.cores)
    line_bytes = FACE * (ends.read.data_format.element_bytes or 1)
    count, lines = div_up(tiles, used), line_faces * height / div_up(height, TILE)
    tile_bytes = ends.read.data_format.tile_bytes
    read = waited_read_cycles(spec, tile_bytes, in_dram=in_dram(ends.read), readers=used)
    answered = write_latency_cycles(spec, in_dram=in_dram(ends.written))
    costs, issue = spec.costs_of(TransferCosts), spec.costs_of(StickCosts).stick_write_cycles
    written = burst_cycles(issue, ceil(lines), line_bytes, answered, spec.noc.link_bytes_per_cycle)
    if axes != HEIGHT_SWAPPED:
        # A place is divided by every axis, then multiplied by all but the last, where it was and where it goes
        written += (3 * len(shape) - 2) * costs.axis_cycles
    filled = _padding_cycles(tuple(shape[axis] for axis in axes), line_bytes, spec, places=axes != HEIGHT_SWAPPED)
    filled += answered if filled else 0.0
    texts = "tiles are read, each waited for", "rows of faces are written where they belong, and padding below them"
    stages = zip((Stage.READER, Stage.WRITER), (count * read, count * written + filled), texts, strict=True)
    return Composed(
        cores=first_cores(used, spec.grid.cols, spec.grid.rows),
        body_cycles=costs.locate_cycles + pipelined_cycles((read, written), count) + filled,
        stages={stage: (cycles, text) for stage, cycles, text in stages},
        steps="reading tiles, and writing rows into tiles",
        dram_read_bytes=tiles * tile_bytes * in_dram(ends.read),
        dram_written_bytes=volume_tiles(ends.written) * tile_bytes * in_dram(ends.written),
    )


def _padding_cycles(shape: Shape, line_bytes: int, spec: DeviceSpec, *, places: bool) -> float:
    """Cycles of the core with most padding to write padding below the images of a result.

    Programs that compute tile positions by axes write it by lines, other programs by lines of a face or, in earlier
    releases, by lines. The bank of a page is computed for each part of a face, or once for all lines of a face.
    """
    costs, lines, faces_across = spec.costs_of(TransferCosts), -shape[-2] % TILE, TILE // FACE
    tiles = div_up(prod(shape[:-2]) * div_up(shape[-1], TILE) * (lines > 0), spec.grid.cores)
    if not places and not release_of(spec.release).pads_by_lines:
        part = read_page_cycles(spec, min(lines, FACE) * line_bytes)
        return tiles * faces_across * div_up(lines, FACE) * part
    line = max(costs.read_issue_cycles, line_bytes / spec.noc.link_bytes_per_cycle)
    return tiles * (faces_across * lines * line + places * (2 * len(shape) - 1) * costs.axis_cycles)
