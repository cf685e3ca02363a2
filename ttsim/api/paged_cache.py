"""ttnn's functions that write into a paged cache of keys or values."""

from device.errors import shown
from ops.planners.paged_cache import (
    PagedFillArguments,
    PagedUpdateArguments,
    plan_paged_fill,
    plan_paged_update,
    require_blocks,
    require_rows,
)
from ttsim.api.device_calls import are_readable, integers_of, operation_as, require_left_out, run_on_several
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.call import wrong
from ttsim.runtime.types.configs import WormholeComputeKernelConfig

experimental = operation_as("ttnn.experimental.")


@experimental
def paged_update_cache(
    cache_tensor: Tensor,
    input_tensor: Tensor,
    *,
    update_idxs: object = (),
    update_idxs_tensor: Tensor | None = None,
    share_cache: bool | None = None,
    page_table: Tensor | None = None,
    batch_offset: int = 0,
    compute_kernel_config: WormholeComputeKernelConfig | None = None,
    mesh_coords: object = None,
    block_size: int | None = None,
    num_kv_heads: int | None = None,
    cache_position_modulo: int | None = None,
) -> Tensor:
    """Writes one row of every head for every user of a cache.

    Args:
        cache_tensor: [users, heads, rows, columns], or with ``page_table`` [blocks, heads, rows, columns], in TILE
            layout, interleaved; updated in place.
        input_tensor: [1, users, heads, columns] of bfloat16 or float32 in TILE layout, in one HEIGHT shard per user.
        update_idxs: The row of each user.
        update_idxs_tensor: The rows as a tensor [users], int32 in DRAM, instead of ``update_idxs``; -1 skips a user.
        share_cache: Write the rows of all users into the cache of one user.
        page_table: [users, blocks of one user], int32: the blocks of the cache that hold the rows of each user.
        batch_offset: Must be 0.
        compute_kernel_config: Width of intermediate numbers; results do not depend on it.
        mesh_coords: Not simulated; None writes on all devices.
        block_size: With ``page_table``, rows of a block, if the cache has another shape; None for the cache's rows.
        num_kv_heads: With ``page_table``, heads of a block, if the cache has another shape; None for the cache's heads.
        cache_position_modulo: With ``page_table``, the length of a ring buffer in rows, a multiple of the block size:
            row r is stored at row r modulo this number. None: no ring buffer.

    Returns:
        ``cache_tensor``.

    Raises:
        ArgumentError: The device is strict, and a user does not have the row (the real library writes elsewhere), or
            several users write into the same row of tiles.

    Examples:
        >>> cache = ttnn.zeros((2, 1, 64, 32), layout=ttnn.TILE_LAYOUT, device=device)
        >>> cores = ttnn.num_cores_to_corerangeset(2, device.compute_with_storage_grid_size(), row_wise=True)
        >>> shards = ttnn.ShardSpec(cores, [32, 32], ttnn.ShardOrientation.ROW_MAJOR)
        >>> place = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.HEIGHT_SHARDED, ttnn.BufferType.L1, shards)
        >>> keys = ttnn.ones((1, 2, 1, 32), layout=ttnn.TILE_LAYOUT, device=device, memory_config=place)
        >>> ttnn.experimental.paged_update_cache(cache, keys, update_idxs=[3, 40]).to_numpy()[:, 0, [3, 40], 0].tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    owner = "paged_update_cache"
    require_left_out(owner, mesh_coords=mesh_coords)
    rows = integers_of("update_idxs", update_idxs)
    if any(row < 0 for row in rows):
        raise wrong(f"experimental.{owner}", f"rows count from 0, not {shown(rows)}")
    call = PagedUpdateArguments(
        cache=cache_tensor.spec,
        source=input_tensor.spec,
        rows=rows,
        indices=None if update_idxs_tensor is None else update_idxs_tensor.spec,
        table=None if page_table is None else page_table.spec,
        shared=bool(share_cache),
        first=batch_offset,
        wide=compute_kernel_config is not None and bool(compute_kernel_config.fp32_dest_acc_en),
        block_rows=block_size,
        heads=num_kv_heads,
        modulo=cache_position_modulo,
    )

    def strict() -> None:
        if are_readable(update_idxs_tensor, page_table):
            users = rows if update_idxs_tensor is None else update_idxs_tensor.values().reshape(-1).tolist()
            table = None if page_table is None else page_table.values().tolist()
            require_rows(cache_tensor.spec, users, table, shared=call.shared, modulo=cache_position_modulo)

    tensors = {"input": input_tensor, "indices": update_idxs_tensor, "table": page_table, "target": cache_tensor}
    return run_on_several(f"experimental.{owner}", plan_paged_update, call, tensors, strict)


@experimental
def paged_fill_cache(
    cache_tensor: Tensor,
    input_tensor: Tensor,
    page_table: Tensor,
    *,
    batch_idx_tensor: Tensor | None = None,
    batch_idx: int = 0,
    compute_kernel_config: WormholeComputeKernelConfig | None = None,
    mesh_coords: object = None,
    block_size: int | None = None,
    cache_position_modulo: int | None = None,
    valid_seq_len_tensor: Tensor | None = None,
) -> Tensor:
    """Writes all rows of one user or of several users into the users' blocks of a cache.

    Args:
        cache_tensor: [blocks, heads, rows, columns] in TILE layout; updated in place.
        input_tensor: [users, heads, rows, columns] of the same data type, in TILE layout, interleaved; its padding is
            also written.
        page_table: [all users, blocks of one user], int32: the blocks of the cache that hold the rows of each user; -1
            skips a block.
        batch_idx_tensor: [users], int32 or uint32: the indices of the users.
        batch_idx: Index of the user, without ``batch_idx_tensor``; must be in the table in either case.
        compute_kernel_config: Accepted as in ttnn; it has no effect.
        mesh_coords: Not simulated; None writes on all devices.
        block_size: Rows of a block, if the cache has another shape; None for the cache's rows.
        cache_position_modulo: The length of a ring buffer in rows, a multiple of the block size: row r is stored at
            row r modulo this number. None: no ring buffer.
        valid_seq_len_tensor: [1], int32 or uint32: number of valid rows, with ``cache_position_modulo``; None for all.

    Returns:
        ``cache_tensor``.

    Raises:
        ArgumentError: The device is strict, and a user or block does not exist, or a block is written twice.

    Examples:
        >>> cache = ttnn.zeros((4, 1, 32, 32), layout=ttnn.TILE_LAYOUT, device=device)
        >>> blocks = ttnn.from_numpy(np.array([[3, 1]]), ttnn.int32, device=device)
        >>> keys = ttnn.ones((1, 1, 64, 32), layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.experimental.paged_fill_cache(cache, keys, blocks).to_numpy()[:, 0, 0, 0].tolist()
        [0.0, 1.0, 0.0, 1.0]
    """
    owner = "paged_fill_cache"
    require_left_out(owner, mesh_coords=mesh_coords)
    call = PagedFillArguments(
        cache=cache_tensor.spec,
        source=input_tensor.spec,
        table=page_table.spec,
        users=None if batch_idx_tensor is None else batch_idx_tensor.spec,
        user=batch_idx,
        block_rows=block_size,
        modulo=cache_position_modulo,
        valid=None if valid_seq_len_tensor is None else valid_seq_len_tensor.spec,
    )

    def strict() -> None:
        if are_readable(batch_idx_tensor, page_table):
            users = [batch_idx] if batch_idx_tensor is None else batch_idx_tensor.values().reshape(-1).tolist()
            blocks = page_table.values().tolist()
            require_blocks(cache_tensor.spec, input_tensor.spec, users, blocks, cache_position_modulo)

    tensors = {"input": input_tensor, "table": page_table, "indices": batch_idx_tensor, "valid": valid_seq_len_tensor}
    tensors |= {"target": cache_tensor}
    return run_on_several(f"experimental.{owner}", plan_paged_fill, call, tensors, strict)
