"""torch.nn's transposed convolutions, whose passes run on a simulated device."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any, ClassVar, Self

import torch

from device.errors import ArgumentError, shown
from ttsim.runtime.device import Device
from ttsim.torch.functions import LOWERING, PRECISION, Sizes, conv_transpose1d, conv_transpose2d, conv_transpose3d


class _OnDevice(torch.nn.modules.conv._ConvTransposeNd):
    """A mixin for torch's modules, which follow it in the order of base classes.

    Parameters, their names and the state_dict are torch's. A copy runs on the same device.
    """

    function: ClassVar[Callable[..., torch.Tensor]]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Sizes = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: torch.dtype | None = None,
        *,
        simulator: Device | None = None,
        precision: str = PRECISION,
        lowering: str = LOWERING,
    ) -> None:
        """A module; positional arguments are torch's, but ``padding_mode`` must be "zeros".

        Args:
            simulator: The device of all passes; None for the default device, or a fresh device for each pass.
            precision: "ieee", "device" or "float64".
            lowering: Lowering of the forward pass, "zero_insertion" or "phase".
        """
        name = type(self).__name__
        if padding_mode != "zeros":
            raise ArgumentError(
                f'Only "zeros" padding mode is supported for {name}, not {shown(padding_mode)}; leave padding_mode out'
            )
        start: Any = super().__init__  # each of torch's modules takes these; their common base does not
        start(
            in_channels, out_channels, kernel_size, stride, padding, output_padding, groups, bias, dilation,
            device=device, dtype=dtype,
        )  # fmt: skip
        self.simulator = simulator
        self.precision = precision
        self.lowering = lowering

    def forward(self, input: torch.Tensor, output_size: list[int] | None = None) -> torch.Tensor:
        """The result; as in torch, ``output_size`` determines the output padding."""
        sizes = (self.stride, self.padding, self.kernel_size, self.dilation)
        stride, padding, kernel, dilation = ([int(side) for side in size] for size in sizes)
        more = self._output_padding(input, output_size, stride, padding, kernel, len(kernel), dilation)
        return type(self).function(
            input, self.weight, self.bias, stride, padding, more, self.groups, dilation,
            device=self.simulator, precision=self.precision, lowering=self.lowering,
        )  # fmt: skip

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """A copy with its own parameters, on the same device."""
        memo[id(self.simulator)] = self.simulator
        twin = self.__new__(type(self))
        memo[id(self)] = twin
        restore: Any = twin.__setstate__
        restore(deepcopy(self.__dict__, memo))
        return twin


class ConvTranspose1d(_OnDevice, torch.nn.ConvTranspose1d):
    """torch.nn.ConvTranspose1d on a simulated device, with ``simulator``, ``precision`` and ``lowering``."""

    function = staticmethod(conv_transpose1d)


class ConvTranspose2d(_OnDevice, torch.nn.ConvTranspose2d):
    """torch.nn.ConvTranspose2d on a simulated device, with ``simulator``, ``precision`` and ``lowering``."""

    function = staticmethod(conv_transpose2d)


class ConvTranspose3d(_OnDevice, torch.nn.ConvTranspose3d):
    """torch.nn.ConvTranspose3d on a simulated device, with ``simulator``, ``precision`` and ``lowering``."""

    function = staticmethod(conv_transpose3d)
