"""Circular buffers of a program that combines two tensors, or a tensor and a number.

Rules: tt-metal 0.81.1 (binary_ng_program_factory), compared with recorded plans.
"""

from enum import Enum

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, TensorMemoryLayout
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanTensor
from ops.programs.eltwise.binary import Binary
from ops.programs.eltwise.circular_buffers import BUFFERING, shard_view, tiles_of
from ops.programs.eltwise.sharding import is_uneven

VECTOR_UNIT_TILES = 2  # that the vector unit works on before they are packed
DST_TILES = 8  # of 16 bits that a half of Dst holds


class Repeated(Enum):
    """Which operand has a side of length 1 within its tiles, and which side."""

    NONE = "none"
    SCALAR_LEFT = "a number on the left"
    SCALAR_RIGHT = "a number on the right"
    ROW_LEFT_COLUMN_RIGHT = "a row on the left, a column on the right"
    ROW_RIGHT_COLUMN_LEFT = "a row on the right, a column on the left"
    ROW_LEFT = "a row on the left"
    COLUMN_LEFT = "a column on the left"
    ROW_RIGHT = "a row on the right"
    COLUMN_RIGHT = "a column on the right"


LEFT = (Repeated.SCALAR_LEFT, Repeated.ROW_LEFT_COLUMN_RIGHT, Repeated.ROW_LEFT, Repeated.COLUMN_LEFT)
RIGHT = (Repeated.SCALAR_RIGHT, Repeated.ROW_RIGHT_COLUMN_LEFT, Repeated.ROW_RIGHT, Repeated.COLUMN_RIGHT)
WHOLE_ROWS_ONLY = (Repeated.SCALAR_LEFT, Repeated.SCALAR_RIGHT, Repeated.COLUMN_LEFT, Repeated.COLUMN_RIGHT)


def repeated(left: tuple[int, ...], right: tuple[int, ...]) -> Repeated:
    """How the last two axes of two shapes are repeated; raises DeviceError if neither has sides to repeat."""
    (a_rows, a_columns), (b_rows, b_columns) = ((1, 1, *shape)[-2:] for shape in (left, right))
    if (a_rows, a_columns) == (b_rows, b_columns):
        return Repeated.NONE
    cases = (
        (a_rows == a_columns == 1, Repeated.SCALAR_LEFT),
        (b_rows == b_columns == 1, Repeated.SCALAR_RIGHT),
        (a_rows == b_columns == 1, Repeated.ROW_LEFT_COLUMN_RIGHT),
        (a_columns == b_rows == 1, Repeated.ROW_RIGHT_COLUMN_LEFT),
        (a_rows == 1, Repeated.ROW_LEFT),
        (a_columns == 1, Repeated.COLUMN_LEFT),
        (b_rows == 1, Repeated.ROW_RIGHT),
    )
    found = next((kind for holds, kind in cases if holds), None)
    if found is None and b_columns != 1:
        raise DeviceError(
            "Invalid subtile broadcast type\n"
            f"rows and columns, {a_rows} x {a_columns} and {b_rows} x {b_columns}, must be equal, or one of each 1"
        )
    return found or Repeated.COLUMN_RIGHT


def works_on_shards(left: TensorSpec, right: TensorSpec | None, made: TensorSpec) -> bool:
    """Whether a program works on shards where they lie, rather than page by page."""
    if not _may_work_on_shards(left, right, made):
        return False
    if not is_uneven(made):
        return True
    shards = {one.memory_config.shard_spec for one in (left, right, made) if one is not None}
    return right is not None and len(shards) == 1


def _may_work_on_shards(left: TensorSpec, right: TensorSpec | None, made: TensorSpec) -> bool:
    """The same before the result's own unevenness is looked at."""
    place, other = made.memory_config, left.memory_config
    if not place.is_sharded() or (right is None and not other.is_sharded()):
        return False
    if right is None:
        in_l1 = place.buffer_type is other.buffer_type is BufferType.L1
        return in_l1 and not is_uneven(left) and place.shard_spec == other.shard_spec
    held = right.memory_config
    left_alone = other.is_sharded() and not held.is_sharded() and made.shape == left.shape and not is_uneven(left)
    if left_alone and repeated(left.shape, right.shape) in WHOLE_ROWS_ONLY:
        return other.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED
    if left.shape != right.shape or other != held:
        return False
    in_l1 = all(one.buffer_type is BufferType.L1 for one in (place, other, held))
    if is_uneven(left) or is_uneven(right):
        return in_l1 and place.shard_spec == other.shard_spec
    if not in_l1:
        return False
    grids = {one.shard_spec.grid for one in (place, other, held) if one.shard_spec is not None}
    return len(grids) == 1


def binary_buffers(
    work: Binary,
    left: PlanTensor,
    right: PlanTensor | None,
    made: PlanTensor,
    kind: Repeated,
    spec: DeviceSpec,
    *,
    on_shards: bool,
) -> tuple[CircularBuffer, ...]:
    """The program's buffers, on all cores: two tiles each, a number in one, shards where they lie.

    An operand with activations has a buffer behind its own for what they give.

    Args:
        left: The first operand.
        right: The second; None for a number.
        kind: What is repeated within tiles: the operand is spread over two tiles of its own.
        on_shards: See `works_on_shards`.
    """

    def held(name: str, tensor: PlanTensor) -> CircularBuffer:
        if on_shards and tensor.spec.memory_config.is_sharded():
            return shard_view(name, tensor, spec)
        return tiles_of(name, BUFFERING, tensor.spec.data_format, spec)

    spread = work.left_format if kind in LEFT else work.second_format
    on_the_way = _tiles_at_once(work) if on_shards and kind is Repeated.NONE else 1
    return (
        held("left", left),
        *((tiles_of("left_activated", on_the_way, work.left_format, spec),) if work.left_activations else ()),
        tiles_of("number", 1, work.scalar_format, spec) if right is None else held("right", right),
        *((tiles_of("right_activated", on_the_way, work.second_format, spec),) if work.right_activations else ()),
        *((tiles_of("spread", BUFFERING, spread, spec),) if kind in (*LEFT, *RIGHT) else ()),
        held("result", made),
    )


def _tiles_at_once(work: Binary) -> int:
    """Tiles of shards that a core computes before it packs them: as many as Dst holds of the matrix unit's."""
    if work.by_vector_unit:
        return VECTOR_UNIT_TILES
    return DST_TILES // 2 if work.fp32_dest else DST_TILES
