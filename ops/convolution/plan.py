"""The plan of ttnn.conv2d."""

from device.plan import Plan
from device.spec import DeviceSpec
from ops.conv_transpose2d.arguments import Conv2dArguments
from ops.conv_transpose2d.plan import plan_convolution


def plan_conv2d(a: Conv2dArguments, spec: DeviceSpec, *, free_l1_bytes: int, returns_weights: bool = True) -> Plan:
    """Plan a call of conv2d, validated; arguments and errors as of `plan_convolution`."""
    return plan_convolution(a, spec, free_l1_bytes=free_l1_bytes, returns_weights=returns_weights)
