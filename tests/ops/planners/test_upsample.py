"""What a nearest upsampling refuses, in the words of the library."""

import pytest

from ops.planners.upsample import plan_upsample
from tests.build import N150, tensor_spec


@pytest.mark.parametrize("memory", ["l1", "dram"])
def test_shards_are_repeated_in_l1_alone(memory):
    (step,) = plan_upsample(tensor_spec(f"3x3x16x32 height/48x32/3 {memory}"), (3.0, 3.0), N150).steps
    first = "DFB 'upsample_shard_in' borrows memory from TensorParameter 'upsample_shard_input', but its TensorSpec is"
    assert (step.refused or "").startswith(first) is (memory == "dram")
