"""The program of a rotary embedding whose pairs a matrix exchanges: values, cycles and circular buffers.

Source: tt-metal (experimental/transformer/rotary_embedding_llama), compared with plans of ttnn 0.81.1. Values were
never compared with the kernel.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from device.cores import CoreRangeSet
from device.memory.memory_config import TILE
from device.numbers.formats import BFLOAT16, Array
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanTensor
from ops.op_model import Ends, ValuesContext, given
from ops.programs.attention.rotary import filled, rotation
from ops.programs.buffer_shapes import BUFFERING, scratchpad, tile_buffer
from ops.programs.data_movement.movement import Composed, DataMovement
from ops.programs.normalization.tile_math import TileMath

MOST_KEPT_ROWS = 8  # Rows of tiles of a core whose tables stay in L1 for all heads


@dataclass(frozen=True, slots=True, kw_only=True)
class RotaryLlama(DataMovement):
    """x * cos + (x @ matrix) * sin of bfloat16, each 32 columns of x times the same 32 x 32 matrix.

    Each row takes its own row of the tables; in ``decode`` all heads of a user take the user's row and matrix.
    """

    shape: tuple[int, ...]  # Of the tensor and the result, in whole tiles
    decode: bool
    fidelity_phases: int
    fp32_dest: bool
    cores: CoreRangeSet
    core_rows: int  # Rows of tiles of the core with most
    table_rows: int  # Rows of tiles of either table that this core reads
    kept_rows: int  # Rows of tiles that its buffers have room for at a time

    @property
    def wide(self) -> int:
        """Tiles of a row."""
        return self.shape[-1] // TILE

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """The rotated rows."""
        phases, wide = self.fidelity_phases, self.fp32_dest
        math = TileMath.of(context, fidelity_phases=phases, fp32_dest=wide, between=BFLOAT16)
        given_tensors = [given(array) for array in inputs]
        outer, rows, columns = self.shape[:-2], self.shape[-2], self.shape[-1]
        x = math.read(filled(given_tensors[0], self.shape), BFLOAT16)
        tables = [table[..., :1, :] if self.decode else table[..., :rows, :] for table in given_tensors[1:3]]
        cosines, sines = (
            math.read(filled(table, (*table.shape[:2], 1 if self.decode else rows, columns)), BFLOAT16)
            for table in tables
        )
        matrices = math.read(given_tensors[3][0, 0].reshape(-1, TILE, TILE), BFLOAT16)
        turned = np.empty_like(x)
        users = outer[1] if self.decode else 1
        for user in range(users):
            part = np.s_[:, user : user + 1] if self.decode else np.s_[:]
            pieces = x[part].reshape(-1, TILE)
            turned[part] = math.stored(math.product(pieces, matrices[user])).reshape(x[part].shape)
        parts = [math.stored(math.multiplied(x, cosines)), math.stored(math.multiplied(turned, sines))]
        return math.packed(math.added(*parts), BFLOAT16)

    def composed(self, ends: Ends, spec: DeviceSpec) -> Composed:
        """Three products of a tile: with the matrix, by cosines and by sines."""
        return rotation(
            ends, spec, cores=self.cores, core_tiles=self.core_rows * self.wide,
            row_tiles=self.table_rows * self.wide, products=3.0, phases=self.fidelity_phases,
        )  # fmt: skip


def rotary_llama_buffers(
    op: RotaryLlama, tensors: Sequence[PlanTensor], output: PlanTensor
) -> tuple[CircularBuffer, ...]:
    """The buffers of the tensors, of three intermediate steps, and of the result; in decode, views of tensors.

    Whole sequences also have a scratchpad of a row of tiles.
    """
    between = [tile_buffer(name, op.wide, BFLOAT16, op.cores) for name in ("turned", "cosine_part", "sine_part")]
    names = ("input", "cos", "sin", "trans_mat")
    if op.decode:
        counts = (op.core_rows * op.wide, *(op.table_rows * op.wide,) * 2, 1)
        views = [
            tile_buffer(name, count, BFLOAT16, op.cores, tensor.name)
            for name, count, tensor in zip(names, counts, tensors, strict=True)
        ]
        return (*views, *between, tile_buffer("output", counts[0], BFLOAT16, op.cores, output.name))
    held = BUFFERING * op.wide * op.kept_rows
    read = [
        tile_buffer(name, count, BFLOAT16, op.cores) for name, count in zip(names, (held, held, held, 1), strict=True)
    ]
    result = tile_buffer("output", BUFFERING * op.wide, BFLOAT16, op.cores)
    return (*read, *between, result, scratchpad("row", op.wide * BFLOAT16.tile_bytes, BFLOAT16, op.cores))
