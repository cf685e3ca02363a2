"""ttnn.transformer's attention of one token for each user, with keys and values in a cache."""

from collections.abc import Mapping
from typing import Any

from device.errors import NotSimulatedError
from device.memory.memory_config import MemoryConfig
from ops.planners.attention.sdpa_decode import DecodeArguments, plan_decode, require_positions
from ttsim.api.device_calls import are_readable, integers_of, operation_as, require_left_out, run_on_several
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.attention import SDPAProgramConfig
from ttsim.runtime.types.call import wrong
from ttsim.runtime.types.configs import WormholeComputeKernelConfig

transformer = operation_as("ttnn.transformer.")


@transformer
def scaled_dot_product_attention_decode(
    input_tensor_q: Tensor,
    input_tensor_k: Tensor,
    input_tensor_v: Tensor,
    *,
    is_causal: bool = True,
    attn_mask: Tensor | None = None,
    cur_pos: object = (),
    cur_pos_tensor: Tensor | None = None,
    attention_sink: Tensor | None = None,
    scale: float | None = None,
    sliding_window_size: int | None = None,
    memory_config: MemoryConfig | None = None,
    program_config: SDPAProgramConfig | None = None,
    compute_kernel_config: WormholeComputeKernelConfig | None = None,
    share_cache: bool | None = None,
) -> Tensor:
    """Scaled dot-product attention of one token for each user: ``softmax(q @ k.T * scale) @ v``.

    Args:
        input_tensor_q: Queries [1, users, heads, size] in TILE layout, in DRAM or in HEIGHT shards.
        input_tensor_k: Keys [users, key heads, keys, size] in DRAM; key heads divide the heads of the queries.
        input_tensor_v: Values, of the shape of the keys.
        is_causal: Each user attends to the keys up to the user's position; otherwise to all keys.
        attn_mask: [1, users, heads, keys], added to the scores; excludes ``is_causal``. Values are not simulated.
        cur_pos: The position of each user.
        cur_pos_tensor: The positions as a tensor [users], int32, instead of ``cur_pos``.
        attention_sink: [heads, 1], bfloat16 in DRAM: one more score per head, scaled like the others, without a value.
        scale: Factor of the scores; None for 1 / sqrt(size).
        sliding_window_size: Number of keys up to the user's position that the user attends to; 0 or None for all.
        memory_config: Memory of the result; None for DRAM.
        program_config: Cores, and the number of keys in a chunk; None for all cores and chunks of up to 512 keys.
        compute_kernel_config: Fidelity and width of Dst; None for HiFi2 and 16 bits.
        share_cache: All users share the keys and values of one user.

    Returns:
        [1, users, heads, size], of the data type of the queries.

    Raises:
        ArgumentError: The device is strict, and a position is -1, for which the real library writes no result, or lies
            beyond the cache.

    Examples:
        >>> q = ttnn.ones((1, 2, 8, 32), layout=ttnn.TILE_LAYOUT, device=device)
        >>> k, v = (ttnn.ones((2, 1, 64, 32), layout=ttnn.TILE_LAYOUT, device=device) for _ in range(2))
        >>> ttnn.transformer.scaled_dot_product_attention_decode(q, k, v, cur_pos=[5, 40]).shape
        Shape([1, 2, 8, 32])
    """
    owner = "scaled_dot_product_attention_decode"
    optional = _optional(owner, attn_mask, attention_sink, sliding_window_size)
    call = DecodeArguments(
        query=input_tensor_q.spec,
        key=input_tensor_k.spec,
        value=input_tensor_v.spec,
        indices=None if cur_pos_tensor is None else cur_pos_tensor.spec,
        causal=is_causal,
        positions=integers_of("cur_pos", cur_pos),
        scale=scale,
        place=memory_config,
        shared=bool(share_cache),
        **optional,
        **_configured(owner, program_config, compute_kernel_config),
    )
    tensors = {"query": input_tensor_q, "key": input_tensor_k, "value": input_tensor_v, "indices": cur_pos_tensor}
    return _attended(call, tensors | {"mask": attn_mask, "sinks": attention_sink})


@transformer
def paged_scaled_dot_product_attention_decode(
    input_tensor_q: Tensor,
    input_tensor_k: Tensor,
    input_tensor_v: Tensor,
    page_table_tensor: Tensor,
    *,
    is_causal: bool = True,
    attn_mask: Tensor | None = None,
    cur_pos_tensor: Tensor | None = None,
    attention_sink: Tensor | None = None,
    scale: float | None = None,
    sliding_window_size: int | None = None,
    memory_config: MemoryConfig | None = None,
    program_config: SDPAProgramConfig | None = None,
    compute_kernel_config: WormholeComputeKernelConfig | None = None,
    paged_cache_geometry: object = None,
    cache_position_modulo: int | None = None,
    spec_multi_pos_tiles: int = 0,
) -> Tensor:
    """`scaled_dot_product_attention_decode` with keys and values in a paged cache: a table lists the blocks of a user.

    Args:
        input_tensor_q: Queries [1, users, heads, size] in TILE layout, in DRAM or in HEIGHT shards.
        input_tensor_k: Keys [blocks, key heads, keys of a block, size] in DRAM.
        input_tensor_v: Values, of the shape of the keys.
        page_table_tensor: [users, blocks of one user], int32: the blocks that hold the keys of each user.
        is_causal: Each user attends to the keys up to the user's position; otherwise to all keys.
        attn_mask: [1, users, heads, keys], added to the scores; excludes ``is_causal``. Values are not simulated.
        cur_pos_tensor: [users], int32: the position of each user.
        attention_sink: [heads, 1], bfloat16 in DRAM: one more score per head, scaled like the others, without a value.
        scale: Factor of the scores; None for 1 / sqrt(size).
        sliding_window_size: Number of keys up to the user's position that the user attends to; 0 or None for all.
        memory_config: Memory of the result; None for DRAM.
        program_config: Cores, and the number of keys in a chunk; None for one core per head and chunks of 32 keys.
        compute_kernel_config: Fidelity and width of Dst; None for HiFi2 and 16 bits.
        paged_cache_geometry: Not simulated.
        cache_position_modulo: Length of a ring buffer of keys, a multiple of the block size: the key of position p is
            key p modulo this number. Values are not simulated.
        spec_multi_pos_tiles: Number of rows of 32 queries that have a position each, so that positions are
            [users * rows]; 0 for one position per user. Values are not simulated.

    Returns:
        [1, users, heads, size], of the data type of the queries.

    Raises:
        ArgumentError: The device is strict, and a position is -1, for which the real library writes no result, or a
            position or a block does not exist.

    Examples:
        >>> q = ttnn.ones((1, 1, 8, 32), layout=ttnn.TILE_LAYOUT, device=device)
        >>> k, v = (ttnn.ones((4, 1, 32, 32), layout=ttnn.TILE_LAYOUT, device=device) for _ in range(2))
        >>> blocks, last = (ttnn.from_numpy(np.array(n), ttnn.int32, device=device) for n in ([[3, 1]], [40]))
        >>> result = ttnn.transformer.paged_scaled_dot_product_attention_decode(q, k, v, blocks, cur_pos_tensor=last)
        >>> result.to_numpy()[0, 0, 0, 0].item()
        1.0
    """
    owner = "paged_scaled_dot_product_attention_decode"
    require_left_out(owner, paged_cache_geometry=paged_cache_geometry)
    if min(spec_multi_pos_tiles, cache_position_modulo or 0) < 0:
        raise wrong(f"transformer.{owner}", "spec_multi_pos_tiles and cache_position_modulo count from 0")
    optional = _optional(owner, attn_mask, attention_sink, sliding_window_size)
    call = DecodeArguments(
        query=input_tensor_q.spec,
        key=input_tensor_k.spec,
        value=input_tensor_v.spec,
        indices=None if cur_pos_tensor is None else cur_pos_tensor.spec,
        table=page_table_tensor.spec,
        causal=is_causal,
        scale=scale,
        place=memory_config,
        modulo=cache_position_modulo,
        candidates=spec_multi_pos_tiles,
        **optional,
        **_configured(owner, program_config, compute_kernel_config),
    )
    tensors = {"query": input_tensor_q, "key": input_tensor_k, "value": input_tensor_v, "indices": cur_pos_tensor}
    return _attended(call, tensors | {"table": page_table_tensor, "mask": attn_mask, "sinks": attention_sink})


def _configured(
    owner: str, config: SDPAProgramConfig | None, compute: WormholeComputeKernelConfig | None
) -> dict[str, Any]:
    """What of a call its configs say."""
    if config is not None and config.max_k_splits != 1:
        raise NotSimulatedError(f"{owner}: max_k_splits is not simulated; leave it out")
    compiled = None if compute is None else compute.argument()
    said: dict[str, Any] = {"phases": 2 if compiled is None else compiled.fidelity_phases}
    said["fp32_dest"] = compiled is not None and compiled.fp32_dest
    if config is not None:
        said |= {"grid": config.compute_with_storage_grid_size, "chunk": config.k_chunk_size}
        said["within"] = config.sub_core_grids
        said["most_cores"] = config.max_cores_per_head_batch
    return said


def _optional(owner: str, mask: Tensor | None, sinks: Tensor | None, window: int | None) -> dict[str, Any]:
    """What of a call may be left out."""
    if window is not None and window < 0:
        raise wrong(f"transformer.{owner}", "sliding_window_size counts from 0")
    specs = {name: None if tensor is None else tensor.spec for name, tensor in (("mask", mask), ("sinks", sinks))}
    return specs | {"window": window or 0}


def _attended(call: DecodeArguments, tensors: Mapping[str, Tensor | None]) -> Tensor:
    """The result of a call on its tensors."""
    positions, table = tensors["indices"], tensors.get("table")

    def strict() -> None:
        if are_readable(positions, table):
            last = call.positions if positions is None else positions.values().reshape(-1).tolist()
            require_positions(call, last, None if table is None else table.values().tolist())

    return run_on_several(f"transformer.{call.owner}", plan_decode, call, tensors, strict)
