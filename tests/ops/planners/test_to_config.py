"""By which programs a tensor gets to another place."""

import pytest

from device.numbers.formats import BFLOAT8_B
from device.spec.device_spec import load_spec
from ops.planners.to_config import plan_move, plan_to_memory_config
from tests.build import place, programs, tensor_spec

SPEC = load_spec("wormhole_n150")
TWO_HIGH, FOUR_HIGH, TWO_WIDE = "height/32x64/2", "height/16x64/4", "width/64x32/2"
RAGGED_HIGH, RAGGED_WIDE = "height/25x70/2", "width/50x24/3"  # rows of 140 bytes are no whole multiple of 16


@pytest.mark.parametrize(
    ("source", "after", "data_format", "names"),
    [
        (f"64x64 {TWO_HIGH}", FOUR_HIGH, None, ["Reshard"]),
        (f"64x64 tile {TWO_HIGH}", TWO_WIDE, None, ["Reshard"]),
        (f"64x64 {TWO_HIGH}", TWO_WIDE, None, ["ShardedToInterleaved", "InterleavedToSharded"]),
        ("64x64", TWO_WIDE, None, ["InterleavedToSharded"]),
        (f"64x64 {TWO_WIDE}", "l1", None, ["ShardedToInterleaved"]),
        ("50x70", RAGGED_HIGH, None, ["Copy"]),
        (f"50x70 {RAGGED_HIGH}", "dram", None, ["Copy"]),
        (f"50x70 {RAGGED_HIGH}", "height/10x70/5", None, ["Reshard"]),
        (f"50x70 {RAGGED_HIGH}", RAGGED_WIDE, None, ["Copy"]),
        # these are gathered before the library sees that they can not be dealt
        (f"50x70 {RAGGED_WIDE}", RAGGED_HIGH, None, ["ShardedToInterleaved", "Copy"]),
        # other shards of another format are a copy
        (f"64x64 tile {TWO_HIGH}", TWO_WIDE, BFLOAT8_B, ["Copy"]),
        (f"64x64 tile {TWO_HIGH}", "dram", BFLOAT8_B, ["ShardedToInterleaved"]),
        (f"64x64 tile {TWO_HIGH}", TWO_HIGH, BFLOAT8_B, []),
    ],
)
def test_programs_that_deal_shards_want_aligned_rows(source, after, data_format, names):
    plan = plan_to_memory_config(tensor_spec(source), place(after), SPEC, data_format=data_format)
    assert programs(plan) == names


def test_a_tensor_that_moves_keeps_its_shards():
    source, other = (tensor_spec(f"64x64 {where}") for where in (TWO_HIGH, FOUR_HIGH))
    plan = plan_move(source, other.memory_config, SPEC)
    assert plan.tensors["input"] == source
