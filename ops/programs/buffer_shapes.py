"""Work that is shared between cores: pieces of a buffer, cores that work, cores that do the same."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import prod

from device.cores import CoreRangeSet, cores_from, first_cores
from device.errors import DeviceError, NotSimulatedError
from device.memory.layouts import TensorSpec, aligned_page_bytes
from device.memory.memory_config import (
    TILE,
    BufferType,
    Layout,
    MemoryConfig,
    ShardOrientation,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import DataFormat, div_up, round_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from device.spec.parts import GridSpec
from device.time.stages import (
    CoreGroupCycles,
    OperationCycles,
    Stage,
    StageCycles,
    TileWork,
    Transfer,
    binding_stage,
)
from ops.builder import PlanTensor
from ops.programs.kernel_costs import StickCosts

BUFFERING = 2  # pages on their way through a core
STICKS = 4  # of the scratchpad in which sticks are aligned
ONLY_L1 = "Only L1 buffers can have an associated circular buffer!"


def buffer(
    name: str, size_bytes: int, data_format: DataFormat, cores: CoreRangeSet, view_of: str | None = None
) -> CircularBuffer:
    """A buffer of one page."""
    return paged_buffer(name, 1, size_bytes, data_format, cores, view_of)


def tile_buffer(
    name: str, tiles: int, data_format: DataFormat, cores: CoreRangeSet, view_of: str | None = None
) -> CircularBuffer:
    """A buffer of tiles, each of them a page."""
    return paged_buffer(name, tiles, data_format.tile_bytes, data_format, cores, view_of)


def paged_buffer(
    name: str, pages: int, page_bytes: int, data_format: DataFormat, cores: CoreRangeSet, view_of: str | None = None
) -> CircularBuffer:
    """A buffer of pages on each of its cores; ``view_of`` is the tensor whose shards hold the buffer, if any."""
    return CircularBuffer(name, pages * page_bytes, page_bytes, data_format, cores, view_of)


def sized_buffers(sizes: Mapping[str, int], data_format: DataFormat, cores: CoreRangeSet) -> tuple[CircularBuffer, ...]:
    """Buffers of one page each, by their bytes."""
    return tuple(buffer(name, size, data_format, cores) for name, size in sizes.items())


def scratchpad(name: str, size_bytes: int, data_format: DataFormat, cores: CoreRangeSet) -> CircularBuffer:
    """A scratchpad of a program's own."""
    return buffer(name, size_bytes, data_format, cores)._replace(scratchpad=True)


def view_refusal(size_bytes: int, bank_bytes: int) -> str | None:
    """The library's error text for a circular buffer on a tensor that has fewer bytes in a bank; None if it fits."""
    if size_bytes <= bank_bytes:
        return None
    return (
        f"Cannot set circular buffer size to {size_bytes}. This is larger than the associated dynamically allocated L1 "
        f"buffer bank size of {bank_bytes} B"
    )


def views_refusal(
    buffers: Iterable[CircularBuffer], tensors: Iterable[PlanTensor], spec: DeviceSpec, hint: str
) -> str | None:
    """The real library's error text for the first buffer on a tensor in DRAM, or for too few bytes; None if all fit."""
    named = {tensor.name: tensor.spec for tensor in tensors}
    for buffer_ in buffers:
        tensor = None if buffer_.view_of is None else named.get(buffer_.view_of)
        if tensor is None:
            continue
        text: str | None = ONLY_L1
        if tensor.memory_config.buffer_type is BufferType.L1:
            text = view_refusal(buffer_.size_bytes, tensor.buffer(spec).bank_bytes)
        if text:
            return f"{text}\n{hint}"
    return None


def association_refusal(tensors: Iterable[PlanTensor]) -> str | None:
    """The library's error text for the first tensor in DRAM that has a circular buffer; None if there is none."""
    refused = (f"{ONLY_L1}\n{tensor.name}: give its shards in L1" for tensor in tensors if in_dram(tensor.spec))
    return next(refused, None)


def borrowing_refusal(borrowed: Iterable[tuple[str, str, PlanTensor]]) -> str | None:
    """The real library's error text for the first dataflow buffer that borrows shards in DRAM; None if none does.

    ``borrowed`` are the library's names of each buffer and of its tensor, and the tensor, in the library's order.
    """
    refused = (
        f"{not_in_l1(buffer_name, tensor_name)}\n{tensor.name}: give its shards in L1"
        for buffer_name, tensor_name, tensor in borrowed
        if tensor.spec.memory_config.is_sharded() and in_dram(tensor.spec)
    )
    return next(refused, None)


def shard_view(name: str, tensor: PlanTensor, spec: DeviceSpec, cores: CoreRangeSet | None = None) -> CircularBuffer:
    """A buffer on the shards of a tensor, on their cores or on others."""
    place, data_format, shards = tensor.spec.memory_config, tensor.spec.data_format, tensor.spec.shards
    if tensor.spec.layout is Layout.TILE:
        size = shards.shape[0] * shards.shape[1] // TILE**2 * data_format.tile_bytes
    else:
        size = shards.shape[0] * aligned_page_bytes(row_bytes(tensor.spec, shards.shape[1]), place.buffer_type, spec)
    return buffer(name, size, data_format, shards.grid if cores is None else cores, tensor.name)


def paged_view(name: str, tensor: PlanTensor, spec: DeviceSpec, cores: CoreRangeSet | None = None) -> CircularBuffer:
    """A buffer on the shards of a tensor, with as many pages as the shards."""
    shards, data_format = tensor.spec.shards, tensor.spec.data_format
    page_bytes, size = data_format.tile_bytes, prod(shards.shape) * data_format.tile_bytes // TILE**2
    if tensor.spec.layout is Layout.ROW_MAJOR:
        page_bytes = row_bytes(tensor.spec, shards.shape[1])
        size = shards.shape[0] * round_up(page_bytes, spec.l1.alignment_bytes)
    view = buffer(name, size, data_format, shards.grid if cores is None else cores, tensor.name)
    return view._replace(page_bytes=page_bytes)


def shard_buffers(read: PlanTensor, written: PlanTensor, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Buffers of the programs that copy between shards and interleaved memory or other shards.

    A view of the shards, and the same number of tiles of another format if there is one; a scratchpad aligns sticks
    that are copied into shards, and HEIGHT shards of unaligned rows, for two of which a reshard has room.
    Shards in DRAM are written from an interleaved tensor through a shard in L1, and from other shards through a page.
    """
    gathers, deals = (not tensor.spec.memory_config.is_sharded() for tensor in (written, read))
    shards, other = (read, written) if gathers else (written, read)
    view, in_rows = paged_view("shards", shards, spec, shards.spec.data_cores), read.spec.layout is Layout.ROW_MAJOR
    pads: tuple[CircularBuffer, ...] = ()
    if deals and in_rows:
        stick = _scratch_page_bytes(view.page_bytes, spec)
        pads = (scratchpad("sticks", STICKS * stick, view.data_format, view.cores)._replace(page_bytes=stick),)
    if deals and in_dram(written.spec):
        page_bytes = aligned_page(written.spec, spec)
        size = view.size_bytes if not in_rows else written.spec.shards.shape[0] * page_bytes
        view = view._replace(view_of=None, size_bytes=size)
    if not gathers and not deals and in_dram(read.spec) and in_dram(written.spec):
        return (paged_buffer("page", 1, aligned_page(written.spec, spec), view.data_format, view.cores),)
    if not gathers and not deals:
        view = view._replace(size_bytes=resharded_bytes(written.spec, view.size_bytes, spec))
        schemes = {tensor.spec.memory_config.memory_layout for tensor in (read, written)}
        by_height = schemes == {TensorMemoryLayout.HEIGHT_SHARDED}
        row = shard_row_bytes(written.spec, written.spec.memory_config)  # of both, as the program takes it
        page_bytes, other_page = (
            round_up(row, page_alignment_bytes(tensor.spec.memory_config, spec)) for tensor in (read, written)
        )
        if by_height and in_rows and not in_dram(written.spec) and not row == page_bytes == other_page:
            pages = BUFFERING * read.spec.shards.shape[0]
            pads = (paged_buffer("unaligned", pages, page_bytes, view.data_format, view.cores),)
    if shards.spec.data_format == other.spec.data_format:
        return (view, *pads)
    return view, tile_buffer("converted", view.size_bytes // view.page_bytes, other.spec.data_format, view.cores)


def _scratch_page_bytes(page_bytes: int, spec: DeviceSpec) -> int:
    """Bytes of a page of a scratchpad, which has room to shift the page to any alignment of DRAM."""
    return round_up(page_bytes, spec.dram.alignment_bytes) + spec.dram.alignment_bytes


def expected_shard_bytes(read: PlanTensor, written: PlanTensor, spec: DeviceSpec) -> int:
    """Bytes of a core's L1 that the library expects of a copy from interleaved memory to shards.

    The buffers of the program, and a scratchpad, which copies of tiles do not have.
    """
    buffers_bytes = sum(each.size_bytes for each in shard_buffers(read, written, spec))
    if read.spec.layout is Layout.ROW_MAJOR:
        return buffers_bytes
    return buffers_bytes + STICKS * _scratch_page_bytes(read.spec.data_format.tile_bytes, spec)


def resharded_bytes(target: TensorSpec, shard_bytes: int, spec: DeviceSpec) -> int:
    """Bytes of a reshard's view of a shard: as many whole aligned pages as the tensor's unaligned bytes fill."""
    page_bytes = aligned_page(target, spec)
    return min(shard_bytes, target.buffer(spec).size_bytes // page_bytes * page_bytes)


def row_bytes(tensor: TensorSpec, columns: int | None = None) -> int:
    """Bytes of some elements (by default a whole row) of a tensor without shared exponents."""
    return (tensor.matrix[1] if columns is None else columns) * (tensor.data_format.element_bytes or 0)


def shard_row_bytes(tensor: TensorSpec, place: MemoryConfig) -> int:
    """Bytes of a shard row in a memory, for a tensor without shared exponents; 0 without shards."""
    return 0 if place.shard_spec is None else row_bytes(tensor, place.shard_spec.shape[1])


def rows_follow(tensor: TensorSpec, columns: int, spec: DeviceSpec) -> bool:
    """Whether rows with this number of columns are contiguous in L1."""
    return row_bytes(tensor, columns) % spec.l1.alignment_bytes == 0


def page_alignment_bytes(place: MemoryConfig, spec: DeviceSpec) -> int:
    """Alignment of the pages of a memory."""
    return (spec.dram if place.buffer_type is BufferType.DRAM else spec.l1).alignment_bytes


def aligned_page(tensor: TensorSpec, spec: DeviceSpec) -> int:
    """Bytes of a page of a tensor, aligned for its memory."""
    return aligned_page_bytes(tensor.buffer(spec).page_bytes, tensor.memory_config.buffer_type, spec)


def in_dram(tensor: TensorSpec) -> bool:
    """Whether a tensor is in DRAM."""
    return tensor.memory_config.buffer_type is BufferType.DRAM


def not_in_l1(buffer_name: str, tensor_name: str) -> str:
    """Why no program can have a circular buffer on a tensor in DRAM."""
    return (
        f"DFB '{buffer_name}' borrows memory from TensorParameter '{tensor_name}', but its TensorSpec is not "
        "L1-resident (L1 is required). Both L1 and L1_SMALL are accepted."
    )


def beyond_shards(buffer_name: str, page_bytes: int, pages: int, tensor_name: str, bank_bytes: int) -> Iterator[str]:
    """Why no program can have a buffer of this many pages on the shards of a tensor, if the shards are smaller."""
    size = page_bytes * pages
    if size > bank_bytes:
        yield (
            f"DFB '{buffer_name}' (entry_size {page_bytes} * num_entries {pages} = {size} bytes) is larger than the "
            f"per-bank allocation of its borrowed TensorParameter '{tensor_name}' ({bank_bytes} bytes)."
        )


def is_uneven(tensor: TensorSpec) -> bool:
    """Whether a sharded tensor does not fill its shards; False for an interleaved one."""
    shards = tensor.memory_config.shard_spec
    return shards is not None and any(side % part for side, part in zip(tensor.matrix, shards.shape, strict=True))


def volume_tiles(tensor: TensorSpec) -> int:
    """Tiles of a tensor."""
    rows, columns = tensor.matrix
    return rows * columns // TILE**2


def shard_counts(scheme: TensorMemoryLayout, shards: ShardSpec) -> tuple[int, int]:
    """Shards down and across a tensor, if it fills its cores."""
    return core_counts(scheme, shards.grid, shards.orientation)


def core_counts(scheme: TensorMemoryLayout, cores: CoreRangeSet, orientation: ShardOrientation) -> tuple[int, int]:
    """How many cores share the rows of a tensor, and how many its columns."""
    if scheme is TensorMemoryLayout.HEIGHT_SHARDED:
        return cores.num_cores(), 1
    if scheme is TensorMemoryLayout.WIDTH_SHARDED:
        return 1, cores.num_cores()
    box = cores.bounding_box()
    return (box.rows, box.cols) if orientation is ShardOrientation.ROW_MAJOR else (box.cols, box.rows)


def spread_evenly(items: int, cores: int) -> tuple[int, int]:
    """(cores with items, items of each of them) when items are distributed evenly; the last core may have fewer."""
    core_items = max(1, div_up(items, cores))
    return div_up(items, core_items), core_items


def page_cores(
    pages: int, grid: GridSpec, *, row_wise: bool = False, within: CoreRangeSet | None = None
) -> CoreRangeSet:
    """As many cores as there are pages, if the grid, or ``within``, has them: column by column, or row by row."""
    if not pages:
        return CoreRangeSet([])
    if within is not None and not within.empty():
        return cores_from(within.cores(row_wise)[0], min(pages, within.num_cores()), within, row_wise)
    return first_cores(min(pages, grid.cores), grid.cols, grid.rows, row_wise=row_wise).merged()


def require_cores(
    cores: CoreRangeSet | None,
    spec: DeviceSpec,
    name: str,
    *,
    unit: str = "",
    used: CoreRangeSet | None = None,
) -> None:
    """Raises DeviceError for no cores, and for cores outside the device (only among ``used`` cores, if given).

    The real library checks this in some programs, whose work ``unit`` it names; other programs it plans for cores that
    do not exist (NotSimulatedError).
    """
    if cores is None:
        return
    if cores.empty():
        raise DeviceError(f"Core grid must contain at least one core\n{name}: leave sub_core_grids out for all cores")
    cols, rows = spec.grid.cols, spec.grid.rows
    outside = next((core for core in (used or cores).cores() if core.x >= cols or core.y >= rows), None)
    if outside is None:
        return
    if unit:
        raise DeviceError(
            f"WorkUnitSpec '{unit}' targets node ({outside.x},{outside.y}), which is out of bounds. The compute "
            f"worker grid on this device is {cols}x{rows}.\n{name}: name cores of the device in sub_core_grids"
        )
    raise NotSimulatedError(
        f"{name}: sub_core_grids has the core {outside}, and the device {cols}x{rows} cores; name cores of the device"
    )


def require_among(result: TensorSpec, cores: CoreRangeSet, grid: GridSpec, *, program: str, owner: str) -> None:
    """Raises DeviceError for a sharded result on a core outside the `page_cores` of a program.

    ``program`` is the library's name of the program, which lists the cores column by column.
    """
    if result.memory_config.is_sharded() and not cores.contains(result.shards.grid):
        listed = first_cores(cores.num_cores(), grid.cols, grid.rows, row_wise=False)
        raise DeviceError(
            f"{program} output shard grid {result.shards.grid} must be contained in program core grid {listed}\n"
            f"{owner}: give shards on these cores, or interleaved memory, and move the result"
        )


def pipelined_cycles(parts: Sequence[float], count: int) -> float:
    """Cycles of `count` items in a pipeline: all stages for one item, and the slowest stage for each of the others."""
    return sum(parts) + (count - 1) * max(parts)


def uniform_cycles(
    cores: CoreRangeSet,
    body_cycles: float,
    busy_cycles: Mapping[Stage, float],
    spec: DeviceSpec,
    *,
    dram_read_bytes: int = 0,
    dram_written_bytes: int = 0,
    contention_cycles: float = 0.0,
    transfers: Callable[[], tuple[Transfer, ...] | None] = lambda: None,
    tile_work: Callable[[], TileWork | None] = lambda: None,
) -> OperationCycles:
    """Cycles of an operation whose cores all do the same work; bytes, transfers and tiles are sums over all cores.

    `body_cycles` follow the start of a core. `busy_cycles` are the busy cycles of each stage, in the order of the
    report. `contention_cycles` are the part of the body caused by sharing between cores.
    """
    start_cycles = spec.costs_of(StickCosts).start_cycles
    stages = tuple(StageCycles(stage, cycles) for stage, cycles in busy_cycles.items() if cycles)
    cycles = start_cycles + body_cycles
    return OperationCycles(
        cycles=cycles,
        groups=(CoreGroupCycles(cores=cores, cycles=cycles, stages=(StageCycles(Stage.START, start_cycles), *stages)),),
        bound_by=binding_stage(stages),
        dram_read_bytes=dram_read_bytes,
        dram_written_bytes=dram_written_bytes,
        contention_cycles=contention_cycles,
        transfers=transfers,
        tile_work=tile_work,
    )
