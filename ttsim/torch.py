"""Train on a simulated device: torch's transposed convolution whose forward and backward passes run there.

The one module that needs torch; nothing else imports it. ``pip install ttsim[torch]``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from device.errors import ArgumentError, shown
from device.numbers.formats import Array
from ttsim import onednn
from ttsim.runtime.arrays import numpy_from_torch
from ttsim.runtime.device import Device

__all__ = ["ConvTranspose2d", "conv_transpose2d"]

PRECISION = "ieee"
LOWERING = "frame"

Sizes = int | Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    """What is not a tensor.

    Attributes:
        attributes: oneDNN's attributes.
        device: Where to run.
        precision: "ieee" or "device".
        lowering: "frame" or "phase".
    """

    attributes: dict[str, Any]
    device: Device | None
    precision: str
    lowering: str


class _ConvTranspose2d(torch.autograd.Function):
    """Forward and both gradients on the device; the gradient of the bias is a sum on the host."""

    @staticmethod
    def forward(
        ctx: Any, source: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, options: _Options
    ) -> torch.Tensor:
        """The result."""
        ctx.save_for_backward(source, weight)
        ctx.options = options
        made = onednn.conv_transpose(
            numpy_from_torch(source),
            numpy_from_torch(weight),
            None if bias is None else numpy_from_torch(bias),
            **options.attributes,
            device=options.device,
            precision=options.precision,
            lowering=options.lowering,
        )
        return _tensor(made, source)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """The gradients that are asked for."""
        (gradient,) = gradients
        source, weight = ctx.saved_tensors
        options: _Options = ctx.options
        of_source, of_weight, of_bias, _ = ctx.needs_input_grad
        common = {**options.attributes, "device": options.device, "precision": options.precision}
        diff_dst = numpy_from_torch(gradient)
        made: list[torch.Tensor | None] = [None] * 4
        if of_source:
            diff = onednn.conv_transpose_backward_data(
                diff_dst, numpy_from_torch(weight), **common, src_shape=tuple(source.shape)
            )
            made[0] = _tensor(diff, source)
        if of_weight:
            diff = onednn.conv_transpose_backward_weights(
                numpy_from_torch(source), diff_dst, tuple(weight.shape), **common
            )
            made[1] = _tensor(diff, weight)
        if of_bias:
            made[2] = gradient.sum(dim=(0, 2, 3))
        return tuple(made)


def conv_transpose2d(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
    *,
    device: Device | None = None,
    precision: str = PRECISION,
    lowering: str = LOWERING,
) -> torch.Tensor:
    """torch.nn.functional.conv_transpose2d on a simulated device, with gradients.

    Args:
        input: [N, C, H, W] or [C, H, W]: float32, float16 or bfloat16.
        weight: [C, O / groups, kh, kw].
        bias: [O].
        stride: Down and across, or both.
        padding: Cut off at both ends.
        output_padding: Added at the end.
        groups: Groups of channels.
        dilation: Distance between taps.
        device: Where to run; None for the default device, or a fresh one with ``values="fast"``.
        precision: "ieee" or "device".
        lowering: Of the forward pass, "frame" or "phase".

    Returns:
        [N, O, OH, OW], or without N as the input is.

    Raises:
        ArgumentError: An argument breaks a rule.
        DeviceError: The call does not fit the device.
    """
    pads = _two("padding", padding)
    attributes = {
        "strides": _two("stride", stride),
        "pads_begin": pads,
        "pads_end": pads,
        "dilations": _two("dilation", dilation),
        "output_padding": _two("output_padding", output_padding),
        "groups": groups,
        "data_format": "NCX",
        "weights_format": "IOX",
    }
    options = _Options(attributes=attributes, device=device, precision=precision, lowering=lowering)
    batched = input if input.dim() > 3 else input.unsqueeze(0)
    apply: Any = _ConvTranspose2d.apply
    result: torch.Tensor = apply(batched, weight, bias, options)
    return result if input.dim() > 3 else result.squeeze(0)


class ConvTranspose2d(torch.nn.ConvTranspose2d):
    """torch.nn.ConvTranspose2d whose passes run on a simulated device; arguments and parameters are torch's.

    Args:
        *arguments: As of torch.nn.ConvTranspose2d.
        simulator: Where to run; None for the default device, or a fresh one for each pass.
        precision: "ieee" or "device".
        lowering: Of the forward pass, "frame" or "phase".
        **options: As of torch.nn.ConvTranspose2d.
    """

    def __init__(
        self,
        *arguments: Any,
        simulator: Device | None = None,
        precision: str = PRECISION,
        lowering: str = LOWERING,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self.simulator = simulator
        self.precision = precision
        self.lowering = lowering

    def forward(self, input: torch.Tensor, output_size: list[int] | None = None) -> torch.Tensor:
        """The result; ``output_size`` chooses the output padding, as in torch."""
        padding = self._output_padding(
            input,
            output_size,
            list(self.stride),
            [int(side) for side in self.padding],
            list(self.kernel_size),
            2,
            list(self.dilation),
        )
        return conv_transpose2d(
            input,
            self.weight,
            self.bias,
            self.stride,
            [int(side) for side in self.padding],
            padding,
            self.groups,
            self.dilation,
            device=self.simulator,
            precision=self.precision,
            lowering=self.lowering,
        )


def _two(name: str, sizes: Sizes) -> tuple[int, ...]:
    found = (sizes, sizes) if isinstance(sizes, int) else tuple(sizes)
    if len(found) != 2:
        raise ArgumentError(f"conv_transpose2d: {name} must be one integer or two, not {shown(sizes)}")
    return found


def _tensor(values: Array, like: torch.Tensor) -> torch.Tensor:
    """A torch tensor of the type and on the device of another."""
    if like.dtype == torch.bfloat16:
        made = torch.from_numpy(np.array(values).view(np.int16)).view(torch.bfloat16)
    else:
        made = torch.from_numpy(np.array(values))
    return made.to(like.device)
