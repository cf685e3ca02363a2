"""The buffers of the programs that copy pages one by one: Copy, Clone, and Move of a tensor that is not sharded.

Source: tt-metal 0.81.1 (data_movement/copy, data_movement/move), compared with recorded plans.
"""

from math import prod

from device.cores import CoreRangeSet, first_cores
from device.memory.layouts import BufferSpec, TensorSpec, aligned_page_bytes
from device.memory.memory_config import TILE, Layout
from device.numbers.block_floats import div_up, round_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.programs.buffer_shapes import page_cores, paged_buffer, scratchpad

BUFFERING = 2
MOST_BYTES = 1 << 18  # of a row that is copied at once


def copy_buffers(source: TensorSpec, made: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Dataflow buffers of Copy: two pages on their way through each core, and two of the other format if there is one.

    Rows whose place is another are put together from pages of the source, one at a time.
    """
    read, written = source.buffer(spec), made.buffer(spec)
    if source.layout is Layout.ROW_MAJOR and source.memory_config != made.memory_config:
        cores = page_cores(source.volume // source.shape[-1], spec.grid)
        page_bytes = min(_aligned(written, spec), MOST_BYTES)
        return (
            paged_buffer("written", BUFFERING, page_bytes, made.data_format, cores),
            scratchpad("read", min(read.page_bytes, MOST_BYTES), source.data_format, cores),
        )
    cores = page_cores(_pages(made), spec.grid)
    pages = paged_buffer("read", BUFFERING, _aligned(read, spec), source.data_format, cores)
    if source.data_format == made.data_format:
        return (pages,)
    return pages, paged_buffer("written", BUFFERING, _aligned(written, spec), made.data_format, cores)


def clone_buffers(source: TensorSpec, made: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Dataflow buffers of Clone: two pages on their way through each core."""
    page_bytes = _aligned(source.buffer(spec), spec)
    return (paged_buffer("pages", BUFFERING, page_bytes, source.data_format, page_cores(_pages(made), spec.grid)),)


def moved_buffers(source: TensorSpec, made: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Circular buffers of Move: two pages on their way through each core."""
    page_bytes = _aligned(source.buffer(spec), spec)
    return (paged_buffer("pages", BUFFERING, page_bytes, source.data_format, _moving_cores(made, spec)),)


def overlapping_buffers(source: TensorSpec, made: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """The same where both places overlap: all pages of a core, which are read before the first is written."""
    written = made.buffer(spec)
    held = div_up(written.size_bytes // written.page_bytes, spec.grid.cores)
    size = held * round_up(written.page_bytes, spec.l1.alignment_bytes)
    page_bytes = round_up(source.buffer(spec).page_bytes, spec.l1.alignment_bytes)
    return (
        CircularBuffer(
            name="pages",
            size_bytes=size,
            page_bytes=page_bytes,
            data_format=source.data_format,
            cores=_moving_cores(made, spec),
        ),
    )


def _moving_cores(made: TensorSpec, spec: DeviceSpec) -> CoreRangeSet:
    used = min(_pages(made), spec.grid.cores)
    return first_cores(used, spec.grid.cols, spec.grid.rows, row_wise=False)


def _pages(tensor: TensorSpec) -> int:
    """Tiles, or rows."""
    rows, columns = tensor.matrix
    return rows * columns // TILE**2 if tensor.layout is Layout.TILE else prod(tensor.padded_shape[:-1])


def _aligned(buffer: BufferSpec, spec: DeviceSpec) -> int:
    return aligned_page_bytes(buffer.page_bytes, buffer.buffer_type, spec)
