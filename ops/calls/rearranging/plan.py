"""Plans that put numbers in another order.

Rules: ttnn 0.81.1, compared with recorded plans; what is not known of a kind of tensor is refused by name.
"""

from collections.abc import Sequence
from typing import NoReturn

from device.errors import ArgumentError, DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout, MemoryConfig, ShardSpec, TensorMemoryLayout
from device.memory.tiles import TILE
from device.numbers.formats import DataFormat
from device.numbers.integers import round_up
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.meanings import MEANINGS
from ops.programs.rearrange.buffers import (
    chw_buffers,
    hwc_buffers,
)
from ops.programs.rearrange.work import ChannelsFirst, ChannelsLast

STICK_BYTES = 16  # channels that are put last fill whole multiples of this
WRAPPED = 1 << 64  # the library's indices of axes have no sign


def plan_convert_to_hwc(
    source: TensorSpec, spec: DeviceSpec, *, place: MemoryConfig | None = None, data_format: DataFormat | None = None
) -> Plan:
    """Plan the tensor "input", [1, B, C, H*W] in WIDTH shards of rows, with channels last in HEIGHT shards."""
    shards = _shards("convert_to_hwc", source, TensorMemoryLayout.WIDTH_SHARDED)
    made_format = data_format or source.data_format
    _, batch, channels, pixels = (1, 1, 1, 1, *source.shape)[-4:]
    held = round_up(channels, STICK_BYTES // (source.data_format.element_bytes or 1))
    if place is None and source.memory_config.buffer_type is BufferType.DRAM:
        raise DeviceError(
            "Output memory config must be provided for DRAM inputs\nmemory_config: give HEIGHT shards in L1"
        )
    where = place or MemoryConfig(
        TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, ShardSpec(shards.grid, (batch * shards.shape[1], held))
    )
    made = PlanTensor("output", TensorSpec((1, 1, batch * pixels, held), made_format, Layout.ROW_MAJOR, where))
    work = ChannelsLast(shape=(1, batch, channels, pixels), channels=held)
    builder = PlanBuilder(spec, {"input": source})
    given = builder.tensor("input")
    result = builder.run(
        "ConvertToHWCDeviceOperation",
        work,
        [given],
        output=made,
        circular_buffers=hwc_buffers(given, made),
        refused=_hwc_refusal(source, made.spec),
    )
    return builder.finish({"output": result.name}, known_works=MEANINGS)


def require_written_channels(source: TensorSpec, made: TensorSpec) -> None:
    """Raises ArgumentError for channels of the result that the library never writes: those behind the tensor's own.

    Source: tt-metal 0.81.1 (convert_to_hwc reads the tensor's channels alone into a buffer that nothing clears);
    recorded: 3 channels give other numbers in another order of calls.
    """
    channels, held = source.shape[-2], made.shape[-1]
    if channels != held:
        raise ArgumentError(
            f"experimental.convert_to_hwc: the result has {held} channels, and the tensor {channels}: the real library "
            f"leaves the last {held - channels} as memory was before; pad the tensor to {held} channels with "
            "ttnn.pad first"
        )


def _hwc_refusal(source: TensorSpec, made: TensorSpec) -> str | None:
    """Why the library does not put channels last, if it does not; said once the result is allocated."""
    given, held = source.memory_config.shard_spec, made.memory_config.shard_spec
    if given is None or held is None:
        return None
    if held.shape[0] % TILE:
        return f"Shard height {held.shape[0]} must be multiple of tile width ({TILE})\nmemory_config: give other shards"
    (batch, _, pixels), room = (1, 1, *source.shape)[-3:], given.num_cores() * given.shape[1]
    if source.memory_config.buffer_type is BufferType.L1 and pixels < room and batch != 1:
        return (
            f"Uneven sharding (HW={pixels} < total_padded_capacity={room}) is only supported for batch_size=1, got "
            f"batch_size={batch}\ninput: shards must hold the pixels of an image evenly"
        )
    return None


def plan_convert_to_chw(source: TensorSpec, spec: DeviceSpec, *, data_format: DataFormat | None = None) -> Plan:
    """Plan the tensor "input", [1, 1, H*W, C] in HEIGHT shards of tiles, with channels first in WIDTH shards."""
    if not source.memory_config.is_sharded():
        raise DeviceError("Input tensor must be sharded to infer output memory config\ninput: give HEIGHT shards in L1")
    shards = _shards("convert_to_chw", source, TensorMemoryLayout.HEIGHT_SHARDED)
    pixels, channels = source.shape[-2:]
    where = MemoryConfig(
        TensorMemoryLayout.WIDTH_SHARDED, BufferType.L1, ShardSpec(shards.grid, (channels, shards.shape[0]))
    )
    made_format = data_format or source.data_format
    made = PlanTensor("output", TensorSpec((1, 1, channels, pixels), made_format, Layout.ROW_MAJOR, where))
    work = ChannelsFirst(shape=source.shape, source_format=source.data_format, data_format=made_format)
    builder = PlanBuilder(spec, {"input": source})
    given = builder.tensor("input")
    result = builder.run(
        "ConvertToCHWDeviceOperation", work, [given], output=made, circular_buffers=chw_buffers(given, made)
    )
    return builder.finish({"output": result.name}, known_works=MEANINGS)


def _shards(owner: str, source: TensorSpec, layout: TensorMemoryLayout) -> ShardSpec:
    """The shards of a tensor; raises DeviceError if it is sharded in another way."""
    shards = source.memory_config.shard_spec
    if shards is None or source.memory_config.memory_layout is not layout:
        raise DeviceError(f"Input tensor must be {layout.name}\n{owner}: reshard it")
    return shards


def _refuse(owner: str, what: str, way_out: str) -> NoReturn:
    raise ArgumentError(f"{owner}: {what} are not simulated; {way_out}")


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
    """An order of axes, counted from the first; raises DeviceError if it is none."""
    axes = tuple(axis_of(dim, rank, "dims") for dim in dims) if len(dims) == rank else ()
    if sorted(axes) != list(range(rank)):
        raise DeviceError(
            "The number of dimensions in the tensor input does not match the length of the desired ordering\n"
            f"dims: {list(dims)} is no order of {rank} axes"
        )
    return axes
