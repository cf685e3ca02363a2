"""The dataflow buffers of programs that repeat pixels, in order of allocation.

Source: tt-metal 0.81.1 (pool/upsample), compared with recorded plans.
"""

from device.memory.layouts import TensorSpec, aligned_page_bytes
from device.memory.memory_config import Layout
from device.memory.tiles import TILE
from device.numbers.formats import UINT16
from device.numbers.integers import round_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanTensor
from ops.programs.actions.pieces import buffer, paged_buffer, row_bytes
from ops.programs.actions.work_cores import page_cores

BUFFERING = 2
PAGES_IN_FLIGHT = 4  # pages of the result on their way through a core


def interleaved_buffers(source: TensorSpec, made: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Of a source that is not sharded: two sticks or rows of tiles, or one where no core has more."""
    rows, columns = source.matrix
    if source.layout is Layout.TILE:
        units, pages = rows // TILE, columns // TILE
        page_bytes = {"tiles": source.data_format.tile_bytes, "sticks": made.data_format.tile_bytes}
    else:
        units, pages = rows, 1
        stick_bytes = columns * (source.data_format.element_bytes or 0)
        page_bytes = {"sticks": round_up(stick_bytes, spec.dram.alignment_bytes)}
    if units > spec.grid.cores:
        pages *= BUFFERING
    cores = page_cores(units, spec.grid)
    formats = {"tiles": source.data_format, "sticks": made.data_format}
    return tuple(paged_buffer(name, pages, size, formats[name], cores) for name, size in page_bytes.items())


def page_buffers(made: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Of a program that reads every page of the result where it comes from."""
    pages = made.buffer(spec)
    page_bytes = aligned_page_bytes(pages.page_bytes, pages.buffer_type, spec)
    cores = page_cores(pages.size_bytes // pages.page_bytes, spec.grid)
    return (paged_buffer("pages", PAGES_IN_FLIGHT, page_bytes, made.data_format, cores),)


def shard_buffers(
    source: PlanTensor, made: PlanTensor, lists: PlanTensor, stick_bytes: int, spec: DeviceSpec
) -> tuple[CircularBuffer, ...]:
    """Of shards: views of both and of the lists of sticks, on the cores that have lists.

    Args:
        source: What is read.
        lists: A row of words for every core.
        stick_bytes: Bytes of a core's part of a pixel.
    """
    page_bytes, cores = round_up(stick_bytes, spec.l1.alignment_bytes), lists.spec.shards.grid
    views = [
        paged_buffer(name, one.spec.shards.shape[0], page_bytes, one.spec.data_format, cores, one.name)
        for name, one in (("source", source), ("result", made))
    ]
    return (*views, buffer("lists", row_bytes(lists.spec), UINT16, cores, lists.name))
