"""What ttnn.upsample, mode "bilinear", refuses; all other calls of that mode are not simulated.

Rules: ttnn 0.81.1, compared with recorded plans. The library deals an interleaved image to all cores by height, gathers
the neighbors of every shard in a halo, and then looks at the format and the channels.
"""

from collections.abc import Sequence
from math import prod

from device.errors import ArgumentError, DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    BufferType,
    Layout,
    MemoryConfig,
    ShardOrientation,
    ShardSpec,
    TensorMemoryLayout,
)
from device.memory.tiles import TILE
from device.numbers.formats import BFLOAT8_B, BFLOAT16
from device.numbers.integers import div_up
from device.spec.device_spec import DeviceSpec
from ops.programs.actions.work_cores import page_cores
from ops.programs.rearrange.views import seen_anew

FORMATS = (BFLOAT16, BFLOAT8_B)  # block floats leave Halo as bfloat16


def refuse_bilinear(source: TensorSpec, scale: Sequence[float], spec: DeviceSpec) -> None:
    """Refuses a call: DeviceError where the library does, in its words, and ArgumentError where it interpolates."""
    if not all(factor.is_integer() for factor in scale):
        raise DeviceError(
            f"bilinear mode requires integer scale factors, got ({scale[0]:g}, {scale[1]:g})\n"
            "scale_factor: give whole numbers, or use mode 'nearest'"
        )
    place, channels = source.memory_config, source.shape[-1]
    if not place.is_sharded():
        _check_dealt(source, spec)
    elif source.layout is Layout.ROW_MAJOR:
        seen_anew(source, (1, 1, prod(source.shape[:-1]), channels), spec)  # refuses rows that shards cut and pad
    if place.memory_layout in (TensorMemoryLayout.INTERLEAVED, TensorMemoryLayout.HEIGHT_SHARDED):
        if place.shard_spec is not None:
            _check_walk(place.shard_spec)
        if source.data_format not in FORMATS:
            raise DeviceError(f"Bilinear upsample requires BFLOAT16 input\ninput_tensor: typecast {source.data_format}")
        if channels % TILE:
            raise DeviceError(f"input channels should be divisible by {TILE}\ninput_tensor: pad {channels} channels")
    raise ArgumentError("upsample: mode 'bilinear' is not simulated; use 'nearest'")


def _check_dealt(source: TensorSpec, spec: DeviceSpec) -> None:
    """Raises DeviceError if the shards that all cores get of an interleaved image in tiles are no whole tiles."""
    if source.layout is Layout.TILE:
        pixels = prod(source.shape[:-1])
        cores = page_cores(pixels, spec.grid)
        shards = ShardSpec(cores, (div_up(pixels, cores.num_cores()), source.shape[-1]))
        place = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, shards)
        TensorSpec((1, 1, pixels, source.shape[-1]), source.data_format, Layout.TILE, place)


def _check_walk(shards: ShardSpec) -> None:
    """Raises DeviceError if the cores are not those of a box at the origin, row by row."""
    columns = shards.grid.bounding_box().end.x - shards.grid.bounding_box().start.x + 1
    for index, core in enumerate(shards.grid.cores(shards.orientation is ShardOrientation.ROW_MAJOR)):
        row, column = divmod(index, columns)
        if (core.x, core.y) != (column, row):
            raise DeviceError(
                f"Sliding-window shard grid core {index} is {core} but the origin-anchored row walk addresses it as "
                f"{column}-{row}. Only an origin-anchored, row-filled grid is supported; any other grid hangs "
                "max_pool2d/avg_pool2d or silently returns wrong conv2d results (#60513).\n"
                "input_tensor: reshard it to cores from 0-0 on, row by row"
            )
