"""ttnn's functions that write into a cache of keys or values."""

from ops.planners.kv_cache import plan_fill_cache, plan_update_cache, require_row
from ttsim.api.device_calls import cached_plan, operation, operation_as, required_device
from ttsim.runtime.execution import run
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.call import wrong
from ttsim.runtime.types.configs import WormholeComputeKernelConfig

kv_cache = operation_as("ttnn.kv_cache.")


@operation
def fill_cache(cache_tensor: Tensor, input_tensor: Tensor, batch_idx: int, *, update_idx: int = 0) -> Tensor:
    """Writes a tensor into the rows of one user of a cache.

    Args:
        cache_tensor: [users, heads, rows, columns] in TILE layout, interleaved; updated in place.
        input_tensor: [1, heads, rows, columns] of the same data type, in TILE layout; its padding is also written.
        batch_idx: Index of the user.
        update_idx: The first row to write, a multiple of 32.

    Returns:
        ``cache_tensor``.

    Examples:
        >>> cache = ttnn.zeros((2, 1, 64, 32), layout=ttnn.TILE_LAYOUT, device=device)
        >>> keys = ttnn.ones((1, 1, 32, 32), layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.fill_cache(cache, keys, 1, update_idx=32).to_numpy()[1, 0, 30:34, 0].tolist()
        [0.0, 0.0, 1.0, 1.0]
    """
    return _filled("fill_cache", cache_tensor, input_tensor, batch_idx, update_idx)


@kv_cache
def fill_cache_for_user_(cache: Tensor, input: Tensor, batch_index: int, *, update_idx: int = 0) -> Tensor:
    """Writes a tensor into the rows of one user of a cache, as `fill_cache` does.

    Args:
        cache: [users, heads, rows, columns] in TILE layout, interleaved; updated in place.
        input: [1, heads, rows, columns] of the same data type, in TILE layout; its padding is also written.
        batch_index: Index of the user.
        update_idx: The first row to write, a multiple of 32.

    Returns:
        ``cache``.

    Examples:
        >>> cache = ttnn.zeros((2, 1, 64, 32), layout=ttnn.TILE_LAYOUT, device=device)
        >>> keys = ttnn.ones((1, 1, 32, 32), layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.kv_cache.fill_cache_for_user_(cache, keys, 1).to_numpy()[:, 0, 31:33, 0].tolist()
        [[0.0, 0.0], [1.0, 0.0]]
    """
    return _filled("kv_cache.fill_cache_for_user_", cache, input, batch_index, update_idx)


@operation
def update_cache(
    cache: Tensor,
    input: Tensor,
    update_idx: int,
    *,
    batch_offset: int = 0,
    compute_kernel_config: WormholeComputeKernelConfig | None = None,
) -> Tensor:
    """Writes one row for every user of a cache.

    Args:
        cache: [users, heads, rows, columns] in TILE layout, interleaved; updated in place.
        input: [1, heads, users, columns] in TILE layout.
        update_idx: The row to write.
        batch_offset: Row of ``input`` that belongs to the first user, if there are fewer than 32 users.
        compute_kernel_config: Width of intermediate numbers; results do not depend on it.

    Returns:
        ``cache``.

    Raises:
        ArgumentError: The device is strict, and the cache does not have the row; the real library writes elsewhere.

    Examples:
        >>> cache = ttnn.zeros((2, 1, 32, 32), layout=ttnn.TILE_LAYOUT, device=device)
        >>> keys = ttnn.ones((1, 1, 2, 32), layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.update_cache(cache, keys, 5).to_numpy()[1, 0, 4:7, 0].tolist()
        [0.0, 1.0, 0.0]
    """
    return _updated("update_cache", cache, input, update_idx, batch_offset, compute_kernel_config)


@kv_cache
def update_cache_for_token_(
    cache: Tensor,
    input: Tensor,
    update_index: int,
    batch_offset: int = 0,
    compute_kernel_config: WormholeComputeKernelConfig | None = None,
) -> Tensor:
    """Writes one row for every user of a cache, as `update_cache` does.

    Args:
        cache: [users, heads, rows, columns] in TILE layout, interleaved; updated in place.
        input: [1, heads, users, columns] in TILE layout.
        update_index: The row to write.
        batch_offset: Row of ``input`` that belongs to the first user, if there are fewer than 32 users.
        compute_kernel_config: Width of intermediate numbers; results do not depend on it.

    Returns:
        ``cache``.

    Raises:
        ArgumentError: The device is strict, and the cache does not have the row; the real library writes elsewhere.

    Examples:
        >>> cache = ttnn.zeros((2, 1, 32, 32), layout=ttnn.TILE_LAYOUT, device=device)
        >>> keys = ttnn.ones((1, 1, 2, 32), layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.kv_cache.update_cache_for_token_(cache, keys, 5).to_numpy()[1, 0, 4:7, 0].tolist()
        [0.0, 1.0, 0.0]
    """
    return _updated("kv_cache.update_cache_for_token_", cache, input, update_index, batch_offset, compute_kernel_config)


def _filled(owner: str, cache: Tensor, rows: Tensor, user: int, first: int) -> Tensor:
    _require_counts(owner, user, first)
    device = required_device(owner, rows)
    required_device(owner, cache)
    plan = cached_plan(plan_fill_cache, device, cache.spec, rows.spec, user, first)
    with device.function(f"ttnn.{owner}"):
        return run(plan, {"input": rows, "target": cache}, device)["output"]


def _updated(
    owner: str, cache: Tensor, rows: Tensor, row: int, first: int, config: WormholeComputeKernelConfig | None
) -> Tensor:
    _require_counts(owner, row, first)
    device = required_device(owner, rows)
    required_device(owner, cache)
    wide = config is not None and config.fp32_dest_acc_en
    plan = cached_plan(plan_update_cache, device, cache.spec, rows.spec, row, first, wide=bool(wide))
    if device.strict:
        require_row(owner, cache.spec, row)
    with device.function(f"ttnn.{owner}"):
        return run(plan, {"input": rows, "target": cache}, device)["output"]


def _require_counts(owner: str, *counts: int) -> None:
    if any(count < 0 for count in counts):
        raise wrong(owner, f"indices count from 0, not {min(counts)}")
