"""The three passes of a transposed convolution as differentiable functions of torch.

Each pass is linear in each of its two tensors, and its derivatives are the other two passes, so gradients of any order
are calls of oneDNN on the device.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import torch

from device.errors import ArgumentError
from device.numbers.formats import Array
from ttsim import onednn
from ttsim.runtime.device import Device
from ttsim.runtime.storage import numpy_from_torch


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A transposed convolution without the values of its tensors."""

    function: str  # What the user called
    attributes: dict[str, Any]  # oneDNN's attributes, formats included
    source_shape: tuple[int, ...]  # [N, C, *spatial]
    weight_shape: tuple[int, ...]  # [C, O / groups, *kernel]
    device: Device | None  # Where to run; None for the default device, or a fresh one for each pass
    precision: str  # "ieee", "device" or "float64"
    lowering: str  # Of the forward pass, "zero_insertion" or "phase"

    @property
    def common(self) -> dict[str, Any]:
        """The arguments of all passes."""
        return {**self.attributes, "device": self.device, "precision": self.precision}


class _Pass(torch.autograd.Function):
    """Base class of the three passes; the first two arguments are multiplied, the last is a `Layer`."""

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        """Saves the tensors that the derivatives need."""
        ctx.layer = inputs[-1]
        ctx.save_for_backward(*inputs[:2])

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> NoReturn:
        """Raises ArgumentError: a call has no additional batch axis."""
        name = inputs[-1].function
        raise ArgumentError(
            f"{name}: torch.vmap, and what is built on it (jacrev, hessian, is_grads_batched), cannot map a call on a "
            f"simulated device; give {name} the mapped axis as its batch, or call it in a loop"
        )

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> NoReturn:
        """Raises ArgumentError: forward-mode derivatives are not supported."""
        name = ctx.layer.function
        raise ArgumentError(
            f"{name}: there is no forward-mode derivative of a call on a simulated device; use backward(), "
            "torch.autograd.grad or torch.func.vjp"
        )


class Forward(_Pass):
    """The forward pass of source, weight, bias and layer."""

    @staticmethod
    def forward(source: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, layer: Layer) -> torch.Tensor:
        """[N, O, *outputs]."""
        arrays = numpy_from_torch(source), numpy_from_torch(weight)
        row = None if bias is None else numpy_from_torch(bias)
        return _tensor(onednn.conv_transpose(*arrays, row, **layer.common, lowering=layer.lowering), source)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """The requested gradients; the host computes the gradient of the bias as a sum."""
        (gradient,), (source, weight) = gradients, ctx.saved_tensors
        return _wanted(
            ctx,
            lambda: _apply(SourceGradient, gradient, weight, ctx.layer),
            lambda: _apply(WeightGradient, source, gradient, ctx.layer),
            lambda: gradient.sum(dim=(0, *range(2, gradient.dim()))),
        )


class SourceGradient(_Pass):
    """The gradient of the source, from the gradient of the result, the weight and the layer."""

    @staticmethod
    def forward(gradient: torch.Tensor, weight: torch.Tensor, layer: Layer) -> torch.Tensor:
        """[N, C, *spatial]."""
        arrays = numpy_from_torch(gradient), numpy_from_torch(weight)
        gradients = onednn.conv_transpose_backward_data(*arrays, **layer.common, src_shape=layer.source_shape)
        return _tensor(gradients, gradient)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """The requested gradients."""
        (outer,), (gradient, weight) = gradients, ctx.saved_tensors
        return _wanted(
            ctx,
            lambda: _apply(Forward, outer, weight, None, ctx.layer),
            lambda: _apply(WeightGradient, outer, gradient, ctx.layer),
        )


class WeightGradient(_Pass):
    """The gradient of the weight, from the source, the gradient of the result and the layer."""

    @staticmethod
    def forward(source: torch.Tensor, gradient: torch.Tensor, layer: Layer) -> torch.Tensor:
        """[C, O / groups, *kernel]."""
        arrays = numpy_from_torch(source), numpy_from_torch(gradient)
        return _tensor(onednn.conv_transpose_backward_weights(*arrays, layer.weight_shape, **layer.common), source)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """The requested gradients."""
        (outer,), (source, gradient) = gradients, ctx.saved_tensors
        return _wanted(
            ctx,
            lambda: _apply(SourceGradient, gradient, outer, ctx.layer),
            lambda: _apply(Forward, source, outer, None, ctx.layer),
        )


def run(source: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, layer: Layer) -> torch.Tensor:
    """The result [N, O, *outputs], recorded in torch's graph if gradients are needed."""
    return _apply(Forward, source, weight, bias, layer)


def _wanted(ctx: Any, *gradients: Callable[[], torch.Tensor]) -> tuple[torch.Tensor | None, ...]:
    """The requested gradients; the layer has none."""
    return *(make() if needed else None for make, needed in zip(gradients, ctx.needs_input_grad, strict=False)), None


def _apply(direction: type[_Pass], *inputs: Any) -> torch.Tensor:
    apply: Any = direction.apply
    result: torch.Tensor = apply(*inputs)
    return result


def _tensor(values: Array, like: torch.Tensor) -> torch.Tensor:
    """A torch tensor of the type and on the device of another tensor."""
    own = np.require(values, requirements=["C", "W"])
    if like.dtype == torch.bfloat16:
        return torch.from_numpy(own.view(np.int16)).view(torch.bfloat16).to(like.device)
    return torch.from_numpy(own).to(like.device)
