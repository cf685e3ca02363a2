"""ttnn.transformer.scaled_dot_product_attention."""

from device.errors import NotSimulatedError
from device.memory.memory_config import MemoryConfig
from ops.planners.attention.sdpa import AttentionArguments, plan_attention, validate
from ttsim.api.device_calls import cached_plan, operation_as, require_left_out, required_device
from ttsim.api.eltwise import multiply
from ttsim.runtime.execution import run
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.attention import SDPAProgramConfig
from ttsim.runtime.types.call import wrong
from ttsim.runtime.types.configs import WormholeComputeKernelConfig


@operation_as("ttnn.transformer.")
def scaled_dot_product_attention(
    input_tensor_q: Tensor,
    input_tensor_k: Tensor,
    input_tensor_v: Tensor,
    *,
    attn_mask: Tensor | None = None,
    is_causal: bool = True,
    scale: float | None = None,
    sliding_window_size: int | None = None,
    memory_config: MemoryConfig | None = None,
    program_config: SDPAProgramConfig | None = None,
    compute_kernel_config: WormholeComputeKernelConfig | None = None,
    attention_sink: Tensor | None = None,
    cu_window_seqlens: Tensor | None = None,
    windowed_q_token_offset: int = 0,
    windowed_q_token_offset_tensor: Tensor | None = None,
    output_concat_heads: bool = False,
    attn_mask_block_map: Tensor | None = None,
) -> Tensor:
    """Scaled dot-product attention: ``softmax(q @ k.T * scale + mask) @ v``.

    Args:
        input_tensor_q: Queries [batch, heads, rows, size] in TILE layout, interleaved, bfloat16 or block floats.
        input_tensor_k: Keys [batch, key heads, keys, size]; key heads divide the heads of the queries.
        input_tensor_v: Values, of the shape of the keys.
        attn_mask: [1 or batch, 1 or heads, rows, keys] in DRAM, added to the scores.
        is_causal: Queries do not attend to later keys; excludes ``attn_mask``.
        scale: Factor of the scores; None for 1 / sqrt(size).
        sliding_window_size: Number of keys that a query attends to: the last keys if ``is_causal``, else half of the
            keys on either side; 0 or None for all. Excludes ``attn_mask``.
        memory_config: Memory of the result, interleaved; None for DRAM.
        program_config: Cores and chunks; None for all cores and chunks of 32. As in ttnn, its ``sub_core_grids`` have
            no effect.
        compute_kernel_config: Fidelity and width of Dst; None for HiFi2 and 16 bits.
        attention_sink: [1, heads, 1, 1] in DRAM: one more score per head, scaled like the others, without a value.
        cu_window_seqlens: Not simulated.
        windowed_q_token_offset: Accepted as in ttnn; without ``cu_window_seqlens`` it has no effect.
        windowed_q_token_offset_tensor: Accepted as in ttnn; without ``cu_window_seqlens`` it has no effect.
        output_concat_heads: Concatenate the heads along the last axis.
        attn_mask_block_map: Not simulated.

    Returns:
        [batch, heads, rows, size], or with ``output_concat_heads`` [batch, 1, rows, heads * size], of the data type of
        the queries.

    Examples:
        >>> q, k, v = (ttnn.ones((1, 2, 64, 32), layout=ttnn.TILE_LAYOUT, device=device) for _ in range(3))
        >>> ttnn.transformer.scaled_dot_product_attention(q, k, v, is_causal=False).to_numpy()[0, 0, 0, 0].item()
        1.0
    """
    owner = "scaled_dot_product_attention"
    require_left_out(owner, cu_window_seqlens=cu_window_seqlens, attn_mask_block_map=attn_mask_block_map)
    window = sliding_window_size or 0
    if min(window, windowed_q_token_offset) < 0:
        raise wrong(f"transformer.{owner}", "sliding_window_size and windowed_q_token_offset count from 0")
    config = program_config
    if config is not None and config.segmented_accumulation:
        raise NotSimulatedError(f"{owner}: segmented_accumulation is not simulated; leave it out")
    tensors = {"query": input_tensor_q, "key": input_tensor_k, "value": input_tensor_v}
    if attn_mask is not None:
        tensors["mask"] = attn_mask
    if attention_sink is not None:
        tensors["sinks"] = attention_sink
    device, *_ = [required_device(owner, tensor) for tensor in tensors.values()]
    compute = None if compute_kernel_config is None else compute_kernel_config.argument()
    call = AttentionArguments(
        query=input_tensor_q.spec,
        key=input_tensor_k.spec,
        value=input_tensor_v.spec,
        mask=None if attn_mask is None else attn_mask.spec,
        causal=is_causal,
        scale=scale,
        place=memory_config,
        grid=None if config is None else config.compute_with_storage_grid_size,  # type: ignore[arg-type]
        chunks=(32, 32) if config is None else (config.q_chunk_size, config.k_chunk_size),
        phases=2 if compute is None else compute.fidelity_phases,
        fp32_dest=compute is not None and compute.fp32_dest,
        window=window,
        sinks=None if attention_sink is None else attention_sink.spec,
        joined=output_concat_heads,
    )
    validate(call, device.spec)
    if attn_mask is not None:  # the scores that it is added to are scaled afterwards
        tensors["mask"] = multiply(attn_mask, 1.0 / call.factor)
    plan = cached_plan(plan_attention, device, call)
    with device.function(f"ttnn.transformer.{owner}"):
        return run(plan, tensors, device)["output"]
