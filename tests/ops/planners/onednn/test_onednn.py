"""Plans of oneDNN: attributes, what plans of three directions compute, and what they leave behind."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from device.machine import Machine
from device.matrix_unit.arithmetic import FAST
from device.numbers.formats import BFLOAT16, FLOAT32
from device.plan import Allocate, Free, Operation
from device.spec.device_spec import load_spec
from ops.op_model import ValuesContext
from ops.passes.memory import run_memory
from ops.passes.values import run_values
from ops.planners.conv.arguments import Lowering
from ops.planners.onednn.checks import Deconvolution, Names, check_attributes
from ops.planners.onednn.plan import plan_backward_data, plan_backward_weights, plan_forward
from ops.programs.patch_matmul.op import FillRows, PatchMatmul
from ops.programs.patch_matmul.values import image_of, weights_of
from ops.reference import conv_transpose, plan_geometry
from tests.gradients import data_gradient, weights_gradient

GOOD = {"strides": [2, 1], "pads_begin": [1, 0], "pads_end": [0, 0], "dilations": [1, 1], "weights_format": "XOI"}


def check(**changed):
    return check_attributes({**GOOD, **changed}, rank=2, names=Names("Op"), formats=("XOI", "IOX"))


def test_defaults_are_those_of_the_text():
    found = check()
    assert (found.auto_pad, found.groups, found.data_format, found.output_padding) == ("none", 1, "NXC", None)


@pytest.mark.parametrize(
    ("word", "padding"),
    [
        ("none", ((1, 0), (0, 0))),
        ("valid", ((0, 0), (0, 0))),
        ("same_upper", ((0, 1), (1, 2))),
        ("Same_Upper", ((0, 1), (1, 2))),
        ("same_lower", ((1, 2), (0, 1))),
    ],
)
def test_padding_by_auto_pad(word, padding):
    assert check(auto_pad=word).padding((3, 4)) == padding


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"strides": 2}, r"^Op: strides must be a list of integers, not 2; write \[2, 2\]$"),
        ({"strides": "22"}, "^Op: strides must be a list of integers, not '22'$"),
        ({"strides": [1.5, 1]}, r"^Op: strides must be a list of integers, not \[1.5, 1\]$"),
        ({"strides": [True, 1]}, "^Op: strides must be a list of integers"),
        ({"groups": 1.0}, "^Op: groups must be an integer, not 1.0$"),
        ({"groups": True}, "^Op: groups must be at least 1, not True$"),
        ({"auto_pad": 3}, "^Op: auto_pad must be one of .*, not 3$"),
        ({"kernel": [3]}, "^Op: 'kernel' is no attribute of this operation; its attributes are strides, "),
    ],
)
def test_every_refusal_names_attribute_value_and_rule(changed, message):
    with pytest.raises(ValueError, match=message):
        check(**changed)


SPEC = load_spec("wormhole_n150")
FAST_CONTEXT = ValuesContext(spec=SPEC, arithmetic=FAST)
pairs = st.tuples(st.integers(1, 3), st.integers(1, 4))


def problem(stride=(2, 1), kernel=(3, 2), *, size=(5, 4), channels=(4, 6), groups=1, data_format=FLOAT32, **geometry):
    pads = {"pad_before": (0, 0), "pad_after": (0, 0)} | geometry
    return Deconvolution(
        geometry=plan_geometry(size, kernel, stride=stride, **pads), batch=2, in_channels=channels[0],
        out_channels=channels[1], groups=groups, data_format=data_format, channels_last=False, weights_format="IOX",
    )  # fmt: skip


UNEVEN = {"pad_before": (1, 0), "pad_after": (0, 1), "output_padding": (1, 0), "dilation": (1, 2)}


def operations(plan):
    return [step for step in plan.steps if isinstance(step, Operation)]


@given(pairs, pairs, pairs, st.sampled_from([1, 2]), st.sampled_from(Lowering), st.booleans())
@settings(max_examples=30, deadline=None)
def test_both_lowerings_compute_the_definition(stride, kernel, dilation, groups, lowering, biased):
    d, rng = problem(stride, kernel, dilation=dilation, groups=groups), np.random.default_rng(2)
    shapes = {"src": d.src_shape, "weights": (4, 6 // groups, *kernel), "bias": (6,)}
    arrays = {name: rng.integers(-5, 6, shape).astype(np.float32) for name, shape in shapes.items()}
    plan = plan_forward(d, SPEC, bias=biased, lowering=lowering)
    got = image_of(run_values(plan, arrays, FAST_CONTEXT)["dst"], channels_last=False)
    bias = arrays["bias"] if biased else None
    assert np.array_equal(got, conv_transpose(arrays["src"], arrays["weights"], d.geometry, bias=bias, groups=groups))


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("side", [6, 40])
def test_plans_compute_the_gradients(groups, side):
    d, rng = problem(groups=groups, size=(side, side), **UNEVEN), np.random.default_rng(1)
    shapes = (d.src_shape, d.dst_shape, (4, 6 // groups, 3, 2))
    src, diff, weights = (rng.integers(-5, 6, shape).astype(np.float32) for shape in shapes)
    result = run_values(plan_backward_data(d, SPEC), {"diff_dst": diff, "weights": weights}, FAST_CONTEXT)
    want = data_gradient(diff, weights, d.geometry, groups=groups)
    assert np.array_equal(np.moveaxis(result["diff_src"], -1, 1), want)
    result = run_values(plan_backward_weights(d, SPEC), {"src": src, "diff_dst": diff}, FAST_CONTEXT)
    got = weights_of(result["diff_weights"].reshape(groups, 3, 2, 4 // groups, 6 // groups), "IOX")
    assert np.array_equal(got, weights_gradient(src, diff, d.geometry, groups=groups))


def test_the_data_gradient_is_one_strided_convolution():
    d = problem(size=(6, 6), **UNEVEN)
    (operation,) = operations(plan_backward_data(d, SPEC))
    assert operation.name == "PatchMatmulDeviceOperation"
    axis = operation.op.patches.axes[0]
    assert (axis.stride, axis.input_dilation, axis.outputs) == (2, 1, 6)


def test_phases_without_taps_are_filled():
    phases = operations(plan_forward(problem((3, 1), (2, 1)), SPEC, bias=True, lowering=Lowering.PHASE))
    assert [type(phase.op) for phase in phases] == [PatchMatmul, PatchMatmul, FillRows]


DIRECTIONS = [
    *(partial(plan_forward, bias=True, lowering=lowering) for lowering in Lowering),
    plan_backward_data,
    plan_backward_weights,
]


@pytest.mark.parametrize("plan_of", DIRECTIONS)
@pytest.mark.parametrize("side", [6, 60])
def test_nothing_is_left_but_the_result(plan_of, side):
    plan, device = plan_of(problem(size=(side, side), data_format=BFLOAT16, **UNEVEN), SPEC), Machine(SPEC)
    result = {step.tensor for step in plan.steps if isinstance(step, Allocate)}
    result |= {output.tensor for step in operations(plan) for output in step.outputs}
    freed = {step.tensor for step in plan.steps if isinstance(step, Free)}
    assert result - freed == set(plan.results.values())
    assert result <= set(plan.tensors)
    buffers = run_memory(plan, device, {})
    assert [buffer.spec for buffer in device.memory.live()] == [buffer.spec for buffer in buffers.values()]


def test_useful_flops_leave_out_what_padding_cuts_off():
    assert problem((2, 2), (2, 2)).useful_flops == 2 * 2 * 4 * 6 * 20 * 4
    cut = problem((1, 1), (3, 3), pad_before=(2, 2), pad_after=(2, 2))
    assert cut.useful_flops < problem((1, 1), (3, 3)).useful_flops
