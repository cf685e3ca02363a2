"""Plans read in float64: the definition to its last places, on the plan that float32 has."""

import numpy as np
import pytest

from device.matrix_unit.arithmetic import EXACT
from device.spec.device_spec import load_spec
from ops.op_model import ValuesContext
from ops.passes.values import run_values
from ops.planners.conv.arguments import Lowering
from ops.planners.onednn import checks as operands, checks as validation
from ops.planners.onednn.plan import plan_backward_data, plan_backward_weights, plan_forward
from ops.programs.patch_matmul import float64
from ops.reference import conv_transpose
from tests.gradients import data_gradient, weights_gradient

SPEC = load_spec("wormhole_n150")
READING = ValuesContext(spec=SPEC, arithmetic=EXACT)
LAYERS = [  # spatial sizes, kernel, stride, padding, output padding, dilation, groups
    ((7,), (3,), (2,), (1,), (1,), (1,), 1),
    ((4, 3), (3, 2), (2, 3), (1, 0), (0, 1), (1, 1), 2),
    ((3, 4), (1, 2), (3, 2), (0, 0), (2, 0), (1, 3), 1),  # some phases meet no input
    ((2, 3, 2), (2, 2, 3), (2, 1, 2), (0, 1, 0), (1, 0, 0), (1, 2, 1), 2),
    ((40, 40), (2, 2), (1, 1), (0, 0), (0, 0), (1, 1), 1),  # sums of several bands
]


def problem(check, *given, precision="float64", **options):
    """A call of oneDNN, validated."""
    names = operands.FORWARD
    result = [operands.operand(names, name, one, precision) for name, one in given]
    return check(*result, **options, precision=precision)


@pytest.mark.parametrize("lowering", Lowering)
@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: f"{layer[0]}")
def test_all_directions_are_the_definition(layer, lowering):
    size, kernel, stride, padding, more, dilation, groups = layer
    rng = np.random.default_rng(0)
    src, weights = rng.standard_normal((2, 4, *size)), rng.standard_normal((4, 6 // groups, *kernel))
    bias = rng.standard_normal(6)
    attributes = {
        "strides": stride, "pads_begin": padding, "pads_end": padding, "output_padding": more, "dilations": dilation,
        "groups": groups, "data_format": "NCX", "weights_format": "IOX",
    }  # fmt: skip
    tensors = ("src", src), ("weights", weights), ("bias", bias)
    forward = problem(validation.forward, *tensors, given=attributes)
    diff = rng.standard_normal(forward.dst_shape)
    arrays = {"src": src, "weights": weights, "bias": bias, "diff_dst": diff}

    def same(plan, want):
        (got,) = run_values(plan, arrays, READING, op_models=float64.OP_MODELS).values()
        assert got.dtype == np.float64
        np.testing.assert_allclose(got.reshape(want.shape), want, rtol=1e-12, atol=1e-12)

    def channels_last(image):
        return np.moveaxis(image, 1, -1)

    result = conv_transpose(src, weights, forward.geometry, bias=bias, groups=groups)
    same(plan_forward(forward, SPEC, bias=True, lowering=lowering), channels_last(result))
    same(
        plan_backward_data(forward, SPEC), channels_last(data_gradient(diff, weights, forward.geometry, groups=groups))
    )
    of_weights = weights_gradient(src, diff, forward.geometry, groups=groups).reshape(groups, -1, *weights.shape[1:])
    same(plan_backward_weights(forward, SPEC), np.moveaxis(of_weights, (1, 2), (-2, -1)))
