"""ttnn.softmax, with and without scale and mask, and the in-place forms."""

from device.errors import DeviceError
from device.memory.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig
from ops.planners.attention.softmax import SoftmaxArguments, plan_softmax, require_whole_rows
from ops.planners.attention.softmax_buffers import SoftmaxBlocks
from ttsim.api.device_calls import cached_plan, operation, required_device
from ttsim.api.unary import fill
from ttsim.api.without_elements import is_empty, made
from ttsim.runtime.execution import require_allocated, run
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.attention import (
    Integer,
    SingleFloat,
    SoftmaxDefaultProgramConfig,
    SoftmaxShardedMultiCoreProgramConfig,
)
from ttsim.runtime.types.configs import WormholeComputeKernelConfig

DEFAULT = SoftmaxDefaultProgramConfig()
Config = SoftmaxDefaultProgramConfig | SoftmaxShardedMultiCoreProgramConfig


@operation
def softmax(
    input_tensor: Tensor,
    dim: Integer = -1,
    *,
    memory_config: MemoryConfig | None = None,
    compute_kernel_config: WormholeComputeKernelConfig | None = None,
    numeric_stable: bool = True,
) -> Tensor:
    """The softmax along an axis: exponentials divided by their sum.

    Args:
        input_tensor: A float tensor on the device in TILE layout; a ROW_MAJOR tensor of rank 4 is tilized.
        dim: The axis; negative numbers count from the last.
        memory_config: Memory of the result; None for that of the tensor.
        compute_kernel_config: Width of sums; None for float32.
        numeric_stable: Subtract the maximum along the axis first; always done for axes other than the last.

    Returns:
        A tensor of the same shape and data type, in TILE layout.

    Examples:
        >>> x = ttnn.zeros((1, 1, 32, 64), layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.softmax(x, dim=-1).to_numpy()[0, 0, 0, 0].item()
        0.015625
    """
    return computed_softmax("softmax", input_tensor, None, compute_kernel_config, axis=dim, stable=numeric_stable,
                    place=memory_config)  # fmt: skip


@operation
def softmax_in_place(
    input_tensor: Tensor,
    dim: Integer = -1,
    *,
    program_config: Config = DEFAULT,
    compute_kernel_config: WormholeComputeKernelConfig | None = None,
    numeric_stable: bool = True,
) -> Tensor:
    """The softmax along the last axis of a tensor of rank 4, in place.

    Args:
        input_tensor: [B, H, rows, columns] of floats on the device, in TILE layout.
        dim: The last axis, 3 or -1.
        program_config: Blocks of a sharded tensor, or the default for any tensor.
        compute_kernel_config: Width of sums; None for float32, or for the tensor's width if blocks are given.
        numeric_stable: Subtract the maximum of a row first.

    Returns:
        The tensor itself.

    Examples:
        >>> x = ttnn.zeros((1, 1, 32, 64), layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.softmax_in_place(x).to_numpy()[0, 0, 0, 0].item()
        0.015625
    """
    options = {"axis": dim, "stable": numeric_stable, "in_place": True, "blocks": _blocks(program_config)}
    return computed_softmax("softmax_in_place", input_tensor, None, compute_kernel_config, **options)


@operation
def scale_mask_softmax(
    input_tensor: Tensor,
    scale: SingleFloat = None,
    mask: Tensor | None = None,
    *,
    memory_config: MemoryConfig | None = None,
    is_causal_mask: bool = False,
    compute_kernel_config: WormholeComputeKernelConfig | None = None,
    numeric_stable: bool = True,
) -> Tensor:
    """The softmax of ``input_tensor * scale + mask`` along the last axis.

    Args:
        input_tensor: [B, H, rows, columns] of floats on the device; a ROW_MAJOR tensor is tilized.
        scale: A factor that float32 represents exactly; requires a mask.
        mask: [B, 1, 1 or 32, columns]; the first row is added to every row.
        memory_config: Memory of the result; None for that of the tensor.
        is_causal_mask: Add all 32 rows of the mask, to every 32 rows of the tensor.
        compute_kernel_config: Width of sums; None for float32.
        numeric_stable: Subtract the maximum of a row first.

    Returns:
        A tensor of the same shape and data type, in TILE layout.

    Examples:
        >>> x = ttnn.zeros((1, 1, 32, 64), layout=ttnn.TILE_LAYOUT, device=device)
        >>> mask = ttnn.zeros((1, 1, 1, 64), layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.scale_mask_softmax(x, 0.5, mask).to_numpy()[0, 0, 0, 0].item()
        0.015625
    """
    return computed_softmax("scale_mask_softmax", input_tensor, mask, compute_kernel_config, fused=True, scale=scale,
                    causal=is_causal_mask, stable=numeric_stable, place=memory_config)  # fmt: skip


@operation
def scale_mask_softmax_in_place(
    input_tensor: Tensor,
    scale: float | None = None,
    mask: Tensor | None = None,
    *,
    program_config: Config = DEFAULT,
    is_causal_mask: bool = False,
    compute_kernel_config: WormholeComputeKernelConfig | None = None,
    numeric_stable: bool = False,
) -> Tensor:
    """The softmax of ``input_tensor * scale + mask`` along the last axis, in place.

    Args:
        input_tensor: [B, H, rows, columns] of floats on the device, in TILE layout.
        scale: A factor; requires a mask.
        mask: [B, 1, rows, columns]; the first row is added to every row. With shards also [B, 1, columns / 32, 32] in
            ROW_MAJOR layout.
        program_config: Blocks of a sharded tensor, or the default for any tensor.
        is_causal_mask: Add every row of the mask to the corresponding row of the tensor.
        compute_kernel_config: Width of sums; None for float32, or the tensor's width where blocks are given.
        numeric_stable: Subtract the maximum of a row first.

    Returns:
        The tensor itself.

    Examples:
        >>> x = ttnn.zeros((1, 1, 32, 64), layout=ttnn.TILE_LAYOUT, device=device)
        >>> mask = ttnn.zeros((1, 1, 32, 64), layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.scale_mask_softmax_in_place(x, 0.5, mask).to_numpy()[0, 0, 0, 0].item()
        0.015625
    """
    options = {"fused": True, "scale": scale, "causal": is_causal_mask, "stable": numeric_stable, "in_place": True}
    return computed_softmax("scale_mask_softmax_in_place", input_tensor, mask, compute_kernel_config,
                    blocks=_blocks(program_config), **options)  # fmt: skip


@operation
def scale_causal_mask_hw_dims_softmax_in_place(
    input_tensor: Tensor,
    scale: SingleFloat = None,
    mask: Tensor | None = None,
    *,
    program_config: Config = DEFAULT,
    compute_kernel_config: WormholeComputeKernelConfig | None = None,
    numeric_stable: bool = False,
) -> Tensor:
    """The softmax of ``input_tensor * scale + mask`` of a sharded tensor with one causal mask for all heads, in place.

    Args:
        input_tensor: [B, H, rows, columns] of floats in HEIGHT shards, in TILE layout.
        scale: A factor that float32 represents exactly; required.
        mask: [1, 1, rows, columns], interleaved, in TILE layout.
        program_config: Blocks of the shards; required.
        compute_kernel_config: Width of sums; None for the tensor's width.
        numeric_stable: Subtract the maximum of a row first.

    Returns:
        The tensor itself.

    Examples:
        >>> grid = ttnn.CoreGrid(x=1, y=1)
        >>> shards = ttnn.create_sharded_memory_config((1, 1, 32, 64), grid, ttnn.ShardStrategy.HEIGHT)
        >>> x = ttnn.zeros((1, 1, 32, 64), layout=ttnn.TILE_LAYOUT, device=device, memory_config=shards)
        >>> mask = ttnn.zeros((1, 1, 32, 64), layout=ttnn.TILE_LAYOUT, device=device)
        >>> config = ttnn.SoftmaxShardedMultiCoreProgramConfig(
        ...     compute_with_storage_grid_size=(1, 1), subblock_w=2, block_h=1, block_w=2)
        >>> y = ttnn.scale_causal_mask_hw_dims_softmax_in_place(x, 0.5, mask, program_config=config)
        >>> y.to_numpy()[0, 0, 0, 0].item()
        0.015625
    """
    options = {"fused": True, "scale": scale, "causal": True, "by_heads": True, "in_place": True}
    return computed_softmax("scale_causal_mask_hw_dims_softmax_in_place", input_tensor, mask, compute_kernel_config,
                    blocks=_blocks(program_config), stable=numeric_stable, **options)  # fmt: skip


def _blocks(config: Config) -> SoftmaxBlocks | None:
    if isinstance(config, SoftmaxDefaultProgramConfig):
        return None
    grid: tuple[int, int] = config.compute_with_storage_grid_size  # type: ignore[assignment]
    return SoftmaxBlocks(grid, config.subblock_w, config.block_h, config.block_w)


def computed_softmax(
    owner: str,
    tensor: Tensor,
    mask: Tensor | None,
    compute: WormholeComputeKernelConfig | None,
    **arguments: object,
) -> Tensor:
    """Plans and runs the softmax of `SoftmaxArguments` for the ttnn function ``owner``."""
    device = required_device(owner, tensor)
    if mask is not None:
        require_allocated(mask, first_line="Tensor is not allocated")
        if mask.device() is None:
            raise DeviceError("Operands to softmax need to be on device!\nmask: give it to the device with .to(device)")
    call = SoftmaxArguments(
        source=tensor.spec,
        mask=None if mask is None else mask.spec,
        fp32_dest=None if compute is None else compute.argument().fp32_dest,
        **arguments,  # type: ignore[arg-type]
    )
    if not call.as_given and call.dim is not None and (not tensor.shape or is_empty(tensor)):
        value = 1.0 if call.scale is None else call.scale  # as in ttnn, where a tensor without axes counts as empty
        place = call.place or (DRAM_MEMORY_CONFIG if call.fused else None)
        with device.function(f"ttnn.{owner}"):
            return fill(tensor, value) if call.in_place else made(tensor, tensor.shape, place, value=value)
    plan = cached_plan(plan_softmax, device, call)
    if device.strict:
        require_whole_rows(plan)
    with device.function(f"ttnn.{owner}"):
        tensors = {"input": tensor} if mask is None else {"input": tensor, "mask": mask}
        return run(plan, tensors, device)["output"]
