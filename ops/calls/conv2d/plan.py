"""The plan of ttnn.conv2d."""

from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.calls.conv2d.folding import folded_call, folded_input, folds
from ops.calls.convolution.arguments import ConvArguments
from ops.calls.convolution.matmul_path import matmul_path
from ops.calls.convolution.plan import builder_of, finished, plan_convolution


def plan_conv2d(
    call: ConvArguments, device_spec: DeviceSpec, *, free_l1_bytes: int, returns_weights: bool = True
) -> Plan:
    """Plan a call of conv2d, validated; arguments and errors as of `plan_convolution`.

    Windows that are folded into channels leave a 1x1 convolution, which runs as a matmul.
    """
    if not folds(call):
        return plan_convolution(call, device_spec, free_l1_bytes=free_l1_bytes, returns_weights=returns_weights)
    builder = builder_of(call, device_spec)
    image = folded_input(builder, call)
    folded = folded_call(call, image)
    output = matmul_path(builder, folded, image, from_dram=False, free_l1_bytes=free_l1_bytes)
    if builder.is_own(image):
        builder.free(image)
    return finished(builder, folded, output, returns_weights=returns_weights)
