"""The softmax programs: exponentials, divided by their sums along one axis.

Sources: tt-metal 0.81.1 (normalization/softmax), compared with recorded plans. Values were never compared with the
kernels: exponentials are right to the last places, also where the kernels' approximate mode is not.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from device.cores import CoreRangeSet
from device.errors import NotSimulatedError
from device.host.threads import parts_of
from device.matrix_unit.arithmetic import Arithmetic
from device.memory.memory_config import TILE
from device.numbers.formats import BFLOAT16, FLOAT32, Array, DataFormat, quantize, round_up, whole_groups
from device.numbers.vector_unit import VectorUnitMode, long_exponential, reciprocal, rounded_to_even_bfloat16
from device.spec.device_spec import DeviceSpec
from device.spec.parts import ComputeSpec
from device.time.network import shared_cycles
from device.time.stages import Stage
from ops.op_model import Ends, ValuesContext, given, uncompared_fact
from ops.programs.buffer_shapes import in_dram, pipelined_cycles
from ops.programs.data_movement.movement import Composed, DataMovement
from ops.programs.kernel_costs import (
    ComputeCosts,
    pack_tile_cycles,
    read_page_cycles,
    unpack_tile_cycles,
    write_page_cycles,
)

RANK = 4  # axes of the tensors that are masked: fewer get sides of 1 in front
SUMMED_AT_ONCE = 16  # columns that the matrix unit adds up before the sum is rounded to Dst
UNCOMPARED = uncompared_fact("a softmax was never compared with the real kernel's")


@dataclass(frozen=True, slots=True, kw_only=True)
class Softmax(DataMovement):
    """exp(x) divided by its sum along an axis, of x that may be scaled and masked before."""

    axis: int  # Counted from the last: -1 is along rows
    data_format: DataFormat
    stable: bool  # The largest number along the axis is subtracted first
    fp32_dest: bool  # Dst, and with it sums, are 32 bits wide
    exps_format: DataFormat  # Of exponentials on their way
    scale: float | None = None
    masked: bool = False  # A mask is added, the first of two inputs
    mask_in_rows: bool = False  # The mask is [batch, 1, columns / 32, 32], in rows
    causal: bool = False  # The mask has a row for each row, repeated periodically; otherwise one row for all
    part_columns: int = 0  # Columns of a shard that has a softmax of its own; 0 for all
    cores: CoreRangeSet
    core_tiles: int  # Tiles of the core with most of them

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """The softmax of the last input, in storage of its format."""
        values, arithmetic = given(inputs[-1]), context.arithmetic
        x = np.moveaxis(np.atleast_1d(values.astype(np.float32)), self.axis, -1)
        shape = x.shape
        if self.masked:
            with np.errstate(over="ignore", invalid="ignore"):
                x = self._masked(x, given(inputs[0]).astype(np.float32), arithmetic)
        columns = shape[-1]
        if self.part_columns and columns != self.part_columns:
            columns = min(self.part_columns, columns)
        x = x.reshape(-1, columns)
        result = np.empty_like(x)

        def quotients(part: slice) -> None:
            result[part] = self._quotients(x[part], context)

        arithmetic.each(quotients, parts_of(*x.shape))
        moved = np.moveaxis(result.reshape(shape), -1, self.axis)
        packed = stored(moved, self.data_format, arithmetic, wide=self.fp32_dest)
        return packed.astype(self.data_format.storage, copy=False).reshape(values.shape)

    def _quotients(self, x: Array, context: ValuesContext) -> Array:
        """Exponentials of rows, divided by their sums."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if self.stable:
                x = x - x.max(axis=-1, keepdims=True)
            powers = stored(_exponential(x), self.exps_format, context.arithmetic, wide=self.fp32_dest)
            return np.asarray(powers * self._inverse(powers, context.spec.compute), np.float32)

    def _masked(self, x: Array, mask: Array, arithmetic: Arithmetic) -> Array:
        """X, scaled and masked; both results are packed."""
        if self.scale is not None:
            scale = quantize(np.asarray([self.scale], np.float32), BFLOAT16).astype(np.float32)
            x = stored(np.asarray(x * scale, np.float32), self.exps_format, arithmetic, wide=self.fp32_dest)
        batch, *heads, rows, columns = ((1,) * (RANK - x.ndim)) + x.shape
        images = x.reshape(batch, prod(heads), rows, columns)
        if self.mask_in_rows:
            added = mask.reshape(mask.shape[0], 1, 1, -1)
        elif not mask.size or (mask.shape[-1], _batch(mask)) != (columns, len(images)):
            raise NotSimulatedError(
                f"softmax: of a mask {list(mask.shape)} for {list(x.shape)} the kernel reads tiles as if each row had "
                "the tensor's columns, also behind the mask; give a mask with the tensor's batch and columns"
            )
        elif not self.causal:
            added = mask.reshape(_batch(mask), -1, 1, columns)[:, :1]
        else:
            added = _row_by_row(mask, images.shape)
        total = images + added[..., :columns]
        return stored(np.asarray(total, np.float32), self.exps_format, arithmetic, wide=self.fp32_dest).reshape(x.shape)

    def _inverse(self, powers: Array, compute: ComputeSpec) -> Array:
        """One over the sum of the exponentials along the last axis."""
        if self.fp32_dest:
            sums = powers.sum(axis=-1, keepdims=True, dtype=np.float64).astype(np.float32)
        else:
            sums = np.zeros((*powers.shape[:-1], 1), np.float32)
            for start in range(0, powers.shape[-1], SUMMED_AT_ONCE):
                part = powers[..., start : start + SUMMED_AT_ONCE].sum(axis=-1, keepdims=True)
                sums = rounded_to_even_bfloat16(np.asarray(sums + part, np.float32))
        mode = VectorUnitMode(fp32_dest=self.fp32_dest, reciprocal_table=compute.reciprocal_table)
        inverse = reciprocal(sums, steps=2, from_table=mode.reciprocal_table)
        return inverse if self.fp32_dest else rounded_to_even_bfloat16(inverse)

    def composed(self, ends: Ends, spec: DeviceSpec) -> Composed:
        """Tiles are read, pass the compute threads as often as the kernel needs, and are written."""
        costs, source, target = spec.costs_of(ComputeCosts), self.data_format.tile_bytes, ends.written
        between = self.exps_format.tile_bytes
        unpack, pack = unpack_tile_cycles(spec, between), pack_tile_cycles(spec, between)
        added, vector, reduced = costs.add_tile_cycles, costs.vector_tile_cycles, spec.compute.phase_cycles
        passes = 2 * self.masked * (unpack + added + pack)
        passes += unpack_tile_cycles(spec, source) + vector + pack  # exponentials
        passes += self.stable * (unpack + reduced + added)
        passes += unpack + reduced + unpack + added + pack_tile_cycles(spec, source)  # sums and quotients
        in_place = target.memory_config.is_sharded() and ends.read == target
        read = 0.0 if in_place else read_page_cycles(spec, source)
        write = 0.0 if in_place else write_page_cycles(spec, source)
        whole = self.core_tiles * self.cores.num_cores() * source * in_dram(target)
        alone = pipelined_cycles((read, passes, write), self.core_tiles)
        shared = shared_cycles(spec, 2 * whole)
        return Composed(
            cores=self.cores,
            body_cycles=max(alone, shared),
            stages={
                Stage.READER: (self.core_tiles * read, "tiles are read"),
                Stage.MATH: (self.core_tiles * passes, "exponentials, sums and quotients, tile by tile"),
                Stage.WRITER: (self.core_tiles * write, "quotients are written"),
                Stage.DRAM: (shared, "all cores share the banks"),
            },
            steps="reading, unpacking, vector functions, packing and writing of tiles",
            details=(UNCOMPARED,),
            dram_read_bytes=whole,
            dram_written_bytes=whole,
        )


def stored(numbers: Array, data_format: DataFormat, arithmetic: Arithmetic, *, wide: bool) -> Array:
    """[..., columns] as the packer writes it, float32; it makes a NaN an infinity but in float32."""
    columns = numbers.shape[-1]
    if data_format == FLOAT32:
        return numbers
    dst = np.where(np.isnan(numbers), np.float32(np.inf), numbers)
    if data_format.is_block:
        dst = whole_groups(dst)
    packed: Array = arithmetic.pack(dst, data_format, fp32_dest=wide)[..., :columns]
    return packed.astype(np.float32)


def _exponential(x: Array) -> Array:
    """E to the x; of infinities and NaN as mathematics has it."""
    powers = long_exponential(np.where(np.isfinite(x), x, np.float32(0)))
    return np.where(np.isfinite(x), powers, np.exp(x))


def _batch(mask: Array) -> int:
    """Images for which there is a mask."""
    return mask.shape[0] if mask.ndim >= RANK else 1


def _row_by_row(mask: Array, shape: tuple[int, ...]) -> Array:
    """A mask's rows for all rows of a batch: tiles of rows are repeated as often as needed; padding adds zero."""
    _, heads, rows, columns = shape
    own = mask.reshape(_batch(mask), -1, mask.shape[-1])
    whole = np.zeros((own.shape[0], round_up(own.shape[1], TILE), own.shape[2]), np.float32)
    whole[:, : own.shape[1]] = own
    places = np.arange(heads)[:, None] * round_up(rows, TILE) + np.arange(rows)
    return np.asarray(whole[:, places % whole.shape[1]][..., :columns])
