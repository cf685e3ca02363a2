"""How element-wise programs access operands: shards in place, or tiles in buffers; broadcasts within tiles."""

from math import prod
from typing import NamedTuple

from device.cores import CoreCoord, CoreRangeSet, core_rectangle, first_cores
from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, BufferType, Layout, ShardOrientation, ShardSpec, TensorMemoryLayout
from device.numbers.formats import DataFormat, div_up, round_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from device.spec.releases import release_of
from ops.builder import PlanTensor
from ops.programs.buffer_shapes import BUFFERING, in_dram, is_uneven, rows_follow, tile_buffer


class Repeated(NamedTuple):
    """The broadcast within tiles: "number", "row" or "column" of an operand, or "row, column" of both; else ""."""

    left: bool = False  # Whether the number, row or column is the first operand's; of both operands, the row
    what: str = ""


NOT_REPEATED = Repeated()
OPERANDS = 3  # of a program of three operands, each a tensor or a number


def repeated(left: tuple[int, ...], right: tuple[int, ...]) -> Repeated:
    """The repetition of the last two axes of two shapes; raises DeviceError if neither has sides to repeat."""
    (a_rows, a_columns), (b_rows, b_columns) = ((1, 1, *shape)[-2:] for shape in (left, right))
    if (a_rows, a_columns) == (b_rows, b_columns):
        return NOT_REPEATED
    cases = (
        (a_rows == a_columns == 1, Repeated(True, "number")),
        (b_rows == b_columns == 1, Repeated(False, "number")),
        (a_rows == b_columns == 1, Repeated(True, "row, column")),
        (a_columns == b_rows == 1, Repeated(False, "row, column")),
        (a_rows == 1, Repeated(True, "row")),
        (a_columns == 1, Repeated(True, "column")),
        (b_rows == 1, Repeated(False, "row")),
        (b_columns == 1, Repeated(False, "column")),
    )
    for holds, kind in cases:
        if holds:
            return kind
    raise DeviceError(
        "Invalid subtile broadcast type\n"
        f"rows and columns, {a_rows} x {a_columns} and {b_rows} x {b_columns}, must be equal, or one of each 1"
    )


def works_on_shards(left: TensorSpec, right: TensorSpec | None, result: TensorSpec, release: str) -> bool:
    """Whether a program of one or two operands in a release processes shards in place instead of page by page."""
    place, left_place = result.memory_config, left.memory_config
    rule = release_of(release).combined_shards
    if right is not None and rule == "each":
        return any(tensor.memory_config.is_sharded() and not in_dram(tensor) for tensor in (left, right, result))
    if right is not None and rule == "full" and any(map(is_uneven, (left, right, result))):
        return False
    if not place.is_sharded() or (right is None and not left_place.is_sharded()):
        return False
    if right is None:
        in_l1 = place.buffer_type is left_place.buffer_type is BufferType.L1
        uneven = is_uneven(left) or is_uneven(result)
        return in_l1 and not uneven and place.shard_spec == left_place.shard_spec
    same_shards = len({tensor.memory_config.shard_spec for tensor in (left, right, result)}) == 1
    if is_uneven(result) and not same_shards:
        return False
    right_place = right.memory_config
    left_alone = (
        left_place.is_sharded() and not right_place.is_sharded() and result.shape == left.shape and not is_uneven(left)
    )
    if left_alone and repeated(left.shape, right.shape).what in ("number", "column"):
        stays = place.shard_spec == left_place.shard_spec and not in_dram(left) and not in_dram(result)
        return stays and left_place.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED
    if left.shape != right.shape or left_place != right_place:
        return False
    in_l1 = all(config.buffer_type is BufferType.L1 for config in (place, left_place, right_place))
    if is_uneven(left) or is_uneven(right):
        return in_l1 and place.shard_spec == left_place.shard_spec
    if not in_l1:
        return False
    grids = {config.shard_spec.grid for config in (place, left_place, right_place) if config.shard_spec is not None}
    return len(grids) == 1


def all_lie_alike(tensors: list[TensorSpec]) -> bool:
    """Whether a program of three operands, whose result is the last tensor, processes the result's shards in place.

    The operands have shards on the same cores; three of the tensors may also be interleaved in L1.
    """
    *read, result = tensors
    place = read[0].memory_config
    alike = all((tensor.shape, tensor.memory_config) == (read[0].shape, place) for tensor in read)
    alike = alike and (place.is_sharded() or len(read) == OPERANDS)
    if not alike or not result.memory_config.is_sharded() or any(map(is_uneven, tensors)):
        return False
    grids = {tensor.memory_config.shard_spec.grid for tensor in tensors if tensor.memory_config.shard_spec is not None}
    return not any(map(in_dram, tensors)) and len(grids) == 1


def lies_in_place(read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> bool:
    """Whether an element-wise function processes the shards of both its tensors in place.

    Both must have the same shards in L1 and fill them; rows must fill whole pages of a tile's elements and have an
    aligned length.
    """
    place = read.memory_config
    shards = place.shard_spec
    if shards is None or written.memory_config != place or place.buffer_type is BufferType.DRAM:
        return False
    if is_uneven(read) or is_uneven(written):
        return False
    return read.layout is Layout.TILE or (
        prod(shards.shape) % TILE**2 == 0 and rows_follow(read, shards.shape[1], spec)
    )


def rescaled(shards: ShardSpec, before: TensorSpec, padded_shape: tuple[int, ...]) -> ShardSpec:
    """The shards of a tensor, scaled like the tensor's shape to another shape; at least a tile."""
    rows, columns = before.matrix
    high = max(shards.shape[0] * prod(padded_shape[:-1]) // rows, TILE)
    wide = max(shards.shape[1] * padded_shape[-1] // columns, TILE)
    return ShardSpec(shards.grid, (high, wide), shards.orientation)


def on_all_cores(
    padded_shape: tuple[int, ...], layout: TensorMemoryLayout, spec: DeviceSpec, program: str, *, unit: int = TILE
) -> ShardSpec:
    """Even shards in whole units of elements on the first cores of a device, as the library's ``program`` chooses them.

    The library does so for a result with a sharding but no shard spec; cores without a shard are omitted. An empty
    result has one shard of a unit; raises DeviceError if the shard's other side is 0.
    """
    grid, rows, columns = spec.grid, prod(padded_shape[:-1]), padded_shape[-1]
    by_blocks = layout is TensorMemoryLayout.BLOCK_SHARDED
    whole = {TensorMemoryLayout.HEIGHT_SHARDED: columns, TensorMemoryLayout.WIDTH_SHARDED: rows}
    if not rows * columns and not whole.get(layout):
        raise DeviceError(
            f"{program}: zero-volume specless-sharded is only representable for HEIGHT_SHARDED + non-zero width or "
            f"WIDTH_SHARDED + non-zero height; got layout={layout.value}, h={rows}, w={columns}.\n"
            "memory_config: give interleaved memory"
        )
    high, wide = rows, columns
    if layout is not TensorMemoryLayout.WIDTH_SHARDED:
        high = max(unit, round_up(div_up(rows, grid.rows if by_blocks else grid.cores), unit))
    if layout is not TensorMemoryLayout.HEIGHT_SHARDED:
        wide = max(unit, round_up(div_up(columns, grid.cols if by_blocks else grid.cores), unit))
    down, across = max(1, div_up(rows, high)), max(1, div_up(columns, wide))
    cores = core_rectangle(across, down) if by_blocks else first_cores(down * across, grid.cols, grid.rows)
    return ShardSpec(cores, (high, wide))


def rows_on_all_cores(tensor: TensorSpec, layout: TensorMemoryLayout, spec: DeviceSpec, program: str) -> ShardSpec:
    """Those of a tensor in rows, for a function of every element: columns are whole pages where they can be."""
    shards = on_all_cores(tensor.padded_shape, layout, spec, program, unit=1)
    if layout is not TensorMemoryLayout.WIDTH_SHARDED or not tensor.volume:
        return shards
    columns, least = tensor.padded_shape[-1], shards.shape[1]
    page = spec.l1.alignment_bytes // tensor.data_format.storage.itemsize
    whole = (wide for wide in range(round_up(least, page), columns + 1, page) if columns % wide == 0)
    return on_all_cores(tensor.padded_shape, layout, spec, program, unit=next(whole, TILE))


def shard_view(name: str, tensor: PlanTensor, spec: DeviceSpec) -> CircularBuffer:
    """A buffer on all cores of a device that is a view of a tensor's shards, in tiles or in rows of a tile's size."""
    tiles = prod(tensor.spec.shards.shape) // TILE**2
    return tiles_of(name, tiles, tensor.spec.data_format, spec, view_of=tensor.name)


def tiles_of(
    name: str,
    tiles: int,
    data_format: DataFormat,
    spec: DeviceSpec,
    *,
    view_of: str | None = None,
    cores: CoreRangeSet | None = None,
) -> CircularBuffer:
    """A number of tiles of a format on some cores; a view of a tensor's shards if the tensor is named.

    The default of ``cores`` is all cores of the device.
    """
    grid = spec.grid
    return tile_buffer(name, tiles, data_format, cores or first_cores(grid.cores, grid.cols, grid.rows), view_of)


def shards_beside(cores: CoreRangeSet | None, tensor: TensorSpec, name: str) -> str | None:
    """Why values are unknown if shards in place are on cores that the call excludes; None if there are none.

    The real library writes runtime arguments for cores without the program; it crashes or continues.
    """
    if cores is None or cores.contains(tensor.shards.grid):
        return None
    return f"{name}: shards on cores beside sub_core_grids are not simulated; leave sub_core_grids out"


def shards_outside(cores: CoreRangeSet | None, tensor: TensorSpec, name: str) -> str | None:
    """Why a function of shards in place is refused on the cores that a call may use; None if it is not.

    The program sets arguments of the first cores of the shards, as many as the call allows; all must be in ``cores``.
    """
    outside = next((core for core in _first_holders(cores, tensor) if cores and not cores.contains(core)), None)
    if outside is None:
        return None
    return (
        f"Kernel 'reader' is setting runtime_arg_values for node {outside.x}-{outside.y}, but the kernel does not run "
        f"on that node.\n{name}: leave sub_core_grids out"
    )


def shards_beyond(cores: CoreRangeSet | None, tensor: TensorSpec, name: str, arguments: int) -> str | None:
    """Why a program of two or three operands in place is refused on the cores that a call may use; None if it is not.

    A kernel keeps the arguments of cores up to its last column and row. For a core of the shards beyond them, the real
    library reads how many ``arguments`` there are from memory that it does not initialize: it mostly refuses or ends.
    """
    if cores is None:
        return None
    last = cores.bounding_box().end
    holders = _first_holders(cores, tensor)
    beyond = next((core for core in holders if core.x > last.x or core.y > last.y), None)
    if beyond is None:
        return None
    return (
        f"Illegal Runtime Args on {beyond.x}-{beyond.y}: Number of runtime args cannot be modified from 0 to "
        f"{arguments}!\n{name}: leave sub_core_grids out"
    )


def _first_holders(cores: CoreRangeSet | None, tensor: TensorSpec) -> tuple[CoreCoord, ...]:
    """The first cores of a tensor's shards, as many as the call may use."""
    shards = tensor.shards
    holders = shards.grid.cores(shards.orientation is ShardOrientation.ROW_MAJOR)
    return holders if cores is None else holders[: cores.num_cores()]


def unary_buffers(
    read: PlanTensor, written: PlanTensor, spec: DeviceSpec, function: str = "", cores: CoreRangeSet | None = None
) -> tuple[CircularBuffer, ...]:
    """Dataflow buffers of an element-wise function: two tiles of argument and result, or views of shards.

    They are on ``cores``, or on all cores of the device.
    """
    ends = {"argument": read, "result": written}
    between = tiles_of("between", BUFFERING, read.spec.data_format, spec, cores=cores)
    if lies_in_place(read.spec, written.spec, spec):
        argument, result = (shard_view(name, tensor, spec) for name, tensor in ends.items())
    else:
        argument, result = (
            tiles_of(name, BUFFERING, tensor.spec.data_format, spec, cores=cores) for name, tensor in ends.items()
        )
    return (argument, between, result) if function == "logit" else (argument, result)
