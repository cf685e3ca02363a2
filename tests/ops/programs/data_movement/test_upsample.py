"""Programs that repeat pixels."""

import numpy as np
import pytest

from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, UINT16
from device.spec.device_spec import load_spec
from ops.builder import PlanTensor
from ops.programs.data_movement.upsample import (
    Upsample,
    UpsampleProgram,
    interval_words,
    shard_buffers,
    upsampled_shape,
)
from tests.build import buffer_rows, place, tensor_spec

SPEC = load_spec("wormhole_n150")
STICKS, TILES = UpsampleProgram.STICKS, UpsampleProgram.TILES
SHARDS, PAGES = UpsampleProgram.SHARDS, UpsampleProgram.PAGES


def test_shards_lie_where_they_are():
    source, result = (PlanTensor(name, tensor_spec(f"{4 * n}x24 height/{n}x24/4")) for name, n in (("x", 7), ("y", 28)))
    small = place("height/1x8/4")
    small = type(small)(small.memory_layout, BufferType.L1_SMALL, small.shard_spec)
    lists = PlanTensor("lists", TensorSpec((4, 8), UINT16, source.spec.layout, small))
    assert buffer_rows(shard_buffers(source, result, lists, 48, SPEC), "view_of") == [
        ("source", 336, 4, "x"),
        ("result", 1344, 4, "y"),
        ("lists", 16, 4, "lists"),
    ]


@pytest.mark.parametrize(
    ("rows", "width", "repeats", "shard_rows", "intervals"),
    [
        (64, 64, 2, 64, 1),  # a core has one row: each processor one repetition of it
        (7, 7, 1, 49, 1),  # nothing is repeated: either half is one run
        (7, 7, 3, 49, 8),  # 21 rows behind one another; a row's first repetition follows the row before it
        (16, 8, 3, 2, 2),  # 6 sticks of a core: three each, that lie in two shards
        (4, 4, 1, 1, 1),  # one stick: a single processor gathers it
    ],
)
def test_a_list_has_as_many_intervals_as_the_longest_needs(rows, width, repeats, shard_rows, intervals):
    assert interval_words(rows, width, repeats, shard_rows) == 2 * 4 * intervals


def upsample(scale, program=STICKS, shape=(1, 2, 3, 1), source=BFLOAT16, target=BFLOAT16):
    return Upsample(program=program, shape=shape, scale=scale, source_format=source, data_format=target)


@pytest.mark.parametrize(
    ("program", "source", "target", "core_pages"),
    [
        (STICKS, "1x32x32x32", "1x64x64x32", [1024 // 64, 4096 // 64]),
        (TILES, "1x32x32x32 tile", "1x64x64x32", [1, 4096 // 32]),  # a row of tiles on 32 cores
        (SHARDS, "1x32x32x32 height/256x32/4", "1x64x64x32 height/1024x32/4", [1024 // 2]),
        (PAGES, "1x32x32x32", "1x48x48x32", [2304 // 64, 2304 // 64]),
    ],
)
def test_pages_of_one_core(program, source, target, core_pages):
    read, written = tensor_spec(source), tensor_spec(target)
    movement = upsample((written.shape[1] / read.shape[1],) * 2, program, read.shape).movement(read, written, SPEC)
    assert [side.core_pages for side in movement.sides] == core_pages


def test_pixels_come_several_times_and_sides_are_rounded_down():
    image = np.arange(6, dtype=np.float32).reshape(1, 2, 3, 1)
    assert upsample((2.0, 1.0)).moved(image).reshape(4, 3).tolist() == [[0, 1, 2], [0, 1, 2], [3, 4, 5], [3, 4, 5]]
    assert upsample((1.0, 1.5), PAGES).moved(image).reshape(2, 4).tolist() == [[0, 0, 1, 2], [3, 3, 4, 5]]
    assert upsample((0.5, 0.5), PAGES).moved(image).reshape(-1).tolist() == [0]
    assert upsampled_shape((2, 7, 5, 24), (1.5, 0.5)) == (2, 10, 2, 24)


@pytest.mark.parametrize(
    ("program", "source", "target", "expected"),
    [
        (STICKS, FLOAT32, FLOAT32, 1.00390625),
        (TILES, FLOAT32, FLOAT32, 1.0),  # a 16-bit Dst has 7 bits of fraction
        (TILES, BFLOAT8_B, BFLOAT16, 1.015625),
    ],
)
def test_tiles_pass_the_matrix_unit(program, source, target, expected):
    given = np.full((1, 2, 32, 32), 1.015625 if source is BFLOAT8_B else 1.00390625, np.float32)
    result = upsample((1.0, 1.0), program, given.shape, source, target).moved(given)
    assert float(result[0, 0, 0, 0]) == expected
