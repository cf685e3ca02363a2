"""The program that reduces rows, columns or both of a tensor to a sum, a maximum or a minimum (tt-metal 0.81.1).

The matrix unit multiplies tiles of bfloat16 and block floats by a row of scalers and sums; the vector unit adds float32
and integers. Splitting a long axis gives partial results, which another such program reduces.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import Final

import numpy as np

from device.cores import CoreRangeSet
from device.matrix_unit.arithmetic import Arithmetic, arithmetic_of, cut
from device.matrix_unit.exact import MatrixUnitMode
from device.matrix_unit.packer import without_nan
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, BufferType, Layout
from device.numbers.formats import BFLOAT16, FLOAT32, INT32, UINT32, Array, DataFormat, div_up, quantize, whole_groups
from device.numbers.vector_unit import cut_to_bfloat16
from device.spec.device_spec import DeviceSpec
from device.time.network import shared_cycles
from device.time.stages import Stage
from ops.op_model import Description, Detail, Ends, ValuesContext, given, uncompared_fact
from ops.programs import kernel_costs
from ops.programs.data_movement.movement import Composed, DataMovement

UNCOMPARED: Final = "sums and extremes never compared with the real kernel's"


class Reduction(Enum):
    """The kind of a reduction."""

    SUM = "sum"
    MAX = "max"
    MIN = "min"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduce(DataMovement):
    """A reduction of the last axis, the last but one, or both; reduced axes stay with length 1 or ``slices``."""

    reduction: Reduction
    shape: tuple[int, ...]  # Of the tensor, which may be a view of the numbers of another shape
    axes: tuple[int, ...]  # (-1,), (-2,) or (-2, -1)
    scalar: float  # Elements are multiplied by it before they are summed or compared
    source_format: DataFormat
    data_format: DataFormat
    fidelity_phases: int
    fp32_dest: bool
    accurate: bool  # float32 is added by the vector unit, with all its bits
    slices: int = 1  # Parts of axis -2, in whole tiles; the result has one row for each
    cores: CoreRangeSet
    core_tiles: int  # Tiles that the core with the most work reads
    core_outputs: int  # And that it packs
    from_shards: bool = False  # Tiles are in the core's own shard

    @property
    def by_vector_unit(self) -> bool:
        """Whether the vector unit reduces, without rounding operands."""
        if not self.source_format.is_float:
            return True
        if self.source_format == BFLOAT16:
            return self.reduction is Reduction.MIN
        return self.source_format == FLOAT32 and self.accurate

    @property
    def negates(self) -> bool:
        """Whether a minimum is the negated maximum of negated values."""
        return self.reduction is Reduction.MIN and (self.source_format == UINT32 or not self.by_vector_unit)

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """The reduced tensor in storage of its format; a vector in tiles is one row."""
        source = given(inputs[0]).reshape(self.shape)
        values = source.reshape(1, -1) if source.ndim < 2 else source
        if not self.source_format.is_float:
            return self._of_integers(values).reshape(self._shape(source.shape))
        parts = self._parts(values)
        if self.reduction is Reduction.SUM:
            totals = self._sums(parts, context)
        else:
            totals = self._extremes(parts, context.arithmetic)
        totals = totals.reshape(self._shape(values.shape))
        return packed(totals, self.data_format, context.arithmetic, fp32_dest=self.fp32_dest).reshape(
            self._shape(source.shape)
        )

    def _shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        rank = len(shape)
        gone = {axis % rank: self.slices if axis == -2 else 1 for axis in self.axes} if rank else {}
        return tuple(gone.get(axis, side) for axis, side in enumerate(shape))

    def _parts(self, values: Array) -> Array:
        """[results, elements]: the elements of each result, rows of tiles first; zeros or copies fill slices up."""
        if self.axes == (-1,):
            return values.reshape(-1, values.shape[-1])
        if len(self.axes) == 2:
            return values.reshape(prod(values.shape[:-2]), -1)
        *most, rows, columns = values.shape
        if self.slices > 1:
            slice_rows = div_up(div_up(rows, TILE), self.slices) * TILE
            missing = self.slices * slice_rows - rows
            around = [*[(0, 0)] * len(most), (0, missing), (0, 0)]
            values = np.pad(values, around, "constant" if self.reduction is Reduction.SUM else "edge")
            rows = slice_rows
        grouped = values.reshape(-1, rows, columns)
        return np.ascontiguousarray(np.swapaxes(grouped, 1, 2)).reshape(-1, rows)

    def _sums(self, parts: Array, context: ValuesContext) -> Array:
        numbers = parts.astype(np.float32)
        if self.by_vector_unit:
            total = np.add.reduce(_tiles_added(numbers), axis=-1, dtype=np.float32)
            return np.asarray(total * np.float32(self.scalar), np.float32)
        scaler_format = FLOAT32 if self.source_format == FLOAT32 else BFLOAT16
        scaler = np.full(1, self.scalar, np.float32)
        scaler = scaler if scaler_format == FLOAT32 else cut_to_bfloat16(scaler)
        mode = MatrixUnitMode(
            fidelity_phases=self.fidelity_phases,
            fp32_dest=self.fp32_dest,
            minus_one_quirk=context.spec.compute.minus_one_quirk,
        )
        formats = (self.source_format, scaler_format)
        return scaled_sums(numbers, scaler, mode, formats, context.arithmetic)

    def _extremes(self, parts: Array, arithmetic: Arithmetic) -> Array:
        numbers = parts.astype(np.float32)
        if not self.by_vector_unit:
            numbers = arithmetic.unpack(numbers, self.source_format, fp32_dest=self.fp32_dest)
        numbers = without_nan(np.ascontiguousarray(numbers).view(np.uint32)).view(np.float32)
        extreme = numbers.max(axis=-1) if self._takes_largest else numbers.min(axis=-1)
        return np.asarray(extreme if self.scalar == 1.0 else extreme * np.float32(self.scalar), np.float32)

    @property
    def _takes_largest(self) -> bool:
        """Whether the extreme of the products with the scalar is the product of the largest element."""
        return (self.reduction is Reduction.MAX) == (self.scalar >= 0)

    def _of_integers(self, values: Array) -> Array:
        """Sums modulo 2**32; a scalar multiplies in float32, and the product is cut."""
        parts = self._parts(values)
        with np.errstate(over="ignore", invalid="ignore"):
            if self.reduction is Reduction.SUM:
                total = parts.astype(np.int64).sum(axis=-1).astype(self.data_format.storage)
            else:
                total = parts.max(axis=-1) if self._takes_largest else parts.min(axis=-1)
            if self.scalar != 1.0:
                total = np.trunc(total.astype(np.float32) * np.float32(self.scalar)).astype(np.int64)
        return np.asarray(total).astype(self.data_format.storage).reshape(self._shape(values.shape))

    def composed(self, ends: Ends, spec: DeviceSpec) -> Composed:
        """Tiles are read and multiplied by a row of scalers, or pass the vector unit twice; results are packed."""
        costs = spec.costs_of(kernel_costs.ComputeCosts)
        phases = self.fidelity_phases if self.reduction is Reduction.SUM else 1
        math = 2 * costs.vector_tile_cycles if self.by_vector_unit else phases * spec.compute.phase_cycles
        if ends.read.layout is Layout.ROW_MAJOR:
            math += costs.tilize_tile_cycles
        return streamed(
            ends,
            spec,
            cores=self.cores,
            tiles=(self.core_tiles, self.core_outputs),
            math_cycles=math,
            from_shards=self.from_shards,
            steps="reading, reducing and packing of tiles",
        )

    def describe(self, ends: Ends, spec: DeviceSpec) -> Description:
        """A reduction, whose numbers were never compared with recordings."""
        return described(DataMovement.describe(self, ends, spec))


def described(text: Description, *more: Detail) -> Description:
    """A description with the fact that the numbers were never compared."""
    facts = text.facts
    return Description(
        facts=(*facts, *more, uncompared_fact(UNCOMPARED)),
        stages=text.stages,
        composed_of=text.composed_of,
    )


def streamed(
    ends: Ends,
    spec: DeviceSpec,
    *,
    cores: CoreRangeSet,
    tiles: tuple[int, int],
    math_cycles: float,
    from_shards: bool = False,
    steps: str,
) -> Composed:
    """A program that reads and computes tile by tile and packs fewer; ``tiles`` are (read, packed) of one core."""
    read, written = ends.read, ends.written
    in_bytes, out_bytes = read.data_format.tile_bytes, written.data_format.tile_bytes
    core_tiles, outputs = tiles
    reading = 0.0 if from_shards else core_tiles * kernel_costs.read_page_cycles(spec, in_bytes)
    computing = core_tiles * max(kernel_costs.unpack_tile_cycles(spec, in_bytes), math_cycles)
    packing = outputs * kernel_costs.pack_tile_cycles(spec, out_bytes)
    writing = outputs * kernel_costs.write_page_cycles(spec, out_bytes)
    in_dram = [tensor.memory_config.buffer_type is BufferType.DRAM for tensor in (read, written)]
    sizes = [moved * tensor.buffer(spec).size_bytes for moved, tensor in zip(in_dram, (read, written), strict=True)]
    shared = shared_cycles(spec, sum(sizes))
    first = 0.0 if from_shards else kernel_costs.waited_read_cycles(spec, in_bytes, in_dram=in_dram[0])
    last = kernel_costs.waited_write_cycles(spec, out_bytes, in_dram=in_dram[1])
    return Composed(
        cores=cores,
        body_cycles=max(first + max(reading, computing, packing, writing) + last, shared),
        stages={
            Stage.READER: (reading, "tiles are read"),
            Stage.MATH: (computing, "tiles are unpacked and reduced"),
            Stage.PACK: (packing, "results are packed into L1"),
            Stage.WRITER: (writing, "results are written"),
            Stage.DRAM: (shared, "DRAM delivers or takes the pages of all cores"),
        },
        steps=steps,
        dram_read_bytes=sizes[0],
        dram_written_bytes=sizes[1],
    )


def scaled_sums(
    numbers: Array,
    scaler: Array,
    mode: MatrixUnitMode,
    formats: tuple[DataFormat, DataFormat],
    arithmetic: Arithmetic,
) -> Array:
    """[rows] sums of [rows, elements] times a scaler, by the matrix unit; formats of the elements and the scaler."""
    arithmetic = arithmetic_of(arithmetic, numbers, scaler)
    masks = arithmetic.operand_masks(mode)
    columns = div_up(numbers.shape[1], TILE) * TILE
    padded = np.zeros((numbers.shape[0], columns), np.float32)
    padded[:, : numbers.shape[1]] = numbers
    activations = cut(arithmetic.unpack(padded, formats[0], fp32_dest=mode.fp32_dest), masks[0])
    weights = np.repeat(scaler.astype(np.float32), columns).reshape(columns, 1)
    weights = cut(arithmetic.unpack(weights, formats[1], fp32_dest=mode.fp32_dest), masks[1])
    return arithmetic.product(activations, weights, mode=mode, half_counts=(2,) * (columns // TILE))[:, 0]


def _tiles_added(numbers: Array) -> Array:
    """[rows, elements up to one tile]: tiles added to each other in order, in float32."""
    rows, elements = numbers.shape
    tiles = div_up(elements, TILE)
    padded = np.zeros((rows, tiles * TILE), np.float32)
    padded[:, :elements] = numbers
    total = padded[:, :TILE].copy()
    for tile in range(1, tiles):
        total += padded[:, tile * TILE : (tile + 1) * TILE]
    return total


def packed(dst: Array, data_format: DataFormat, arithmetic: Arithmetic, *, fp32_dest: bool) -> Array:
    """Dst [..., columns] as the packer writes it, in storage of a format."""
    if not data_format.is_float:
        return quantize(dst, data_format)
    columns = dst.shape[-1]
    dst = np.where(np.isnan(dst), np.float32(np.inf), dst) if data_format != FLOAT32 else dst
    if data_format.is_block:
        dst = whole_groups(dst)
    if data_format == FLOAT32 and not fp32_dest:
        dst = cut_to_bfloat16(dst)
    result = arithmetic.pack(np.ascontiguousarray(dst, np.float32), data_format, fp32_dest=fp32_dest)
    return result[..., :columns].astype(data_format.storage)


INTEGERS: Final = (INT32, UINT32)


def tile_sides(spec: TensorSpec) -> tuple[int, int, int]:
    """Images, and rows and columns of tiles of each, of a tensor with its padding."""
    padded = TensorSpec(spec.shape, BFLOAT16, Layout.TILE).padded_shape
    return prod(padded[:-2]), padded[-2] // TILE, padded[-1] // TILE
