"""The program that splits queries, and pairs of keys and values in a tensor of their own, into heads on each core.

Source: tt-metal (experimental/transformer/create_qkv_heads_from_separate_tensors), compared with plans of ttnn 0.81.1.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from device.memory.layouts import TensorSpec
from device.numbers.formats import Array, DataFormat
from device.spec.device_spec import DeviceSpec
from ops.op_model import ValuesContext, given
from ops.programs.attention.heads import more, packed
from ops.programs.data_movement.movement import DataMovement, Movement, copy_movement


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitSeparateHeads(DataMovement):
    """[batch, 1, rows, heads * size], and [batch, 1, other rows, pairs of a key and a value], head by head."""

    heads: int
    kv_heads: int
    transposed: bool  # Keys are [batch, heads, head size, rows]
    data_format: DataFormat

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> tuple[Array, ...]:
        """Queries, keys and values."""
        own, other = (given(array) for array in inputs)
        queries = own.reshape(own.shape[0], own.shape[2], self.heads, -1).transpose(0, 2, 1, 3)
        pairs = other.reshape(other.shape[0], other.shape[2], self.kv_heads, 2, -1).transpose(3, 0, 2, 1, 4)
        keys = packed(pairs[0].swapaxes(2, 3), self.data_format) if self.transposed else pairs[0]
        return queries, keys, pairs[1]

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """Tiles of both tensors are read and written within their cores; both are counted by the heads."""
        copied, share = copy_movement(read, read, spec), 1 + 2 * self.kv_heads / self.heads
        return replace(copied, reads=more(copied.reads, share), writes=more(copied.writes, share))
