"""The programs of layer_norm and rms_norm (tt-metal 0.81.1): values and circular buffers.

For interleaved tensors, a core normalizes rows of tiles; it holds a whole row, or blocks of a row that does not fit.
For sharded tensors, each core sums its columns, and the cores of a row exchange their sums.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from device.cores import CoreRangeSet
from device.memory.memory_config import TILE
from device.numbers.formats import BFLOAT16, FLOAT32, Array, DataFormat, div_up, round_up
from device.plan import CircularBuffer
from ops.builder import PlanTensor
from ops.op_model import Ends, ValuesContext, given
from ops.programs.buffer_shapes import tile_buffer
from ops.programs.normalization.tile_math import TileMath, logical
from ops.programs.normalization.work import CoreWork, Normalization


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerNorm(Normalization):
    """Rows less their mean (unless ``rms``), over the root of their variance and ``epsilon``, scaled and shifted."""

    shape: tuple[int, ...]  # Of the tensor
    rms: bool  # The mean is not subtracted
    epsilon: float
    data_format: DataFormat  # Of the tensor and of the result
    residual_format: DataFormat | None  # Of the tensor that is added first
    weight_format: DataFormat | None
    bias_format: DataFormat | None
    fidelity_phases: int
    fp32_dest: bool
    cores: CoreRangeSet
    core_tiles: tuple[int, int]  # Rows and columns of tiles of the busiest core
    partners: int = 1  # Cores that share a row
    welford: bool = False  # The vector unit takes means and variances, in 32 bits

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """The normalized rows, of the tensor, the residual, the weight and the bias as far as there are any."""
        math = TileMath.of(context, fidelity_phases=self.fidelity_phases, fp32_dest=self.fp32_dest)
        formats = (self.residual_format, self.weight_format, self.bias_format)
        remaining = iter(inputs[1:])
        residual, weight, bias = (None if known is None else given(next(remaining)) for known in formats)
        source = logical(given(inputs[0]), self.shape)
        numbers = math.read(source.reshape(-1, self.shape[-1]), self.data_format)
        if residual is not None and self.residual_format is not None:
            other = math.read(logical(residual, self.shape).reshape(numbers.shape), self.residual_format)
            numbers = math.stored(math.added(numbers, other))
        if not self.rms:
            numbers = math.stored(math.added(numbers, -self._means(numbers, math)))
        variances = self._means(math.stored(math.multiplied(numbers, numbers)), math)
        dst = math.multiplied(numbers, math.stored(math.inverse_roots(variances, self.epsilon)))
        columns = numbers.shape[1]
        if weight is not None and self.weight_format is not None:
            row = math.read(weight.reshape(1, -1)[:, :columns], self.weight_format)
            dst = math.multiplied(math.stored(dst), row)
        if bias is not None and self.bias_format is not None:
            row = math.read(bias.reshape(1, -1)[:, :columns], self.bias_format)
            dst = math.added(math.stored(dst), row)
        return math.packed(dst, self.data_format).reshape(source.shape)

    def _means(self, numbers: Array, math: TileMath) -> Array:
        """[rows, 1] means, of the sums of each core's columns."""
        columns = numbers.shape[1]
        if self.welford:
            return math.stored(numbers.mean(1, np.float64, keepdims=True).astype(np.float32))
        if self.partners > 1:
            part = self.core_tiles[1] * TILE
            sums = [math.row_sums(numbers[:, begin : begin + part]) for begin in range(0, columns, part)]
            numbers = math.stored(np.concatenate(sums, axis=1))
        return math.stored(math.scaled(math.row_sums(numbers), 1 / columns))

    def core_work(self, ends: Ends) -> CoreWork:
        """Two reductions and three passes, one less of each for ``rms``, and one pass per additional tensor."""
        rows, columns = self.core_tiles
        tiles, sharded = rows * columns, ends.read.memory_config.is_sharded()
        known = [side is not None for side in (self.residual_format, self.weight_format, self.bias_format)]
        per_row = sum(known[1:]) * columns * (1 if not sharded else 0)
        return CoreWork(
            tiles=tiles,
            reads=0.0 if sharded else tiles * (1 + known[0]) + per_row,
            multiplies=2 + known[1],
            sums=(not self.rms) + known[0] + known[2],
            reductions=1 + (not self.rms),
            rows=rows,
            partials=rows * (1 + (not self.rms)),
            partners=self.partners,
        )

    def placement(self) -> tuple[CoreRangeSet, int, DataFormat]:
        """The cores, the fidelity phases and the format between steps."""
        return self.cores, self.fidelity_phases, intermediate_format(fp32_dest=self.fp32_dest)


def total_bytes(buffers: tuple[CircularBuffer, ...]) -> int:
    """Bytes that buffers take of a core."""
    return sum(buffer.size_bytes for buffer in buffers)


def intermediate_format(*, fp32_dest: bool) -> DataFormat:
    """The format of buffers between steps: as wide as Dst."""
    return FLOAT32 if fp32_dest else BFLOAT16


Row = tuple[str, int, DataFormat | None]  # Name, tiles and format of a buffer; None for that of a tensor that is absent

WEIGHTED_TILES = 56  # of bfloat16, in a block of a row that does not fit, with weights or of float32
PLAIN_TILES = 112  # the same without weights
L1_SHARE = 0.95  # of what buffers may take of L1, that a whole row takes


@dataclass(frozen=True, slots=True, kw_only=True)
class RowBuffers:
    """The tensors and settings that decide the buffers of the program of interleaved tensors."""

    op: LayerNorm
    width_tiles: int  # Of a row
    by_rows: bool  # The tensor is in ROW_MAJOR layout
    vectors_by_rows: bool  # Weight or bias is
    without: tuple[str, ...] = ()  # Names of buffers that the program does not have

    @property
    def block(self) -> int:
        """Tiles that Dst holds."""
        return 4 if self.op.fp32_dest else 8

    @property
    def between(self) -> DataFormat:
        """The format between steps."""
        return intermediate_format(fp32_dest=self.op.fp32_dest)

    @property
    def whole_row(self) -> int:
        """Tiles of a row, up to whole blocks."""
        return round_up(self.width_tiles, self.block)

    def buffers(self, l1_bytes: int) -> tuple[CircularBuffer, ...]:
        """The buffers in order of allocation; ``l1_bytes`` is the L1 of a core for buffers."""
        if (self.vectors_by_rows and not self.by_rows) or not self.exceeds(l1_bytes):
            return self._of(self.whole_row, in_blocks=False)
        largest = min(self._capped(), self.whole_row)
        sizes = (self._of(tiles, in_blocks=True) for tiles in range(largest, self.block, -self.block))
        fitting = (buffers for buffers in sizes if total_bytes(buffers) < l1_bytes * L1_SHARE)
        return next(fitting, self._of(self.block, in_blocks=True))

    def exceeds(self, l1_bytes: int) -> bool:
        """Whether the buffers of whole rows leave too little of ``l1_bytes``."""
        return total_bytes(self._of(self.whole_row, in_blocks=False)) >= l1_bytes * L1_SHARE

    def shortage(self, buffers: tuple[CircularBuffer, ...], l1_bytes: int) -> str | None:
        """The real library's error text if the smallest blocks of a row exceed their part of ``l1_bytes``."""
        needed, usable = total_bytes(buffers), int(l1_bytes * L1_SHARE)
        if needed < usable or "running_sum" not in [buffer.name for buffer in buffers]:
            return None
        return (
            f"LayerNorm streaming circular buffers require {needed} bytes, but only {usable} bytes of the allocator's "
            "L1 span are available\ninput_tensor: free tensors in L1, or put them into DRAM"
        )

    def _of(self, whole: int, *, in_blocks: bool) -> tuple[CircularBuffer, ...]:
        return self.made(self.rows(whole, in_blocks=in_blocks))

    def made(self, rows: Sequence[Row]) -> tuple[CircularBuffer, ...]:
        """The buffers of rows that have tiles and a format."""
        return tuple(
            tile_buffer(name, tiles, data_format, self.op.cores)
            for name, tiles, data_format in rows
            if tiles and data_format is not None and name not in self.without
        )

    def rows(self, whole: int, *, in_blocks: bool) -> list[Row]:
        """The buffers of a row of ``whole`` tiles, or of a block of a row."""
        op, block = self.op, self.block
        with_residual, vectors = op.residual_format is not None, op.weight_format or op.bias_format
        source = 2 * block if with_residual else whole
        result = whole if self.by_rows else 2 * block
        if self.by_rows and in_blocks:
            source = result = block
        return [
            ("input", source, op.data_format),
            ("output", result, op.data_format),
            ("mean", 0 if op.rms else 2, self.between),
            ("scaler", 2, BFLOAT16),
            ("epsilon", 2, BFLOAT16),
            ("variance", 2, self.between),
            ("centered", whole if not op.rms or with_residual or in_blocks else 0, self.between),
            ("squares", whole, self.between),
            ("inverse_roots", 8, self.between),
            ("running_sum", 1 if in_blocks else 0, self.between),
            ("rows_in", 2 * block if self.by_rows else 0, op.data_format),
            ("rows_out", 2 * block if self.by_rows else 0, op.data_format),
            ("scaled", 2 * block if vectors else 0, self.between),
            ("weight", whole, op.weight_format),
            ("bias", whole, op.bias_format),
            ("added", whole if with_residual and not op.rms else 0, self.between),
            ("residual", 2 * block, op.residual_format),
        ]

    def _capped(self) -> int:
        weighted = self.op.weight_format or self.op.bias_format or self.op.data_format == FLOAT32
        most = WEIGHTED_TILES if weighted else PLAIN_TILES
        return most * BFLOAT16.tile_bytes // self.between.tile_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """How the cores of a sharded tensor sum up rows together."""

    partners: int  # Cores that share a row
    first_stage: int  # Cores whose sums are added first, where that takes two stages; else 0
    second_stage: int  # Cores that then add theirs


def shard_buffers(
    op: LayerNorm, tensors: Sequence[PlanTensor | None], output: PlanTensor, exchange: Exchange
) -> tuple[CircularBuffer, ...]:
    """The buffers of the program of shards, in order; ``tensors`` are the input and the residual."""
    between, (high, wide) = intermediate_format(fp32_dest=op.fp32_dest), op.core_tiles
    summing = exchange.first_stage or exchange.partners
    sums = gathered_sums(op, output, exchange)
    partial, gathered = ("partial", high), ("gathered", sums)
    ragged = output.spec.shape[-1] % TILE != 0
    means = () if op.rms else (partial, ("mean", high), gathered)
    rows: list[Row] = [
        ("scaler", 1, BFLOAT16),
        ("global_scaler", 1, BFLOAT16),
        ("epsilon", 1, between),
        ("masked", high * wide if ragged and not op.rms else 0, between),
        ("column_mask", wide if ragged else 0, BFLOAT16),
        *[(name, tiles, between) for name, tiles in (partial, gathered, ("variance", high))],
        ("inverse_roots", div_up(high, summing), between),
        *[(f"mean_{name}", tiles, between) for name, tiles in means],
        ("weight", wide, op.weight_format),
        ("bias", wide, op.bias_format),
        ("added", high * wide, between),
        ("centered", high * wide, between),
        ("global", high, between),
    ]
    return with_views(op, tensors, output, rows)


def gathered_sums(op: LayerNorm, output: PlanTensor, exchange: Exchange) -> int:
    """Sums that a core gathers from others, at once or in two stages."""
    if exchange.second_stage:
        return exchange.first_stage + exchange.second_stage - 1
    return div_up(div_up(output.spec.matrix[1], TILE), op.core_tiles[1])


def with_views(
    op: LayerNorm, tensors: Sequence[PlanTensor | None], output: PlanTensor, rows: Sequence[Row]
) -> tuple[CircularBuffer, ...]:
    """The buffers of rows with tiles and a format, between the views of input shards and of the output shard."""
    tiles = op.core_tiles[0] * op.core_tiles[1]
    return (
        *(
            tile_buffer(tensor.name, tiles, tensor.spec.data_format, op.cores, tensor.name)
            for tensor in tensors
            if tensor is not None
        ),
        *(tile_buffer(name, tiles, fmt, op.cores) for name, tiles, fmt in rows if tiles and fmt is not None),
        tile_buffer("output", tiles, op.data_format, op.cores, output.name),
    )
