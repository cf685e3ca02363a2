"""What layer_norm refuses, in the words of the library."""

import re

import pytest

from device.errors import DeviceError
from device.memory.memory_config import L1_HEIGHT_SHARDED_MEMORY_CONFIG
from device.plan import Operation
from device.spec.device_spec import load_spec
from ops.planners.normalization.layer_norm import NormArguments, NormProgram, plan_norm
from tests.build import N150, tensor_spec

P150 = load_spec("blackhole_p150")


@pytest.mark.parametrize("memory", ["l1", "dram"])
def test_shards_are_normalized_in_l1_alone(memory):
    source = tensor_spec(f"2x1x128x64 tile block/256x64/1x1 {memory}")
    (step,) = plan_norm(NormArguments(rms=True, source=source), N150, l1_bytes=1_360_544).steps
    assert isinstance(step, Operation)
    if memory == "l1":
        assert step.refused is None
    else:
        assert step.refused.startswith("DFB 'in0' borrows memory from TensorParameter 'input', but its TensorSpec is")


@pytest.mark.parametrize(
    ("kind", "given", "columns", "welford"),
    [
        ("bfloat16", (), 1024, True),
        ("bfloat16", ("weight",), 1024, False),
        ("bfloat16", ("weight",), 4096, True),  # whole rows fit with Welford's algorithm alone
        ("bfloat16", ("weight", "bias"), 1024, True),
        ("bfloat16", ("weight", "bias"), 4096, False),  # whole rows do not fit
        ("bfloat16", ("weight", "bias", "residual"), 256, True),
        ("bfloat16", ("weight", "bias", "residual"), 288, False),
        ("bfloat8_b", (), 64, False),
        ("float32", ("weight",), 1024, True),
    ],
)
def test_blackhole_takes_welford_s_algorithm_where_it_is_the_cheaper(kind, given, columns, welford):
    source = tensor_spec(f"64x{columns} tile {kind}")
    named = {name: source if name == "residual" else tensor_spec(f"1x{columns} tile") for name in given}
    call = NormArguments(rms=False, source=source, program=NormProgram(use_welford=True), **named)
    steps = plan_norm(call, P150, l1_bytes=P150.l1.usable_bytes).steps
    (op,) = (step.op for step in steps if isinstance(step, Operation))
    assert op.welford == welford


@pytest.mark.parametrize(
    ("source", "rms", "place_text", "first"),
    [
        ("64x16 height/32x16/2", False, None, "Physical shard shape (32, 16) must be tile"),
        ("64x64", False, "specless", "MemoryConfig must have Shard Spec specified"),
        ("64x64 tile", False, "specless", "bad optional access"),
        ("64x64", True, "specless", "ttnn::rms_norm does not support ROW_MAJOR input tensors"),
    ],
)
def test_the_shards_of_the_result_are_made_before_the_tensor_is_looked_at(source, rms, place_text, first):
    where = None if place_text is None else L1_HEIGHT_SHARDED_MEMORY_CONFIG
    call = NormArguments(rms=rms, source=tensor_spec(source), place=where)
    with pytest.raises(DeviceError, match=f"^{re.escape(first)}"):
        plan_norm(call, N150, l1_bytes=1_360_544)
