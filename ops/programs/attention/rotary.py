"""The program of a rotary embedding: values, cycles and circular buffers.

Source: tt-metal 0.81.1 (experimental/transformer/rotary_embedding), compared with recorded plans.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from device.cores import CoreRangeSet
from device.memory.memory_config import TILE
from device.numbers.formats import BFLOAT8_B, BFLOAT16, Array, DataFormat
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from device.time.network import shared_cycles
from device.time.stages import Stage
from ops.builder import PlanTensor
from ops.op_model import Ends, ValuesContext, given, uncompared_fact
from ops.programs.buffer_shapes import BUFFERING, in_dram, shard_view, tile_buffer
from ops.programs.data_movement.movement import Composed, DataMovement
from ops.programs.kernel_costs import (
    ComputeCosts,
    pack_tile_cycles,
    read_page_cycles,
    unpack_tile_cycles,
    write_page_cycles,
)
from ops.programs.normalization.tile_math import TileMath

UNCOMPARED = uncompared_fact("a rotary embedding was never compared with the real kernel's")


@dataclass(frozen=True, slots=True, kw_only=True)
class RotaryEmbedding(DataMovement):
    """x * cos + (the halves of x, exchanged, the first of them negative) * sin, row by row of each head."""

    shape: tuple[int, ...]  # Of the tensor and the result, in whole tiles
    token: int | None  # The row of the tables that all rows take; None for each its own
    data_format: DataFormat
    table_format: DataFormat  # Of cosines and sines
    fidelity_phases: int
    fp32_dest: bool
    cores: CoreRangeSet
    core_tiles: int  # Of the core with most

    @property
    def wide(self) -> int:
        """Tiles of a row."""
        return self.shape[-1] // TILE

    @property
    def part_format(self) -> DataFormat:
        """Format of the two products, of the tables' where halves are whole tiles."""
        return self.table_format if self.wide > 1 else self.data_format

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """The rotated rows."""
        math = TileMath.of(context, fidelity_phases=self.fidelity_phases, fp32_dest=self.fp32_dest)
        rows, columns = self.shape[-2:]
        x = math.read(filled(given(inputs[0]), (*self.shape[:-2], rows, columns)), self.data_format)
        high = (0 if self.token is None else self.token) + rows
        tables = [math.read(filled(given(table)[0, 0], (high, columns)), self.table_format) for table in inputs[1:]]
        cosines, sines = (table[:rows] if self.token is None else table[self.token][None] for table in tables)
        half = columns // 2
        turned = np.concatenate([-x[..., half:], x[..., :half]], axis=-1)
        products = [math.multiplied(x, cosines), math.multiplied(turned, sines)]
        parts = [math.read(math.packed(product, self.part_format), self.part_format) for product in products]
        return math.packed(math.added(*parts), self.data_format)

    def composed(self, ends: Ends, spec: DeviceSpec) -> Composed:
        """Two and a half products of a tile: by cosines, by sines, and of half of the tiles by -1."""
        row_tiles = 0 if self.token is not None else self.core_tiles
        return rotation(
            ends, spec, cores=self.cores, core_tiles=self.core_tiles, row_tiles=row_tiles, products=2.5,
            phases=self.fidelity_phases,
        )  # fmt: skip


def rotation(
    ends: Ends, spec: DeviceSpec, *, cores: CoreRangeSet, core_tiles: int, row_tiles: int, products: float, phases: int
) -> Composed:
    """Tiles of a tensor and of two tables are read, multiplied, added and written.

    Each core has ``core_tiles``, with ``products`` of each, and reads ``row_tiles`` of either table.
    """
    data_format, table_format = ends.read.data_format, ends.others[0].data_format
    costs, size = spec.costs_of(ComputeCosts), data_format.tile_bytes
    unpack, pack = unpack_tile_cycles(spec, size), pack_tile_cycles(spec, size)
    product = max(2 * unpack, phases * spec.compute.phase_cycles) + pack
    math = core_tiles * (products * product + max(2 * unpack, costs.add_tile_cycles) + pack)
    tables = 2 * row_tiles * read_page_cycles(spec, table_format.tile_bytes)
    own = 0.0 if ends.read.memory_config.is_sharded() else 2 * core_tiles * read_page_cycles(spec, size)
    reading = tables + own
    sharded = ends.written.memory_config.is_sharded()
    writing = 0.0 if sharded else core_tiles * write_page_cycles(spec, size)
    sources = (ends.read, *ends.others) if row_tiles else (ends.read,)
    moved = [
        sum(tensor.buffer(spec).size_bytes for tensor in side if in_dram(tensor)) for side in (sources, (ends.written,))
    ]
    shared = shared_cycles(spec, sum(moved))
    return Composed(
        cores=cores,
        body_cycles=max(reading, math, writing, shared),
        stages={
            Stage.READER: (reading, "tiles of the tensor and of its tables are read"),
            Stage.MATH: (math, "products, their sum and packing"),
            Stage.WRITER: (writing, "tiles of the result are written"),
            Stage.DRAM: (shared, "all cores share the banks"),
        },
        steps="reading, multiplying, adding, packing and writing of tiles",
        details=(UNCOMPARED,),
        dram_read_bytes=moved[0],
        dram_written_bytes=moved[1],
    )


def filled(values: Array, shape: tuple[int, ...]) -> Array:
    """An array cut to a shape, or filled up with zeros."""
    part = values[tuple(slice(side) for side in shape)].astype(np.float32)
    return np.pad(part, [(0, side - own) for side, own in zip(shape, part.shape, strict=True)])


def rotary_buffers(
    op: RotaryEmbedding, source: PlanTensor, output: PlanTensor, spec: DeviceSpec
) -> tuple[CircularBuffer, ...]:
    """The buffers in order of allocation; halves of a single tile are exchanged within it."""
    wide, once = op.wide, op.token is not None
    held = BUFFERING * wide
    tables = wide if once else held
    exchanged = ("exchanged", held, op.data_format)
    if wide == 1:  # a matrix that exchanges columns of a tile
        exchanged = ("exchange", 1, BFLOAT8_B if op.data_format == BFLOAT8_B else BFLOAT16)
    rows: list[tuple[str, int, DataFormat]] = [
        ("input", held, op.data_format),
        exchanged,
        ("cosines", tables, op.table_format),
        ("sines", tables, op.table_format),
        *([("minus_one", 1, BFLOAT16)] if wide > 1 else []),
        ("turned", 1, op.data_format),
        ("cosine_part", 1, op.part_format),
        ("sine_part", 1, op.part_format),
        ("output", held, op.data_format),
    ]
    if once:
        rows += [("cosine_tiles", wide, op.table_format), ("sine_tiles", wide, op.table_format)]
        rows += [("cosine_rows", wide, BFLOAT16), ("sine_rows", wide, BFLOAT16)]
    views = {name: end for name, end in (("input", source), ("output", output)) if end.spec.memory_config.is_sharded()}
    return tuple(
        shard_view(name, views[name], spec) if name in views else tile_buffer(name, tiles, data_format, op.cores)
        for name, tiles, data_format in rows
    )
