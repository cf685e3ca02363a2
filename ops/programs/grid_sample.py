"""Programs that sample images where a grid says: corners and weights, values, buffers, steps.

Source: tt-metal 0.81.1 (pool/grid_sample), whose device kernels are public; values were never recorded.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, prod

import numpy as np

from device.cores import CoreRangeSet, first_cores
from device.matrix_unit.exact import MatrixUnitMode
from device.memory.layouts import TensorSpec
from device.memory.memory_config import FACE, TILE, BufferType
from device.numbers.formats import BFLOAT16, FLOAT32, Array, DataFormat, Integers, div_up, round_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from device.time.stages import Stage
from ops.builder import PlanTensor
from ops.op_model import Ends, ValuesContext, given, given_elements, uncompared_fact
from ops.programs.buffer_shapes import BUFFERING, page_alignment_bytes, paged_buffer, row_bytes
from ops.programs.data_movement.movement import Composed, DataMovement
from ops.programs.kernel_costs import (
    pack_tile_cycles,
    reduce_window_cycles,
    waited_read_cycles,
    waited_write_cycles,
)
from ops.programs.weighted_sums import interpolated

CORNERS = 4  # pixels around a point: above and below, at the left and at the right
PREPARED = {"bilinear": 2 + CORNERS, "nearest": 2}  # numbers of a prepared point: a pixel, and weights of the corners
COORDINATES = 2  # numbers of any other point: x and y from -1 to 1
CORNER_STEPS = ((0, 0), (0, 1), (1, 0), (1, 1))  # from the first corner, down and across


@dataclass(frozen=True, slots=True, kw_only=True)
class GridSample(DataMovement):
    """Pixels of images [N, H, W, C] at the points of a grid [N, GH, GW, K points]."""

    shape: tuple[int, ...]  # Of the images
    grid_shape: tuple[int, ...]
    mode: str  # "bilinear" or "nearest"
    align_corners: bool  # -1 and 1 are the centers of the outer pixels, and not their edges
    prepared: bool  # The grid holds pixels and weights
    result_shape: tuple[int, ...]
    data_format: DataFormat
    fidelity_phases: int = 4
    fp32_dest: bool = False

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """The samples in storage of the images' format; pixels outside count as zeros."""
        images, grid = given_elements(inputs[0], "grid_sample").reshape(self.shape), given(inputs[1])
        batch, height, width, channels = self.shape
        first, factors = self._prepared(grid) if self.prepared else self._located(grid)
        image = np.repeat(np.arange(batch), len(first) // batch)
        sticks = images.reshape(-1, channels)

        def corner(part: slice, down: int, across: int) -> tuple[Array, Array]:
            row, column = first[part, 0] + down, first[part, 1] + across
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            number = np.where(inside, (image[part] * height + row) * width + column, 0)
            return sticks[number], inside

        if self.mode == "nearest":
            pixels, inside = corner(slice(None), 0, 0)
            return np.where(inside[:, None], pixels, pixels.dtype.type(0)).reshape(self.result_shape)
        arithmetic = context.arithmetic
        taken = np.stack([corner(slice(None), *step)[1] for step in CORNER_STEPS], axis=1)
        factors = np.where(taken, factors, np.float32(0))

        def pixels_of(part: slice) -> Array:
            found = []
            for step in CORNER_STEPS:
                pixels, inside = corner(part, *step)
                found.append(np.where(inside[:, None], pixels.astype(np.float32), np.float32(0)))
            return np.stack([arithmetic.unpack(x, self.data_format, fp32_dest=self.fp32_dest) for x in found], axis=1)

        mode = MatrixUnitMode(
            fidelity_phases=self.fidelity_phases,
            fp32_dest=self.fp32_dest,
            minus_one_quirk=context.spec.compute.minus_one_quirk,
        )

        def packed(dst: Array) -> Array:
            result: Array = arithmetic.pack(dst, self.data_format, fp32_dest=self.fp32_dest)
            return result

        result = interpolated(factors, pixels_of, arithmetic, mode, packed, channels)
        return result.reshape(self.result_shape)

    def _prepared(self, grid: Array) -> tuple[Integers, Array]:
        """[points, 2] first corner, row and column, and [points, 4] weights; bfloat16 bits represent the integers."""
        points = np.ascontiguousarray(grid).reshape(-1, PREPARED[self.mode])
        return points.view(np.int16)[:, :2].astype(np.int64), points[:, 2:].astype(np.float32)

    def _located(self, grid: Array) -> tuple[Integers, Array]:
        """The same from x and y: float32 throughout, but weights are cut to bfloat16."""
        points = grid.reshape(-1, COORDINATES).astype(np.float32)
        place = np.stack(
            [
                points[:, 1 - axis] * scale + offset
                for axis, side in enumerate(self.shape[1:3])
                for scale, offset in (scale_of(side, align_corners=self.align_corners),)
            ],
            axis=1,
        )
        first = np.floor(place)
        weights = corner_weights(place - first)
        cut = (weights.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
        return np.clip(np.nan_to_num(first), -(2**31), 2**31 - 2).astype(np.int64), cut

    def composed(self, ends: Ends, spec: DeviceSpec) -> Composed:
        """The steps of the core with the most points."""
        shards = ends.written.memory_config.shard_spec
        return sampling_steps(
            ends,
            spec,
            points=prod(self.result_shape) // self.shape[-1],
            channels=self.shape[-1],
            corners=CORNERS if self.mode == "bilinear" else 1,
            cores=shards.grid if shards is not None else row_cores(self.grid_shape, spec),
            data_format=self.data_format,
            fidelity_phases=self.fidelity_phases,
        )


def sampling_steps(
    ends: Ends,
    spec: DeviceSpec,
    *,
    points: int,
    channels: int,
    corners: int,
    cores: CoreRangeSet,
    data_format: DataFormat,
    fidelity_phases: int = 4,
) -> Composed:
    """The steps of a program that reads one pixel for each point, or interpolates between several ``corners``."""
    count, tiles = div_up(points, cores.num_cores()), div_up(channels, TILE)
    read_in_dram = ends.read.memory_config.buffer_type is BufferType.DRAM
    stick, sharded = row_bytes(ends.read), ends.written.memory_config.is_sharded()
    read = waited_read_cycles(spec, stick, in_dram=read_in_dram, readers=cores.num_cores() - 1)
    read += (corners - 1) * stick / spec.noc.link_bytes_per_cycle
    tile_bytes, products = data_format.tile_bytes, fidelity_phases * spec.compute.phase_cycles
    reduced = reduce_window_cycles(spec, tiles, corners, products) if corners > 1 else 0.0
    packed = tiles * pack_tile_cycles(spec, tile_bytes / TILE) if corners > 1 else 0.0
    written_in_dram = not sharded and ends.written.memory_config.buffer_type is BufferType.DRAM
    written = 0.0 if sharded else waited_write_cycles(spec, stick, in_dram=written_in_dram)
    return Composed(
        cores=cores,
        body_cycles=read + reduced + packed + written + (count - 1) * max(read, reduced, packed, written),
        stages={
            Stage.READER: (count * read, "corners of points are read"),
            Stage.MATH: (count * reduced, "corners are tilized, weighted and added"),
            Stage.PACK: (count * packed, "sums are packed into L1"),
            Stage.WRITER: (count * written, "sticks are written"),
        },
        steps="reads that are waited for, tilizing, reducing and packing",
        details=(uncompared_fact("interpolated numbers"),) if corners > 1 else (),
        dram_read_bytes=points * corners * stick if read_in_dram else 0,
        dram_written_bytes=points * stick if written_in_dram else 0,
    )


def row_cores(shape: Sequence[int], spec: DeviceSpec) -> CoreRangeSet:
    """The cores that split the rows of an interleaved tensor, column by column."""
    rows = min(prod(shape[:-1]), spec.grid.cores)
    return first_cores(rows, spec.grid.cols, spec.grid.rows, row_wise=False)


def scale_of(side: int, *, align_corners: bool) -> tuple[np.float32, np.float32]:
    """Factor and offset from a coordinate to a position along an axis of ``side`` pixels."""
    if align_corners:
        half = np.float32(side - 1) * np.float32(0.5)
        return half, half
    half = np.float32(side) * np.float32(0.5)
    return half, half - np.float32(0.5)


def corner_weights(shares: Array) -> Array:
    """[points, 4] weights of the corners, from the shares [points, 2] of the lower and of the right ones; float32."""
    down, across = shares[:, 0], shares[:, 1]
    up, back = np.float32(1) - down, np.float32(1) - across
    return np.stack([up * back, up * across, down * back, down * across], axis=1)


def points_of(grid_shape: Sequence[int], mode: str, *, prepared: bool) -> int:
    """Points of a row of a grid."""
    return grid_shape[-1] // (PREPARED[mode] if prepared else COORDINATES)


WIDEST = 8  # tiles of channels that are reduced at once
WIDEST_FP32 = 4  # the same in a Dst of 32 bits


def bilinear_buffers(
    op: GridSample, images: TensorSpec, grid: PlanTensor, result: PlanTensor, cores: CoreRangeSet, spec: DeviceSpec,
    *, two_readers: bool, widest: int,
) -> tuple[CircularBuffer, ...]:  # fmt: skip
    """A row of the grid, corners and weights, for each reader of a sharded grid, and sticks of the result."""
    sharded, form = grid.spec.memory_config.is_sharded(), images.data_format
    readers = range(2 if sharded and two_readers else 1)
    block = min(div_up(op.shape[-1], TILE), widest) * form.tile_bytes
    faces = ceil(op.result_shape[-1] / FACE)
    sticks = result.spec.shards.shape[0] if sharded else BUFFERING
    face_bytes = FACE * (form.element_bytes or 0)
    return (
        grid_buffer("grid", grid, cores, spec),
        *(paged_buffer(f"corners_{reader}", BUFFERING, block, form, cores) for reader in readers),
        *(paged_buffer(f"weights_{reader}", BUFFERING, form.tile_bytes, form, cores) for reader in readers),
        paged_buffer("sticks", sticks * faces, face_bytes, form, cores, result.name if sharded else None),
    )


def nearest_buffers(
    op: GridSample, grid: PlanTensor, result: PlanTensor, cores: CoreRangeSet, spec: DeviceSpec, rows: int
) -> tuple[CircularBuffer, ...]:
    """A row of the grid for each of two writers, or its shards, a stick of zeros, and the result's shards."""
    sharded, form = grid.spec.memory_config.is_sharded(), result.spec.data_format
    names = ("grid",) if sharded else ("grid_0", "grid_1")
    stick = op.result_shape[-1] * (form.element_bytes or 0)
    return (
        *(grid_buffer(name, grid, cores, spec) for name in names),
        paged_buffer("zeros", 1, stick, form, cores),
        paged_buffer("sticks", rows, stick, form, cores, result.name),
    )


def grid_buffer(name: str, grid: PlanTensor, cores: CoreRangeSet, spec: DeviceSpec) -> CircularBuffer:
    """A row of a grid, or its shards."""
    size, form = row_bytes(grid.spec), grid.spec.data_format
    if grid.spec.memory_config.is_sharded():
        return paged_buffer(name, grid.spec.shards.shape[0], size, form, cores, grid.name)
    return paged_buffer(name, 1, round_up(size, page_alignment_bytes(grid.spec.memory_config, spec)), form, cores)


FORMATS = (BFLOAT16, FLOAT32)
