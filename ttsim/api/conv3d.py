"""ttnn.experimental.conv3d and its config."""

from collections.abc import Sequence
from typing import Annotated, Any

from device.cores import CoreCoord
from device.errors import ArgumentError, ArgumentTypeError, DeviceError, NotSimulatedError, shown
from device.memory.memory_config import Layout, MemoryConfig
from ops.planners.conv3d import Conv3dArguments, plan_conv3d
from ttsim.api.device_calls import cached_plan, operation_as, require_left_out
from ttsim.runtime.device import Device
from ttsim.runtime.execution import require_allocated, run
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
    output_layout: Layout = param("Accepted as in ttnn: the output has rows.", default=Layout.ROW_MAJOR)
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
        input_tensor: [N, D, H, W, C] on the device, bfloat16 or float32, in ROW_MAJOR layout, interleaved.
        weight_tensor: [kernel * C, O] on the device in TILE layout: all taps of a block of C, then those of the next.
        device: The device; that of the tensor.
        bias_tensor: [1, O] on the device in TILE layout.
        config: Blocks; None for single positions, 32 channels and all cores.
        dtype: Data type of the output.
        output_channels: Channels of the output, O.
        kernel_size: Sides of the kernel.
        stride: Distance from window to window along the three axes.
        padding: What is added at both ends of the three axes.
        dilation: Distance from tap to tap.
        padding_mode: "zeros" or "replicate".
        groups: Only 1 is simulated.
        memory_config: Memory of the output; None for DRAM.
        compute_kernel_config: None for HiFi2 and a 16-bit Dst.
        halo_buffer: Not simulated.
        logical_h_mask: Not simulated.
        logical_w_mask: Not simulated.
        pad_offset_tensor: Not simulated.
        output_pad_h: Not simulated.
        output_pad_w: Not simulated.
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
    require_left_out("conv3d", halo_buffer=halo_buffer, pad_offset_tensor=pad_offset_tensor)
    require_left_out("conv3d", weight_lo_tensor=weight_lo_tensor, enable_fp32_operand_split=splits)
    for name, value in (("logical_h_mask", logical_h_mask), ("logical_w_mask", logical_w_mask)):
        require_left_out("conv3d", **{name: value or None})
    require_left_out("conv3d", output_pad_h=output_pad_h or None, output_pad_w=output_pad_w or None)
    if not isinstance(padding_mode, str):
        raise ArgumentTypeError(f"conv3d: padding_mode must be a text, not {shown(padding_mode)}")
    if 0 in stride:
        raise ArgumentError(f"stride must be greater than 0, got {tuple(stride)}")
    if groups == 0:
        raise ArgumentError("groups must be greater than 0, got 0")
    tensors = {"input": input_tensor, "weight": weight_tensor}
    tensors |= {} if bias_tensor is None else {"bias": bias_tensor}
    if len(weight_tensor.shape) == 5 and device is None and weight_tensor.device() is None:
        raise DeviceError("Device must be provided when weight tensor is unprepared (rank 5)\ndevice: give it")
    here = _device_of(tensors)
    if len(weight_tensor.shape) != 2 or weight_tensor.layout is not Layout.TILE:
        raise NotSimulatedError(
            "conv3d: ttsim does not simulate the preparation of weights; give [kernel * C, O] in TILE_LAYOUT"
        )
    call = Conv3dArguments(
        volumes=input_tensor.spec,
        weights=weight_tensor.spec,
        bias=None if bias_tensor is None else bias_tensor.spec,
        out_channels=output_channels,
        kernel=tuple(kernel_size),
        stride=tuple(stride),
        padding=tuple(padding),
        padding_mode=padding_mode,
        groups=groups,
        data_format=dtype.format,
        place=memory_config,
        **_blocks(config, tuple(dilation)),
        **_compute(compute_kernel_config),
    )
    plan = cached_plan(plan_conv3d, here, call)
    with here.function("ttnn.experimental.conv3d"):
        return run(plan, tensors, here)["output"]


def _device_of(tensors: dict[str, Tensor]) -> Device:
    """The device of all tensors; raises DeviceError for one on the host or deallocated."""
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
