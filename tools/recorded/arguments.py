"""A recorded call in the planner's words."""

from collections.abc import Mapping
from typing import Any

from ops.planners.conv.arguments import CONV_TRANSPOSE2D, ConvCall
from tools.golden.answers import execute, namespace, opened
from tools.golden.calls import DEVICE_OF, recorded_call
from ttsim.api.conv import ConvTranspose2d, operand


def planner_arguments(case: Mapping[str, Any], arch: str = "wh") -> ConvCall:
    """The arguments that `plan_convolution` takes: those of the call, with weights and bias as they were before."""
    call = recorded_call({"case": {**case, "prep": None}, "arch": arch, "mode": "plan"}, 0)
    text = call.text.replace("ttnn.conv_transpose2d(", "planned(", 1)
    with opened(call, DEVICE_OF[arch], strict=False) as device:
        names = namespace(device, random=False) | {"planned": ConvTranspose2d}
        execute(call.given, names)
        checked: ConvTranspose2d = execute(text, names)
        bias = None if checked.bias_tensor is None else operand(checked.bias_tensor)
        return checked.arguments(
            CONV_TRANSPOSE2D,
            out=checked.dtype,
            slices=checked.dram_slice_config,
            input=operand(checked.input_tensor),
            weight=operand(checked.weight_tensor),
            bias=bias,
            output_padding=tuple(checked.output_padding),
            mirror_kernel=checked.mirror_kernel,
            memory_config=checked.memory_config,
        )
