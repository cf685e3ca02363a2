import numpy as np
import pytest

from device.machine import Machine
from device.matrix_unit.arithmetic import FAST
from device.memory.memory_config import Layout
from device.numbers.formats import BFLOAT16, FLOAT32
from device.plan import Allocate, Free, Operation
from device.spec.device_spec import load_spec
from ops.op_model import ValuesContext
from ops.passes.memory import run_memory
from ops.passes.values import run_values
from ops.planners.onednn.plan import plan_backward_data, plan_backward_weights, strided_axis
from ops.planners.onednn.problem import Deconvolution
from ops.programs.patch_matmul.values import weights_of
from ops.reference import data_gradient, plan_geometry, weights_gradient

SPEC = load_spec("wormhole_n150")
FAST_READING = ValuesContext(spec=SPEC, arithmetic=FAST)


def problem(data_format=FLOAT32, groups=1, size=6, **options):
    geometry = plan_geometry(
        [size, size], [3, 2], stride=[2, 1], pad_before=[1, 0], pad_after=[0, 1], output_padding=[1, 0], dilation=[1, 2]
    )
    return Deconvolution(
        geometry=geometry, batch=2, in_channels=4, out_channels=6, groups=groups, data_format=data_format,
        channels_last=False, weights_format="IOX", **options,
    )  # fmt: skip


def test_the_data_gradient_is_a_strided_convolution():
    axis = problem().geometry.axes[0]
    strided = strided_axis(axis)
    assert (strided.stride, strided.input_dilation, strided.outputs) == (2, 1, axis.input_size)
    (operation,) = (step for step in plan_backward_data(problem(), SPEC).steps if isinstance(step, Operation))
    assert operation.name == "PatchMatmulDeviceOperation"


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("size", [6, 40])
def test_plans_compute_the_gradients(groups, size):
    d, rng = problem(groups=groups, size=size), np.random.default_rng(1)
    src = rng.integers(-5, 6, d.src_shape).astype(np.float32)
    diff = rng.integers(-5, 6, d.dst_shape).astype(np.float32)
    weights = rng.integers(-5, 6, (4, 6 // groups, 3, 2)).astype(np.float32)
    made = run_values(plan_backward_data(d, SPEC), {"diff_dst": diff, "weights": weights}, FAST_READING)
    want = data_gradient(diff, weights, d.geometry, groups=groups)
    assert np.array_equal(np.moveaxis(made["diff_src"], -1, 1), want)
    made = run_values(plan_backward_weights(d, SPEC), {"src": src, "diff_dst": diff}, FAST_READING)
    got = weights_of(made["diff_weights"].reshape(groups, 3, 2, 4 // groups, 6 // groups), "IOX")
    assert np.array_equal(got, weights_gradient(src, diff, d.geometry, groups=groups))


@pytest.mark.parametrize("plan_of", [plan_backward_data, plan_backward_weights])
@pytest.mark.parametrize("size", [6, 60])
def test_nothing_is_left_but_the_result(plan_of, size):
    plan, device = plan_of(problem(BFLOAT16, size=size), SPEC), Machine(SPEC)
    made = {step.tensor for step in plan.steps if isinstance(step, Allocate)}
    made |= {one.tensor for step in plan.steps if isinstance(step, Operation) for one in step.outputs}
    freed = {step.tensor for step in plan.steps if isinstance(step, Free)}
    assert made - freed == set(plan.results.values())
    assert made <= set(plan.tensors)
    buffers = run_memory(plan, device, {})
    assert [buffer.spec for buffer in device.memory.live()] == [buffer.spec for buffer in buffers.values()]


def test_float32_takes_four_and_five_slices_in_memory():
    tensors = plan_backward_weights(problem(), SPEC).tensors
    assert tensors["src.transposed"].data_format == BFLOAT16
    assert tensors["src.transposed"].layout is Layout.TILE
    assert tensors["src.transposed"].shape == (32, 4 * 2 * 36)
    assert tensors["diff_dst.sticks"].shape[1] == 5 * 6
