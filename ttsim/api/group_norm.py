"""ttnn.group_norm, and the functions that prepare its weights, masks and shards."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from device.cores import CoreGrid
from device.errors import ArgumentError, ArgumentTypeError, DeviceError, shown
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    TILE,
    Layout,
    MemoryConfig,
    ShardOrientation,
    TensorMemoryLayout,
)
from ops.planners.normalization.group_arguments import GroupNormArguments
from ops.planners.normalization.group_grids import Images, interleaved_grid, sharded_grid, virtual_columns, widest_span
from ops.planners.normalization.group_norm import plan_group_norm
from ttsim.api.conversions import from_numpy, from_torch, to_device
from ttsim.api.device_calls import cached_plan, format_of, operation
from ttsim.api.eltwise import multiply
from ttsim.api.normalization import device_of, l1_bytes_of
from ttsim.api.shape import concat
from ttsim.runtime.device import Device
from ttsim.runtime.execution import run
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.call import Integer, checked_as
from ttsim.runtime.types.configs import WormholeComputeKernelConfig
from ttsim.runtime.types.of_torch import TorchTensor
from ttsim.runtime.types.tensors import DataType


@operation
def group_norm(
    input_tensor: Tensor,
    *,
    num_groups: int,
    epsilon: float = 1e-12,
    input_mask: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    memory_config: MemoryConfig | None = None,
    dtype: DataType | None = None,
    core_grid: CoreGrid | None = None,
    inplace: bool | None = True,
    output_layout: Layout | None = None,
    num_out_blocks: Integer | None = None,
    compute_kernel_config: WormholeComputeKernelConfig | None = None,
    negative_mask: Tensor | None = None,
    use_welford: bool = False,
) -> Tensor:
    """Group normalization of images: ``(x - mean) / sqrt(variance + epsilon) * weight + bias`` for each group.

    Its outputs were never compared with recordings of the real library.

    Args:
        input_tensor: [N, 1, H*W, C] on the device, bfloat16 or float32, sharded by HEIGHT or BLOCK in L1, or
            interleaved in TILE layout.
        num_groups: Groups of channels, a divisor of C.
        epsilon: Added to the variance.
        input_mask: Result of `create_group_norm_input_mask`; None: the kernel creates the mask.
        weight: Result of `create_group_norm_weight_bias_rm`, in ROW_MAJOR layout; None for ones.
        bias: Result of `create_group_norm_weight_bias_rm`, in ROW_MAJOR layout; None for zeros.
        memory_config: Memory of the result, sharded like the input; None for DRAM. Ignored if ``inplace``.
        dtype: None, or the data type of the input.
        core_grid: Cores of the shards, or of interleaved images; None lets the call choose.
        inplace: Write the result into the input, which must be in ROW_MAJOR layout.
        output_layout: Layout of the result; None for that of the input.
        num_out_blocks: Blocks that each core processes, for interleaved images; -1 lets the call choose.
        compute_kernel_config: None for HiFi4, with a 32-bit Dst only for float32.
        negative_mask: Result of `create_group_norm_input_negative_mask`; saves L1 in ROW_MAJOR layout.
        use_welford: Compute the statistics on the vector unit, in two passes.

    Returns:
        The input, or a tensor of its shape and data type.

    Examples:
        >>> place, grid = ttnn.determine_expected_group_norm_sharded_config_and_grid_size(
        ...     device=device, num_channels=64, num_groups=2, input_nhw=64, is_height_sharded=True)
        >>> image = ttnn.from_numpy(np.tile([-1.0, 1.0], (1, 1, 64, 32)), ttnn.bfloat16, device=device,
        ...     memory_config=place)
        >>> mask = ttnn.create_group_norm_input_mask(64, 2, 1).to(device)
        >>> ttnn.group_norm(image, num_groups=2, epsilon=1e-5, input_mask=mask, core_grid=grid).to_list()[0][0][0][:2]
        [-1.0, 1.0]
    """
    if num_groups < 1:
        raise ArgumentError(f"group_norm: num_groups must be at least 1, not {num_groups}")
    roles = {"input": input_tensor, "weight": weight, "bias": bias, "mask": input_mask, "negative_mask": negative_mask}
    tensors = {role: tensor for role, tensor in roles.items() if tensor is not None}
    device, specs = device_of(tensors), {role: tensor.spec for role, tensor in tensors.items()}
    config = None if compute_kernel_config is None else compute_kernel_config.argument()
    call = GroupNormArguments(
        source=specs["input"],
        groups=num_groups,
        epsilon=float(epsilon),
        weight=specs.get("weight"),
        bias=specs.get("bias"),
        mask=specs.get("mask"),
        negative_mask=specs.get("negative_mask"),
        place=memory_config,
        out_format=format_of(dtype),
        grid=None if core_grid is None else (core_grid.x, core_grid.y),
        blocks=num_out_blocks,
        inplace=inplace is True,
        out_layout=output_layout,
        use_welford=use_welford,
        fidelity_phases=4 if config is None else config.fidelity_phases,
        fp32_dest=None if config is None else config.fp32_dest,
    )
    plan = cached_plan(plan_group_norm, device, call, l1_bytes=l1_bytes_of(device))
    if call.mask is not None and call.padded:
        tensors["mask"] = _with_last_rows(tensors["mask"], input_tensor)
    with device.function("ttnn.group_norm"):
        return run(plan, tensors, device)["output"]


def _with_last_rows(mask: Tensor, images: Tensor) -> Tensor:
    """A mask followed by the mask of the tiles in which an image ends, with zeros below the last pixel."""
    rows = np.ones(mask.spec.shape, np.float32)
    rows[..., images.spec.shape[2] % TILE :, :] = 0
    ones = from_numpy(rows, mask.dtype, layout=Layout.TILE, device=images.device(), memory_config=DRAM_MEMORY_CONFIG)
    last = multiply(mask, ones)
    both = concat([mask, last], dim=1)
    del last, ones
    return both


def _mask(
    name: str, channels: int, groups: int, parts: int, dtype: DataType, *, inside: float, tile: tuple[int, int]
) -> Tensor:
    if parts < 1:
        raise DeviceError(
            "create_group_norm_input_mask: num_cores_across_channel must be > 0.\n"
            f"{name}: num_cores_across_channel is {parts}"
        )
    if groups < 1 or groups % parts:
        raise DeviceError(
            f"create_group_norm_input_mask: num_groups ({groups}) must be divisible by num_cores_across_channel "
            f"({parts}). The num_virtual_cols / num_cores_across_channel value must evenly divide both the channels "
            f"into tiles and the number of groups.\n{name}: give another number of cores"
        )
    if tile != (TILE, TILE):
        raise ArgumentError(
            f"{name}: tiles of {tile[0]} x {tile[1]} are not simulated; leave tile_height and width out"
        )
    if channels < groups or channels % groups:
        raise ArgumentError(f"{name}: num_groups must be a divisor of num_channel, {channels}, not {groups}")
    group = channels // groups
    mask = np.full((1, groups, TILE, widest_span(channels, group) * TILE), 1.0 - inside, np.float32)
    for number in range(groups):
        begin = number % (groups // parts) * group % TILE
        mask[0, number, :, begin : begin + group] = inside
    return from_numpy(mask, dtype, layout=Layout.TILE)


@checked_as(prefix="")
def create_group_norm_input_mask(
    num_channel: int,
    num_groups: int,
    num_cores_across_channel: int,
    data_type: DataType = DataType.BFLOAT16,
    tile_height: int = TILE,
    tile_width: int = TILE,
    rows_in_last_tile: int = 0,
) -> Tensor:
    """For each group, a mask of its columns in its tiles: ones in the group's columns, zeros elsewhere.

    Args:
        num_channel: Channels.
        num_groups: Groups of channels.
        num_cores_across_channel: Cores that share the channels (`get_group_norm_cores_across_channel`).
        data_type: Data type of the mask.
        tile_height: Only 32 is simulated.
        tile_width: Only 32 is simulated.
        rows_in_last_tile: Only 0 is simulated: images of whole tiles.

    Returns:
        [1, num_groups, 32, 32 * tiles of a group] on the host, in TILE layout.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        ArgumentError: The call uses a feature that is not simulated.
        DeviceError: Cores do not share the groups evenly.

    Examples:
        >>> ttnn.create_group_norm_input_mask(96, 4, 1).to_numpy()[0, 1, 0].sum().item()
        24.0
    """
    if rows_in_last_tile:
        raise ArgumentError("create_group_norm_input_mask: rows_in_last_tile is not simulated; leave it out")
    return _mask(
        "create_group_norm_input_mask", num_channel, num_groups, num_cores_across_channel, data_type,
        inside=1.0, tile=(tile_height, tile_width),
    )  # fmt: skip


@checked_as(prefix="")
def create_group_norm_input_negative_mask(
    num_channel: int,
    num_groups: int,
    num_cores_across_channel: int,
    data_type: DataType = DataType.BFLOAT16,
    tile_height: int = TILE,
    tile_width: int = TILE,
) -> Tensor:
    """The inverse of `create_group_norm_input_mask`: zeros in the group's columns, ones elsewhere.

    Args:
        num_channel: Channels.
        num_groups: Groups of channels.
        num_cores_across_channel: Cores that share the channels.
        data_type: Data type of the mask.
        tile_height: Only 32 is simulated.
        tile_width: Only 32 is simulated.

    Returns:
        [1, num_groups, 32, 32 * tiles of a group] on the host, in TILE layout.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        ArgumentError: The call uses a feature that is not simulated.
        DeviceError: Cores do not share the groups evenly.

    Examples:
        >>> ttnn.create_group_norm_input_negative_mask(96, 4, 1).to_numpy()[0, 1, 0].sum().item()
        40.0
    """
    return _mask(
        "create_group_norm_input_negative_mask", num_channel, num_groups, num_cores_across_channel, data_type,
        inside=0.0, tile=(tile_height, tile_width),
    )  # fmt: skip


def create_group_norm_weight_bias_rm(input_tensor: Any, num_channels: int, num_cores_x: int) -> TorchTensor:
    """A weight or bias in the order that cores read: the channels of each core, padded to whole tiles.

    Args:
        input_tensor: A torch tensor of ``num_channels`` numbers.
        num_channels: Channels.
        num_cores_x: Cores that share the channels.

    Returns:
        A torch tensor [1, 1, tiles of all cores, 32].

    Raises:
        ArgumentTypeError: ``input_tensor`` is not a torch tensor.
        ArgumentError: The cores do not divide the channels.

    Examples:
        >>> import torch
        >>> ttnn.create_group_norm_weight_bias_rm(torch.ones(96), 96, 2).shape
        torch.Size([1, 1, 4, 32])
    """
    if not hasattr(input_tensor, "new_zeros"):
        raise ArgumentTypeError(
            f"create_group_norm_weight_bias_rm: input_tensor must be a torch tensor, not {shown(input_tensor)}"
        )
    if not 0 < num_cores_x <= num_channels or input_tensor.numel() % (num_channels // num_cores_x):
        raise ArgumentError(
            f"create_group_norm_weight_bias_rm: {num_cores_x} cores do not share {num_channels} channels of "
            f"{input_tensor.numel()} numbers evenly"
        )
    part = num_channels // num_cores_x
    parts = input_tensor.reshape(-1, part)
    padded = parts.new_zeros((len(parts), -(-part // TILE) * TILE))
    padded[:, :part] = parts
    result: TorchTensor = padded.reshape(1, 1, -1, TILE)
    return result


@checked_as(prefix="")
def determine_expected_group_norm_sharded_config_and_grid_size(
    *,
    device: Device,
    num_channels: int,
    num_groups: int,
    input_nhw: int,
    is_height_sharded: bool,
    is_row_major: bool = False,
) -> tuple[MemoryConfig, CoreGrid]:
    """The memory config of sharded images for `group_norm`, and the core grid.

    Args:
        device: The device.
        num_channels: Channels, a multiple of 32 and of ``num_groups``.
        num_groups: Groups of channels.
        input_nhw: Pixels of all images.
        is_height_sharded: Split only pixels over cores; otherwise split pixels and channels.
        is_row_major: Assign shards along rows of cores.

    Returns:
        A memory config and a core grid.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        DeviceError: Channels are not divisible.

    Examples:
        >>> place, grid = ttnn.determine_expected_group_norm_sharded_config_and_grid_size(
        ...     device=device, num_channels=96, num_groups=2, input_nhw=4096, is_height_sharded=False,
        ...     is_row_major=True)
        >>> grid.x, grid.y, place.shard_spec.shape
        (2, 8, [512, 48])
    """
    images = _images(num_channels, num_groups, input_nhw)
    found = sharded_grid(_grid(device), images, by_height=is_height_sharded, by_rows=is_row_major)
    if found is None:
        raise DeviceError(
            f"group_norm: no number of cores shares {num_channels} channels of {num_groups} groups\n"
            "num_groups: give another number, or is_height_sharded=True"
        )
    place, (columns, rows) = found
    return place, CoreGrid(y=rows, x=columns)


@checked_as(prefix="")
def determine_expected_group_norm_dram_grid_size(
    *, device: Device, num_channels: int, num_groups: int, input_nhw: int, num_batches: int = 1
) -> CoreGrid | None:
    """The core grid of a `group_norm` of interleaved images.

    Args:
        device: The device.
        num_channels: Channels, a multiple of 32 and of ``num_groups``.
        num_groups: Groups of channels.
        input_nhw: Pixels of all images.
        num_batches: Images.

    Returns:
        The widest grid whose cores divide the rows of tiles evenly; None if no grid does.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        DeviceError: Channels are not divisible.

    Examples:
        >>> grid = ttnn.determine_expected_group_norm_dram_grid_size(
        ...     device=device, num_channels=1280, num_groups=5, input_nhw=16384)
        >>> grid.x, grid.y
        (5, 8)
    """
    found = interleaved_grid(_grid(device), _images(num_channels, num_groups, input_nhw), num_batches)
    return None if found is None else CoreGrid(y=found[1], x=found[0])


def _grid(device: Device) -> tuple[int, int]:
    size = device.compute_with_storage_grid_size()
    return size.x, size.y


def _images(channels: int, groups: int, pixels: int) -> Images:
    """The images of a call; raises DeviceError for channels that are not divisible."""
    if groups < 1 or channels < 1 or pixels < 1:
        raise ArgumentError("group_norm: channels, groups and pixels must be at least 1")
    if channels % groups:
        raise DeviceError(
            f"group_norm: num_channels ({channels}) must be divisible by num_groups ({groups}).\n"
            "num_groups: give a divisor"
        )
    if channels % TILE:
        raise DeviceError(
            f"group_norm: num_channels ({channels}) must be divisible by the tile width ({TILE}).\n"
            "num_channels: pad the channels"
        )
    return Images(channels=channels, groups=groups, pixels=pixels)


@checked_as(prefix="")
def get_group_norm_cores_across_channel(
    memory_layout: TensorMemoryLayout, core_grid: CoreGrid, shard_orientation: ShardOrientation | None = None
) -> int:
    """Cores that share the channels of images.

    Args:
        memory_layout: How the images are sharded.
        core_grid: The cores.
        shard_orientation: Whether shards are assigned along rows or columns; None for columns.

    Returns:
        A number of cores.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.

    Examples:
        >>> ttnn.get_group_norm_cores_across_channel(ttnn.TensorMemoryLayout.BLOCK_SHARDED, ttnn.CoreGrid(x=8, y=4))
        4
    """
    if memory_layout is TensorMemoryLayout.BLOCK_SHARDED:
        return core_grid.x if shard_orientation is ShardOrientation.ROW_MAJOR else core_grid.y
    return 1 if memory_layout is TensorMemoryLayout.HEIGHT_SHARDED else core_grid.x * core_grid.y


@checked_as(prefix="")
def dram_group_norm_params_from_torch(
    torch_params: object,
    channels_per_device: int,
    groups_per_device: int,
    device: Device | None,
    mesh_axis: int | None = None,
    core_grid: CoreGrid | None = None,
    return_mask: bool = True,
    dtype: DataType = DataType.BFLOAT16,
) -> object:
    """Weights, biases and a mask for interleaved images.

    Args:
        torch_params: A torch tensor, or several.
        channels_per_device: Channels.
        groups_per_device: Groups of channels.
        device: The device; None creates tensors on the host and requires ``core_grid``.
        mesh_axis: Not simulated; None for one device.
        core_grid: The cores; None for all cores of the device.
        return_mask: Return the mask as well.
        dtype: Data type of the results.

    Returns:
        The prepared tensor or tensors; with ``return_mask``, a tuple of these and the mask.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        ArgumentError: The call uses a feature that is not simulated, or neither device nor cores are given.
        DeviceError: No number of cores divides the channels.

    Examples:
        >>> import torch
        >>> weight, mask = ttnn.dram_group_norm_params_from_torch(torch.ones(64), 64, 2, device)
        >>> weight.shape, mask.shape
        (Shape([1, 1, 2, 32]), Shape([1, 2, 32, 32]))
    """
    if mesh_axis is not None:
        raise ArgumentError("dram_group_norm_params_from_torch: mesh_axis is not simulated; leave it out")
    if core_grid is not None:
        columns = core_grid.x
    elif device is not None:
        columns = _grid(device)[0]
    else:
        raise ArgumentError("dram_group_norm_params_from_torch: give a device or a core_grid")
    parts = virtual_columns(columns, _images(channels_per_device, groups_per_device, TILE))
    if not parts:
        raise DeviceError(
            f"dram_group_norm_virtual_columns: could not find a valid num_virtual_cols for {columns} cores"
        )
    vectors: Sequence[object] = torch_params if isinstance(torch_params, Sequence) else [torch_params]
    prepared = [
        from_torch(create_group_norm_weight_bias_rm(numbers, channels_per_device, parts), dtype=dtype, device=device)
        for numbers in vectors
    ]
    result = prepared if isinstance(torch_params, Sequence) else prepared[0]
    if not return_mask:
        return result
    mask = create_group_norm_input_mask(channels_per_device, groups_per_device, parts, dtype)
    return result, mask if device is None else to_device(mask, device)
