"""Heads of BERT's fused projection: ttnn.experimental."""

from collections.abc import Sequence

from device.cores import CoreCoord
from device.memory.memory_config import MemoryConfig
from ops.planners.attention.fused_heads import NAME, FusedSplitArguments, plan_fused_split
from ttsim.api.device_calls import cached_plan, required_device
from ttsim.api.heads import Heads, experimental
from ttsim.runtime.execution import run
from ttsim.runtime.tensor import Tensor


@experimental
def split_query_key_value_and_split_heads(
    input_tensor: Tensor,
    compute_with_storage_grid_size: CoreCoord,
    *,
    memory_config: MemoryConfig | None = None,
    num_heads: int = 16,
    output_tensors: Sequence[Tensor | None] | None = None,
) -> Heads:
    """Queries, keys and values of BERT's projection, head by head.

    Args:
        input_tensor: [batch, 1, rows, columns] in TILE layout. In BLOCK shards, each image has its own row of cores,
            and each core holds two query, two key and two value heads. Interleaved, seven to nine images have 16 query
            heads of 64 columns, then 16 key heads, then 16 value heads.
        compute_with_storage_grid_size: Columns and rows of the grid that must contain the shards.
        memory_config: Memory of the results; None for that of the tensor. BLOCK shards are split into HEIGHT shards,
            whose cores and sizes follow from the tensor.
        num_heads: Heads of queries, of keys and of values.
        output_tensors: Three tensors; as in ttnn, they stay unchanged, and the results are new tensors.

    Returns:
        Queries [batch, heads, rows, head size], keys [batch, heads, head size, rows] and values of the queries' shape.

    Examples:
        >>> cores = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(1, 0))])
        >>> shards = ttnn.MemoryConfig(
        ...     ttnn.TensorMemoryLayout.BLOCK_SHARDED, ttnn.BufferType.L1, ttnn.ShardSpec(cores, (64, 192)))
        >>> x = ttnn.zeros((1, 1, 64, 384), layout=ttnn.TILE_LAYOUT, device=device, memory_config=shards)
        >>> query, key, value = ttnn.experimental.split_query_key_value_and_split_heads(
        ...     x, ttnn.CoreCoord(8, 8), num_heads=4, memory_config=ttnn.L1_HEIGHT_SHARDED_MEMORY_CONFIG)
        >>> query.shape, key.shape
        (Shape([1, 4, 64, 32]), Shape([1, 4, 32, 64]))
    """
    device = required_device(NAME, input_tensor)
    grid = compute_with_storage_grid_size
    call = FusedSplitArguments(
        source=input_tensor.spec,
        heads=num_heads,
        within=(grid.x, grid.y),
        place=memory_config,
        targets=len(output_tensors or ()),
    )
    with device.function(f"ttnn.experimental.{NAME}"):
        results = run(cached_plan(plan_fused_split, device, call), {"input": input_tensor}, device)
    return results["query"], results["key"], results["value"]
