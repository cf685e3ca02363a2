"""Plans that put numbers in another order.

Rules: ttnn 0.81.1, compared with recorded plans; what is not known of a kind of tensor is refused by name.
"""

from collections.abc import Sequence
from typing import NoReturn

from device.errors import ArgumentError, DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout, MemoryConfig, ShardSpec, TensorMemoryLayout
from device.numbers.formats import DataFormat
from device.numbers.integers import round_up
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.meanings import MEANINGS
from ops.programs.rearrange.buffers import (
    chw_buffers,
    hwc_buffers,
    upsample_buffers,
)
from ops.programs.rearrange.work import ChannelsFirst, ChannelsLast, Repeat

STICK_BYTES = 16  # channels that are put last fill whole multiples of this


def plan_upsample(
    source: TensorSpec, scale: tuple[int, int], spec: DeviceSpec, *, place: MemoryConfig | None = None
) -> Plan:
    """Plan every pixel of the tensor "input", [N, H, W, C], several times.

    Raises:
        ArgumentError: The library takes programs that are not simulated.
        DeviceError: Tiles have padding.
    """
    where = source.memory_config if place is None else place
    if source.layout is Layout.TILE and source.shape != source.padded_shape:
        raise DeviceError(
            "Tiled input must be tile-aligned (no padding difference)\ninput_tensor: give rows, or whole tiles"
        )
    if source.layout is Layout.TILE or source.memory_config.is_sharded() or where.is_sharded():
        _refuse("upsample", "tiles and sharded tensors", "give interleaved rows")
    batch, height, width, channels = source.shape
    builder = PlanBuilder(spec, {"input": source})
    shape = (batch, height * scale[0], width * scale[1], channels)
    made = PlanTensor("output", TensorSpec(shape, source.data_format, source.layout, where))
    result = builder.run(
        "UpsampleOperation",
        Repeat(shape=source.shape, scale=scale),
        [builder.tensor("input")],
        output=made,
        circular_buffers=upsample_buffers(source, spec),
        dataflow=True,
    )
    return builder.finish({"output": result.name}, known_works=MEANINGS)


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
        "ConvertToHWCDeviceOperation", work, [given], output=made, circular_buffers=hwc_buffers(given, made)
    )
    return builder.finish({"output": result.name}, known_works=MEANINGS)


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


def axes_of(dims: Sequence[int], rank: int) -> tuple[int, ...]:
    """An order of axes, counted from the first; raises DeviceError if it is none."""
    axes = tuple(dim % rank if -rank <= dim < rank else dim for dim in dims)
    if sorted(axes) != list(range(rank)):
        raise DeviceError(
            "The number of dimensions in the tensor input does not match the length of the desired ordering\n"
            f"dims: {list(dims)} is no order of {rank} axes"
        )
    return axes
