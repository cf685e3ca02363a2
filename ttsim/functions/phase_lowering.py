"""conv_transpose2d with ``lowering="phase"``, which is this library's own and not in ttnn: refused, planned and run."""

from collections.abc import Mapping

from device.matrix_unit.blocks import block_product
from ops.calls.conv_transpose2d.phase_path import evaluator, plan_phases, require_phases
from ops.calls.convolution.arguments import ConvTranspose2dArguments
from ops.calls.convolution.problem import weight_format
from ops.calls.convolution.validation import ArgumentError
from ops.calls.onednn.forward import Lowering
from ops.programs.patch_matmul.values import Exact
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
    a: ConvTranspose2dArguments,
    tensors: Mapping[str, Tensor],
    device: Device,
    *,
    useful_flops: int,
    returns_weights: bool,
) -> dict[str, Tensor]:
    """Runs a call.

    Args:
        a: The call, validated.
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
    require_phases(a)
    if returns_weights:
        raise ArgumentError(
            'conv_transpose2d, lowering="phase": return_weights_and_bias must be False: the weights are prepared in '
            "one tensor for every phase, which no later call takes"
        )
    operands = {"input": tensors["input"], "weights": _prepared(a, tensors["weight"], flipped=not a.mirror_kernel)}
    if "bias" in tensors:
        operands["bias"] = _prepared(a, tensors["bias"], flipped=False)
    exact = Exact(device.spec, block_product) if device.values == "exact" else None
    plan = plan_phases(a, device.spec)
    with device.function("ttsim.functions.conv_transpose2d"):
        return run(plan, operands, device, useful_flops=useful_flops, evaluate=evaluator(exact))


def _prepared(a: ConvTranspose2dArguments, tensor: Tensor, *, flipped: bool) -> Tensor:
    """A host tensor rounded to the type of prepared weights; a kernel that was flipped before is flipped back."""
    rounded = tensor.with_dtype(DataType.of(weight_format(a)))
    return Tensor.of_host(rounded.values()[..., ::-1, ::-1], rounded.spec) if flipped else rounded
