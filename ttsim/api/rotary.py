"""Rotary embeddings: ttnn.experimental.rotary_embedding, rotary_embedding_llama and rotate_half."""

from collections.abc import Mapping

from device.errors import DeviceError
from device.memory.memory_config import MemoryConfig
from ops.planners.attention.rotary import RotaryArguments, check_tables, plan_rotary_embedding
from ops.planners.attention.rotary_llama import RotaryLlamaArguments, plan_rotary_llama
from ops.planners.attention.rotate_half import check_columns, plan_rotate_half
from ttsim.api.device_calls import cached_plan, converted, operation_as, run_on_several
from ttsim.api.to_config import in_tiles
from ttsim.runtime.execution import require_allocated, run
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.attention import Integer
from ttsim.runtime.types.configs import WormholeComputeKernelConfig

experimental = operation_as("ttnn.experimental.")


@experimental
def rotary_embedding(
    input_tensor: Tensor,
    cos_cache: Tensor,
    sin_cache: Tensor,
    token_index: Integer | None = None,
    *,
    memory_config: MemoryConfig | None = None,
    compute_kernel_config: WormholeComputeKernelConfig | None = None,
) -> Tensor:
    """Rotary embedding: ``x * cos + rotate_half(x) * sin``.

    Args:
        input_tensor: [batch, heads, rows, columns] on the device, 32 columns or a multiple of 64; interleaved or in
            HEIGHT shards. A ROW_MAJOR tensor is tilized first.
        cos_cache: Cosines [1, 1, rows or more, columns], in any layout.
        sin_cache: Sines, of the same shape and data type.
        token_index: The row of both tables for all rows; None uses row i for row i.
        memory_config: Memory of the result; None for that of the tensor. Shards are determined by the tensor.
        compute_kernel_config: Fidelity and width of Dst; None for HiFi4 and 16 bits.

    Returns:
        A tensor of the input's data type in TILE layout, with rows rounded up to whole tiles.

    Examples:
        >>> x = ttnn.ones((1, 1, 32, 64), layout=ttnn.TILE_LAYOUT, device=device)
        >>> cosines, sines = (ttnn.full((1, 1, 32, 64), number, layout=ttnn.TILE_LAYOUT, device=device)
        ...     for number in (3.0, 2.0))
        >>> ttnn.experimental.rotary_embedding(x, cosines, sines).to_numpy()[0, 0, 0, [0, 63]].tolist()
        [1.0, 5.0]
    """
    tensors = {"input": input_tensor, "cosines": cos_cache, "sines": sin_cache}
    for tensor in tensors.values():
        require_allocated(tensor, first_line="Tensor is not allocated")
        if tensor.device() is None:
            raise DeviceError("Input tensor must be on device\ngive every tensor to the device with .to(device)")
    device = input_tensor.device()
    assert device is not None
    config = None if compute_kernel_config is None else compute_kernel_config.argument()
    named = {
        "token": token_index,
        "place": memory_config,
        "fidelity_phases": 4 if config is None else config.fidelity_phases,
        "fp32_dest": config is not None and config.fp32_dest,
    }
    check_tables(_arguments(tensors, named))
    tiled = {name: in_tiles(tensor) for name, tensor in tensors.items()}
    plan = cached_plan(plan_rotary_embedding, device, _arguments(tiled, named))
    with device.function("ttnn.experimental.rotary_embedding"):
        result = run(plan, tiled, device)["output"]
    for name in reversed(tuple(tiled)):
        del tiled[name]
    return result


def _arguments(tensors: Mapping[str, Tensor], named: Mapping[str, object]) -> RotaryArguments:
    source, cosines, sines = (tensor.spec for tensor in tensors.values())
    return RotaryArguments(source=source, cosines=cosines, sines=sines, **named)  # type: ignore[arg-type]


@experimental
def rotary_embedding_llama(
    input_tensor: Tensor,
    cos_cache: Tensor,
    sin_cache: Tensor,
    trans_mat: Tensor,
    *,
    is_decode_mode: bool = False,
    memory_config: MemoryConfig | None = None,
    compute_kernel_config: WormholeComputeKernelConfig | None = None,
) -> Tensor:
    """Rotary embedding of llama: ``x * cos + (x @ trans_mat) * sin``; the matrix rotates pairs of columns.

    Args:
        input_tensor: [batch, heads, rows, columns] of bfloat16 in TILE layout, of up to 256 columns. In decode mode
            [1, users, heads, columns], in HEIGHT shards of one user each.
        cos_cache: Cosines [1, 1 or heads, rows or more, columns]; in decode mode [1, users, 1, columns], in HEIGHT
            shards on the same cores.
        sin_cache: Sines, of the same shape.
        trans_mat: [1, 1, 32, 32], the matrix for each 32 columns; in decode mode, one such matrix on every core.
        is_decode_mode: Rows are the heads of one token per user, and each user has one row of both tables.
        memory_config: Memory of the result, interleaved or sharded like the tensor; None for that of the tensor.
        compute_kernel_config: Fidelity and width of Dst; None for HiFi4 and 16 bits.

    Returns:
        A tensor of the shape of ``input_tensor``.

    Examples:
        >>> x = ttnn.ones((1, 1, 32, 64), layout=ttnn.TILE_LAYOUT, device=device)
        >>> cosines, sines = (ttnn.full((1, 1, 32, 64), number, layout=ttnn.TILE_LAYOUT, device=device)
        ...     for number in (3.0, 2.0))
        >>> pairs = np.kron(np.eye(16), [[0, 1], [-1, 0]])[None, None].astype(np.float32)
        >>> matrix = ttnn.from_numpy(pairs, ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.experimental.rotary_embedding_llama(x, cosines, sines, matrix).to_numpy()[0, 0, 0, :2].tolist()
        [1.0, 5.0]
    """
    config = None if compute_kernel_config is None else compute_kernel_config.argument()
    tensors = {"input": input_tensor, "cos": cos_cache, "sin": sin_cache, "trans_mat": trans_mat}
    call = RotaryLlamaArguments(
        source=input_tensor.spec,
        cosines=cos_cache.spec,
        sines=sin_cache.spec,
        matrix=trans_mat.spec,
        decode=is_decode_mode,
        place=memory_config,
        fidelity_phases=4 if config is None else config.fidelity_phases,
        fp32_dest=config is not None and config.fp32_dest,
    )
    return run_on_several("experimental.rotary_embedding_llama", plan_rotary_llama, call, tensors, lambda: None)


@experimental
def rotate_half(input: Tensor, *, memory_config: MemoryConfig | None = None) -> Tensor:
    """Swaps the halves of rows and negates the new first half: ``concat(-second_half, first_half)``.

    Args:
        input: Interleaved rows of a multiple of 64 columns on the device. Rows in ROW_MAJOR layout are tilized first.
        memory_config: Interleaved memory of the result; None for that of the tensor.

    Returns:
        A tensor of the same shape and data type in TILE layout.

    Examples:
        >>> x = ttnn.Tensor(np.arange(64, dtype=np.float32)[None], ttnn.bfloat16, device, ttnn.TILE_LAYOUT)
        >>> ttnn.experimental.rotate_half(x).to_list()[0][30:34]
        [-62.0, -63.0, 0.0, 1.0]
    """
    if input.device() is None:
        raise DeviceError(
            "Input tensor must be on device. Current storage type: 0.\ngive the tensor to the device with .to(device)"
        )
    check_columns(input.spec)
    tiles, place = in_tiles(input), memory_config or input.memory_config()
    return converted("experimental.rotate_half", plan_rotate_half, tiles, place=place)
