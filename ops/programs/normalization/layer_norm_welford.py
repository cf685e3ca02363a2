"""Circular buffers of layer_norm with ``use_welford`` (tt-metal 0.81.1): the vector unit takes means and variances.

Rows of bfloat16 and bfloat8_b, and rows of float32 without a residual, are read in two passes where they fit. Other
programs update means and variances tile by tile, and want a table of reciprocals in L1.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from device.numbers.formats import FLOAT32
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanTensor
from ops.programs.buffer_shapes import buffer
from ops.programs.normalization.layer_norm import (
    L1_SHARE,
    Exchange,
    LayerNorm,
    Row,
    RowBuffers,
    gathered_sums,
    intermediate_format,
    total_bytes,
    with_views,
)

REDUCED = ("scaler", "squares", "running_sum")  # of the programs that reduce rows by the matrix unit


@dataclass(frozen=True, slots=True, kw_only=True)
class WelfordRows:
    """The buffers of the programs of interleaved tensors, with a Dst of 32 bits."""

    rows: RowBuffers  # Those of the program without Welford's algorithm

    def in_two_passes(self, l1_bytes: int) -> tuple[CircularBuffer, ...] | None:
        """The buffers of the first program of two passes that fits ``l1_bytes``; None if none fits.

        With a ROW_MAJOR weight or bias the library uses the smaller program even if it does not fit.
        """
        op, smallest = self.rows.op, None
        if op.residual_format is not None and op.data_format == FLOAT32:
            return None
        for buffers in self._passes():
            if total_bytes(buffers) < l1_bytes * L1_SHARE:
                return buffers
            smallest = buffers
        return smallest if self.rows.vectors_by_rows else None

    def by_tiles(self, l1_bytes: int) -> tuple[CircularBuffer, ...]:
        """The buffers of the program that reads reciprocals, without them."""
        return replace(self.rows, without=REDUCED).buffers(l1_bytes)

    def _passes(self) -> Iterator[tuple[CircularBuffer, ...]]:
        """Two rows of each tensor in flight; then as few as two passes need."""
        rows, op = self.rows, self.rows.op
        whole, few = rows.whole_row, 2 * rows.block
        with_residual, wide = op.residual_format is not None, op.data_format == FLOAT32
        added = whole if with_residual else 0
        yield self._changed(
            input=2 * whole,
            residual=2 * whole,
            added=added,
            copied=0 if with_residual or wide else whole,
            centered=whole,
        )
        source, centered = few if with_residual else whole, 0 if wide else whole
        yield self._changed(input=source, residual=few, added=added, centered=centered)

    def _changed(self, **tiles: int) -> tuple[CircularBuffer, ...]:
        """The buffers of whole rows with other numbers of tiles, and a row as it was read."""
        rows, op = self.rows, self.rows.op
        plain, copied = rows.rows(rows.whole_row, in_blocks=False), ("copied", 0, op.data_format)
        changed = [(name, tiles.get(name, count), form) for name, count, form in (*plain, copied)]
        return replace(rows, without=REDUCED).made(changed)


def reciprocals(table: PlanTensor, op: LayerNorm, spec: DeviceSpec) -> CircularBuffer:
    """The buffer on a table of reciprocals: all that a bank holds of the table."""
    return buffer("reciprocals", table.spec.buffer(spec).bank_bytes, FLOAT32, op.cores, table.name)


def welford_shard_buffers(
    op: LayerNorm, tensors: tuple[PlanTensor | None, ...], output: PlanTensor, exchange: Exchange
) -> tuple[CircularBuffer, ...]:
    """The buffers of the program of shards, without reciprocals: means and variances share buffers."""
    between, (high, wide) = intermediate_format(fp32_dest=op.fp32_dest), op.core_tiles
    rows: list[Row] = [
        *[(name, 2 * high, between) for name in ("partial", "moments", "global", "transposed")],
        ("gathered", 2 * gathered_sums(op, output, exchange), between),
        ("weight", wide, op.weight_format),
        ("bias", wide, op.bias_format),
        ("added", high * wide, between),
        ("centered", high * wide, between),
    ]
    return with_views(op, tensors, output, rows)
