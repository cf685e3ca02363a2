"""By which programs a tensor gets to another place."""

import pytest

from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT8_B, BFLOAT16
from device.plan import Operation
from device.spec.device_spec import load_spec
from ops.planners.to_config import plan_move, plan_to_memory_config
from tests.shards import high, wide

SPEC = load_spec("wormhole_n150")
ROWS, TILES = Layout.ROW_MAJOR, Layout.TILE


def operations(source, place, data_format=None):
    plan = plan_to_memory_config(source, place, SPEC, data_format=data_format)
    return [step.name.removesuffix("DeviceOperation") for step in plan.steps if isinstance(step, Operation)]


EVEN, RAGGED = (1, 1, 64, 64), (1, 1, 50, 70)
TWO_HIGH, FOUR_HIGH, TWO_WIDE = (
    high((32, 64), 2),
    high((16, 64), 4),
    wide((64, 32), 2),
)


@pytest.mark.parametrize(
    ("shape", "layout", "before", "after", "names"),
    [
        (EVEN, ROWS, TWO_HIGH, FOUR_HIGH, ["Reshard"]),
        (EVEN, TILES, TWO_HIGH, TWO_WIDE, ["Reshard"]),
        (EVEN, ROWS, TWO_HIGH, TWO_WIDE, ["ShardedToInterleaved", "InterleavedToSharded"]),
        (EVEN, ROWS, DRAM_MEMORY_CONFIG, TWO_WIDE, ["InterleavedToSharded"]),
        (EVEN, ROWS, TWO_WIDE, L1_MEMORY_CONFIG, ["ShardedToInterleaved"]),
        # rows of 140 bytes are no whole multiple of 16
        (RAGGED, ROWS, DRAM_MEMORY_CONFIG, high((25, 70), 2), ["Copy"]),
        (RAGGED, ROWS, high((25, 70), 2), DRAM_MEMORY_CONFIG, ["Copy"]),
        (RAGGED, ROWS, high((25, 70), 2), high((10, 70), 5), ["Reshard"]),
        (RAGGED, ROWS, high((25, 70), 2), wide((50, 24), 3), ["Copy"]),
        # these are gathered before the library sees that they can not be dealt
        (RAGGED, ROWS, wide((50, 24), 3), high((25, 70), 2), ["ShardedToInterleaved", "Copy"]),
    ],
)
def test_programs_that_deal_shards_want_aligned_rows(shape, layout, before, after, names):
    assert operations(TensorSpec(shape, BFLOAT16, layout, before), after) == names


def test_other_shards_of_another_format_are_a_copy():
    source = TensorSpec(EVEN, BFLOAT16, TILES, TWO_HIGH)
    assert operations(source, TWO_WIDE, BFLOAT8_B) == ["Copy"]
    assert operations(source, DRAM_MEMORY_CONFIG, BFLOAT8_B) == ["ShardedToInterleaved"]
    assert operations(source, TWO_HIGH, BFLOAT8_B) == []


def test_a_tensor_that_moves_keeps_its_shards():
    plan = plan_move(TensorSpec(EVEN, BFLOAT16, ROWS, TWO_HIGH), FOUR_HIGH, SPEC)
    assert plan.tensors["input"].memory_config == TWO_HIGH
