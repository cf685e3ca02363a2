"""conv_transpose2d with ``lowering="phase"``, which is this library's own and not in ttnn: refused, planned and run."""

from collections.abc import Mapping

from device.errors import ArgumentError
from ops.calls.conv_transpose2d.phase_path import plan_phases, require_phases
from ops.calls.convolution.arguments import ConvArguments
from ops.calls.convolution.problem import weight_format
from ops.calls.onednn.forward import Lowering
from ttsim.runtime.device import Device
from ttsim.runtime.execution import run
from ttsim.runtime.tensor import Tensor
from ttsim.types.dtypes import DataType


def lowering_of(name: str) -> Lowering:
    """The lowering of a name; raises ArgumentError if there is none."""
    known = [one.value for one in Lowering]
    if name not in known:
        raise ArgumentError(f"conv_transpose2d: lowering must be one of {', '.join(known)}, not {name!r}")
    return Lowering(name)


def run_phases(
    call: ConvArguments,
    tensors: Mapping[str, Tensor],
    device: Device,
    *,
    useful_flops: int,
    returns_weights: bool,
) -> dict[str, Tensor]:
    """Runs a call.

    Args:
        call: Its arguments, validated.
        tensors: "input", "weight" and, if there is one, "bias".
        device: Where.
        useful_flops: Multiplications and additions of the call's definition, for profiles.
        returns_weights: Prepared weights and bias are asked for.

    Returns:
        The "output".

    Raises:
        ArgumentError: This lowering cannot do what is asked for.
        DeviceError: The call does not fit the device.
    """
    require_phases(call)
    if returns_weights:
        raise ArgumentError(
            'conv_transpose2d, lowering="phase": return_weights_and_bias must be False: the weights are prepared in '
            "one tensor for every phase, which no later call takes"
        )
    operands = {
        "input": tensors["input"],
        "weights": _prepared(call, tensors["weight"], flipped=not call.mirror_kernel),
    }
    if "bias" in tensors:
        operands["bias"] = _prepared(call, tensors["bias"], flipped=False)
    plan = plan_phases(call, device.spec)
    with device.function("ttsim.conv_transpose2d"):
        return run(plan, operands, device, useful_flops=useful_flops)


def _prepared(call: ConvArguments, tensor: Tensor, *, flipped: bool) -> Tensor:
    """A host tensor rounded to the type of prepared weights; a kernel that was flipped before is flipped back."""
    rounded = tensor.with_dtype(DataType.of(weight_format(call)))
    return Tensor.of_host(rounded.values()[..., ::-1, ::-1], rounded.spec) if flipped else rounded
