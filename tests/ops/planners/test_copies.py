"""Which copies the library refuses, and what a copy keeps."""

import pytest

from device.cores import core_rectangle
from device.errors import DeviceError
from device.memory.memory_config import BufferType, MemoryConfig, ShardSpec, TensorMemoryLayout
from ops.planners.copies import plan_clone
from tests.build import N150, place, tensor_spec


@pytest.mark.parametrize(
    ("wanted", "first"),
    [
        ("width/640x16/1 dram", "Shard height 640 must match physical height 638 for width sharded"),
        ("width/638x16/1 dram", "Clone: mixed sharded/interleaved layout not currently supported"),
    ],
)
def test_shards_that_do_not_hold_the_clone_are_refused_first(wanted, first):
    with pytest.raises(DeviceError, match=first):
        plan_clone(tensor_spec("1x22x29x3"), N150, place=place(wanted))


def test_cores_outside_the_device_are_refused_before_other_shards():
    outside = ShardSpec(core_rectangle(10, 1), (64, 32))
    config = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, outside)
    with pytest.raises(DeviceError, match=r"Invalid shard grid: shard core \(8, 0\) has no L1 bank"):
        plan_clone(tensor_spec("640x32 tile"), N150, place=config)


def test_a_clone_is_padded_as_its_source():
    """As prepared weights are, which have whole tiles beyond those that their rows need."""
    weights = tensor_spec("1x1x192x64 tile").changed(padded_shape=(1, 1, 384, 64))
    plan = plan_clone(weights, N150, place=place("l1"))
    assert plan.tensors[plan.results["output"]].padded_shape == (1, 1, 384, 64)
