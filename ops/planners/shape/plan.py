"""Plans that reorder elements. Rules: ttnn 0.81.1 and recorded plans; unknown kinds of tensors are refused by name."""

from collections.abc import Sequence

from device.errors import DeviceError
from device.memory.buffers import Unwritten
from device.memory.layouts import TensorSpec, no_such_axis
from device.memory.memory_config import TILE, BufferType, Layout, MemoryConfig, ShardSpec, TensorMemoryLayout
from device.numbers.formats import DataFormat, div_up, round_up
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.programs.buffer_shapes import view_refusal
from ops.programs.data_movement.channels import ChannelsFirst, ChannelsLast, chw_buffers, hwc_buffers, output_bytes

RANK = 4  # of an image tensor
STICK_BYTES = 16  # channels that are put last fill whole multiples of this
WRAPPED = 1 << 64  # the library's indices of axes have no sign


def plan_convert_to_hwc(
    source: TensorSpec, spec: DeviceSpec, *, place: MemoryConfig | None = None, data_format: DataFormat | None = None
) -> Plan:
    """Plan the tensor "input", [1, B, C, H*W] in WIDTH shards of rows, with channels last in HEIGHT shards."""
    aligned = STICK_BYTES // (source.data_format.element_bytes or 1)
    where = _hwc_place(source, aligned) if place is None else place
    if where.shard_spec is not None and where.shard_spec.shape[1] % aligned:
        raise DeviceError(
            f"Output shard width must be rounded up to next multiple of {aligned} to satisfy alignment constraints "
            f"(width was {where.shard_spec.shape[1]})\nmemory_config: give shards of whole {STICK_BYTES} bytes"
        )
    _require_rank("convert_to_hwc", source, first=1)
    _, batch, channels, pixels = source.shape[:RANK]
    padded_channels, output_format = round_up(channels, aligned), data_format or source.data_format
    tensor = PlanTensor(
        "output", TensorSpec((1, 1, batch * pixels, padded_channels), output_format, Layout.ROW_MAJOR, where)
    )
    refused = _hwc_refusal(source, tensor.spec, spec)
    shape = (1, batch, channels, pixels)
    op = ChannelsLast(
        shape=shape, channels=padded_channels, source_format=source.data_format, data_format=output_format
    )
    return _plan_of_program(op, source, tensor, refused, spec)


def _plan_of_program(
    op: ChannelsLast | ChannelsFirst, source: TensorSpec, result: PlanTensor, refused: str | None, spec: DeviceSpec
) -> Plan:
    """The plan of one program, whose buffers are computed unless the program is refused."""
    to_last = isinstance(op, ChannelsLast)
    name, buffers_of = f"ConvertTo{'HWC' if to_last else 'CHW'}DeviceOperation", hwc_buffers if to_last else chw_buffers

    def write(builder: PlanBuilder, tensor: PlanTensor) -> PlanTensor:
        buffers = () if refused else buffers_of(tensor, result)
        return builder.run(name, op, [tensor], result, buffers, refused=refused)

    return plan_of(source, spec, write)


def unwritten_channels(source: TensorSpec, result: TensorSpec) -> Unwritten | None:
    """The warning for channels of the result that the library never writes: those after the tensor's own.

    Source: tt-metal 0.81.1 (convert_to_hwc reads only the tensor's channels into a buffer that is never cleared);
    recorded: 3 channels give other numbers in another order of calls.
    """
    channels, result_channels = source.shape[-2], result.shape[-1]
    if channels == result_channels:
        return None
    return Unwritten(
        channels,
        (
            f"experimental.convert_to_hwc: the result has {result_channels} channels, and the tensor {channels}: the "
            f"real library leaves the last {result_channels - channels} as memory was before; give it to a convolution "
            f"of {channels} channels, or pad the tensor to {result_channels} channels with ttnn.pad first"
        ),
    )


def _hwc_place(source: TensorSpec, aligned: int) -> MemoryConfig:
    """The shards of an image with channels last, on the cores of the image with channels first."""
    if source.memory_config.buffer_type is BufferType.DRAM:
        raise DeviceError(
            "When input tensor is in DRAM, output memory_config must be explicitly specified\n"
            "memory_config: give HEIGHT shards in L1"
        )
    shards = source.memory_config.shard_spec
    if shards is None:
        raise DeviceError("Input tensor must be sharded to infer output memory config\ninput: give WIDTH shards in L1")
    if source.memory_config.memory_layout is not TensorMemoryLayout.WIDTH_SHARDED:
        raise DeviceError("Input tensor must be width sharded\nconvert_to_hwc: reshard it")
    _require_rank("convert_to_hwc", source, first=1)
    shard_shape = (source.shape[-3] * shards.shape[1], round_up(source.shape[-2], aligned))
    return MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, ShardSpec(shards.grid, shard_shape))


def _require_rank(owner: str, source: TensorSpec, *, first: int) -> None:
    """Raises DeviceError for fewer than four axes; the library reads the axes from ``first`` on in order."""
    if len(source.shape) < RANK:
        read = max(len(source.shape), first)
        raise DeviceError(
            f"{no_such_axis(len(source.shape), read)}\n{owner}: the tensor has {len(source.shape)} axes; give it {RANK}"
        )


def _hwc_refusal(source: TensorSpec, result: TensorSpec, spec: DeviceSpec) -> str | None:
    """Why the library does not put channels last, if it does not; said once the result is allocated."""
    source_place, result_place = source.memory_config, result.memory_config
    shards, batch, channels, pixels = source_place.shard_spec, *source.shape[-3:]
    if len(source.shape) > RANK:
        return f"Input shape must be rank {RANK} (was rank {len(source.shape)})\nconvert_to_hwc: give [1, B, C, H * W]"
    if source.shape[0] != 1:
        return (
            f"Expected input tensor to be shape [1, B, C, HW] (shape was Shape({list(source.shape)}))\n"
            "input: put the images on the second axis"
        )
    if channels > TILE:
        return f"C must be less than or equal to {TILE} (was {channels})\ninput: give fewer channels"
    if source.layout is not Layout.ROW_MAJOR:
        return "Input tensor must be in row-major layout\ninput: to_layout makes rows of tiles"
    if shards is None:
        return "Input tensor must be sharded\nconvert_to_hwc: give WIDTH shards in L1"
    if source_place.memory_layout is not TensorMemoryLayout.WIDTH_SHARDED:
        return "Input tensor must be width sharded\nconvert_to_hwc: reshard it"
    if result_place.memory_layout is not TensorMemoryLayout.HEIGHT_SHARDED:
        return "Output tensor must be height sharded\nmemory_config: give HEIGHT shards in L1"
    aligned = STICK_BYTES // (result.data_format.element_bytes or 1)
    if result.shards.shape[1] % aligned:
        return (
            f"Output shard width {result.shards.shape[1]} must be multiple of {aligned} to satisfy alignment "
            f"constraints\nmemory_config: give shards of whole {STICK_BYTES} bytes"
        )
    if result.shards.shape[0] % TILE:
        rows = result.shards.shape[0]
        return f"Shard height {rows} must be multiple of tile width ({TILE})\nmemory_config: give other shards"
    if result_place.buffer_type is not BufferType.L1:
        return "Only L1 buffers can have an associated circular buffer!\nmemory_config: give HEIGHT shards in L1"
    room = shards.num_cores() * shards.shape[1]
    if source_place.buffer_type is BufferType.L1 and pixels < room and batch != 1:
        return (
            f"Uneven sharding (HW={pixels} < total_padded_capacity={room}) is only supported for batch_size=1, got "
            f"batch_size={batch}\ninput: shards must hold the pixels of an image evenly"
        )
    first = view_refusal(output_bytes(source, result), result.buffer(spec).bank_bytes)
    way_out = f"dtype: the library counts elements of {source.data_format}; leave it out, and typecast the result"
    return None if first is None else f"{first}\n{way_out}"


def plan_convert_to_chw(source: TensorSpec, spec: DeviceSpec, *, data_format: DataFormat | None = None) -> Plan:
    """Plan the tensor "input", [1, 1, H*W, C] in HEIGHT shards of tiles, with channels first in WIDTH shards."""
    shards = source.memory_config.shard_spec
    if shards is None:
        raise DeviceError("Input tensor must be sharded to infer output memory config\ninput: give HEIGHT shards in L1")
    if source.memory_config.memory_layout is not TensorMemoryLayout.HEIGHT_SHARDED:
        raise DeviceError("Input tensor must be height sharded\nconvert_to_chw: reshard it")
    _require_rank("convert_to_chw", source, first=2)
    pixels, channels = source.shape[RANK - 2 : RANK]
    rows = ShardSpec(shards.grid, (source.shape[-1], shards.shape[0]), shards.orientation)
    where = MemoryConfig(TensorMemoryLayout.WIDTH_SHARDED, source.memory_config.buffer_type, rows)
    output_format = data_format or source.data_format
    shape = (source.shape[0], 1, channels, pixels)
    tensor = PlanTensor("output", TensorSpec(shape, output_format, Layout.ROW_MAJOR, where))
    op = ChannelsFirst(shape=source.shape, source_format=source.data_format, data_format=output_format)
    return _plan_of_program(op, source, tensor, _chw_refusal(source, spec), spec)


def _chw_refusal(source: TensorSpec, spec: DeviceSpec) -> str | None:
    """Why the library does not put channels first, if it does not; said once the result is allocated."""
    pixels, channels = source.shape[-2:]
    if any(side != 1 for side in source.shape[:-2]):
        return "Expected input tensor to be shape [1, 1, HW, C]\ninput: put all pixels on one axis"
    if channels > TILE:
        return f"C must be less than or equal to {TILE} (was {channels})\ninput: give fewer channels"
    if pixels % TILE:
        return f"HW must be divisible by tile size\ninput: {pixels} pixels are no whole number of {TILE}"
    if source.shards.shape[0] % TILE:
        return "Shard height must be divisible by tile size\ninput: give shards of whole tiles"
    cores, held = source.shards.grid.num_cores(), div_up(pixels, source.shards.shape[0])
    if held != cores:
        return f"Mismatch between core grid and input/shard shapes\ninput: {held} shards lie on {cores} cores"
    if source.memory_config.buffer_type is not BufferType.L1:
        return "Only L1 buffers can have an associated circular buffer!\ninput: give HEIGHT shards in L1"
    rows, columns = source.shards.shape
    tile_bytes = div_up(rows, TILE) * div_up(columns, TILE) * source.data_format.tile_bytes
    first = view_refusal(tile_bytes, source.buffer(spec).bank_bytes)
    return None if first is None else f"{first}\ninput: to_layout makes tiles of rows"


def axis_of(dim: int, rank: int, argument: str) -> int:
    """An axis counted from the first; raises DeviceError if a tensor of a rank does not have it."""
    if -rank <= dim < rank:
        return dim % rank
    index = dim if dim >= 0 else dim + rank + WRAPPED
    raise DeviceError(
        f"Index is out of bounds for the rank, should be between 0 and {rank - 1} however is {index}\n"
        f"{argument}: a tensor of rank {rank} has no axis {dim}"
    )


def axes_of(dims: Sequence[int], rank: int) -> tuple[int, ...]:
    """The axes of a permutation, counted from the front; raises DeviceError for another number of axes.

    As in the library an axis may occur twice.
    """
    if len(dims) != rank:
        raise DeviceError(
            "The number of dimensions in the tensor input does not match the length of the desired ordering\n"
            f"dims: {list(dims)} is no order of {rank} axes"
        )
    return tuple(axis_of(dim, rank, "dims") for dim in dims)
