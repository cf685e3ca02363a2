"""Concatenation: what it computes, its buffers, what it takes."""

import numpy as np
import pytest

from device.time.stages import Stage
from ops.builder import PlanTensor
from ops.op_model import Ends
from ops.op_models import load_spec
from ops.programs.data_movement.concat import Concatenate, shard_views, turned_buffers
from ops.programs.data_movement.movement import copy_movement, movement_cycles
from tests.build import busy, op_cycles, op_values, tensor_spec
from tests.ops.programs.data_movement.round_figures import ROUND

SPEC = load_spec("wormhole_n150")
COSTS = ROUND.replace(compute_costs_block_cycles=100.0)
WIRE = COSTS.noc.link_bytes_per_cycle  # 32


def tensors(*texts):
    return [PlanTensor(name, tensor_spec(text)) for name, text in zip("abc", texts, strict=False)]


@pytest.mark.parametrize(
    ("texts", "sizes"),
    [
        ([f"64x{columns} tile height/32x{columns}/2" for columns in (32, 64, 96)], [2048, 4096, 6144]),
        # rows of 20 elements take 40 bytes and lie 48 apart; the real library's views
        ([f"{rows}x80 width/{rows}x20/4" for rows in (32, 32, 64)], [1536, 1536, 3072]),
    ],
)
def test_shards_lie_where_they_are(texts, sizes):
    *inputs, result = tensors(*texts)
    views = [(view.view_of, view.size_bytes) for view in shard_views(inputs, result, SPEC)]
    assert views == list(zip("abc", sizes, strict=True))


def test_block_floats_are_bfloat16_while_they_are_turned():
    *inputs, result = tensors(*(f"64x{columns} bfloat8_b tile height/32x{columns}/2" for columns in (32, 64, 96)))
    sizes = [buffer.size_bytes for buffer in turned_buffers(inputs, result, SPEC)]
    assert sizes == [1088, 2176, 3264, 2048, 4096, 6144, 3264]


STICKS = "400x64 height/100x64/4", "400x96 height/100x96/4", 1, (64, 32)
TILE_COPIED = 200 + 2048 / WIRE


@pytest.mark.parametrize(
    ("read", "written", "axis", "sides", "groups", "cycles"),
    [
        # two processors copy half of the sticks each
        (*STICKS, 1, 2 * (49 * 20 + 200) + (128 + 64) / WIRE),
        # long sticks are bound by the link: one a processor and tensor
        ("8x1024 height/2x1024/4", "8x2048 height/2x2048/4", 1, (1024,) * 2, 1, 2 * (200 + 2048 / WIRE)),
        # groups cut sticks into parts: 40, 20 a processor
        ("40x64 height/10x64/4", "40x128 height/10x128/4", 1, (64,) * 2, 4, 2 * (19 * 20 + 200 + 32 / WIRE)),
        # rows of WIDTH shards are copied whole
        ("8x256 width/8x64/4", "12x256 width/12x64/4", 0, (8, 4), 1, 3 * 20 + 20 + 2 * (200 + 128 / WIRE)),
        # two tiles of 2048 bytes, unpacked and packed at 64 bytes a cycle, turned and turned back, in two rows
        (
            "256x32 tile height/64x32/4", "256x64 tile height/64x64/4", 1, (32,) * 2, 1,
            2 * (2 * 100 + 2 * 2 * (32 + 32) + 2 * TILE_COPIED),
        ),
        # a tile of 1088 bytes becomes one of 2048 bytes, and back
        (
            "128x32 bfloat8_b tile height/32x32/4", "128x64 bfloat8_b tile height/32x64/4", 1, (32,) * 2, 1,
            200 + 2 * (17 + 32 + 32 + 17) + 2 * TILE_COPIED,
        ),
        # three tensors in tiles are copied tile by tile
        ("128x32 tile height/32x32/4", "128x96 tile height/32x96/4", 1, (32,) * 3, 1, 3 * TILE_COPIED),
    ],
)  # fmt: skip
def test_shards_by_hand(read, written, axis, sides, groups, cycles):
    assert op_cycles(joined(read, axis, sides, groups), read, written, COSTS).cycles == pytest.approx(500 + cycles)


def joined(read, axis, sides, groups=1):
    """Tensors with sides of so many elements along an axis, the other as long as the first's."""
    shapes = [list(tensor_spec(read).shape) for _ in sides]
    for shape, side in zip(shapes, sides, strict=True):
        shape[axis] = side
    return Concatenate(axis=axis, shapes=tuple(map(tuple, shapes)), groups=groups)


def test_the_only_processor_copies_all_sticks():
    read, written, axis, sides = STICKS
    op = joined(read, axis, sides)
    alone = op_cycles(op, read, written, COSTS.replace(data_movement_processors=1))
    assert alone.cycles == pytest.approx(500 + 2 * (99 * 20 + 200) + (128 + 64) / WIRE)
    assert set(busy(alone)) == {Stage.START, Stage.READER}
    ends = Ends(read=tensor_spec(read), written=tensor_spec(written))
    assert set(busy(op_cycles(op, read, written, COSTS))) == {Stage.START, *op.describe(ends, COSTS).stages}


@pytest.mark.parametrize(("place", "read_bytes"), [("dram", 8 * 2048), ("l1", 0)])
def test_all_of_the_result_is_read_where_the_first_tensor_lies(place, read_bytes):
    op, first, written = Concatenate(axis=1, shapes=((64, 32), (64, 96))), f"64x32 tile {place}", "64x128 tile"
    cycles = op_cycles(op, first, written, SPEC)
    assert (cycles.dram_read_bytes, cycles.dram_written_bytes) == (read_bytes, 8 * 2048)
    copy = copy_movement(tensor_spec(f"64x128 tile {place}"), tensor_spec(written), SPEC)
    assert cycles == movement_cycles(copy, SPEC)
    details = op.describe(Ends(read=tensor_spec(first), written=tensor_spec(written)), SPEC).facts
    assert [(detail.name, detail.value) for detail in details] == [
        ("cores", 8),
        ("pages_read", 8),
        ("pages_written", 8),
    ]


@pytest.mark.parametrize(
    ("axis", "groups", "arrays", "result"),
    [
        (1, 1, [[[1, 2]], [[3]]], [[1, 2, 3]]),
        (0, 1, [[[1, 2]], [[3, 4]]], [[1, 2], [3, 4]]),
        (1, 2, [[[1, 2, 3, 4]], [[5, 6]]], [[1, 2, 5, 3, 4, 6]]),  # groups in turn
    ],
)
def test_one_behind_the_other(axis, groups, arrays, result):
    values = [np.float32(array) for array in arrays]
    op = Concatenate(axis=axis, shapes=tuple(array.shape for array in values), groups=groups)
    assert op_values(op, *values).tolist() == result
