"""A number around a tensor: what it computes, its buffers, and what it takes.

Source: tt-metal 0.81.1 (data_movement/pad), compared with recorded plans. Cycles are composed: pages of the source are
waited for and those of the result written, as in measured copies.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout, TensorMemoryLayout
from device.numbers.block_floats import div_up, round_up
from device.numbers.formats import BFLOAT16, FLOAT32, Array, quantize
from device.plan import CircularBuffer, DeviceOp
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanTensor
from ops.programs.buffer_shapes import BUFFERING, buffer, page_cores, row_bytes, scratchpad, shard_view, volume_tiles
from ops.programs.rearrange.composed import composed

BARRIER_BYTES = 2048  # of rows that are waited for together, at least
BARRIERS = 16  # on their way through a core, if they fit half of its L1
HALF_BITS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class PadWith(DeviceOp):
    """A number around a tensor."""

    shape: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]  # Before and behind, for each axis
    value: float
    in_halves: bool = False  # A 32-bit number is written as the number in bfloat16, twice


def padded(work: PadWith, values: Array) -> Array:
    """The number around the tensor, as its format holds it."""
    number = np.asarray(work.value, values.dtype)
    if work.in_halves:
        bits = quantize(np.asarray([work.value], np.float32), BFLOAT16).astype(np.float32).view(np.uint32)
        number = (bits | bits >> HALF_BITS).view(np.float32)[0]
    return np.pad(values.reshape(work.shape), work.padding, constant_values=number)


def pads_shards(source: TensorSpec, made: TensorSpec) -> bool:
    """Whether rows are padded from HEIGHT shards into HEIGHT shards that are as wide as the result, and as high."""
    before, after = source.memory_config, made.memory_config
    if before.shard_spec is None or after.shard_spec is None or before.buffer_type is not BufferType.L1:
        return False
    by_height = {before.memory_layout, after.memory_layout} == {TensorMemoryLayout.HEIGHT_SHARDED}
    high = after.shard_spec.shape[0] >= before.shard_spec.shape[0]
    return by_height and high and source.layout is Layout.ROW_MAJOR and made.shape[-1] == after.shard_spec.shape[1]


def writes_halves(source: TensorSpec, made: TensorSpec) -> bool:
    """Whether the program writes a 32-bit number as two bfloat16 ones: every program of rows but that which widens."""
    widens = pads_shards(source, made) and source.shape[-1] != made.shape[-1]
    return source.layout is Layout.ROW_MAJOR and source.data_format == FLOAT32 and not widens


def pad_buffers(source: PlanTensor, made: PlanTensor, front: int, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Dataflow buffers of the program: tiles, shards, or rows on their way; and places for the number.

    Args:
        source: What it reads.
        made: What it makes.
        front: Columns before the first one of the source.
    """
    data_format = made.spec.data_format
    if made.spec.layout is Layout.TILE:
        cores, page = page_cores(volume_tiles(made.spec), spec.grid), data_format.tile_bytes
        return buffer("tiles", BUFFERING * page, data_format, cores), scratchpad("number", page, data_format, cores)
    if pads_shards(source.spec, made.spec):
        return _shard_buffers(source, made, spec)
    return _row_buffers(source.spec, made.spec, front, spec)


def _shard_buffers(source: PlanTensor, made: PlanTensor, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Views of both shards, of no more rows than there are, and a row of the number.

    The program that widens rows runs on the cores that hold rows, the program that adds rows on the whole grid.
    """
    widens = source.spec.shape[-1] != made.spec.shape[-1]
    result = shard_view("padded", made, spec, made.spec.data_cores if widens else None)
    rows = min(source.spec.shards.shape[0], source.spec.matrix[0])
    row, data_format = row_bytes(made.spec), made.spec.data_format
    given = buffer(
        "shards", rows * row_bytes(source.spec, source.spec.shape[-1]), data_format, result.cores, source.name
    )
    fill = scratchpad if widens else buffer
    return given, result, fill("number", row, data_format, result.cores)


def _row_buffers(source: TensorSpec, made: TensorSpec, front: int, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Rows by groups that are waited for together, a row of the number, and one in which rows are aligned."""
    data_format, cores = made.data_format, page_cores(made.matrix[0], spec.grid)
    row = made.shape[-1] * (data_format.element_bytes or 0)
    apart, in_dram = round_up(row, spec.l1.alignment_bytes), round_up(row, spec.dram.alignment_bytes)
    group = div_up(BARRIER_BYTES, apart) * apart
    depth = max(1, min(BARRIERS, row_room_bytes(spec) // group))
    aligned = front or apart % spec.dram.alignment_bytes
    names = ("number", "aligned") if aligned else ("number",)
    return (
        buffer("rows", depth * group, data_format, cores),
        *(scratchpad(name, in_dram, data_format, cores) for name in names),
    )


def row_room_bytes(spec: DeviceSpec) -> int:
    """Bytes that rows on their way through a core may take: half of its L1, but for what lies below all programs."""
    return spec.l1.bytes // 2 - spec.l1.base_bytes


OP_MODELS: Final = (composed(PadWith, padded),)
