"""The program that weighs the first expert of a mixture (tt-metal 0.81.1, moe)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from device.cores import CoreRangeSet, first_cores
from device.memory.memory_config import TILE
from device.numbers.formats import BFLOAT16, FLOAT32, UINT16, Array, DataFormat
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanTensor
from ops.op_model import Description, Ends, ValuesContext, given
from ops.programs import kernel_costs
from ops.programs.buffer_shapes import BUFFERING, paged_buffer, tile_buffer
from ops.programs.data_movement.movement import Composed, DataMovement
from ops.programs.reduction.reduce import described, packed, streamed, tile_sides

SORTED: Final = 2  # tiles that are sorted together


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertWeight(DataMovement):
    """The softmax of the ``count`` largest scores of each row at the place of expert 0; 0 if it is not among them."""

    shape: tuple[int, ...]  # Of the scores
    count: int
    data_format: DataFormat  # Of the result

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """In float32, packed once; of equal scores the first is the larger."""
        scores, experts, picked = (given(values).astype(np.float32) for values in inputs[:3])
        scores = scores.reshape(self.shape) + experts.reshape(-1)
        places = np.argsort(-scores, axis=-1, kind="stable")[..., : self.count]
        best = np.take_along_axis(scores, places, axis=-1) + picked.reshape(-1)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            powers = np.exp(best - best.max(axis=-1, keepdims=True))
            weights = np.where(places == 0, powers, 0).sum(-1, keepdims=True) / powers.sum(-1, keepdims=True)
        return packed(np.asarray(weights, np.float32), self.data_format, context.arithmetic, fp32_dest=True)

    def composed(self, ends: Ends, spec: DeviceSpec) -> Composed:
        """Tiles are masked, transposed and sorted in pairs with the best so far by one core."""
        images, high, wide = tile_sides(ends.read)
        rows = images * high
        return streamed(
            ends,
            spec,
            cores=one_core(spec),
            tiles=(rows * wide, rows),
            math_cycles=10 * spec.costs_of(kernel_costs.ComputeCosts).vector_tile_cycles,  # merge steps of 64 numbers
            steps="reading, masking, sorting and packing of tiles",
        )

    def describe(self, ends: Ends, spec: DeviceSpec) -> Description:
        """A weight, whose numbers were never compared with recordings."""
        return described(DataMovement.describe(self, ends, spec))


def one_core(spec: DeviceSpec) -> CoreRangeSet:
    """The core that does all the work."""
    return first_cores(1, spec.grid.cols, spec.grid.rows)


def expert_buffers(
    scores: PlanTensor, experts: PlanTensor, picked: PlanTensor, result: PlanTensor, spec: DeviceSpec
) -> tuple[CircularBuffer, ...]:
    """Tiles of scores before and after they are masked, a row of the masks, a row that is sorted with its places.

    The best tile of each row with its places, and results with their largest powers and sums, stay until the end.
    """
    images, high, wide = tile_sides(scores.spec)
    rows, form, cores = images * high, scores.spec.data_format, one_core(spec)
    results = result.spec.matrix[0] * result.spec.matrix[1] // TILE**2
    turned = wide * BFLOAT16.tile_bytes // form.tile_bytes  # counted as if they were bfloat16
    return (
        tile_buffer("scores", SORTED * BUFFERING, form, cores),
        tile_buffer("expert_mask", wide, experts.spec.data_format, cores),
        tile_buffer("topk_mask", 1, picked.spec.data_format, cores),
        tile_buffer("scale", 1, FLOAT32 if form == FLOAT32 else BFLOAT16, cores),
        tile_buffer("places", SORTED * BUFFERING, UINT16, cores),
        tile_buffer("masked", SORTED, form, cores),
        paged_buffer("turned", turned, form.tile_bytes, form, cores),
        tile_buffer("turned_places", wide, UINT16, cores),
        tile_buffer("best", rows, BFLOAT16, cores),
        tile_buffer("best_places", rows, UINT16, cores),
        *(tile_buffer(name, results, result.spec.data_format, cores) for name in ("largest", "sums", "result")),
    )
