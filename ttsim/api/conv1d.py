"""ttnn.conv1d: a convolution of rows, which the real library computes as a conv2d of images of one row."""

from typing import Any

from device.errors import DeviceError
from device.memory.memory_config import MemoryConfig
from ops.planners.conv.arguments import ConvCall, ConvConfig
from ops.planners.conv.conv2d import CONV2D
from ttsim.api.conv2d import convolved, fetched
from ttsim.api.convolution_calls import handed_back, named, operand
from ttsim.runtime.device import Device
from ttsim.runtime.execution import on_device, require_allocated
from ttsim.runtime.tensor import Tensor
from ttsim.types.configs import Conv2dConfig, Conv2dSliceConfig, WormholeComputeKernelConfig
from ttsim.types.signature import Pair, checked, two
from ttsim.types.tensors import DataType

Conv1dConfig = Conv2dConfig


@on_device
@checked
def conv1d(
    *,
    input_tensor: Tensor,
    weight_tensor: Tensor,
    device: Device,
    in_channels: int,
    out_channels: int,
    batch_size: int,
    input_length: int,
    kernel_size: int,
    stride: int = 1,
    padding: int | Pair = 0,
    dilation: int = 1,
    groups: int = 1,
    dtype: DataType | None = None,
    bias_tensor: Tensor | None = None,
    conv_config: Conv2dConfig | None = None,
    compute_config: WormholeComputeKernelConfig | None = None,
    memory_config: MemoryConfig | None = None,
    slice_config: Conv2dSliceConfig | None = None,
    return_output_dim: bool = False,
    return_weights_and_bias: bool = False,
) -> Any:
    """Convolution of channels-last rows.

    Its outputs were never compared with recordings of the real library; those of conv2d, which computes them, were.

    Args:
        input_tensor: [N, L, C], [N, 1, L, C] or [1, 1, N*L, C], on the host or the device.
        weight_tensor: [O, C / groups, kernel] or [O, C / groups, 1, kernel]; where conv2d takes them.
        device: Where to run.
        in_channels: C.
        out_channels: O.
        batch_size: N.
        input_length: L.
        kernel_size: Taps.
        stride: Along the row.
        padding: Zeros at both ends, or (left, right).
        dilation: Along the row.
        groups: See conv2d, as the arguments below.
        dtype: See there.
        bias_tensor: See there.
        conv_config: See there.
        compute_config: See there.
        memory_config: See there.
        slice_config: See there.
        return_output_dim: Also return the length of the output.
        return_weights_and_bias: Also return the prepared weights and bias.

    Returns:
        The output [1, 1, N*OL, O]; or (output, OL), or (output, (weights, bias)), or all three.

    Raises:
        TypeError: An argument is unknown, missing or of the wrong type.
        ArgumentError: As of conv2d; a single row in as many groups as there are channels is not simulated, for one.
        DeviceError: The call does not fit the device.
    """
    require_allocated(input_tensor, weight_tensor, bias_tensor)
    weight_tensor = fetched(weight_tensor)
    if len(weight_tensor.shape) == 3 and weight_tensor.device() is None:
        outs, ins, taps = weight_tensor.shape
        weight_tensor = weight_tensor.reshape(outs, ins, 1, taps)
    bias_tensor = None if bias_tensor is None else fetched(bias_tensor)
    image = _image(input_tensor, (batch_size, 1, input_length, in_channels))
    left, right = two(padding) if not isinstance(padding, int) else (padding, padding)
    arguments = ConvCall(
        rules=CONV2D,
        input=operand(image),
        weight=operand(weight_tensor),
        bias=None if bias_tensor is None else operand(bias_tensor),
        in_channels=in_channels,
        out_channels=out_channels,
        batch_size=batch_size,
        input_height=1,
        input_width=input_length,
        kernel_size=(1, kernel_size),
        stride=(1, stride),
        padding=(0, 0, left, right),
        dilation=(1, dilation),
        groups=groups or 1,
        out_format=None if dtype is None else dtype.format,
        conv_config=ConvConfig() if conv_config is None else conv_config.argument(),
        compute_config=None if compute_config is None else compute_config.argument(),
        memory_config=memory_config,
        slice_config=None if slice_config is None else slice_config.argument(),
    )
    tensors = named(image, weight_tensor, bias_tensor)
    results, (_, length) = convolved("ttnn.conv1d", arguments, tensors, device, returns_weights=return_weights_and_bias)
    output_dim = length if return_output_dim else None
    return handed_back(results, output_dim=output_dim, weights_and_bias=return_weights_and_bias)


def _image(rows: Tensor, shape: tuple[int, int, int, int]) -> Tensor:
    """Rows of fewer than four axes as images of one row; raises DeviceError where they are not that many."""
    if len(rows.shape) == 4:
        return rows
    if rows.spec.volume != shape[0] * shape[2] * shape[3]:
        raise DeviceError(
            f"Invalid arguments to reshape\nconv1d: input_tensor of the shape {list(rows.shape)} has not batch_size x "
            f"input_length x in_channels = {shape[0]} x {shape[2]} x {shape[3]} elements"
        )
    return rows.reshape(shape)
