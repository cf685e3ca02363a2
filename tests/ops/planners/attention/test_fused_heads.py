"""BERT's projection, as ttnn 0.81.1 plans it on an 8x8 Wormhole."""

import pytest

from device.plan import Operation
from device.spec.device_spec import load_spec
from ops.planners.attention.fused_heads import FusedSplitArguments, plan_fused_split
from tests.build import tensor_spec

SPEC = load_spec("wormhole_n150")


@pytest.mark.parametrize(("batch", "rows", "known"), [(8, 256, True), (9, 256, False), (8, 384, False)])
def test_cores_that_the_device_lacks_are_planned_without_numbers(batch, rows, known):
    source = tensor_spec(f"{batch}x1x{rows}x3072 tile")
    plan = plan_fused_split(FusedSplitArguments(source=source, heads=16, within=(12, 9)), SPEC)
    (step,) = [step for step in plan.steps if isinstance(step, Operation)]
    assert [buffer.size_bytes for buffer in step.circular_buffers] == [131_072, 262_144, 65_536]
    assert (plan.without_values is None) is known
