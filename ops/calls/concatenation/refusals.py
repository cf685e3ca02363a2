"""What ttnn.concat refuses: tensors that do not go together, and shards that it does not join.

Texts are those of ttnn 0.81.1, in its order.
"""

from collections.abc import Sequence

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout, ShardSpec, TensorMemoryLayout
from device.numbers.integers import round_up

HEIGHT, WIDTH = TensorMemoryLayout.HEIGHT_SHARDED, TensorMemoryLayout.WIDTH_SHARDED
BLOCK = TensorMemoryLayout.BLOCK_SHARDED
LEAST_GROUP = 16  # columns of a group that tiles are turned by
MIXED = "All tensors must be sharded or all must be interleaved\nconcat: shard all tensors, or none"
STICK_BYTES = 32  # sticks of two tensors are joined in whole multiples of this


def require_one_shape(sources: Sequence[TensorSpec], axis: int) -> None:
    """Raises DeviceError for tensors that differ in more than their length along ``axis``."""
    first = sources[0]
    for other in sources[1:]:
        same_rank = len(other.shape) == len(first.shape)
        if not same_rank or any(
            a != b for n, (a, b) in enumerate(zip(first.shape, other.shape, strict=True)) if n != axis
        ):
            raise DeviceError(
                "All dimensions must be the same size except for the dimension along which the contenation is taking "
                f"place.\nconcat: {list(first.shape)} and {list(other.shape)} differ beyond axis {axis}"
            )
        if other.layout is not first.layout:
            raise DeviceError("All Tensors should have same layouts.\nconcat: bring them to one layout first")
        if other.data_format != first.data_format:
            raise DeviceError("All Tensors should have same dtypes.\nconcat: typecast them first")


def require_all_interleaved(sources: Sequence[TensorSpec]) -> None:
    """Raises DeviceError for shards behind a tensor without shards."""
    if any(one.memory_config.is_sharded() for one in sources):
        raise DeviceError(MIXED)


def require_all_sharded(sources: Sequence[TensorSpec]) -> None:
    """Raises DeviceError for a tensor without shards behind shards."""
    if not all(one.memory_config.is_sharded() for one in sources):
        raise DeviceError(MIXED)


def joins_in_place(source: TensorSpec, axis: int) -> bool:
    """Whether shards are whole along an axis, so that they can be joined on their cores."""
    scheme, rank = source.memory_config.memory_layout, len(source.shape)
    return (axis == rank - 1 and scheme in (HEIGHT, BLOCK)) or (axis == rank - 2 and scheme in (WIDTH, BLOCK))


def shards_refusal(
    sources: Sequence[TensorSpec], made: TensorSpec, axis: int, groups: int, alignment_bytes: int
) -> str | None:
    """Why the library does not join shards, if it does not; said once the result is allocated."""
    first, rank = sources[0].memory_config, len(made.shape)
    place, one_place = first.memory_layout, "\nconcat: shard all tensors over the same cores"
    for other in (one.memory_config for one in sources[1:]):
        if not other.is_sharded():
            return f"All tensors must be sharded or all must be interleaved{one_place}"
        if _grid(other.shard_spec) != _grid(first.shard_spec):
            return f"Sharded tensors must have the same grid.{one_place}"
        if other.memory_layout is not place:
            return f"Sharded tensors must have the same memory layout.{one_place}"
    if made.memory_config.memory_layout is not place:
        return "Sharded output and inputs must have the same memory layout.\nmemory_config: move the result afterwards"
    if _grid(made.memory_config.shard_spec) != _grid(first.shard_spec):
        return "Sharded output and inputs must have the same grid.\nmemory_config: move the result afterwards"
    if axis < rank - 2:
        return "Only width or height concat on sharded tensors\nmemory_config: ask for interleaved memory"
    if not joins_in_place(sources[0], axis):
        along, whole = ("width", "height") if axis == rank - 1 else ("height", "width")
        return (
            f"Only support {along} concat on {whole}-sharded or block-sharded tensors.\n"
            "memory_config: ask for interleaved memory"
        )
    if groups > 1 and place is not HEIGHT:
        return (
            f"Groups > 1 is only supported on height-sharded tensors (groups={groups} and "
            f"memory_layout=TensorMemoryLayout::{place.name} was provided)\ngroups: leave it out"
        )
    if axis < rank - 1:
        return None
    if place is BLOCK:
        return _block_refusal(sources, alignment_bytes)
    return _pair_refusal(sources, groups) if len(sources) == 2 else None


def _block_refusal(sources: Sequence[TensorSpec], alignment_bytes: int) -> str | None:
    """Rows in blocks that would start, or end, where a core cannot write to."""
    start = 0
    for number, one in enumerate(sources):
        element_bytes = one.data_format.element_bytes or 0
        if one.layout is Layout.TILE:
            return None
        if start * element_bytes % alignment_bytes:
            return (
                f"Width concat: input {number} starts at column {start} ({start * element_bytes} bytes), not "
                f"L1-aligned ({alignment_bytes} bytes). A ragged width puts the boundary inside a shard and the "
                "NOC cannot write at an unaligned offset. Pad each width to a multiple of "
                f"{alignment_bytes // element_bytes} elements, or concat before sharding.\n"
                "concat: move the tensors to interleaved memory first"
            )
        start += one.shape[-1]
    for number, shards in enumerate(one.memory_config.shard_spec for one in sources):
        element_bytes = sources[number].data_format.element_bytes or 0
        across = 0 if shards is None else shards.shape[1]
        if across * element_bytes % alignment_bytes:
            return (
                f"Input {number} shard row size ({across * element_bytes} bytes = {across} elements x {element_bytes} "
                f"bytes) is not L1-aligned ({alignment_bytes} bytes). Block-sharded RM concat requires aligned row "
                "sizes for correct NOC transfers.\nconcat: move the tensors to interleaved memory first"
            )
    return None


def _pair_refusal(sources: Sequence[TensorSpec], groups: int) -> str | None:
    """What the two programs that join two tensors of HEIGHT shards do not take."""
    for number, one in enumerate(sources):
        columns, shards = one.padded_shape[-1], one.memory_config.shard_spec
        if one.layout is Layout.TILE and columns // groups < LEAST_GROUP:
            return (
                f"Group size must be at least {LEAST_GROUP} for input{number} (was {columns // groups})\n"
                f"groups: {groups} are too many for {columns} columns"
            )
        stick_bytes = columns * (one.data_format.element_bytes or 0)
        aligned, rows = round_up(stick_bytes, STICK_BYTES), 0 if shards is None else shards.shape[0]
        if one.layout is Layout.ROW_MAJOR and aligned != stick_bytes:
            return (
                f"DFB 's2s_rm_input_{number}' (entry_size {aligned} * num_entries {rows} = {aligned * rows} bytes) is "
                "larger than the per-bank allocation of its borrowed TensorParameter "
                f"'input_{number}' ({stick_bytes * rows} bytes).\n"
                f"concat: rows of {stick_bytes} bytes are no whole multiple of {STICK_BYTES}; give more channels"
            )
    return None


def _grid(shards: ShardSpec | None) -> object:
    return None if shards is None else shards.grid
