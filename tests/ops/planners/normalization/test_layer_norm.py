"""What layer_norm refuses, in the words of the library."""

import pytest

from device.plan import Operation
from ops.planners.normalization.layer_norm import NormArguments, plan_norm
from tests.build import N150, tensor_spec


@pytest.mark.parametrize("memory", ["l1", "dram"])
def test_shards_are_normalized_in_l1_alone(memory):
    source = tensor_spec(f"2x1x128x64 tile block/256x64/1x1 {memory}")
    (step,) = plan_norm(NormArguments(rms=True, source=source), N150, l1_bytes=1_360_544).steps
    assert isinstance(step, Operation)
    if memory == "l1":
        assert step.refused is None
    else:
        assert step.refused.startswith("DFB 'in0' borrows memory from TensorParameter 'input', but its TensorSpec is")
