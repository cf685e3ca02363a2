"""The program of bilinear upsampling: pixels between pixels, their values, buffers and steps.

Source: tt-metal 0.81.1 (pool/upsample), whose device kernels are public; values were never recorded.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from device.cores import CoreRangeSet
from device.matrix_unit.exact import MatrixUnitMode
from device.memory.memory_config import TILE
from device.numbers.formats import BFLOAT16, Array, Integers, div_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from device.time.network import hands
from device.time.stages import Stage
from ops.builder import PlanTensor
from ops.op_model import Ends, ValuesContext, given, uncompared_fact
from ops.programs.buffer_shapes import BUFFERING, paged_buffer
from ops.programs.data_movement.movement import Composed, DataMovement
from ops.programs.kernel_costs import TransferCosts, pack_tile_cycles, reduce_window_cycles
from ops.programs.weighted_sums import FIXED_BITS, FIXED_ONE, fixed_weights, interpolated

CORNERS = 4  # pixels around an output: above and below, at the left and at the right
WIDEST = 8  # tiles of channels that are reduced at once


@dataclass(frozen=True, slots=True, kw_only=True)
class BilinearUpsample(DataMovement):
    """Images [N, H, W, C] with more rows and columns, interpolated between the pixels of the images."""

    shape: tuple[int, ...]
    scale: tuple[int, int]  # Down and across
    fidelity_phases: int = 4

    @property
    def result_shape(self) -> tuple[int, ...]:
        """[N, H * down, W * across, C]."""
        batch, height, width, channels = self.shape
        return batch, height * self.scale[0], width * self.scale[1], channels

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """The result of the sticks of the images, in storage of bfloat16."""
        batch, height, width, channels = self.shape
        sticks = given(inputs[0]).reshape(-1, channels)
        if (missing := batch * height * width - len(sticks)) > 0:  # padding of tiles that counts as pixels
            sticks = np.concatenate([sticks, np.zeros((missing, channels), sticks.dtype)])
        (rows, down), (columns, across) = (
            _places(side, factor) for side, factor in zip((height, width), self.scale, strict=True)
        )
        high, wide, arithmetic = rows.shape[1], columns.shape[1], context.arithmetic
        weights = np.tile(fixed_weights(down[:, None], across), (batch * height, width, 1)).reshape(-1, CORNERS)
        corners = np.array([width * rows[row][:, None] + columns[column] for row in (0, 1) for column in (0, 1)])
        image = np.arange(batch, dtype=np.int64)[:, None] * (height * width)

        def pixels_of(part: slice) -> Array:
            images, places = np.divmod(np.arange(part.start, part.stop), high * wide)
            numbers = (corners.reshape(CORNERS, -1)[:, places] + image[images, 0]).T
            pixels: Array = arithmetic.unpack(sticks[numbers].astype(np.float32), BFLOAT16, fp32_dest=False)
            return pixels

        def packed(dst: Array) -> Array:
            result: Array = arithmetic.pack(dst, BFLOAT16, fp32_dest=False)
            return result

        quirk = context.spec.compute.minus_one_quirk
        mode = MatrixUnitMode(fidelity_phases=self.fidelity_phases, fp32_dest=False, minus_one_quirk=quirk)
        result = interpolated(weights, pixels_of, arithmetic, mode, packed, channels)
        return result.reshape(self.result_shape)

    def composed(self, ends: Ends, spec: DeviceSpec) -> Composed:
        """The steps of the core with the most outputs; all cores but the last have equally many."""
        shards, tiles = ends.written.shards, div_up(self.shape[-1], TILE)
        stick_bytes, blocks = self.shape[-1] * (BFLOAT16.element_bytes or 0), div_up(tiles, WIDEST)
        issue = spec.costs_of(TransferCosts).read_issue_cycles
        read = CORNERS * max(blocks * issue, stick_bytes / spec.noc.link_bytes_per_cycle)
        reduced = reduce_window_cycles(spec, tiles, CORNERS, self.fidelity_phases * spec.compute.phase_cycles)
        packed = tiles * pack_tile_cycles(spec, BFLOAT16.tile_bytes / TILE)
        readers = hands(spec, 2)
        outputs = min(shards.shape[0], prod(self.result_shape[:-1]))
        first = div_up(outputs, readers)
        return Composed(
            cores=shards.grid,
            body_cycles=read + reduced + packed + (outputs - 1) * max(read / readers, reduced, packed),
            stages={
                Stage.READER: (first * read, "one reader copies the pixels around every other output"),
                Stage.SECOND_READER: ((outputs - first) * read, "the other reader copies those around the others"),
                Stage.MATH: (outputs * reduced, "pixels are tilized, weighted and added"),
                Stage.PACK: (outputs * packed, "sums are packed into L1"),
            },
            steps="copies in L1, tilizing, reducing and packing",
            details=(uncompared_fact("interpolated numbers"),),
        )


def _places(side: int, factor: int) -> tuple[Integers, Integers]:
    """[2, side * factor] the two neighbor pixels of each output; and [factor] its distance from the first, by phase.

    The distance is truncated to `FIXED_BITS` fraction bits.
    """
    half, inverse = FIXED_ONE >> 1, np.float32(1) / np.float32(factor)
    step = int(inverse * np.float32(FIXED_ONE))
    ahead = np.float32(0.5) * inverse + np.float32(0.5)  # there is a row of padding
    start = int(ahead * np.float32(FIXED_ONE))
    first = (start + np.arange(side * factor, dtype=np.int64) * step >> FIXED_BITS) - 1
    phases = FIXED_ONE // (2 * factor) - half + np.arange(factor, dtype=np.int64) * (FIXED_ONE // factor)
    return np.clip(np.array([first, first + 1]), 0, side - 1), phases % FIXED_ONE


def bilinear_buffers(
    op: BilinearUpsample, sticks: PlanTensor, result: PlanTensor, cores: CoreRangeSet
) -> tuple[CircularBuffer, ...]:
    """Sticks, four pixels of two outputs and two tiles of weights for each reader, and sticks of the result.

    The second reader has room for pixels of all channels.
    """
    channels, element_bytes = op.shape[-1], BFLOAT16.element_bytes or 0
    stick_bytes, most_bytes = channels * element_bytes, WIDEST * TILE * element_bytes
    pixels = CORNERS * BUFFERING
    return (
        paged_buffer("sticks", sticks.spec.shards.shape[0], stick_bytes, BFLOAT16, cores, sticks.name),
        paged_buffer("pixels_0", pixels, min(stick_bytes, most_bytes), BFLOAT16, cores),
        paged_buffer("pixels_1", pixels, stick_bytes, BFLOAT16, cores),
        *(paged_buffer(f"weights_{reader}", BUFFERING, BFLOAT16.tile_bytes, BFLOAT16, cores) for reader in range(2)),
        paged_buffer(
            "output",
            result.spec.shards.shape[0] * div_up(channels, TILE),
            TILE * element_bytes,
            BFLOAT16,
            cores,
            result.name,
        ),
    )
