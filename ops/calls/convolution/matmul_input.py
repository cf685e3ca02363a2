"""The input of a 1x1 convolution that runs as a matmul: it must be tiles, sharded unless the library chose the layout.

Rules: tt-metal 0.81.1 on a device without kernels, and the recorded runs of 1x1 kernels.
"""

from device.memory.memory_config import Layout, MemoryConfig, TensorMemoryLayout
from ops.builder import PlanBuilder, PlanTensor
from ops.calls.convolution.convolution_input import replace_input
from ops.programs.movement.placement import tilized, to_shards
from ops.programs.movement.reshape import flattened, reshaped


def matmul_input(
    builder: PlanBuilder, source: PlanTensor, config: MemoryConfig, name: str, *, deallocate: bool, shard: bool
) -> PlanTensor:
    """An input on the device, before weights are uploaded.

    Rows that are not height sharded become tiles first; height sharded ones only after the weights (`matmul_tiles`).

    Args:
        builder: The plan.
        source: The input as the caller left it.
        config: The shards it is dealt to, or would be: their scheme matters in any case.
        name: Name of the sharded copy; intermediates start with it.
        deallocate: Conv2dConfig.deallocate_activation.
        shard: Whether it is sharded at all; not if the library chose the shard layout itself.

    Returns:
        The source, or a copy of the plan's own.
    """
    current = reshaped(builder, source, flattened(source.spec.shape), f"{name}.rows")
    if current.spec.memory_config == config:
        return current
    if current.spec.layout is Layout.ROW_MAJOR and config.memory_layout is not TensorMemoryLayout.HEIGHT_SHARDED:
        tiles = tilized(builder, current, f"{name}.tiles")
        replace_input(builder, source, current, tiles, deallocate=deallocate)
        current = tiles
    if shard:
        copy = to_shards(builder, current, config, name)
        replace_input(builder, source, current, copy, deallocate=deallocate)
        current = copy
    return current


def matmul_tiles(builder: PlanBuilder, source: PlanTensor, name: str, *, consumed: bool) -> PlanTensor:
    """The input as tiles, after weights were uploaded.

    Args:
        builder: The plan.
        source: The input so far.
        name: Name of the tiles, if they are made here.
        consumed: Whether the input so far is released once there are tiles of it.
    """
    if source.spec.layout is Layout.TILE:
        return source
    tiles = tilized(builder, source, name)
    if consumed:
        builder.free(source)
    return tiles
