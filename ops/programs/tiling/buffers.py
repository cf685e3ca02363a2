"""The dataflow buffers of the programs that tilize and untilize, and the cores that they run on.

Interleaved tensors pass through a core by rows of tiles, shards lie where they are. Source: tt-metal 0.81.1 (tilize,
tilize_with_val_padding, untilize, untilize_with_unpadding), compared with recorded plans.
"""

from dataclasses import replace
from math import prod

from device.cores import CoreRange, CoreRangeSet, first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout, TensorMemoryLayout
from device.memory.tiles import TILE
from device.numbers.integers import div_up, round_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanTensor
from ops.programs.movement.placement import L1_ALIGNMENT_BYTES
from ops.programs.movement.work import Conversion

STICKS = 4  # of the scratchpad in which sticks are aligned
BUFFERING = 2  # rows of tiles on their way through a core that has several


def tiling_buffers(
    conversion: Conversion, read: PlanTensor, made: PlanTensor, spec: DeviceSpec, *, on_one_core: bool = False
) -> tuple[CircularBuffer, ...]:
    """Buffers of one program.

    Args:
        conversion: Tilize, Untilize, or one of them with padding.
        read: What it reads.
        made: What it makes.
        spec: The device.
        on_one_core: One core does all.
    """
    tiles = made.spec if conversion in (Conversion.TILIZE, Conversion.TILIZE_WITH_VAL_PADDING) else read.spec
    by_columns = conversion is not Conversion.UNTILIZE
    rows, across = tiles.matrix[0] // TILE, tiles.matrix[1] // TILE
    cores, core_rows = _dealt(rows, spec, by_columns=by_columns)
    if on_one_core:
        cores, core_rows = first_cores(1, spec.grid.cols, spec.grid.rows), 1  # it passes on one row after the other
    shards = read.spec.memory_config.shard_spec
    in_place = shards is not None and conversion is not Conversion.TILIZE_WITH_VAL_PADDING
    if conversion is Conversion.TILIZE and not made.spec.memory_config.is_sharded():
        in_place = False
    if shards is not None and in_place:
        cores, across = shards.grid, div_up(shards.shape[1], TILE)
        core_rows = div_up(shards.shape[0], TILE)
    depth = BUFFERING if core_rows > 1 and conversion is Conversion.UNTILIZE else 1
    if in_place and conversion is Conversion.UNTILIZE_WITH_UNPADDING:
        depth = BUFFERING * core_rows

    def passing(name: str, tensor: PlanTensor) -> CircularBuffer:
        return _buffer(name, tensor.spec, depth * across, cores)

    first = _view("argument", read) if in_place else passing("argument", read)
    to_shards = in_place and made.spec.memory_config.is_sharded()
    if to_shards and conversion is Conversion.UNTILIZE_WITH_UNPADDING:
        return (first, passing("rows", made), _view("result", made))
    return (first, _view("result", made) if to_shards else passing("result", made))


def _dealt(rows: int, spec: DeviceSpec, *, by_columns: bool) -> tuple[CoreRangeSet, int]:
    """The cores that share rows of tiles evenly, and how many each has."""
    core_rows = div_up(rows, spec.grid.cores)
    used = div_up(rows, core_rows)
    return first_cores(used, spec.grid.cols, spec.grid.rows, row_wise=not by_columns).merged(), core_rows


def _buffer(name: str, tensor: TensorSpec, tiles: int, cores: CoreRangeSet) -> CircularBuffer:
    page_bytes = tensor.data_format.tile_bytes
    return CircularBuffer(
        name=name, size_bytes=tiles * page_bytes, page_bytes=page_bytes, data_format=tensor.data_format, cores=cores
    )


def _view(name: str, tensor: PlanTensor) -> CircularBuffer:
    """A buffer on the shards of a tensor."""
    shards, data_format = tensor.spec.memory_config.shard_spec, tensor.spec.data_format
    if shards is None:
        raise AssertionError("an interleaved tensor has no shards to lie on")
    page_bytes = data_format.tile_bytes
    size = prod(shards.shape) * page_bytes // TILE**2
    if tensor.spec.layout is Layout.ROW_MAJOR:
        page_bytes = shards.shape[1] * (data_format.element_bytes or 0)
        size = shards.shape[0] * round_up(page_bytes, L1_ALIGNMENT_BYTES)
    return CircularBuffer(
        name=name,
        size_bytes=size,
        page_bytes=page_bytes,
        data_format=data_format,
        cores=shards.grid,
        view_of=tensor.name,
    )


def shard_buffers(
    conversion: Conversion, read: PlanTensor, made: PlanTensor, spec: DeviceSpec
) -> tuple[CircularBuffer, ...]:
    """Buffers of the programs that deal pages.

    A view of the shards, and as many tiles of the other format if there is one; sticks on their way into shards are
    aligned in a scratchpad.
    """
    alignment_bytes = spec.dram.alignment_bytes
    pad: tuple[CircularBuffer, ...] = ()
    match conversion:
        case Conversion.INTERLEAVED_TO_SHARDED | Conversion.RESHARD:
            shards, other = made, read
        case Conversion.SHARDED_TO_INTERLEAVED:
            shards, other = read, made
        case _:
            return ()
    view = _view("shards", shards)
    if conversion is not Conversion.RESHARD:
        view = replace(view, cores=_holders(shards.spec, view.cores))
    if conversion is Conversion.INTERLEAVED_TO_SHARDED and made.spec.layout is Layout.ROW_MAJOR:
        stick = round_up(view.page_bytes, alignment_bytes) + alignment_bytes
        pad = (
            replace(view, name="sticks", size_bytes=STICKS * stick, page_bytes=stick, view_of=None, scratchpad=True),
        )
    if shards.spec.data_format == other.spec.data_format:
        return (view, *pad)
    return view, _buffer("converted", other.spec, view.size_bytes // view.page_bytes, view.cores)


def _holders(tensor: TensorSpec, grid: CoreRangeSet) -> CoreRangeSet:
    """The cores that hold rows of HEIGHT shards; all cores of others."""
    shards = tensor.memory_config.shard_spec
    if shards is None or tensor.memory_config.memory_layout is not TensorMemoryLayout.HEIGHT_SHARDED:
        return grid
    used = div_up(tensor.matrix[0], shards.shape[0])
    if used == grid.num_cores():
        return grid
    return CoreRangeSet([CoreRange(core, core) for core in grid.cores()[:used]]).merged()
