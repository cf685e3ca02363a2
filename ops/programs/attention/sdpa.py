"""The program of scaled dot-product attention: scores, their softmax, and the weighted values.

Source: tt-metal 0.81.1 (transformer/sdpa), compared with recorded plans. Values were never compared with the kernel,
which processes keys in chunks.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from device.cores import CoreRangeSet
from device.memory.memory_config import TILE
from device.numbers.formats import BFLOAT16, Array, DataFormat, div_up
from device.numbers.vector_unit import rounded_to_even_bfloat16
from device.spec.device_spec import DeviceSpec
from device.time.network import shared_cycles
from device.time.stages import Stage
from ops.op_model import Ends, ValuesContext, given, given_elements, uncompared_fact
from ops.programs.attention.softmax import stored
from ops.programs.data_movement.movement import Composed, DataMovement
from ops.programs.kernel_costs import ComputeCosts, pack_tile_cycles, read_page_cycles, unpack_tile_cycles

UNCOMPARED = uncompared_fact("an attention was never compared with the real kernel's")


def weighted(scores: Array, value: Array, scale: float, *, wide: bool, sink: Array | None = None) -> Array:
    """Values weighted by the softmax of the scores of a head, and of a ``sink``, the score of no value."""
    if sink is not None:
        scores = np.concatenate([scores, np.broadcast_to(sink, (*scores.shape[:-1], 1))], -1)
        value = np.concatenate([value, np.zeros_like(value[:1])])
    with np.errstate(invalid="ignore"):
        powers = np.exp((scores - scores.max(-1, keepdims=True)) * np.float32(scale))
    if not wide:
        powers = rounded_to_even_bfloat16(np.asarray(powers, np.float32))
    return np.asarray((powers @ value) / powers.sum(-1, keepdims=True), np.float32)


def score_tile_cycles(spec: DeviceSpec, wide: int, phases: int) -> float:
    """Cycles of a tile of scores in the products of heads of this width in tiles, and in the softmax."""
    costs = spec.costs_of(ComputeCosts)
    products = 2 * wide * spec.compute.phase_cycles * phases
    softmax = 2 * (unpack_tile_cycles(spec, BFLOAT16.tile_bytes) + pack_tile_cycles(spec, BFLOAT16.tile_bytes))
    return products + softmax + costs.vector_tile_cycles + costs.add_tile_cycles


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledDotProduct(DataMovement):
    """softmax(q @ k.T * scale + mask) @ v by head; several heads of q share a head of k and v.

    The mask and the sinks of the heads, [1, heads, 1, 1], follow the operands if there are any.
    """

    scale: float
    causal: bool
    data_format: DataFormat  # Of the queries and of the result
    key_format: DataFormat
    fp32_dest: bool
    phases: int  # Fidelity phases of the products
    heads: int  # Of all batches
    rows: int  # Of queries
    keys: int
    size: int  # Columns of a head
    cores: CoreRangeSet
    core_rows: int  # Rows of queries of the core with most of them, in tiles, of all its heads
    window: int = 0  # Keys that a query sees: the last ones, or those around its own; 0 for all
    has_sinks: bool = False
    joined: bool = False  # The result has the heads concatenated along the columns

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """[batch, heads, rows, head size] or [batch, 1, rows, heads * head size], in storage of the queries' format."""
        operands = (given_elements(array, "scaled_dot_product_attention") for array in inputs[:3])
        query, key, value = (array.astype(np.float32) for array in operands)
        mask = given(inputs[3]).astype(np.float32) if len(inputs) - self.has_sinks > 3 else None
        sinks = given(inputs[-1]).astype(np.float32)[0] if self.has_sinks else None
        share, result = query.shape[1] // key.shape[1], np.empty_like(query)
        hidden = np.where(self._seen(), np.float32(0), np.float32(-np.inf))
        for batch, head in np.ndindex(query.shape[:2]):
            scores = query[batch, head] @ key[batch, head // share].T
            if mask is not None:  # divided by the scale before, as the scores are multiplied by it
                scores = scores + mask[batch % len(mask), head % mask.shape[1]]
            result[batch, head] = weighted(
                scores + hidden, value[batch, head // share], self.scale, wide=self.fp32_dest,
                sink=None if sinks is None else sinks[head],
            )  # fmt: skip
        if self.joined:
            result = result.transpose(0, 2, 1, 3).reshape(len(result), 1, self.rows, -1)
        packed = stored(result, self.data_format, context.arithmetic, wide=self.fp32_dest)
        return packed.astype(self.data_format.storage, copy=False)

    def _seen(self) -> Array:
        """Which keys [rows, keys] queries see."""
        behind = np.arange(self.rows)[:, None] - np.arange(self.keys)
        if self.causal:
            return np.asarray((behind >= 0) & (behind < (self.window or self.keys)))
        return np.asarray(np.abs(behind) <= (self.window // 2 if self.window else max(self.rows, self.keys)))

    def composed(self, ends: Ends, spec: DeviceSpec) -> Composed:
        """Tiles of scores pass products and the softmax; keys and values are read once for each chunk of queries."""
        wide, keys = div_up(self.size, TILE), div_up(self.keys, TILE)
        scores = self.core_rows * keys / (2 if self.causal else 1)
        math = scores * score_tile_cycles(spec, wide, self.phases)
        read = 2 * keys * wide * read_page_cycles(spec, self.key_format.tile_bytes)
        moved = self.heads * wide * 2 * (div_up(self.rows, TILE) * self.data_format.tile_bytes)
        kept = self.heads * wide * 2 * keys * self.key_format.tile_bytes
        shared = shared_cycles(spec, moved + kept)
        return Composed(
            cores=self.cores,
            body_cycles=max(math + read / max(1, keys), read, shared),
            stages={
                Stage.READER: (read, "keys and values are read"),
                Stage.MATH: (math, "products of tiles, exponentials, sums"),
                Stage.DRAM: (shared, "all cores share the banks"),
            },
            steps="reading, products, vector functions and packing of tiles",
            details=(UNCOMPARED,),
            dram_read_bytes=moved // 2 + kept,
            dram_written_bytes=moved // 2,
        )
