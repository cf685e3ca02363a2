"""The buffers of programs that put numbers in another order.

Source: tt-metal 0.81.1 (permute, transpose, convert_to_hwc, convert_to_chw), compared with recorded plans.
"""

from math import prod

from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, BufferType
from device.numbers.block_floats import div_up
from device.numbers.formats import BFLOAT16
from device.plan import CircularBuffer
from ops.builder import PlanTensor
from ops.programs.buffer_shapes import buffer

HWC_BLOCK = 1024  # pixels that are turned at once, at least, if shards are wider
CHW_TILES = 16  # tiles on their way through a core that puts channels first


def hwc_block(pixels: int) -> int:
    """Pixels that a core with so many turns at once."""
    return next((n for n in range(HWC_BLOCK, pixels + 1, TILE) if pixels % n == 0), pixels)


def hwc_buffers(source: PlanTensor, made: PlanTensor) -> tuple[CircularBuffer, ...]:
    """Circular buffers of a program that puts channels last: shards, gathered pixels, tiles in three stages, result."""
    held, given = made.spec.shards, source.spec.shards
    element_bytes = source.spec.data_format.element_bytes or 0
    in_dram = source.spec.memory_config.buffer_type is BufferType.DRAM
    channels, pixels = source.spec.shape[2], held.shape[0]
    block = hwc_block(pixels)
    rows = channels if in_dram else given.shape[0]
    tiles = div_up(block, TILE) * BFLOAT16.tile_bytes
    data_format = source.spec.data_format
    return (
        buffer(
            "input", rows * given.shape[1] * element_bytes, data_format, held.grid, None if in_dram else source.name
        ),
        buffer("gathered", channels * block * element_bytes, data_format, held.grid),
        *(buffer(name, tiles, BFLOAT16, held.grid) for name in ("tiled", "turned_0", "turned_1")),
        buffer("output", output_bytes(source.spec, made.spec), data_format, held.grid, made.name),
    )


def output_bytes(source: TensorSpec, made: TensorSpec) -> int:
    """Bytes of the buffer that lies on a shard of channels last; the library counts elements of the source."""
    return prod(made.shards.shape) * (source.data_format.element_bytes or 0)


def chw_buffers(source: PlanTensor, made: PlanTensor) -> tuple[CircularBuffer, ...]:
    """Circular buffers of a program that puts channels first: both shards, and tiles on their way."""
    held, given = made.spec.shards, source.spec.shards
    in_bytes = prod(given.shape) // TILE**2 * source.spec.data_format.tile_bytes
    out_bytes = prod(held.shape) * (made.spec.data_format.element_bytes or 0)
    return (
        buffer("input", in_bytes, source.spec.data_format, given.grid, source.name),
        buffer("output", out_bytes, made.spec.data_format, given.grid, made.name),
        buffer("turned", CHW_TILES * BFLOAT16.tile_bytes, BFLOAT16, given.grid),
    )
