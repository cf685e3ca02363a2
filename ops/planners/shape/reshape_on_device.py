"""Plans of ttnn.reshape_on_device. Rules: tt-metal (data_movement/reshape_on_device), compared with the real library.

Rows of the same length are seen under another shape in their buffer; others are moved by a program of its own.
"""

from math import prod

from device.cores import core_rectangle
from device.errors import DeviceError
from device.memory.layouts import TensorSpec, no_such_axis, require_shard_spec
from device.memory.memory_config import FACE, TILE, Layout, MemoryConfig
from device.numbers.formats import BFLOAT16, FLOAT32, div_up
from device.plan import CircularBuffer, Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.programs.buffer_shapes import BUFFERING, buffer, page_alignment_bytes, row_bytes, tile_buffer
from ops.programs.data_movement.placement import viewed
from ops.programs.data_movement.reshape import ReshapeOnDevice

Shape = tuple[int, ...]

RANK = 4
WIDTH = 8  # elements of which rows have a whole multiple, for the program
WAY_OUT = "reshape_on_device: ttnn.reshape moves the elements of any tensor"
SHOWS_PADDING = f"reshape_on_device: the padding of tiles shows, whose numbers ttsim does not simulate; {WAY_OUT}"


def plan_reshape_on_device(
    source: TensorSpec, shape: Shape, spec: DeviceSpec, *, place: MemoryConfig | None = None
) -> Plan:
    """Plan the tensor "input" in another shape of four axes: a view of its buffer, or a new tensor in a memory."""
    padded = source.padded_shape
    if len(padded) < RANK:
        raise DeviceError(f"{no_such_axis(len(padded), 3)}\n{WAY_OUT}")
    if shape[-1] == padded[RANK - 1]:
        source.changed(shape=shape)  # refuses shards that do not hold the shape
        _require_room(source, shape)

        def view(builder: PlanBuilder, tensor: PlanTensor) -> PlanTensor:
            if not _stay_in_place(source, shape) or source.shape[-1] != shape[-1]:
                builder.leave_out_values(SHOWS_PADDING)
            elif prod(shape) != source.volume:
                builder.leave_out_values(f"reshape_on_device: ttsim has no numbers of fewer elements; {WAY_OUT}")
            return PlanTensor(tensor.name, viewed(source, shape, spec))

        return plan_of(source, spec, view)
    where = source.memory_config if place is None else place
    require_shard_spec(where, in_rows=source.layout is Layout.ROW_MAJOR)
    result = TensorSpec(shape, source.data_format, source.layout, where)  # refuses shards that do not hold the shape
    _require_program(source, shape, where)

    def write(builder: PlanBuilder, tensor: PlanTensor) -> PlanTensor:
        whole = source.shape[-1] == shape[-1] or source.shape[-1] % TILE == shape[-1] % TILE == 0
        if source.layout is Layout.TILE and not (whole and _stay_in_place(source, shape)):
            builder.leave_out_values(SHOWS_PADDING)
        buffers = _buffers(source, result, spec)
        return builder.run(
            "ReshapeDeviceOperation", ReshapeOnDevice(shape), [tensor], PlanTensor("output", result), buffers
        )

    return plan_of(source, spec, write)


def _stay_in_place(source: TensorSpec, shape: Shape) -> bool:
    """Whether rows of the same length keep their addresses with another shape."""
    lines, new_lines = source.shape[-2], shape[-2]
    return source.layout is Layout.ROW_MAJOR or lines == new_lines or not (lines % TILE or new_lines % TILE)


def _require_room(source: TensorSpec, shape: Shape) -> None:
    """Raises DeviceError for a shape whose padding has no room."""
    if source.shape[-1] == shape[-1] and _stay_in_place(source, shape):
        return
    if prod(TensorSpec(shape, source.data_format, source.layout).padded_shape) > prod(source.padded_shape):
        raise DeviceError(f"MeshBuffer must be large enough to hold the tensor.\n{WAY_OUT}")


def reshapes_on_host(source: TensorSpec, shape: Shape) -> bool:
    """Whether the library reshapes rows on the host; raises DeviceError for rows that it does not."""
    sides = source.padded_shape[RANK - 1 : RANK], shape[-1:]
    if source.layout is Layout.TILE or not all(sides) or sides[0] == sides[1]:
        return False
    if not any(side % WIDTH for (side,) in sides):
        return False
    if source.data_format != BFLOAT16:
        raise DeviceError(
            "Input tensor dtype must be BFLOAT16 for this reshape operation but got "
            f"DataType::{source.data_format.name.upper()}\n{WAY_OUT}"
        )
    return True


def _require_program(source: TensorSpec, shape: Shape, place: MemoryConfig) -> None:
    """Raises DeviceError for a tensor that the program does not move."""
    name, width = f"DataType::{source.data_format.name.upper()}", source.padded_shape[RANK - 1]
    if source.data_format not in (BFLOAT16, FLOAT32):
        raise DeviceError(f"Input tensor dtype must be BFLOAT16 or FLOAT32 but got {name}\n{WAY_OUT}")
    if source.memory_config.is_sharded():
        raise DeviceError(f"Use ttnn::reshape for reshaping sharded inputs\n{WAY_OUT}")
    if place.is_sharded():
        raise DeviceError(
            "Reshape does not currently support sharding. Use ttnn::reshape for reshaping sharded inputs\n" + WAY_OUT
        )
    if source.layout is Layout.TILE:
        volumes = prod(source.padded_shape), prod(TensorSpec(shape, source.data_format, Layout.TILE).padded_shape)
        if volumes[0] != volumes[1]:
            raise DeviceError(
                "Tile reshape requires the input and output to have the same tile-padded physical volume, but got "
                f"input {volumes[0]} and output {volumes[1]}. Reshapes that change the tile padding are not supported "
                f"on the tile path; use ttnn::reshape instead.\n{WAY_OUT}"
            )
        return
    sizes = sorted(side * (source.data_format.element_bytes or 0) for side in (width, shape[-1]))
    if sizes[1] % sizes[0]:
        element = source.data_format.element_bytes or 0
        raise DeviceError(
            f"Last dimension of the old shape ({width * element}) should be divisible by the last dimension of the new "
            f"shape ({shape[-1] * element}) or vice versa\n{WAY_OUT}"
        )


def _buffers(source: TensorSpec, result: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """For tiles, two tiles on one core and maybe an alignment buffer; for rows, the longer rows on all cores."""
    if source.layout is Layout.TILE:
        core = core_rectangle(1, 1)
        tiles = tile_buffer("tiles", BUFFERING, source.data_format, core)
        alignment = page_alignment_bytes(source.memory_config, spec)
        if row_bytes(source, FACE) % alignment == 0:
            return (tiles,)
        return tiles, buffer("aligned", alignment, source.data_format, core)
    longer = max(source, result, key=lambda tensor: tensor.shape[-1])
    rows = div_up(prod(longer.shape[:-1]), spec.grid.cores)
    cores = core_rectangle(spec.grid.cols, spec.grid.rows)
    return (buffer("rows", rows * row_bytes(longer), source.data_format, cores),)
