"""What layer_norm refuses, in the words of the library."""

import pytest

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
