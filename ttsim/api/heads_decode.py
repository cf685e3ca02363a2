"""ttnn's functions that split and join the heads of one token for each user."""

from device.cores import CoreRangeSet
from device.errors import ArgumentError
from device.memory.memory_config import MemoryConfig
from ops.planners.attention.heads_decode import (
    JoinDecodeArguments,
    SplitDecodeArguments,
    plan_join_decode,
    plan_split_decode,
)
from ttsim.api.device_calls import are_readable, cached_plan, operation_as, required_device
from ttsim.runtime.execution import run
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.attention import Integer

experimental = operation_as("ttnn.experimental.")


@experimental
def nlp_create_qkv_heads_decode(
    input_tensor: Tensor,
    *,
    num_heads: Integer,
    num_kv_heads: Integer | None = None,
    output_tensors: object = None,
    overlap_qk_coregrid: bool | None = True,
    batch_offset: Tensor | None = None,
    slice_size: Integer | None = None,
    memory_config: MemoryConfig | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values of one token for each user, head by head, with a user on each core.

    Args:
        input_tensor: [1, 1, users, columns] of up to 32 users, bfloat16 or float32 in TILE layout, interleaved or in
            WIDTH shards: all queries, then all keys, then all values.
        num_heads: Heads of queries.
        num_kv_heads: Heads of keys and of values; None for ``num_heads``.
        output_tensors: Accepted as in ttnn, where it changes nothing.
        overlap_qk_coregrid: False puts keys on other cores than queries and values, if the tensor is in shards.
        batch_offset: The first user, a tensor of one integer; for shards, together with ``slice_size``.
        slice_size: How many users; None for all.
        memory_config: The cores of its shards hold the results; None for all cores, from the first on.

    Returns:
        Three tensors [1, users, heads, head size] in HEIGHT shards in L1.

    Raises:
        ArgumentError: On a strict device, for users that the tensor does not have.

    Examples:
        >>> x = ttnn.zeros((1, 1, 8, 384), layout=ttnn.TILE_LAYOUT, device=device)
        >>> query, key, value = ttnn.experimental.nlp_create_qkv_heads_decode(x, num_heads=4, num_kv_heads=1)
        >>> query.shape, key.shape, value.memory_config().shard_spec.shape
        (Shape([1, 8, 4, 64]), Shape([1, 8, 1, 64]), [32, 64])
    """
    owner = "nlp_create_qkv_heads_decode"
    device, sharded = required_device(owner, input_tensor), input_tensor.spec.memory_config.is_sharded()
    if batch_offset is not None:
        required_device(owner, batch_offset)
    call = SplitDecodeArguments(
        source=input_tensor.spec,
        heads=num_heads,
        kv_heads=num_heads if num_kv_heads is None else num_kv_heads,
        apart=sharded and overlap_qk_coregrid is False,
        offset=None if batch_offset is None else batch_offset.spec,
        users=slice_size,
        place=memory_config,
    )
    plan = cached_plan(plan_split_decode, device, call)
    tensors = {"input": input_tensor}
    if batch_offset is not None and sharded:
        tensors["batch_offset"] = batch_offset
        if device.strict and are_readable(batch_offset):
            first, users = int(batch_offset.to_numpy().reshape(-1)[0]), input_tensor.spec.shape[2]
            if not 0 <= first <= users - call.count:
                raise ArgumentError(
                    f"{owner}: batch_offset {first} and slice_size {call.count} ask for users beyond the {users} of "
                    "the tensor; the real library reads beside the tensor"
                )
    with device.function(f"ttnn.experimental.{owner}"):
        results = run(plan, tensors, device)
    return results["query"], results["key"], results["value"]


@experimental
def nlp_concat_heads_decode(
    input_tensor: Tensor,
    *,
    num_heads: Integer,
    memory_config: MemoryConfig | None = None,
    output_tensor: Tensor | None = None,
    sub_core_grids: CoreRangeSet | None = None,
) -> Tensor:
    """Heads of one token for each user side by side, with a head on each core.

    Args:
        input_tensor: [1, users, heads, head size] of up to 32 users, bfloat16 or float32 in TILE layout, in HEIGHT
            shards of a user each.
        num_heads: How many heads, the first of them.
        memory_config: Accepted as in ttnn, where it changes nothing.
        output_tensor: A tensor like the result, which receives it and is returned.
        sub_core_grids: The cores that the result may take, from the tensor's first core on; None for all, if the tensor
            begins on the first core.

    Returns:
        [1, 1, 32, heads * head size] in WIDTH shards in L1. Rows of users that there are not are not written, as in
        ttnn; they are zero here.

    Examples:
        >>> cores = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(3, 0))])
        >>> shards = ttnn.MemoryConfig(
        ...     ttnn.TensorMemoryLayout.HEIGHT_SHARDED, ttnn.BufferType.L1, ttnn.ShardSpec(cores, (32, 64)))
        >>> x = ttnn.zeros((1, 4, 8, 64), layout=ttnn.TILE_LAYOUT, device=device, memory_config=shards)
        >>> ttnn.experimental.nlp_concat_heads_decode(x, num_heads=8).shape
        Shape([1, 1, 32, 512])
    """
    device = required_device("nlp_concat_heads_decode", input_tensor)
    target = None if output_tensor is None else output_tensor.spec
    call = JoinDecodeArguments(source=input_tensor.spec, heads=num_heads, within=sub_core_grids, target=target)
    plan = cached_plan(plan_join_decode, device, call)
    with device.function("ttnn.experimental.nlp_concat_heads_decode"):
        tensors = {"input": input_tensor} | ({} if output_tensor is None else {"target": output_tensor})
        return run(plan, tensors, device)["output"]
