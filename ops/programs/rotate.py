"""Programs that rotate images: source pixels, values, buffers, steps.

Source: tt-metal 0.81.1 (pool/rotate), whose device kernels are public; values were never recorded.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import pi, prod

import numpy as np

from device.cores import CoreRangeSet
from device.matrix_unit.exact import MatrixUnitMode
from device.memory.layouts import TensorSpec, aligned_page_bytes
from device.memory.memory_config import FACE, TILE
from device.numbers.formats import Array, DataFormat, Integers, div_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanTensor
from ops.op_model import Ends, ValuesContext, given
from ops.programs.buffer_shapes import BUFFERING, paged_buffer, row_bytes
from ops.programs.data_movement.movement import Composed, DataMovement
from ops.programs.grid_sample import CORNER_STEPS, row_cores, sampling_steps
from ops.programs.weighted_sums import FIXED_BITS, FIXED_ONE, fixed_weights, interpolated

TOGETHER = 5  # sticks that are read and written together


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotate(DataMovement):
    """Images [N, H, W, C], rotated counterclockwise around a center; outside pixels have a fixed value."""

    shape: tuple[int, ...]
    angle: float  # In degrees
    center: tuple[float, float] | None  # Column and row; None for the middle
    fill: float
    bilinear: bool  # Numbers between pixels, and not the nearest pixel
    data_format: DataFormat

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """The result in storage of the images' format."""
        batch, height, width, channels = self.shape
        sticks = given(inputs[0]).reshape(-1, channels)
        outside = np.full((1, channels), self.fill, np.float32).astype(sticks.dtype)
        sticks = np.concatenate([sticks, outside])  # after all images
        row, column = self._places()
        image = np.repeat(np.arange(batch, dtype=np.int64), height * width)

        def taken(rows: Integers, columns: Integers, part: slice = slice(None)) -> Array:
            """Pixels of some outputs, which count through the images."""
            inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
            number = np.where(inside, (image[part] * height + rows) * width + columns, len(sticks) - 1)
            return sticks[number]

        rows, columns = np.tile(row, batch), np.tile(column, batch)
        if not self.bilinear:
            half = FIXED_ONE >> 1
            return taken(rows + half >> FIXED_BITS, columns + half >> FIXED_BITS).reshape(self.shape)
        arithmetic, first = context.arithmetic, (rows >> FIXED_BITS, columns >> FIXED_BITS)

        def pixels_of(part: slice) -> Array:
            found = [taken(first[0][part] + down, first[1][part] + across, part) for down, across in CORNER_STEPS]
            return np.stack(
                [arithmetic.unpack(x.astype(np.float32), self.data_format, fp32_dest=False) for x in found], axis=1
            )

        def packed(dst: Array) -> Array:
            result: Array = arithmetic.pack(dst, self.data_format, fp32_dest=False)
            return result

        quirk = context.spec.compute.minus_one_quirk
        mode = MatrixUnitMode(fidelity_phases=4, fp32_dest=False, minus_one_quirk=quirk)
        weights = fixed_weights(rows % FIXED_ONE, columns % FIXED_ONE)
        return interpolated(weights, pixels_of, arithmetic, mode, packed, channels).reshape(self.shape)

    def _places(self) -> tuple[Integers, Integers]:
        """[H*W] source row and [H*W] source column of each output of an image, with `FIXED_BITS` fraction bits."""
        _, height, width, _ = self.shape
        radians = np.float32(np.float32(self.angle) * pi / 180)
        cosine, sine = (_fixed(function(radians)) for function in (np.cos, np.sin))
        if self.center is None:
            middle = [np.float32(side - 1) / np.float32(2) for side in (width, height)]
        else:
            middle = [np.float32(place) - np.float32(0.5) for place in self.center]
        x, y = (_fixed(place) for place in middle)
        row, column = np.divmod(np.arange(height * width, dtype=np.int64), width)
        across, down = column * FIXED_ONE - x, row * FIXED_ONE - y
        if self.bilinear:  # every product is cut
            rotated = (across * cosine >> FIXED_BITS) - (down * sine >> FIXED_BITS)
            turned = (across * sine >> FIXED_BITS) + (down * cosine >> FIXED_BITS)
        else:
            rotated = across * cosine - down * sine >> FIXED_BITS
            turned = across * sine + down * cosine >> FIXED_BITS
        return turned + y, rotated + x

    def composed(self, ends: Ends, spec: DeviceSpec) -> Composed:
        """The steps of the core with the most pixels."""
        return sampling_steps(
            ends,
            spec,
            points=prod(self.shape[:-1]),
            channels=self.shape[-1],
            corners=len(CORNER_STEPS) if self.bilinear else 1,
            cores=rotating_cores(ends.read, ends.written, spec),
            data_format=self.data_format,
        )


def _fixed(number: np.float32) -> int:
    return int(number * np.float32(FIXED_ONE))


def rotating_cores(images: TensorSpec, result: TensorSpec, spec: DeviceSpec) -> CoreRangeSet:
    """The cores of the images' shards, or else of the pixels."""
    shards = images.memory_config.shard_spec
    return row_cores(images.shape, spec) if shards is None else shards.grid


def nearest_buffers(
    images: PlanTensor, result: PlanTensor, cores: CoreRangeSet, spec: DeviceSpec
) -> tuple[CircularBuffer, ...]:
    """A pixel of the fill value; and pixels in transit, or the shards of both tensors."""
    source, form = images.spec, images.spec.data_format
    shards = source.memory_config.shard_spec
    if shards is not None:
        rows, width = shards.shape
        stick = width * (form.element_bytes or 0)
        return (
            paged_buffer("outside", 1, stick, form, cores),
            paged_buffer("images", rows, stick, form, cores, images.name),
            paged_buffer("sticks", rows, stick, form, cores, result.name),
        )
    stick = aligned_page_bytes(row_bytes(source), source.memory_config.buffer_type, spec)
    most = WIDEST * TILE**2 * (form.element_bytes or 0) // BUFFERING // stick
    sticks = max(min(div_up(prod(source.shape[:-1]), cores.num_cores()), most), 1)
    sticks -= sticks % TOGETHER if sticks > TOGETHER else 0
    return (
        paged_buffer("outside", 1, stick, form, cores),
        paged_buffer("sticks", BUFFERING * sticks, stick, form, cores),
    )


WIDEST = 8  # tiles of channels that are reduced at once


def bilinear_buffers(images: PlanTensor, result: PlanTensor, cores: CoreRangeSet) -> tuple[CircularBuffer, ...]:
    """A pixel of the fill value, the corners of two pixels and their weights, and sticks of the result."""
    channels, form = images.spec.shape[-1], images.spec.data_format
    element_bytes, faces = form.element_bytes or 0, div_up(channels, FACE)
    shards, name = result.spec.memory_config.shard_spec, result.name
    if shards is None and images.spec.memory_config.is_sharded():
        shards = images.spec.shards
    rows, view = (BUFFERING, None) if shards is None else (shards.shape[0], name)
    return (
        paged_buffer("outside", 1, channels * element_bytes, form, cores),
        paged_buffer("corners", BUFFERING, div_up(channels, TILE) * TILE**2 * element_bytes, form, cores),
        paged_buffer("weights", BUFFERING, form.tile_bytes, form, cores),
        paged_buffer("sticks", rows * faces, FACE * element_bytes, form, cores, view),
    )
