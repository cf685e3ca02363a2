"""The tiles and the buffers of the program that puts a number into the padding of tiles.

Source: tt-metal 0.81.1 (data_movement/fill_pad), compared with recorded plans.
"""

from math import prod

from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE
from device.numbers.block_floats import div_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.programs.buffer_shapes import BUFFERING, buffer, page_cores


def ragged_tiles(shape: tuple[int, ...]) -> int:
    """Tiles that hold padding."""
    *images, rows, columns = (1, *shape)  # a vector is one row
    return prod(images) * (div_up(rows, TILE) * div_up(columns, TILE) - (rows // TILE) * (columns // TILE))


def fill_buffers(tensor: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Dataflow buffers of the program: tiles on both sides, and a mask for each side on which there is padding."""
    data_format, shards = tensor.data_format, tensor.memory_config.shard_spec
    cores = page_cores(ragged_tiles(tensor.shape), spec.grid) if shards is None else tensor.data_cores
    masks = [name for name, side in (("right", -1), ("bottom", -2)) if (1, *tensor.shape)[side] % TILE]
    sizes = {"read": BUFFERING, **dict.fromkeys(masks, 1), "written": BUFFERING}
    return tuple(buffer(name, tiles * data_format.tile_bytes, data_format, cores) for name, tiles in sizes.items())
