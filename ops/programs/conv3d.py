"""Programs that convolve volumes: vol2col, blocks of input channels, partial sums.

Source: tt-metal 0.81.1 (experimental/conv3d), whose device kernels are public; values were never recorded.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from device.cores import CoreRangeSet
from device.host.threads import parts_of
from device.matrix_unit.arithmetic import Arithmetic, arithmetic_of, cut
from device.matrix_unit.exact import MatrixUnitMode
from device.memory.memory_config import TILE
from device.numbers.formats import FLOAT32, UINT32, Array, DataFormat, Integers, div_up, round_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from device.time.network import shared_cycles
from device.time.stages import Stage
from ops.op_model import Ends, ValuesContext, given, matrix, row, uncompared_fact
from ops.programs.buffer_shapes import buffer, paged_buffer, tile_buffer
from ops.programs.data_movement.movement import Composed, DataMovement
from ops.programs.kernel_costs import ComputeCosts, pack_tile_cycles, unpack_tile_cycles, waited_read_cycles

AXES = 3  # depth, rows and columns of a volume
ROWS_AHEAD = 2 * TILE  # patches that are gathered before they become tiles, where they do not fill tiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Conv3d(DataMovement):
    """A convolution of volumes [N, D, H, W, C] with weights [blocks of C, kernel, channels of a block; O]."""

    shape: tuple[int, ...]  # Of the volumes
    out_sides: tuple[int, ...]  # Of the result's volumes
    out_channels: int
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    replicate: bool  # The outermost numbers continue around a volume, and not zeros
    in_block: int  # Input channels of a block
    out_block: int  # Output channels of a block
    out_positions: tuple[int, ...]  # Positions of a block along the axes of the result's volumes
    in_format: DataFormat
    data_format: DataFormat
    bias: bool
    fidelity_phases: int
    fp32_dest: bool
    cores: CoreRangeSet
    tilized_rows: int = 1  # Rows of tiles that are tilized at a time, a sub-block
    scratch_bytes: int = 0  # For positions that the DRAM does not align; 0 if it does

    @property
    def in_blocks(self) -> int:
        """Blocks of input channels, whose sums are added."""
        return self.shape[-1] // self.in_block

    @property
    def partials_format(self) -> DataFormat:
        """Format of the partial sums of a block."""
        return FLOAT32 if self.fp32_dest and self.in_blocks > 1 else self.in_format

    @property
    def tiles(self) -> tuple[int, int, int]:
        """Rows, depth and columns of the product of a block, in tiles."""
        depth = prod(self.kernel) * self.in_block
        return div_up(prod(self.out_positions), TILE), div_up(depth, TILE), div_up(self.out_block, TILE)

    @property
    def subblock_rows(self) -> tuple[int, ...]:
        """Possible heights of a sub-block in tiles, limited by half of Dst with all columns; the largest first."""
        high, _, wide = self.tiles
        most = (4 if self.fp32_dest else 8) // wide or 1
        return tuple(rows for rows in range(most, 0, -1) if high % rows == 0)

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """The result in storage of its format."""
        volumes, weights = given(inputs[0]).reshape(self.shape), matrix(given(inputs[1]))
        arithmetic = arithmetic_of(context.arithmetic, volumes, weights)
        mode = MatrixUnitMode(
            fidelity_phases=self.fidelity_phases,
            fp32_dest=self.fp32_dest,
            minus_one_quirk=context.spec.compute.minus_one_quirk,
        )
        bias = row(given(inputs[2])).astype(np.float32) if self.bias else None
        places = [self._places(axis) for axis in range(AXES)]
        shape = (self.shape[0] * self.out_sides[0], *self.out_sides[1:], self.out_channels)
        result = np.empty(shape, self.data_format.storage)

        def convolve(part: slice) -> None:
            for number in range(part.start, part.stop):
                image, depth = divmod(number, self.out_sides[0])
                taken = [places[0][depth : depth + 1], *places[1:]]
                sums = self._sums(volumes[image], weights, taken, arithmetic, mode)
                if bias is not None:
                    sums = _packed(sums + bias[: self.out_channels], self.in_format, arithmetic, mode)
                result[number] = _packed(sums, self.data_format, arithmetic, mode).reshape(shape[1:])

        columns = prod(self.out_sides[1:]) * prod(self.kernel) * self.in_block
        context.arithmetic.each(convolve, list(parts_of(shape[0], columns)))
        return result.reshape(self.shape[0], *self.out_sides, self.out_channels)

    def _places(self, axis: int) -> Integers:
        """[outputs, taps] index of each tap in the volume; -1 for the zeros around it."""
        first = np.arange(self.out_sides[axis])[:, None] * self.stride[axis] - self.padding[axis]
        taps = first + np.arange(self.kernel[axis]) * self.dilation[axis]
        last = self.shape[1 + axis] - 1
        if self.replicate:
            inside: Integers = np.clip(taps, 0, last)
            return inside
        places: Integers = np.where((taps >= 0) & (taps <= last), taps, -1)
        return places

    def _sums(
        self, volume: Array, weights: Array, places: list[Integers], arithmetic: Arithmetic, mode: MatrixUnitMode
    ) -> Array:
        """Sums of some positions, float32 [positions, O], packed once for each block of channels and addition."""
        depth, total = prod(self.kernel) * self.in_block, None
        masks = arithmetic.operand_masks(mode)
        for block in range(self.in_blocks):
            channels = slice(block * self.in_block, (block + 1) * self.in_block)
            patches = np.zeros((prod(map(len, places)), round_up(depth, TILE)), np.float32)
            patches[:, :depth] = _gathered(volume[..., channels], places, self.kernel).reshape(-1, depth)
            kernel = np.zeros((patches.shape[1], self.out_channels), np.float32)
            kernel[:depth] = weights[block * depth : (block + 1) * depth, : self.out_channels]
            operands = [
                cut(np.array(arithmetic.unpack(side, self.in_format, fp32_dest=mode.fp32_dest), np.float32), mask)
                for side, mask in zip((patches, kernel), masks, strict=True)
            ]
            partial = _packed(arithmetic.product(*operands, mode=mode), self.partials_format, arithmetic, mode)
            total = partial if total is None else _packed(total + partial, self.partials_format, arithmetic, mode)
        return given(total)

    def composed(self, ends: Ends, spec: DeviceSpec) -> Composed:
        """The steps of the core with the most blocks."""
        high, deep, wide = self.tiles
        blocks = self.shape[0] * prod(
            div_up(side, block) for side, block in zip(self.out_sides, self.out_positions, strict=True)
        )
        products = blocks * self.in_blocks * div_up(round_up(self.out_channels, TILE), self.out_block)
        count, costs = div_up(products, self.cores.num_cores()), spec.costs_of(ComputeCosts)
        tile_bytes = self.in_format.tile_bytes
        stick = self.in_block * (self.in_format.element_bytes or 0)
        positions = prod(
            (block - 1) * stride + kernel
            for block, stride, kernel in zip(self.out_positions, self.stride, self.kernel, strict=True)
        )
        read = positions * waited_read_cycles(spec, stick, in_dram=True, readers=self.cores.num_cores() - 1)
        tilized = high * deep * costs.tilize_tile_cycles
        phases = self.fidelity_phases * spec.compute.phase_cycles
        multiplied = high * deep * wide * max(unpack_tile_cycles(spec, tile_bytes), TILE * phases / 2)
        packed = high * wide * 2 * pack_tile_cycles(spec, tile_bytes)
        block = read + tilized + multiplied + packed
        in_bytes = products * (positions * stick + deep * wide * tile_bytes)
        out_bytes = self.shape[0] * prod(self.out_sides) * self.out_channels * 2
        return Composed(
            cores=self.cores,
            body_cycles=max(count * block, shared_cycles(spec, in_bytes + out_bytes)),
            stages={
                Stage.READER: (count * read, "positions under the windows of a block are read"),
                Stage.TILIZE: (count * tilized, "patches become tiles"),
                Stage.MATH: (count * multiplied, "tiles are multiplied"),
                Stage.PACK: (count * packed, "sums are packed into L1"),
            },
            steps="reads that are waited for, tilizing, products of tiles and packing",
            details=(uncompared_fact("sums of volumes"),),
            dram_read_bytes=in_bytes,
            dram_written_bytes=out_bytes,
        )


def _gathered(volume: Array, places: list[Integers], kernel: tuple[int, ...]) -> Array:
    """[positions, taps, channels] of a volume; zeros for indices of -1."""
    found = np.zeros((*map(len, places), *kernel, volume.shape[-1]), np.float32)
    for taps in product(*map(range, kernel)):
        index = [axis_places[:, tap] for axis_places, tap in zip(places, taps, strict=True)]
        taken = volume[np.ix_(*[np.maximum(where, 0) for where in index])].astype(np.float32)
        mask = (index[0] >= 0)[:, None, None] & (index[1] >= 0)[None, :, None] & (index[2] >= 0)[None, None, :]
        found[(slice(None),) * AXES + taps] = np.where(mask[..., None], taken, np.float32(0))
    return found


def _packed(dst: Array, data_format: DataFormat, arithmetic: Arithmetic, mode: MatrixUnitMode) -> Array:
    """Numbers of Dst as they are once they are packed, in storage of a format or, unless it is the last, float32."""
    packed: Array = arithmetic.pack(np.array(dst, np.float32), data_format, fp32_dest=mode.fp32_dest)
    return packed.astype(np.float32)


def conv3d_buffers(op: Conv3d, shard_positions: int, *, place_bytes: int = 0) -> tuple[CircularBuffer, ...]:
    """Patches as rows and tiles, weights, sums, rows of the result, additions, bias, a position, positions of windows.

    ``place_bytes`` is the room for the first row and column of masked volumes that are part of larger volumes.
    """
    (high, deep, wide), form, cores = op.tiles, op.in_format, op.cores
    patches = prod(op.out_positions)
    rows = TILE if patches % TILE == 0 else min(patches, ROWS_AHEAD)
    element = form.element_bytes or 0
    added = (
        (tile_buffer("added", high * wide, op.partials_format, cores), tile_buffer("answers", 1, form, cores))
        if op.in_blocks > 1
        else ()
    )
    positions = (
        (paged_buffer("positions", shard_positions, op.in_block * element, form, cores),) if shard_positions else ()
    )
    return (
        paged_buffer("patches", rows, deep * TILE * element, form, cores),
        tile_buffer("tiles", op.tilized_rows * deep, form, cores),
        tile_buffer("weights", deep * wide, form, cores),
        tile_buffer("sums", high * wide, op.partials_format, cores),
        tile_buffer("rows", high * wide, form, cores),
        *added,
        *((tile_buffer("wide_sums", high * wide, form, cores),) if added and op.fp32_dest and form == FLOAT32 else ()),
        *((tile_buffer("bias", wide, form, cores),) if op.bias else ()),
        *((buffer("position", op.scratch_bytes, form, cores),) if op.scratch_bytes else ()),
        *positions,
        *((buffer("place", place_bytes, UINT32, cores),) if place_bytes else ()),
    )
