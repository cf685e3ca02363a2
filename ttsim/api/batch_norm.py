"""ttnn.batch_norm."""

from device.errors import DeviceError
from device.memory.memory_config import MemoryConfig
from ops.planners.normalization.batch_norm import (
    BatchNormArguments,
    RunningArguments,
    check_formats,
    plan_batch_norm,
    plan_running_statistics,
)
from ttsim.api.copies import clone
from ttsim.api.device_calls import cached_plan, operation
from ttsim.api.eltwise import multiply, subtract
from ttsim.api.normalization import device_of
from ttsim.api.reduction import mean
from ttsim.api.unary import square
from ttsim.api.without_elements import is_empty
from ttsim.runtime.execution import run
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.configs import WormholeComputeKernelConfig


@operation
def batch_norm(
    input: Tensor,
    *,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    training: bool = False,
    eps: float = 1e-05,
    momentum: float = 0.1,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    output: Tensor | None = None,
    memory_config: MemoryConfig | None = None,
    compute_kernel_config: WormholeComputeKernelConfig | None = None,
) -> Tensor:
    """Batch normalization of images: ``(input - mean) / sqrt(variance + eps) * weight + bias`` for each channel.

    Its outputs were never compared with recordings of the real library.

    Args:
        input: [N, C, H, W] on the device, bfloat16 or float32, in TILE layout, interleaved.
        running_mean: Means, [1, C, 1, 1] in TILE layout.
        running_var: Variances, [1, C, 1, 1] in TILE layout.
        training: Normalize with the statistics of the images, and update the running statistics, if given.
        eps: Added to the variance.
        momentum: Weight of the images' statistics in the update of the running statistics.
        weight: [1, C, 1, 1] in TILE layout; None for ones.
        bias: [1, C, 1, 1] in TILE layout; None for zeros.
        output: A tensor of the input's shape and data type that receives the result and is returned.
        memory_config: Memory of the result, interleaved; None for that of the input.
        compute_kernel_config: None for HiFi4. Dst has 32 bits if a tensor is float32.

    Returns:
        A tensor of the input's shape and data type, or ``output``.

    Examples:
        >>> image = ttnn.full((1, 1, 32, 32), 5.0, layout=ttnn.TILE_LAYOUT, device=device)
        >>> mean, variance = (ttnn.full((1, 1, 1, 1), number, layout=ttnn.TILE_LAYOUT, device=device)
        ...     for number in (1.0, 4.0))
        >>> ttnn.batch_norm(image, running_mean=mean, running_var=variance).to_numpy().max().item()
        2.0
    """
    if len(input.shape) < 4:
        raise DeviceError(
            f"batch_norm not supported for tensors with rank < 4. (rank={len(input.shape)})\n"
            "input: reshape it to [N, C, H, W]"
        )
    if output is not None and output.dtype is not input.dtype:
        raise DeviceError(
            f"batch_norm: output dtype (DataType::{output.dtype.name}) must match input dtype "
            f"(DataType::{input.dtype.name})\noutput: give a tensor of the data type of input"
        )
    parameters = {"running_mean": running_mean, "running_var": running_var, "weight": weight, "bias": bias}
    check_formats({name: None if tensor is None else tensor.spec for name, tensor in parameters.items()})
    if not training:
        if running_mean is None or running_var is None:
            raise DeviceError(
                "running_mean and running_var must be defined in evaluation mode\n"
                "give both, [1, C, 1, 1] in TILE layout"
            )
        means, variances = running_mean, running_var
    if is_empty(input):
        return clone(input, memory_config=memory_config)
    if training:
        means, variances = _statistics(input, memory_config, compute_kernel_config)
    phases = 4 if compute_kernel_config is None else compute_kernel_config.argument().fidelity_phases
    roles = {"input": input, "mean": means, "variance": variances, "weight": weight, "bias": bias}
    tensors = {role: tensor for role, tensor in (roles | {"target": output}).items() if tensor is not None}
    device, specs = device_of(tensors), {role: tensor.spec for role, tensor in tensors.items()}
    call = BatchNormArguments(
        source=specs["input"],
        mean=specs["mean"],
        variance=specs["variance"],
        weight=specs.get("weight"),
        bias=specs.get("bias"),
        target=specs.get("target"),
        epsilon=eps,
        place=memory_config,
        fidelity_phases=phases,
    )
    plan = cached_plan(plan_batch_norm, device, call)
    with device.function("ttnn.batch_norm"):
        result = run(plan, tensors, device)["output"]
    if training:
        images = input.spec.volume // input.shape[1]
        _update((means, variances), (running_mean, running_var), momentum, images, memory_config, phases)
        del roles, tensors, variances
    return result


def _statistics(
    images: Tensor, place: MemoryConfig | None, config: WormholeComputeKernelConfig | None
) -> tuple[Tensor, Tensor]:
    """The mean and the (biased) variance of each channel, [1, C, 1, 1] each."""

    def averaged(tensor: Tensor) -> Tensor:
        columns = mean(tensor, [2, 3], keepdim=True, memory_config=place, compute_kernel_config=config)
        return mean(columns, 0, keepdim=True, memory_config=place, compute_kernel_config=config)

    means = averaged(images)
    differences = subtract(images, means, memory_config=place)
    squares = square(differences, memory_config=place)
    variances = averaged(squares)
    del squares, differences
    return means, variances


def _update(
    batch: tuple[Tensor, Tensor],
    running: tuple[Tensor | None, Tensor | None],
    momentum: float,
    count: int,
    place: MemoryConfig | None,
    fidelity_phases: int,
) -> None:
    """Updates running statistics with those of ``count`` pixels per channel; the variance is made unbiased."""
    if all(tensor is None for tensor in running):
        return
    means, variances = batch
    if running[1] is not None and count > 1:
        variances = multiply(variances, count / (count - 1), memory_config=place)
    roles = {"mean": means, "variance": variances, "running_mean": running[0], "running_variance": running[1]}
    tensors = {role: tensor for role, tensor in roles.items() if tensor is not None}
    device, specs = device_of(tensors), {role: tensor.spec for role, tensor in tensors.items()}
    call = RunningArguments(
        mean=specs["mean"],
        variance=specs["variance"],
        running_mean=specs.get("running_mean"),
        running_variance=specs.get("running_variance"),
        momentum=momentum,
        place=place,
        fidelity_phases=fidelity_phases,
    )
    plan = cached_plan(plan_running_statistics, device, call)
    with device.function("ttnn.batch_norm"):
        run(plan, tensors, device)
