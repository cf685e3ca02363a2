"""ttnn.experimental.conv3d and its config."""

from collections.abc import Sequence
from math import prod
from typing import Annotated, Any

import numpy as np

from device.cores import CoreCoord
from device.errors import ArgumentError, ArgumentTypeError, DeviceError, shown
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout, MemoryConfig
from ops.planners.conv3d import Conv3dArguments, plan_conv3d, usual_block
from ttsim.api.conversions import to_device, to_layout
from ttsim.api.device_calls import cached_plan, operation_as, require_left_out
from ttsim.api.pad import pad
from ttsim.api.shape import permute, reshape
from ttsim.runtime.device import Device
from ttsim.runtime.execution import require_allocated, run
from ttsim.runtime.storage import UNKNOWN
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.call import CheckedRecord, Kind, integers, param
from ttsim.runtime.types.configs import WormholeComputeKernelConfig
from ttsim.runtime.types.tensors import DataType

Triple = Annotated[Sequence[int], integers(3)]  # along depth, rows and columns


def _coordinate(value: Any) -> CoreCoord:
    if isinstance(value, CoreCoord):
        return value
    if isinstance(value, tuple) and len(value) == 2 and all(isinstance(side, int) for side in value):
        return CoreCoord(*value)
    raise TypeError("no coordinate")


Coordinate = Annotated[CoreCoord, Kind("CoreCoord or two integers", _coordinate)]


class Conv3dConfig(CheckedRecord):
    """The blocks of a convolution of volumes.

    Examples:
        >>> ttnn.Conv3dConfig(C_in_block=64, compute_with_storage_grid_size=(8, 8)).C_in_block
        64
    """

    weights_dtype: DataType = param("Accepted as in ttnn, where it has no effect either.", default=DataType.BFLOAT16)
    output_layout: Layout = param("Accepted as in ttnn; the output is ROW_MAJOR.", default=Layout.ROW_MAJOR)
    T_out_block: int = param("Positions of a block along the depth.", default=1)
    W_out_block: int = param("Positions of a block along columns.", default=1)
    H_out_block: int = param("Positions of a block along rows.", default=1)
    C_out_block: int = param("Output channels of a block; 0 for all.", default=0)
    C_in_block: int = param("Input channels of a block; 0 for the fewest whose patches fill tiles.", default=0)
    dilation: Triple = param("Distance between taps, where the call does not say it.", default=(1, 1, 1))
    alignment: int = param("That of the input channels; read where weights are prepared.", default=32)
    compute_with_storage_grid_size: Coordinate = param("Columns and rows of cores.", default=CoreCoord(1, 1))
    enable_fp32_operand_split: bool = param("Not simulated.", default=False)


@operation_as("ttnn.experimental.")
def conv3d(
    *,
    input_tensor: Tensor,
    weight_tensor: Tensor,
    device: Device | None = None,
    bias_tensor: Tensor | None = None,
    config: Conv3dConfig | None = None,
    dtype: DataType,
    output_channels: int,
    kernel_size: Triple,
    stride: Triple = (1, 1, 1),
    padding: Triple = (0, 0, 0),
    dilation: Triple = (1, 1, 1),
    padding_mode: object = "zeros",
    groups: int = 1,
    memory_config: MemoryConfig | None = None,
    compute_kernel_config: WormholeComputeKernelConfig | None = None,
    halo_buffer: Tensor | None = None,
    logical_h_mask: int = 0,
    logical_w_mask: int = 0,
    pad_offset_tensor: Tensor | None = None,
    output_pad_h: int = 0,
    output_pad_w: int = 0,
    weight_lo_tensor: Tensor | None = None,
) -> Tensor:
    """A convolution of volumes with prepared weights.

    Args:
        input_tensor: [N, D, H, W, C] on the device, bfloat16 or float32, in ROW_MAJOR layout.
        weight_tensor: [kernel * C, O] on the device, as `prepare_conv3d_weights` returns them; or [O, C, kernel] on
            the host, which that function prepares.
        device: The device of ``input_tensor``.
        bias_tensor: [1, O] on the device in TILE layout.
        config: Blocks; None for single positions, 32 channels and all cores.
        dtype: Data type of the output.
        output_channels: Channels of the output, O.
        kernel_size: Sides of the kernel.
        stride: Stride along the three axes.
        padding: Positions added at both ends of the three axes.
        dilation: Distance between taps of the kernel along the three axes.
        padding_mode: "zeros" or "replicate".
        groups: Groups of channels; prepared weights have zeros between groups.
        memory_config: Memory of the output; None for DRAM.
        compute_kernel_config: None for HiFi2 and a 16-bit Dst.
        halo_buffer: Positions above, below, left and right of the volumes that replace zero padding, one per row, in
            ROW_MAJOR layout; values are not simulated.
        logical_h_mask: Number of valid rows of the volumes, 0 for all; values are not simulated.
        logical_w_mask: Number of valid columns of the volumes, 0 for all; values are not simulated.
        pad_offset_tensor: First row and first column of the volumes, uint32: the origin of the masks.
        output_pad_h: Rows above and below the result that are not written; values are not simulated.
        output_pad_w: Columns left and right of the result that are not written; values are not simulated.
        weight_lo_tensor: Not simulated.

    Returns:
        [N, OD, OH, OW, O] in ROW_MAJOR layout.

    Examples:
        >>> volume = ttnn.ones((1, 3, 4, 4, 32), layout=ttnn.ROW_MAJOR_LAYOUT, device=device)
        >>> weights = ttnn.full((32, 32), 0.5, layout=ttnn.TILE_LAYOUT, device=device)
        >>> result = ttnn.experimental.conv3d(
        ...     input_tensor=volume, weight_tensor=weights, dtype=ttnn.bfloat16, output_channels=32,
        ...     kernel_size=(1, 1, 1))
        >>> result.shape, result.to_numpy()[0, 0, 0, 0, 0].item()
        (Shape([1, 3, 4, 4, 32]), 16.0)
    """
    splits = config is not None and config.enable_fp32_operand_split
    require_left_out("conv3d", weight_lo_tensor=weight_lo_tensor, enable_fp32_operand_split=splits)
    if not isinstance(padding_mode, str):
        raise ArgumentTypeError(f"conv3d: padding_mode must be a text, not {shown(padding_mode)}")
    if 0 in stride:
        raise ArgumentError(f"stride must be greater than 0, got {tuple(stride)}")
    if groups == 0:
        raise ArgumentError("groups must be greater than 0\ngroups: give 1 for a convolution without groups")
    blocks = _blocks(config, tuple(dilation))
    weight_tensor = _in_order(weight_tensor, device, groups, blocks.get("in_block", 0), config)
    tensors = {"input": input_tensor, "weight": weight_tensor}
    more = {"bias": bias_tensor, "halo": halo_buffer, "offset": pad_offset_tensor}
    tensors |= {name: tensor for name, tensor in more.items() if tensor is not None}
    here = _device_of(tensors)
    call = Conv3dArguments(
        volumes=input_tensor.spec,
        weights=weight_tensor.spec,
        bias=None if bias_tensor is None else bias_tensor.spec,
        halo=None if halo_buffer is None else halo_buffer.spec,
        offset=None if pad_offset_tensor is None else pad_offset_tensor.spec,
        out_channels=output_channels,
        kernel=tuple(kernel_size),
        stride=tuple(stride),
        padding=tuple(padding),
        padding_mode=padding_mode,
        groups=groups,
        data_format=dtype.format,
        place=memory_config,
        masked=bool(logical_h_mask or logical_w_mask),
        output_pad=(output_pad_h, output_pad_w),
        **blocks,
        **_compute(compute_kernel_config),
    )
    plan = cached_plan(plan_conv3d, here, call)
    with here.function("ttnn.experimental.conv3d"):
        return run(plan, tensors, here)["output"]


@operation_as("ttnn.experimental.")
def prepare_conv3d_weights(
    *,
    weight_tensor: Tensor,
    groups: int = 1,
    C_in_block: int = 0,  # noqa: N803 - ttnn's name
    alignment: int = 32,
    device: Device | None = None,
) -> Tensor:
    """The weights of a convolution of volumes, in the order that `conv3d` reads; input channels are padded with zeros.

    Args:
        weight_tensor: [O, C / groups, kernel], five axes, on the device, or on the host with ``device``.
        groups: Groups of channels; weights between different groups become zeros.
        C_in_block: Channels of a block, as in `Conv3dConfig`; 0 for the smallest block whose patches are whole tiles.
        alignment: The channels are padded to a multiple of this.
        device: The device that weights on the host are copied to.

    Returns:
        [kernel * C, O] on the device, in the layout of the weights: all taps of a block of channels, then those of the
        next block. `conv3d` requires TILE layout.

    Raises:
        DeviceError: Blocks do not divide the channels, or the weights do not have five axes.
        ArgumentError: The weights are on the host and ``device`` is missing, where the real library crashes.

    Examples:
        >>> weights = ttnn.from_numpy(np.ones((32, 3, 1, 3, 3)), ttnn.bfloat16)
        >>> ttnn.experimental.prepare_conv3d_weights(weight_tensor=weights, device=device).shape
        Shape([288, 32])
    """
    where = weight_tensor.device() or device
    if where is None:
        raise ArgumentError("prepare_conv3d_weights: the real library crashes without a device; give device=")
    if alignment == 0:
        raise ArgumentError("prepare_conv3d_weights: alignment must be above 0")
    axes = tuple(weight_tensor.shape)
    if len(axes) != 5:
        raise DeviceError(
            "The number of dimensions in the tensor input does not match the length of the desired ordering\n"
            f"weight_tensor: give [O, C, depth, rows, columns], not {list(axes)}"
        )
    # Each result replaces the tensor before, which is released then
    tensor = weight_tensor
    if groups > 1:
        tensor = _with_zeros_between(tensor, groups)
    if tensor.device() is None:
        tensor = to_device(tensor, where)
    tensor = permute(tensor, (2, 3, 4, 1, 0))
    *kernel, channels, outputs = tensor.shape
    if channels % alignment:
        behind = -channels % alignment
        tensor = pad(tensor, [(0, 0), (0, 0), (0, 0), (0, behind), (0, 0)], 0.0)
        channels += behind
    block = C_in_block or min(usual_block(kernel), channels)
    if channels % block:
        raise DeviceError(
            f"C_in_aligned must be divisible by C_in_block\nC_in_block: {block} does not divide {channels} channels"
        )
    tensor = reshape(tensor, (*kernel, channels // block, block, outputs))
    tensor = permute(tensor, (3, 0, 1, 2, 4, 5))
    return reshape(tensor, (prod(kernel) * channels, outputs))


def _with_zeros_between(weights: Tensor, groups: int) -> Tensor:
    """Weights on the host, with zeros between the input channels of a group and the outputs of other groups."""
    outputs, channels, *kernel = weights.shape
    spec = TensorSpec((outputs, groups * channels, *kernel), weights.spec.data_format, Layout.ROW_MAJOR)
    if not weights.known:
        return Tensor.of_host(UNKNOWN, spec)
    values = weights.to_numpy()
    result = np.zeros(spec.shape, values.dtype)
    share = outputs // groups
    for output in range(outputs):
        first = min(output // share, groups - 1) * channels
        result[output, first : first + channels] = values[output]
    return Tensor.of_host(result, spec)


def _in_order(weights: Tensor, device: Device | None, groups: int, block: int, config: Conv3dConfig | None) -> Tensor:
    """Weights as the program reads them: weights of five axes are prepared, and ROW_MAJOR weights are tilized."""
    rank = len(weights.shape)
    if rank == 5:
        if weights.device() is not None:
            raise DeviceError("Unprepared weight tensor must be on host\nweight_tensor: prepare it, or bring it back")
        if device is None:
            raise DeviceError("Device must be provided when weight tensor is unprepared (rank 5)\ndevice: give it")
        alignment = 32 if config is None else config.alignment
        weights = prepare_conv3d_weights(
            weight_tensor=weights, groups=groups, C_in_block=block, alignment=alignment, device=device
        )
    elif rank != 2:
        raise DeviceError(f"Unsupported weight tensor rank: {rank}\nweight_tensor: give [kernel * C, O]")
    return weights if weights.layout is Layout.TILE else to_layout(weights, Layout.TILE)


def _device_of(tensors: dict[str, Tensor]) -> Device:
    """The device of all tensors; raises DeviceError if a tensor is on the host or was deallocated."""
    for name, tensor in tensors.items():
        require_allocated(tensor, first_line=f"{name.capitalize()} tensor is not allocated")
        if tensor.device() is None:
            raise DeviceError(f"conv3d: the {name} must be on the device\ngive it to the device with .to(device)")
    device = tensors["input"].device()
    assert device is not None
    return device


def _blocks(config: Conv3dConfig | None, dilation: tuple[int, ...]) -> dict[str, Any]:
    if config is None:
        return {"dilation": dilation}
    own, plain = tuple(config.dilation), (1, 1, 1)
    if own != plain != dilation and own != dilation:
        raise DeviceError(
            "dilation in Conv3dConfig and op args must match when both are set. "
            f"config=({', '.join(map(str, own))}), args=({', '.join(map(str, dilation))})\ndilation: give it once"
        )
    grid = config.compute_with_storage_grid_size
    return {
        "dilation": own if dilation == plain else dilation,
        "in_block": config.C_in_block,
        "out_block": config.C_out_block,
        "out_positions": (config.T_out_block, config.H_out_block, config.W_out_block),
        "grid": (grid.x, grid.y),
    }


def _compute(config: WormholeComputeKernelConfig | None) -> dict[str, Any]:
    if config is None:
        return {}
    chosen = config.argument()
    return {"fidelity_phases": chosen.fidelity_phases, "fp32_dest": chosen.fp32_dest}
