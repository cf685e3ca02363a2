"""The buffers of concatenations, in order of allocation.

Source: tt-metal 0.81.1 (data_movement/concat), compared with recorded plans.
"""

from collections.abc import Sequence

from device.cores import CoreRange, CoreRangeSet, first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout
from device.memory.tiles import TILE
from device.numbers.formats import BFLOAT8_B, BFLOAT16
from device.numbers.integers import div_up, round_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanTensor
from ops.programs.actions.pieces import paged_buffer, shard_view, tile_buffer
from ops.programs.actions.work_cores import page_cores

BUFFERING = 2


def shard_views(inputs: Sequence[PlanTensor], made: PlanTensor, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Views of the shards of all inputs and of the result."""
    return tuple(shard_view(f"shards_{number}", tensor, spec) for number, tensor in enumerate([*inputs, made]))


def turned_buffers(inputs: Sequence[PlanTensor], made: PlanTensor, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Of two tensors in tiles of HEIGHT shards: views, and rows of tiles that are turned, joined and turned back.

    bfloat8_b is bfloat16 while it is turned.
    """
    views = shard_views(inputs, made, spec)
    data_format = made.spec.data_format
    turned = BFLOAT16 if data_format == BFLOAT8_B else data_format
    widths = [tensor.spec.shards.shape[1] // TILE for tensor in (*inputs, made)]
    cores = views[0].cores
    rows = [tile_buffer(f"turned_{number}", tiles, turned, cores) for number, tiles in enumerate(widths)]
    return (*views, *rows, tile_buffer("turned_back", widths[-1], data_format, cores))


def page_buffers(inputs: Sequence[TensorSpec], made: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Two pages on their way through each core, on as many cores as there are pages, column by column.

    Pages are aligned as in DRAM if the first tensor or the result lies there.
    """
    rows, columns = made.matrix
    page_bytes = columns * (made.data_format.element_bytes or 0)
    pages = rows
    if made.layout is Layout.TILE:
        page_bytes, pages = made.data_format.tile_bytes, rows * columns // TILE**2
    cores = page_cores(pages, spec.grid)
    in_dram = any(one.memory_config.buffer_type is BufferType.DRAM for one in (inputs[0], made))
    aligned = round_up(page_bytes, (spec.dram if in_dram else spec.l1).alignment_bytes)
    return (paged_buffer("pages", BUFFERING, aligned, made.data_format, cores),)


def ragged_buffers(inputs: Sequence[TensorSpec], made: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Of tiles whose columns end within tiles: a row of tiles is untilized, joined stick by stick and tilized."""
    read = sum(one.matrix[1] // TILE for one in inputs)
    written = made.matrix[1] // TILE
    rows = made.matrix[0] // TILE
    used = div_up(rows, div_up(rows, spec.grid.cores))
    chosen = first_cores(used, spec.grid.cols, spec.grid.rows, row_wise=False)
    cores = CoreRangeSet([CoreRange(core, core) for core in chosen.cores(row_major=False)])
    sizes = {"tiles": BUFFERING * read, "sticks": read, "joined": written, "result": BUFFERING * written}
    return tuple(tile_buffer(name, tiles, made.data_format, cores) for name, tiles in sizes.items())
