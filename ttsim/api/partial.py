"""ttnn's functions that copy one of several equal slices of a tensor to shards, or shards to a slice."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated

from device.cores import CoreRangeSet
from device.errors import DeviceError
from device.memory.memory_config import MemoryConfig, ShardOrientation, TensorMemoryLayout
from ops.planners.copies import require_floats
from ops.planners.partial import plan_interleaved_to_sharded_partial, plan_sharded_to_interleaved_partial
from ttsim.api.device_calls import cached_plan, converted, format_of, operation, required_device
from ttsim.runtime.execution import run
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.call import integers
from ttsim.runtime.types.norm_configs import GridSize
from ttsim.runtime.types.tensors import DataType


@operation
def interleaved_to_sharded_partial(
    input_tensor: Tensor,
    grid: GridSize | CoreRangeSet,
    shard_shape: Annotated[Sequence[int], integers(2)],
    num_slices: int,
    slice_index: int,
    shard_scheme: TensorMemoryLayout,
    shard_orientation: ShardOrientation,
    *,
    output_dtype: DataType | None = None,
) -> Tensor:
    """Copies one of several equal slices of an interleaved tensor to shards.

    Args:
        input_tensor: An interleaved tensor on the device, of four axes and in TILE layout.
        grid: (columns, rows) of a grid at (0, 0), whose first cores hold the shards; not a CoreRangeSet.
        shard_shape: Rows and columns of a shard, in elements.
        num_slices: Number of slices of the rows of all images, including padding.
        slice_index: Index of the slice, from 0.
        shard_scheme: HEIGHT_, WIDTH_ or BLOCK_SHARDED.
        shard_orientation: Whether shards are assigned along rows or columns of cores.
        output_dtype: Data type of the result; None for that of the tensor.

    Returns:
        The slice in L1, of shape [1, 1, rows, columns] including padding.

    Raises:
        ArgumentError: The device is strict, and the real library would copy bits without a conversion.
        NotSimulatedError: The slice does not consist of whole tiles, or the tensor does not have four axes.

    Examples:
        >>> tensor = ttnn.zeros((1, 1, 128, 32), layout=ttnn.TILE_LAYOUT, device=device)
        >>> by_height, by_rows = ttnn.TensorMemoryLayout.HEIGHT_SHARDED, ttnn.ShardOrientation.ROW_MAJOR
        >>> ttnn.interleaved_to_sharded_partial(tensor, (8, 1), (32, 32), 2, 0, by_height, by_rows).shape
        Shape([1, 1, 64, 32])
    """
    owner, planner = "interleaved_to_sharded_partial", plan_interleaved_to_sharded_partial
    if isinstance(grid, CoreRangeSet):
        raise DeviceError(
            "Unsupported type for grid. CoreRangeSet not supported. Switch to a different type.\n"
            f"{owner}: give columns and rows of cores"
        )
    dealt = (grid, tuple(shard_shape), (num_slices, slice_index), shard_scheme, shard_orientation)
    strict = partial(require_floats, owner)
    return converted(owner, planner, input_tensor, *dealt, strict=strict, data_format=format_of(output_dtype))


@operation
def sharded_to_interleaved_partial(
    input_tensor: Tensor,
    cache_tensor: Tensor,
    num_slices: int,
    slice_index: int,
    *,
    memory_config: MemoryConfig | None = None,
    output_dtype: DataType | None = None,
) -> Tensor:
    """Writes a sharded tensor into one of several equal slices of another tensor.

    Args:
        input_tensor: A sharded tensor on the device, in TILE layout.
        cache_tensor: The tensor to write, in TILE layout, with ``num_slices`` times the rows of ``input_tensor``.
        num_slices: Number of slices of the rows of all images of ``cache_tensor``, including padding.
        slice_index: Index of the slice, from 0.
        memory_config: Accepted as in ttnn; ``cache_tensor`` stays where it is.
        output_dtype: Accepted as in ttnn; ``cache_tensor`` keeps its data type.

    Returns:
        ``cache_tensor``.

    Raises:
        ArgumentError: The device is strict, and the real library would copy bits without a conversion.
        NotSimulatedError: The slice has another size than ``input_tensor``.

    Examples:
        >>> whole = ttnn.zeros((1, 1, 128, 32), layout=ttnn.TILE_LAYOUT, device=device)
        >>> place = ttnn.create_sharded_memory_config((64, 32), ttnn.CoreGrid(y=1, x=2), ttnn.ShardStrategy.HEIGHT)
        >>> ones = ttnn.ones((1, 1, 64, 32), layout=ttnn.TILE_LAYOUT, device=device, memory_config=place)
        >>> ttnn.sharded_to_interleaved_partial(ones, whole, 2, 1).to_numpy()[0, 0, 62:66, 0].tolist()
        [0.0, 0.0, 1.0, 1.0]
    """
    owner = "sharded_to_interleaved_partial"
    device = required_device(owner, input_tensor)
    required_device(owner, cache_tensor)
    slices = (num_slices, slice_index)
    plan = cached_plan(plan_sharded_to_interleaved_partial, device, input_tensor.spec, cache_tensor.spec, slices)
    if device.strict:
        require_floats(owner, plan)
    with device.function(f"ttnn.{owner}"):
        return run(plan, {"input": input_tensor, "target": cache_tensor}, device)["output"]
