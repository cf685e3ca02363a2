"""Programs that split a projection into heads, or join heads: tiles move, and keys may be transposed.

Sources: tt-metal 0.81.1 (experimental/transformer), compared with recorded plans.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from device.memory.layouts import TensorSpec
from device.numbers.formats import Array, DataFormat, quantize
from device.spec.device_spec import DeviceSpec
from ops.op_model import ValuesContext, given
from ops.programs.data_movement.movement import DataMovement, Movement, Pages, copy_movement


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitHeads(DataMovement):
    """[batch, 1, rows, columns] becomes queries, keys and values [batch, heads, rows, head size].

    Columns are groups side by side: in each all its queries, then all its keys, then all its values, unless keys are
    the values. With a second tensor the first has the queries, and the second the rest.
    """

    heads: int
    kv_heads: int
    head_size: int  # In columns, with padding
    transposed: bool = False  # Keys are [batch, heads, head size, rows]
    tied: bool = False  # Keys are the values, before they are transposed
    groups: int = 1
    queries_alone: bool = False  # Keys and values stay as they were allocated
    data_format: DataFormat

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> tuple[Array, ...]:
        """Queries, keys and values."""
        columns = [self._padded(given(array)) for array in inputs]
        whole = columns[0] if len(columns) == 1 else np.concatenate(columns, axis=-1)
        batch, rows = whole.shape[0], whole.shape[-2]
        if self.queries_alone:
            queries = whole.reshape(batch, rows, -1, self.head_size).transpose(0, 2, 1, 3)
            return self._packed(queries), np.zeros_like(queries), np.zeros_like(queries)
        parts = whole.reshape(batch, rows, self.groups, -1, self.head_size)
        own, others = self.heads // self.groups, self.kv_heads // self.groups
        ends = [own] if self.tied else [own, own + others]
        queries, keys, *rest = (part.reshape(batch, rows, -1, self.head_size) for part in np.split(parts, ends, axis=3))
        (values,) = rest or (keys,)
        key_axes = (0, 2, 3, 1) if self.transposed else (0, 2, 1, 3)
        return (
            self._packed(queries.transpose(0, 2, 1, 3)),
            self._packed(keys.transpose(key_axes)),
            self._packed(values.transpose(0, 2, 1, 3)),
        )

    def _padded(self, values: Array) -> Array:
        """Rows whose last head is filled up with zeros."""
        missing = -values.shape[-1] % self.head_size
        return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, missing)]) if missing else values

    def _packed(self, values: Array) -> Array:
        """Block floats whose columns became rows are packed again."""
        return packed(values, self.data_format) if self.transposed else values

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """All tiles are read and written; the tensors at both ends may hold a part of them."""
        place = read.memory_config if written.memory_config.is_sharded() else written.memory_config
        copied = copy_movement(read, read.changed(memory_config=place), spec)
        tiles = read.matrix[0] * (self.heads + 2 * self.kv_heads) * self.head_size
        share = max(1.0, tiles / (read.matrix[0] * read.matrix[1]))
        return replace(copied, reads=more(copied.reads, share), writes=more(copied.writes, share))


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinHeads(DataMovement):
    """[batch, heads, rows, head size] becomes [batch, 1, rows, heads * head size]."""

    def moved(self, values: Array) -> Array:
        """Heads side by side."""
        batch, heads, rows, size = values.shape
        return values.transpose(0, 2, 1, 3).reshape(batch, 1, rows, heads * size)


def packed(values: Array, data_format: DataFormat) -> Array:
    """Numbers whose columns became rows, which block floats pack again."""
    return quantize(values, data_format).astype(values.dtype) if data_format.is_block else values


def more(pages: Pages | None, share: float) -> Pages | None:
    """Pages of a tensor that is larger by a factor."""
    if pages is None or share <= 1:
        return pages
    return replace(pages, core_pages=ceil(pages.core_pages * share), all_pages=ceil(pages.all_pages * share))
