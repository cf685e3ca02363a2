"""Which programs give a tensor another shape."""

import pytest

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, UINT16
from device.plan import Operation, Refuse
from ops.op_models import load_spec
from ops.planners.shape.reshape import plan_reshape
from tests.shards import BLOCK, high, on_cores, wide

SPEC = load_spec("wormhole_n150")
ROWS, TILES = Layout.ROW_MAJOR, Layout.TILE
CORES = CoreRangeSet(CoreRange(CoreCoord(0, 0), CoreCoord(1, 0)))


def programs(shape, to, layout=ROWS, data_format=BFLOAT16, place=DRAM_MEMORY_CONFIG, **how):
    plan = plan_reshape(TensorSpec(shape, data_format, layout, place), to, SPEC, **how)
    names = [step.name.removesuffix("DeviceOperation") for step in plan.steps if isinstance(step, Operation)]
    return names, plan.results["output"], plan.tensors[plan.results["output"]]


def test_pages_that_stay_keep_their_buffer():
    assert programs((2, 3, 8, 16), (6, 8, 16))[:2] == ([], "input")
    assert programs((2, 32, 64, 16), (1, 1, 4096, 16), TILES)[:2] == ([], "input")
    names, _, made = programs((2, 3, 8, 16), (6, 8, 16), place=DRAM_MEMORY_CONFIG)
    assert (names, made.shape) == ([], (6, 8, 16))


@pytest.mark.parametrize(
    ("data_format", "before", "text"),
    [
        (UINT16, ["ShardedToInterleaved"], "Can only work with bfloat16/float32 or int32/uint32 tensors\n"),
        (BFLOAT16, ["ShardedToInterleaved", "ReshapeView"], "Shard page size must currently have L1 aligned page size"),
    ],
)
def test_programs_before_a_refusal_run(data_format, before, text):
    """They may find no room first."""
    plan = plan_reshape(TensorSpec((1, 1, 8, 16), data_format, ROWS, high((4, 16), 2)), (1, 1, 32, 4), SPEC)
    *ran, refused = plan.steps
    assert [step.name.removesuffix("DeviceOperation") for step in ran if isinstance(step, Operation)] == before
    assert isinstance(refused, Refuse)
    assert refused.text.startswith(text)


def moved(shape, to, where, **given):
    plan = plan_reshape(TensorSpec(shape, BFLOAT16, **given), to, SPEC, place=where)
    return [step.name.removesuffix("DeviceOperation") for step in plan.steps if isinstance(step, Operation)]


def test_another_memory_takes_a_program():
    rows = {"layout": ROWS, "memory_config": DRAM_MEMORY_CONFIG}
    assert moved((1, 1, 64, 32), (1, 2, 32, 32), L1_MEMORY_CONFIG, **rows) == ["ReshapeView"]
    assert moved((1, 1, 64, 32), (1, 1, 64, 32), L1_MEMORY_CONFIG, **rows) == ["Copy"]
    ragged = {"layout": TILES, "memory_config": DRAM_MEMORY_CONFIG}
    assert moved((1, 1, 33, 32), (1, 1, 33, 32), L1_MEMORY_CONFIG, **ragged) == ["ReshapeView"]


def test_shards_of_rows_are_left_and_made_again():
    names, _, made = programs((1, 1, 64, 32), (1, 1, 32, 64), place=high((32, 32), 2))
    assert names == ["ShardedToInterleaved", "ReshapeView", "InterleavedToSharded"]
    assert made.memory_config == high((16, 64), 2)
    names, _, made = programs((1, 1, 64, 64), (1, 1, 512, 8), place=on_cores(BLOCK, (64, 32), 2))
    assert names == ["ShardedToInterleaved", "ReshapeView"]  # no block has rows of 64 bytes
    assert made.memory_config == L1_MEMORY_CONFIG


def test_tiles_move_between_shards():
    names, _, made = programs((1, 1, 64, 64), (1, 1, 128, 32), TILES, place=high((32, 64), 2))
    assert (names, made.memory_config) == (["ReshapeView"], high((64, 32), 2))


def test_block_floats_move_as_bfloat16_and_ragged_ones_are_filled():
    assert programs((1, 1, 64, 64), (1, 1, 128, 32), TILES, BFLOAT8_B)[0] == ["Typecast", "ReshapeView", "Typecast"]
    names = programs((1, 1, 33, 64), (1, 1, 66, 32), TILES, BFLOAT8_B)[0]
    assert names == ["Typecast", "ReshapeView", "FillPad", "Typecast"]
    assert programs((1, 1, 33, 64), (1, 1, 66, 32), TILES, filler=1.0)[0] == ["ReshapeView", "FillPad"]


@pytest.mark.parametrize(
    ("text", "shape", "to", "place"),
    [
        (r"^Attempting to reshape between two shapes with different", (1, 4), (1, 5), DRAM_MEMORY_CONFIG),
        (r"^Shard page size must be aligned to 16B", (1, 1, 8, 12), (1, 1, 4, 24), high((4, 12), 2)),
        (r"^Changing the last dimension of a sharded tensor", (1, 1, 8, 30), (8, 30), on_cores(BLOCK, (8, 16), 2)),
        (r"^Shard height 9 must match physical height 8", (1, 1, 8, 28), (8, 28), wide((8, 32), 2)),
    ],
)  # fmt: skip
def test_what_is_refused(text, shape, to, place):
    with pytest.raises(DeviceError, match=text):
        programs(shape, to, place=place)
