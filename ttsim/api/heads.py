"""Splits and concatenates attention heads, and attention's softmax: ttnn.transformer, ttnn.experimental."""

from collections.abc import Sequence
from math import sqrt

from device.errors import ArgumentError, DeviceError, NotSimulatedError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, Layout, MemoryConfig
from ops.planners.attention.heads import FALCON, FALCON_HEADS, TARGETS, SplitArguments, plan_join, plan_split
from ops.planners.attention.separate_heads import SeparateArguments, plan_separate_split
from ttsim.api.device_calls import cached_plan, converted, named_targets, operation_as, required_device
from ttsim.api.eltwise import multiply
from ttsim.api.shape import unsqueeze_to_4D
from ttsim.api.softmax import DEFAULT, Config, computed_softmax
from ttsim.runtime.execution import run
from ttsim.runtime.tensor import Tensor

AXES = 4  # of scores in attention's softmax
Heads = tuple[Tensor, Tensor, Tensor]  # queries, keys and values
transformer = operation_as("ttnn.transformer.")
experimental = operation_as("ttnn.experimental.")


def _scale(head_size: int | None) -> float:
    """The factor of scores; the real library accepts 0 and computes infinities."""
    if head_size == 0:
        raise ArgumentError("attention_softmax: head_size must be at least 1, not 0; leave it out for no division")
    return 1.0 if head_size is None else 1.0 / sqrt(head_size)


@transformer
def attention_softmax(
    tensor: Tensor,
    *,
    head_size: int | None = None,
    attention_mask: Tensor | None = None,
    program_config: Config = DEFAULT,
    causal_mask: bool | None = False,
    memory_config: MemoryConfig | None = None,
) -> Tensor:
    """The softmax of scores divided by the square root of the head size, plus a mask.

    Args:
        tensor: Scores [batch, heads, rows, columns] on the device, in TILE layout.
        head_size: Columns of a head; None for no division.
        attention_mask: [batch, 1, 1 or 32, columns], added to the scores.
        program_config: Accepted as in ttnn, which uses the default.
        causal_mask: Add all 32 rows of the mask, to every 32 rows of the scores.
        memory_config: Memory of the result; None for that of the scores.

    Returns:
        A tensor of the same data type and shape; without a mask, its rank is at least 4.

    Examples:
        >>> scores = ttnn.zeros((1, 2, 32, 64), layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.transformer.attention_softmax(scores, head_size=64).to_numpy()[0, 0, 0, 0].item()
        0.015625
    """
    scale = _scale(head_size)
    if attention_mask is None:
        result = computed_softmax(
            "transformer.attention_softmax", multiply(tensor, scale), None, None, stable=True,
            place=memory_config or tensor.memory_config(),
        )  # fmt: skip
        return unsqueeze_to_4D(result) if len(result.shape) < AXES else result
    options = {"fused": True, "as_given": True, "stable": True, "scale": scale, "causal": bool(causal_mask)}
    owner = "transformer.attention_softmax"
    return computed_softmax(owner, tensor, attention_mask, None, place=memory_config, **options)


@transformer
def attention_softmax_(
    tensor: Tensor,
    *,
    head_size: int | None = None,
    attention_mask: Tensor | None = None,
    program_config: Config = DEFAULT,
    causal_mask: bool | None = False,
    memory_config: MemoryConfig | None = None,
) -> Tensor:
    """`attention_softmax`, written over the scores; a mask is required.

    Args:
        tensor: Scores [batch, heads, rows, columns] on the device, in TILE layout.
        head_size: Columns of a head; None for no division.
        attention_mask: [batch, 1, rows, columns], added to the scores.
        program_config: Accepted as in ttnn, which uses the default.
        causal_mask: Add every row of the mask to the corresponding row of the scores.
        memory_config: Accepted as in ttnn, where it has no effect.

    Returns:
        The scores themselves.

    Examples:
        >>> scores, mask = (ttnn.zeros((1, 1, 32, 64), layout=ttnn.TILE_LAYOUT, device=device) for _ in range(2))
        >>> ttnn.transformer.attention_softmax_(scores, head_size=64, attention_mask=mask).to_numpy()[0, 0, 0, 0].item()
        0.015625
    """
    if attention_mask is None:
        raise DeviceError(
            "Cannot apply divide by sqrt(head_size) using in-place version when attention_mask is not set.\n"
            "attention_mask: give one, or call ttnn.transformer.attention_softmax"
        )
    scale = _scale(head_size)
    options = {"fused": True, "as_given": True, "stable": True, "scale": scale, "causal": bool(causal_mask)}
    return computed_softmax("transformer.attention_softmax_", tensor, attention_mask, None, in_place=True, **options)


@transformer
def split_query_key_value_and_split_heads(
    input_tensor: Tensor,
    kv_input_tensor: Tensor | None = None,
    *,
    num_heads: int,
    num_kv_heads: int | None = None,
    transpose_key: bool = True,
    memory_config: MemoryConfig | None = None,
    use_falcon7b_backend: bool = False,
) -> Heads:
    """Queries, keys and values of a projection, head by head.

    Args:
        input_tensor: [batch, rows, columns] in TILE layout: all queries, then all keys, then all values; in BLOCK
            shards, the queries, the key and the value of each group of heads.
        kv_input_tensor: Keys and values, if ``input_tensor`` has only the queries.
        num_heads: Heads of queries.
        num_kv_heads: Heads of keys and of values; None for ``num_heads``.
        transpose_key: Keys are [batch, heads, head size, rows].
        memory_config: Memory of the results; None for that of the tensor. BLOCK shards are split into HEIGHT shards.
        use_falcon7b_backend: Use the program of Falcon 7B: 71 query heads, one key head and one value head of 64
            columns. Requires ``num_kv_heads``; excludes ``kv_input_tensor`` and ``transpose_key``.

    Returns:
        Three tensors [batch, heads, rows, head size].

    Examples:
        >>> x = ttnn.zeros((2, 64, 384), layout=ttnn.TILE_LAYOUT, device=device)
        >>> query, key, value = ttnn.transformer.split_query_key_value_and_split_heads(x, num_heads=4)
        >>> query.shape, key.shape
        (Shape([2, 4, 64, 32]), Shape([2, 4, 32, 64]))
    """
    heads, kv_heads = num_heads, num_heads if num_kv_heads is None else num_kv_heads
    other = None if kv_input_tensor is None else kv_input_tensor.spec
    _check_projection(input_tensor.spec, num_heads, kv_heads)
    if use_falcon7b_backend:
        whole = num_kv_heads is not None and other is None
        _check_falcon(input_tensor.spec, num_heads + 2 * kv_heads, whole=whole, transposed=transpose_key)
        program, heads, kv_heads = FALCON, FALCON_HEADS, 1  # whatever makes as many columns
    else:
        _check_split(input_tensor.spec, other, num_heads, kv_heads)
        program = "CreateQKVHeads" if input_tensor.spec.memory_config.is_sharded() else "NlpCreateHeads"
    call = SplitArguments(
        program=program,
        source=_with_a_depth(input_tensor.spec),
        other=None if other is None else _with_a_depth(other),
        heads=heads,
        kv_heads=kv_heads,
        transposed=transpose_key,
        place=memory_config,
        rows=input_tensor.spec.shape[1],
    )
    return _split("transformer.split_query_key_value_and_split_heads", call, input_tensor, kv_input_tensor)


def _with_a_depth(tensor: TensorSpec) -> TensorSpec:
    """A view of [batch, rows, columns] as [batch, 1, rows, columns], including padding."""
    batch, rows, columns = tensor.padded_shape
    return tensor.changed(shape=(batch, 1, rows, columns), padded_shape=None)


def _check_projection(tensor: TensorSpec, heads: int, kv_heads: int) -> None:
    """Raises DeviceError unless the projection is [batch, rows, columns] in TILE layout and there are heads."""
    rank = len(tensor.shape)
    if rank != 3:
        raise DeviceError(f"Invalid input tensor: expected 3 dimensions, but found {rank}.\ninput_tensor: reshape it")
    if tensor.layout is not Layout.TILE:
        raise DeviceError(
            "Invalid layout: input tensor must use TILE_LAYOUT, but found 0.\ninput_tensor: give it to ttnn.to_layout"
        )
    for name, count in (("num_heads", heads), ("num_kv_heads", kv_heads)):
        if count < 1:
            raise DeviceError(f"{name} must be greater than 0\n{name}: give 1 or more")


def _check_falcon(tensor: TensorSpec, sections: int, *, whole: bool, transposed: bool) -> None:
    """Raises DeviceError for arguments that the program of Falcon 7B does not support."""
    if not whole:
        raise DeviceError(
            "Invalid configuration: use_falcon7b_backend requires num_kv_heads to be set and no separate KV tensor.\n"
            "use_falcon7b_backend: leave it out"
        )
    if transposed:
        raise DeviceError(
            "Invalid configuration: Transpose is set to true, but this is not supported when separate num_kv_heads is "
            "used.\ntranspose_key: give False"
        )
    size, padded = tensor.shape[-1] // sections, tensor.padded_shape[-1] // sections
    if size % TILE:
        raise DeviceError(
            f"Invalid head size: {size} is not a multiple of tile size {TILE}. Update the preceding matmul to include "
            "padding in the weights.\nnum_heads, num_kv_heads: whole heads must fill the columns"
        )
    if padded != size:
        raise DeviceError(
            f"Invalid padding: Head size {size} should not have additional tile padding, but padded size is {padded}.\n"
            "num_heads, num_kv_heads: whole heads must fill the columns"
        )


def _check_split(tensor: TensorSpec, other: TensorSpec | None, heads: int, kv_heads: int) -> None:
    """Raises DeviceError for a projection that does not consist of whole heads."""
    columns, text = tensor.shape[-1], ""
    divisor = heads if other is not None else heads + 2 * kv_heads
    if other is not None:
        text = _mismatch(tensor.shape, other.shape, heads, kv_heads)
    size, padded = columns // divisor, tensor.padded_shape[-1] // divisor
    if text:
        pass
    elif size % TILE:
        text = (
            f"Invalid head size: {size}. The head size must be a multiple of the tile width ({TILE}). Please adjust "
            "the dimensions accordingly."
        )
    elif padded != size:
        text = (
            f"Padding error: Head size {size} should not include additional tile padding, but padded head size was "
            f"found to be {padded}. Ensure that no extra padding is applied."
        )
    elif other is not None and tensor.memory_config.is_sharded():
        text = (
            "Invalid operation: KV tensor should not be provided when the input tensor is sharded. Please ensure that "
            "the KV tensor is only used in non-sharded configurations."
        )
    if text:
        raise DeviceError(f"{text}\nnum_heads, num_kv_heads: whole heads must fill the columns")


def _mismatch(own: tuple[int, ...], other: tuple[int, ...], heads: int, kv_heads: int) -> str:
    """Describes a mismatch between the queries and the keys and values."""
    if len(other) > 1 and other[0] != own[0]:
        return (
            f"Dimension mismatch: KV tensor batch dimension ({other[0]}) must match Q tensor batch dimension "
            f"({own[0]})."
        )
    if len(other) > 1 and other[1] != own[1]:
        return (
            f"Dimension mismatch: KV tensor sequence length ({other[1]}) must match Q tensor sequence length "
            f"({own[1]})."
        )
    if len(other) != 3:
        raise NotSimulatedError("split_query_key_value_and_split_heads: kv_input_tensor must be [batch, rows, columns]")
    if own[2] % heads:
        return f"Query dimension ({own[2]}) must be divisible by num_heads ({heads})."
    if other[2] % (2 * kv_heads):
        return f"KV dimension ({other[2]}) must be divisible by 2 * num_kv_heads ({2 * kv_heads})."
    size = other[2] // (2 * kv_heads)
    if size != own[2] // heads:
        return f"Dimension mismatch: KV head size ({size}) must be equal to query head size ({own[2] // heads})."
    return ""


@transformer
def concatenate_heads(input_tensor: Tensor, *, memory_config: MemoryConfig | None = None) -> Tensor:
    """Concatenates heads along the last axis.

    Args:
        input_tensor: [batch, heads, rows, head size] in TILE layout, interleaved or in HEIGHT shards of whole heads.
        memory_config: Memory of the result; None for that of the tensor.

    Returns:
        [batch, rows, heads * head size].

    Examples:
        >>> x = ttnn.zeros((2, 4, 64, 32), layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.transformer.concatenate_heads(x).shape
        Shape([2, 64, 128])
    """
    return converted("transformer.concatenate_heads", plan_join, input_tensor, place=memory_config, squeezed=True)


@experimental
def nlp_concat_heads(input_tensor: Tensor, *, memory_config: MemoryConfig | None = None) -> Tensor:
    """Concatenates heads along the last axis.

    Args:
        input_tensor: [batch, heads, rows, head size] in TILE layout, interleaved or in HEIGHT shards of whole heads.
        memory_config: Memory of the result; None for that of the tensor.

    Returns:
        [batch, 1, rows, heads * head size].

    Examples:
        >>> x = ttnn.zeros((2, 4, 64, 32), layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.experimental.nlp_concat_heads(x).shape
        Shape([2, 1, 64, 128])
    """
    return converted("experimental.nlp_concat_heads", plan_join, input_tensor, place=memory_config)


@experimental
def nlp_create_qkv_heads(
    input: Tensor,
    input_kv: Tensor | None = None,
    *,
    num_heads: int,
    num_kv_heads: int | None = None,
    transpose_k_heads: bool = True,
    kv_tied: bool = False,
    memory_config: MemoryConfig | None = None,
    output_tensors: Sequence[Tensor | None] | None = None,
) -> Heads:
    """Queries, keys and values of a projection, head by head.

    Args:
        input: [batch, 1, rows, columns] in TILE layout, interleaved: all queries, then all keys, then all values.
        input_kv: Keys and values, if ``input`` has only the queries.
        num_heads: Heads of queries.
        num_kv_heads: Heads of keys and of values; None for ``num_heads``, 0 for queries alone.
        transpose_k_heads: Keys are [batch, heads, head size, rows].
        kv_tied: Keys equal values, and the tensor has them once. Its width must not also be whole heads of queries,
            keys and values.
        memory_config: Memory of the results: interleaved, or for a sharded projection shards of one head each, whose
            values are not simulated; None for that of the tensor.
        output_tensors: Three tensors that receive the results and are returned; None creates new tensors.

    Returns:
        Three tensors [batch, heads, rows, head size].

    Examples:
        >>> x = ttnn.zeros((1, 1, 32, 384), layout=ttnn.TILE_LAYOUT, device=device)
        >>> query, key, value = ttnn.experimental.nlp_create_qkv_heads(x, num_heads=4, num_kv_heads=1)
        >>> query.shape, key.shape, value.shape
        (Shape([1, 4, 32, 64]), Shape([1, 1, 64, 32]), Shape([1, 1, 32, 64]))
    """
    targets = _targets(output_tensors)
    call = SplitArguments(
        source=input.spec,
        other=None if input_kv is None else input_kv.spec,
        heads=num_heads,
        kv_heads=num_heads if num_kv_heads is None else num_kv_heads,
        transposed=transpose_k_heads,
        tied=kv_tied,
        place=memory_config,
        targets=_specs(targets),
    )
    return _split("experimental.nlp_create_qkv_heads", call, input, input_kv, targets)


@experimental
def create_qkv_heads(
    input: Tensor,
    *,
    num_heads: int,
    num_kv_heads: int | None = None,
    transpose_k_heads: bool = True,
    memory_config: MemoryConfig | None = None,
    output_tensors: Sequence[Tensor | None] | None = None,
) -> Heads:
    """Queries, keys and values of a projection in BLOCK shards, head by head.

    Args:
        input: [batch, 1, rows, columns] in TILE layout, one batch per row of cores; columns hold the queries, the key
            and the value of each group of heads.
        num_heads: Heads of queries.
        num_kv_heads: Heads of keys and of values, which is the number of groups; None for ``num_heads``.
        transpose_k_heads: Keys are [batch, heads, head size, rows].
        memory_config: HEIGHT shards, whose cores and sizes follow from the tensor.
        output_tensors: Three tensors that receive the results and are returned; None creates new tensors.

    Returns:
        Three tensors [batch, heads, rows, head size].

    Examples:
        >>> cores = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(1, 0))])
        >>> shards = ttnn.MemoryConfig(
        ...     ttnn.TensorMemoryLayout.BLOCK_SHARDED, ttnn.BufferType.L1, ttnn.ShardSpec(cores, (32, 96)))
        >>> x = ttnn.zeros((1, 1, 32, 192), layout=ttnn.TILE_LAYOUT, device=device, memory_config=shards)
        >>> place = ttnn.L1_HEIGHT_SHARDED_MEMORY_CONFIG
        >>> ttnn.experimental.create_qkv_heads(x, num_heads=2, memory_config=place)[0].shape
        Shape([1, 2, 32, 32])
    """
    targets = _targets(output_tensors)
    call = SplitArguments(
        program="CreateQKVHeads",
        source=input.spec,
        heads=num_heads,
        kv_heads=num_heads if num_kv_heads is None else num_kv_heads,
        transposed=transpose_k_heads,
        place=memory_config,
        targets=_specs(targets),
    )
    return _split("experimental.create_qkv_heads", call, input, None, targets)


@experimental
def create_qkv_heads_from_separate_tensors(
    input: Tensor,
    input_kv: Tensor,
    *,
    num_heads: int,
    num_kv_heads: int | None = None,
    transpose_k_heads: bool = True,
    memory_config: MemoryConfig | None = None,
    output_tensors: Sequence[Tensor | None] | None = None,
) -> Heads:
    """Splits queries in BLOCK shards, and keys and values in the BLOCK shards of another tensor, into heads.

    Args:
        input: Queries [batch, 1, rows, columns] in TILE layout, one batch per row of cores.
        input_kv: [batch, 1, other rows, columns] on the same cores; columns hold the key and the value of each head.
        num_heads: Heads of queries.
        num_kv_heads: Heads of keys and of values; None for ``num_heads``.
        transpose_k_heads: Keys are [batch, heads, head size, rows].
        memory_config: HEIGHT shards, whose cores and sizes follow from ``input``.
        output_tensors: Three tensors that receive the results and are returned; None creates new tensors.

    Returns:
        Three tensors [batch, heads, rows, head size].

    Examples:
        >>> cores = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(1, 0))])
        >>> x, other = (ttnn.zeros((1, 1, rows, columns), layout=ttnn.TILE_LAYOUT, device=device,
        ...     memory_config=ttnn.MemoryConfig(ttnn.TensorMemoryLayout.BLOCK_SHARDED, ttnn.BufferType.L1,
        ...     ttnn.ShardSpec(cores, (rows, columns // 2)))) for rows, columns in ((64, 64), (32, 128)))
        >>> place = ttnn.L1_HEIGHT_SHARDED_MEMORY_CONFIG
        >>> heads = ttnn.experimental.create_qkv_heads_from_separate_tensors(x, other, num_heads=2, memory_config=place)
        >>> [tensor.shape for tensor in heads]
        [Shape([1, 2, 64, 32]), Shape([1, 2, 32, 32]), Shape([1, 2, 32, 32])]
    """
    owner = "create_qkv_heads_from_separate_tensors"
    targets = _targets(output_tensors)
    device, _ = required_device(owner, input), required_device(owner, input_kv)
    call = SeparateArguments(
        source=input.spec,
        other=input_kv.spec,
        heads=num_heads,
        kv_heads=num_heads if num_kv_heads is None else num_kv_heads,
        transposed=transpose_k_heads,
        place=memory_config,
        targets=_specs(targets),
    )
    plan = cached_plan(plan_separate_split, device, call)
    with device.function(f"ttnn.experimental.{owner}"):
        results = run(plan, {"input": input, "kv": input_kv, **named_targets(TARGETS, targets)}, device)
    return results["query"], results["key"], results["value"]


@experimental
def nlp_create_qkv_heads_segformer(
    input: Tensor, *, memory_config: MemoryConfig | None = None, output_tensors: Sequence[Tensor | None] | None = None
) -> Heads:
    """Splits a tensor into heads of 32 columns; as in ttnn, the second and third result are never written.

    Args:
        input: [batch, 1, rows, columns] in TILE layout, interleaved.
        memory_config: Memory of the results, interleaved; None for that of the tensor.
        output_tensors: Three tensors that receive the results and are returned; None creates new tensors.

    Returns:
        Three tensors [batch, columns / 32, rows, 32]; the first has the heads.

    Examples:
        >>> x = ttnn.zeros((1, 1, 64, 128), layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.experimental.nlp_create_qkv_heads_segformer(x)[0].shape
        Shape([1, 4, 64, 32])
    """
    targets = _targets(output_tensors)
    specs, program = _specs(targets), "NlpCreateHeadsSegformer"
    call = SplitArguments(program=program, source=input.spec, place=memory_config, targets=specs)
    return _split("experimental.nlp_create_qkv_heads_segformer", call, input, None, targets)


@experimental
def nlp_create_qkv_heads_vit(
    input: Tensor, *, memory_config: MemoryConfig | None = None, output_tensors: Sequence[Tensor | None] | None = None
) -> Heads:
    """Queries, keys and values of ViT: 12 heads of 64 columns each.

    Args:
        input: [batch, 1, rows, 2304] in TILE layout, interleaved: all queries, then all keys, then all values.
        memory_config: Memory of the results, interleaved; None for that of the tensor.
        output_tensors: Three tensors that receive the results and are returned; None creates new tensors.

    Returns:
        Three tensors [batch, 12, rows, 64].

    Examples:
        >>> x = ttnn.zeros((1, 1, 32, 2304), layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.experimental.nlp_create_qkv_heads_vit(x)[0].shape
        Shape([1, 12, 32, 64])
    """
    targets = _targets(output_tensors)
    call = SplitArguments(
        program="NlpCreateHeadsVit",
        source=input.spec,
        heads=12,
        kv_heads=12,
        place=memory_config,
        targets=_specs(targets),
    )
    return _split("experimental.nlp_create_qkv_heads_vit", call, input, None, targets)


def _targets(output_tensors: object) -> tuple[Tensor, ...]:
    """The caller's tensors for the results; as in ttnn, they are used only if there are exactly three."""
    if not isinstance(output_tensors, list | tuple) or len(output_tensors) != len(TARGETS):
        return ()
    if any(tensor is None for tensor in output_tensors):
        raise DeviceError("bad optional access\noutput_tensors: give three tensors, or none")
    return tuple(output_tensors)


def _specs(targets: tuple[Tensor, ...]) -> tuple[TensorSpec, ...]:
    return tuple(tensor.spec for tensor in targets)


def _split(
    owner: str, call: SplitArguments, tensor: Tensor, other: Tensor | None = None, targets: tuple[Tensor, ...] = ()
) -> Heads:
    short = owner.rpartition(".")[2]
    device = required_device(short, tensor)
    if other is not None:
        required_device(short, other)
    plan = cached_plan(plan_split, device, call)
    tensors = {"input": tensor, **({} if other is None else {"kv": other}), **named_targets(TARGETS, targets)}
    with device.function(f"ttnn.{owner}"):
        results = run(plan, tensors, device)
    return results["query"], results["key"], results["value"]
