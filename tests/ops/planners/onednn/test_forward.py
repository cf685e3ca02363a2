import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from device.machine import Machine
from device.matrix_unit.arithmetic import FAST
from device.numbers.formats import FLOAT32
from device.plan import Operation
from device.spec.device_spec import load_spec
from ops.op_model import ValuesContext
from ops.passes.memory import run_memory
from ops.passes.values import run_values
from ops.planners.onednn.plan import Lowering, plan_forward
from ops.planners.onednn.problem import Deconvolution
from ops.programs.patch_matmul.cycles import patch_matmul_cycles
from ops.programs.patch_matmul.op import FillRows, PatchMatmul
from ops.programs.patch_matmul.values import image_of
from ops.reference import conv_transpose, plan_geometry

SPEC = load_spec("wormhole_n150")


def problem(stride, kernel, *, size=(5, 4), channels=(4, 6), groups=1, dilation=(1, 1), padding=(0, 0)):
    geometry = plan_geometry(
        size, kernel, stride=stride, pad_before=padding, pad_after=padding, output_padding=(0, 0), dilation=dilation
    )
    return Deconvolution(
        geometry=geometry, batch=2, in_channels=channels[0], out_channels=channels[1], groups=groups,
        data_format=FLOAT32, channels_last=False, weights_format="IOX",
    )  # fmt: skip


def operations(plan):
    return [step for step in plan.steps if isinstance(step, Operation)]


@given(
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
    st.tuples(st.integers(1, 3), st.integers(1, 2)),
    st.sampled_from([1, 2]),
    st.sampled_from(Lowering),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_both_lowerings_compute_the_definition(stride, kernel, dilation, groups, lowering, biased):
    d, rng = problem(stride, kernel, dilation=dilation, groups=groups), np.random.default_rng(2)
    arrays = {
        "src": rng.integers(-5, 6, d.src_shape).astype(np.float32),
        "weights": rng.integers(-5, 6, (4, 6 // groups, *kernel)).astype(np.float32),
        "bias": rng.integers(-5, 6, 6).astype(np.float32),
    }
    plan = plan_forward(d, SPEC, bias=biased, lowering=lowering)
    got = image_of(run_values(plan, arrays, ValuesContext(spec=SPEC, arithmetic=FAST))["dst"], channels_last=False)
    bias = arrays["bias"] if biased else None
    assert np.array_equal(got, conv_transpose(arrays["src"], arrays["weights"], d.geometry, bias=bias, groups=groups))


def test_phases_are_as_many_as_the_product_of_the_strides():
    plan = plan_forward(problem((2, 3), (4, 4)), SPEC, bias=False, lowering=Lowering.PHASE)
    assert len(operations(plan)) == 6
    taps = [one.op.patches.tap_count for one in operations(plan)]
    assert sum(taps) == 16


def test_phases_without_taps_are_filled():
    plan = plan_forward(problem((3, 1), (2, 1)), SPEC, bias=True, lowering=Lowering.PHASE)
    assert [type(one.op) for one in operations(plan)] == [PatchMatmul, PatchMatmul, FillRows]


def test_without_a_stride_both_lowerings_are_the_same():
    d = problem((1, 1), (3, 3), padding=(1, 1), size=(8, 8))
    frame, phase = (plan_forward(d, SPEC, bias=False, lowering=one) for one in Lowering)
    assert frame == phase


def test_zero_insertion_costs_the_square_of_the_stride():
    d = problem((2, 2), (4, 4), size=(32, 32), channels=(256, 256), padding=(1, 1))
    frame, phase = (operations(plan_forward(d, SPEC, bias=False, lowering=one)) for one in Lowering)
    issued = [sum(patch_matmul_cycles(one.op, SPEC).issued_flops for one in steps) for steps in (frame, phase)]
    cycles = [sum(patch_matmul_cycles(one.op, SPEC).cycles for one in steps) for steps in (frame, phase)]
    assert issued[0] == pytest.approx(4 * issued[1], rel=0.1)
    assert cycles[0] > cycles[1]


@pytest.mark.parametrize("lowering", Lowering)
def test_nothing_is_left_but_the_result(lowering):
    plan, device = plan_forward(problem((2, 2), (3, 3)), SPEC, bias=True, lowering=lowering), Machine(SPEC)
    run_memory(plan, device, {})
    assert len(device.memory.live()) == 1


def test_useful_flops_leave_out_what_padding_cuts_off():
    assert problem((2, 2), (2, 2)).useful_flops == 2 * 2 * 4 * 6 * 20 * 4
    cut = problem((1, 1), (3, 3), padding=(2, 2))
    assert cut.useful_flops < problem((1, 1), (3, 3)).useful_flops
