"""Types of the convolutions, written by ``python -m tools.stub`` from the tables in ``conv.py``."""

# ruff: noqa: E501, I001 - a type or several names in a line
# fmt: off
from collections.abc import Sequence
from typing import Literal, overload

from ttsim import (
    Conv2dConfig, Conv2dSliceConfig, DataType, Device, MemoryConfig, Tensor, WormholeComputeKernelConfig,
)

@overload
def conv_transpose2d(
    *,
    input_tensor: Tensor, weight_tensor: Tensor, device: Device, in_channels: int, out_channels: int,
    batch_size: int, input_height: int, input_width: int, kernel_size: Sequence[int],
    stride: Sequence[int] = (1, 1), padding: Sequence[int] = (0, 0), output_padding: Sequence[int] = (0, 0),
    dilation: Sequence[int] = (1, 1), groups: int = 1, dtype: DataType | None = None,
    bias_tensor: Tensor | None = None, conv_config: Conv2dConfig | None = None,
    compute_config: WormholeComputeKernelConfig | None = None, memory_config: MemoryConfig | None = None,
    dram_slice_config: Conv2dSliceConfig | None = None, mirror_kernel: bool = True,
    return_output_dim: Literal[False] = False, return_weights_and_bias: Literal[False] = False,
    lowering: str = 'zero_insertion',
) -> Tensor: ...

@overload
def conv_transpose2d(
    *,
    input_tensor: Tensor, weight_tensor: Tensor, device: Device, in_channels: int, out_channels: int,
    batch_size: int, input_height: int, input_width: int, kernel_size: Sequence[int],
    stride: Sequence[int] = (1, 1), padding: Sequence[int] = (0, 0), output_padding: Sequence[int] = (0, 0),
    dilation: Sequence[int] = (1, 1), groups: int = 1, dtype: DataType | None = None,
    bias_tensor: Tensor | None = None, conv_config: Conv2dConfig | None = None,
    compute_config: WormholeComputeKernelConfig | None = None, memory_config: MemoryConfig | None = None,
    dram_slice_config: Conv2dSliceConfig | None = None, mirror_kernel: bool = True,
    return_output_dim: Literal[True], return_weights_and_bias: Literal[False] = False,
    lowering: str = 'zero_insertion',
) -> tuple[Tensor, tuple[int, int]]: ...

@overload
def conv_transpose2d(
    *,
    input_tensor: Tensor, weight_tensor: Tensor, device: Device, in_channels: int, out_channels: int,
    batch_size: int, input_height: int, input_width: int, kernel_size: Sequence[int],
    stride: Sequence[int] = (1, 1), padding: Sequence[int] = (0, 0), output_padding: Sequence[int] = (0, 0),
    dilation: Sequence[int] = (1, 1), groups: int = 1, dtype: DataType | None = None,
    bias_tensor: Tensor | None = None, conv_config: Conv2dConfig | None = None,
    compute_config: WormholeComputeKernelConfig | None = None, memory_config: MemoryConfig | None = None,
    dram_slice_config: Conv2dSliceConfig | None = None, mirror_kernel: bool = True,
    return_output_dim: Literal[False] = False, return_weights_and_bias: Literal[True],
    lowering: str = 'zero_insertion',
) -> tuple[Tensor, tuple[Tensor, Tensor | None]]: ...

@overload
def conv_transpose2d(
    *,
    input_tensor: Tensor, weight_tensor: Tensor, device: Device, in_channels: int, out_channels: int,
    batch_size: int, input_height: int, input_width: int, kernel_size: Sequence[int],
    stride: Sequence[int] = (1, 1), padding: Sequence[int] = (0, 0), output_padding: Sequence[int] = (0, 0),
    dilation: Sequence[int] = (1, 1), groups: int = 1, dtype: DataType | None = None,
    bias_tensor: Tensor | None = None, conv_config: Conv2dConfig | None = None,
    compute_config: WormholeComputeKernelConfig | None = None, memory_config: MemoryConfig | None = None,
    dram_slice_config: Conv2dSliceConfig | None = None, mirror_kernel: bool = True,
    return_output_dim: Literal[True], return_weights_and_bias: Literal[True], lowering: str = 'zero_insertion',
) -> tuple[Tensor, tuple[int, int], tuple[Tensor, Tensor | None]]: ...

@overload
def conv_transpose2d(
    *,
    input_tensor: Tensor, weight_tensor: Tensor, device: Device, in_channels: int, out_channels: int,
    batch_size: int, input_height: int, input_width: int, kernel_size: Sequence[int],
    stride: Sequence[int] = (1, 1), padding: Sequence[int] = (0, 0), output_padding: Sequence[int] = (0, 0),
    dilation: Sequence[int] = (1, 1), groups: int = 1, dtype: DataType | None = None,
    bias_tensor: Tensor | None = None, conv_config: Conv2dConfig | None = None,
    compute_config: WormholeComputeKernelConfig | None = None, memory_config: MemoryConfig | None = None,
    dram_slice_config: Conv2dSliceConfig | None = None, mirror_kernel: bool = True, return_output_dim: bool = False,
    return_weights_and_bias: bool = False, lowering: str = 'zero_insertion',
) -> Tensor | tuple[Tensor, tuple[int, int]] | tuple[Tensor, tuple[Tensor, Tensor | None]] | tuple[Tensor, tuple[int, int], tuple[Tensor, Tensor | None]]: ...

@overload
def conv2d(
    *,
    input_tensor: Tensor, weight_tensor: Tensor, device: Device, in_channels: int, out_channels: int,
    batch_size: int, input_height: int, input_width: int, kernel_size: Sequence[int],
    stride: Sequence[int] = (1, 1), padding: Sequence[int] = (0, 0), dilation: Sequence[int] = (1, 1),
    groups: int = 1, dtype: DataType | None = None, bias_tensor: Tensor | None = None,
    conv_config: Conv2dConfig | None = None, compute_config: WormholeComputeKernelConfig | None = None,
    memory_config: MemoryConfig | None = None, slice_config: Conv2dSliceConfig | None = None,
    return_output_dim: Literal[False] = False, return_weights_and_bias: Literal[False] = False,
) -> Tensor: ...

@overload
def conv2d(
    *,
    input_tensor: Tensor, weight_tensor: Tensor, device: Device, in_channels: int, out_channels: int,
    batch_size: int, input_height: int, input_width: int, kernel_size: Sequence[int],
    stride: Sequence[int] = (1, 1), padding: Sequence[int] = (0, 0), dilation: Sequence[int] = (1, 1),
    groups: int = 1, dtype: DataType | None = None, bias_tensor: Tensor | None = None,
    conv_config: Conv2dConfig | None = None, compute_config: WormholeComputeKernelConfig | None = None,
    memory_config: MemoryConfig | None = None, slice_config: Conv2dSliceConfig | None = None,
    return_output_dim: Literal[True], return_weights_and_bias: Literal[False] = False,
) -> tuple[Tensor, tuple[int, int]]: ...

@overload
def conv2d(
    *,
    input_tensor: Tensor, weight_tensor: Tensor, device: Device, in_channels: int, out_channels: int,
    batch_size: int, input_height: int, input_width: int, kernel_size: Sequence[int],
    stride: Sequence[int] = (1, 1), padding: Sequence[int] = (0, 0), dilation: Sequence[int] = (1, 1),
    groups: int = 1, dtype: DataType | None = None, bias_tensor: Tensor | None = None,
    conv_config: Conv2dConfig | None = None, compute_config: WormholeComputeKernelConfig | None = None,
    memory_config: MemoryConfig | None = None, slice_config: Conv2dSliceConfig | None = None,
    return_output_dim: Literal[False] = False, return_weights_and_bias: Literal[True],
) -> tuple[Tensor, tuple[Tensor, Tensor | None]]: ...

@overload
def conv2d(
    *,
    input_tensor: Tensor, weight_tensor: Tensor, device: Device, in_channels: int, out_channels: int,
    batch_size: int, input_height: int, input_width: int, kernel_size: Sequence[int],
    stride: Sequence[int] = (1, 1), padding: Sequence[int] = (0, 0), dilation: Sequence[int] = (1, 1),
    groups: int = 1, dtype: DataType | None = None, bias_tensor: Tensor | None = None,
    conv_config: Conv2dConfig | None = None, compute_config: WormholeComputeKernelConfig | None = None,
    memory_config: MemoryConfig | None = None, slice_config: Conv2dSliceConfig | None = None,
    return_output_dim: Literal[True], return_weights_and_bias: Literal[True],
) -> tuple[Tensor, tuple[int, int], tuple[Tensor, Tensor | None]]: ...

@overload
def conv2d(
    *,
    input_tensor: Tensor, weight_tensor: Tensor, device: Device, in_channels: int, out_channels: int,
    batch_size: int, input_height: int, input_width: int, kernel_size: Sequence[int],
    stride: Sequence[int] = (1, 1), padding: Sequence[int] = (0, 0), dilation: Sequence[int] = (1, 1),
    groups: int = 1, dtype: DataType | None = None, bias_tensor: Tensor | None = None,
    conv_config: Conv2dConfig | None = None, compute_config: WormholeComputeKernelConfig | None = None,
    memory_config: MemoryConfig | None = None, slice_config: Conv2dSliceConfig | None = None,
    return_output_dim: bool = False, return_weights_and_bias: bool = False,
) -> Tensor | tuple[Tensor, tuple[int, int]] | tuple[Tensor, tuple[Tensor, Tensor | None]] | tuple[Tensor, tuple[int, int], tuple[Tensor, Tensor | None]]: ...

@overload
def conv1d(
    *,
    input_tensor: Tensor, weight_tensor: Tensor, device: Device, in_channels: int, out_channels: int,
    batch_size: int, input_length: int, kernel_size: int, stride: int = 1, padding: int | Sequence[int] = 0,
    dilation: int = 1, groups: int = 1, dtype: DataType | None = None, bias_tensor: Tensor | None = None,
    conv_config: Conv2dConfig | None = None, compute_config: WormholeComputeKernelConfig | None = None,
    memory_config: MemoryConfig | None = None, slice_config: Conv2dSliceConfig | None = None,
    return_output_dim: Literal[False] = False, return_weights_and_bias: Literal[False] = False,
) -> Tensor: ...

@overload
def conv1d(
    *,
    input_tensor: Tensor, weight_tensor: Tensor, device: Device, in_channels: int, out_channels: int,
    batch_size: int, input_length: int, kernel_size: int, stride: int = 1, padding: int | Sequence[int] = 0,
    dilation: int = 1, groups: int = 1, dtype: DataType | None = None, bias_tensor: Tensor | None = None,
    conv_config: Conv2dConfig | None = None, compute_config: WormholeComputeKernelConfig | None = None,
    memory_config: MemoryConfig | None = None, slice_config: Conv2dSliceConfig | None = None,
    return_output_dim: Literal[True], return_weights_and_bias: Literal[False] = False,
) -> tuple[Tensor, int]: ...

@overload
def conv1d(
    *,
    input_tensor: Tensor, weight_tensor: Tensor, device: Device, in_channels: int, out_channels: int,
    batch_size: int, input_length: int, kernel_size: int, stride: int = 1, padding: int | Sequence[int] = 0,
    dilation: int = 1, groups: int = 1, dtype: DataType | None = None, bias_tensor: Tensor | None = None,
    conv_config: Conv2dConfig | None = None, compute_config: WormholeComputeKernelConfig | None = None,
    memory_config: MemoryConfig | None = None, slice_config: Conv2dSliceConfig | None = None,
    return_output_dim: Literal[False] = False, return_weights_and_bias: Literal[True],
) -> tuple[Tensor, tuple[Tensor, Tensor | None]]: ...

@overload
def conv1d(
    *,
    input_tensor: Tensor, weight_tensor: Tensor, device: Device, in_channels: int, out_channels: int,
    batch_size: int, input_length: int, kernel_size: int, stride: int = 1, padding: int | Sequence[int] = 0,
    dilation: int = 1, groups: int = 1, dtype: DataType | None = None, bias_tensor: Tensor | None = None,
    conv_config: Conv2dConfig | None = None, compute_config: WormholeComputeKernelConfig | None = None,
    memory_config: MemoryConfig | None = None, slice_config: Conv2dSliceConfig | None = None,
    return_output_dim: Literal[True], return_weights_and_bias: Literal[True],
) -> tuple[Tensor, int, tuple[Tensor, Tensor | None]]: ...

@overload
def conv1d(
    *,
    input_tensor: Tensor, weight_tensor: Tensor, device: Device, in_channels: int, out_channels: int,
    batch_size: int, input_length: int, kernel_size: int, stride: int = 1, padding: int | Sequence[int] = 0,
    dilation: int = 1, groups: int = 1, dtype: DataType | None = None, bias_tensor: Tensor | None = None,
    conv_config: Conv2dConfig | None = None, compute_config: WormholeComputeKernelConfig | None = None,
    memory_config: MemoryConfig | None = None, slice_config: Conv2dSliceConfig | None = None,
    return_output_dim: bool = False, return_weights_and_bias: bool = False,
) -> Tensor | tuple[Tensor, int] | tuple[Tensor, tuple[Tensor, Tensor | None]] | tuple[Tensor, int, tuple[Tensor, Tensor | None]]: ...
