"""The plan of ttnn.conv2d."""

from device.plan import Free, Plan
from device.spec.device_spec import DeviceSpec
from ops.calls.conv2d.folding import folded_call, folded_input, folds
from ops.calls.convolution.arguments import Conv2dArguments
from ops.calls.convolution.matmul_path import held_l1_bytes, matmul_path
from ops.calls.convolution.plan import assembled, plan_convolution


def plan_conv2d(a: Conv2dArguments, spec: DeviceSpec, *, free_l1_bytes: int, returns_weights: bool = True) -> Plan:
    """Plan a call of conv2d, validated; arguments and errors as of `plan_convolution`.

    Windows that are folded into channels leave a 1x1 convolution, which runs as a matmul.
    """
    if not folds(a):
        return plan_convolution(a, spec, free_l1_bytes=free_l1_bytes, returns_weights=returns_weights)
    image = folded_input(a, spec)
    call = folded_call(a, image)
    free = free_l1_bytes - held_l1_bytes(image, spec)
    product = matmul_path(call, spec, from_dram=False, free_l1_bytes=free)
    made = assembled(call, image.followed_by(product).then(Free(image.name)), returns_weights=returns_weights)
    return Plan(steps=made.steps, tensors={**made.tensors, "input": a.input.spec}, results=made.results)
