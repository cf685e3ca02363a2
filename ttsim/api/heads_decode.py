"""ttnn's functions that split and concatenate the heads of one token for each user."""

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
    """Splits the projection of one token per user into heads of queries, keys and values, with one user per core.

    Args:
        input_tensor: [1, 1, users, columns] of up to 32 users, bfloat16 or float32 in TILE layout, interleaved or in
            WIDTH shards: all queries, then all keys, then all values.
        num_heads: Heads of queries.
        num_kv_heads: Heads of keys and of values; None for ``num_heads``.
        output_tensors: Accepted as in ttnn, where it has no effect.
        overlap_qk_coregrid: False places keys on other cores than queries and values, if the tensor is sharded.
        batch_offset: The first user, as a tensor of one integer; requires a sharded tensor and ``slice_size``.
        slice_size: Number of users; None for all.
        memory_config: Its cores hold the results; None for the first cores of the device.

    Returns:
        Three tensors [1, users, heads, head size] in HEIGHT shards in L1.

    Raises:
        ArgumentError: The device is strict, and the tensor does not have the users.

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
    """Concatenates the heads of one token per user, with one head per core of the result.

    Args:
        input_tensor: [1, users, heads, head size] of up to 32 users, bfloat16 or float32 in TILE layout, in HEIGHT
            shards of one user each.
        num_heads: Number of heads to concatenate, starting with the first head.
        memory_config: Accepted as in ttnn, where it has no effect.
        output_tensor: A tensor with the spec of the result, which receives the result and is returned.
        sub_core_grids: Cores that the result may use, beginning with the tensor's first core; None for all, if the
            tensor begins on the first core.

    Returns:
        [1, 1, 32, heads * head size] in WIDTH shards in L1. As in ttnn, rows without a user are not written; they are
        zero here.

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
