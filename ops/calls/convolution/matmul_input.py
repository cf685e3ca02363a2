"""The input of a 1x1 convolution that runs as a matmul: it must be tiles, sharded unless the library chose the layout.

Rules: tt-metal 0.81.1 on a device without kernels, and the recorded runs of 1x1 kernels.
"""

from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, Layout, MemoryConfig, TensorMemoryLayout
from device.plan import Free
from device.spec.device_spec import DeviceSpec
from ops.calls.convolution.convolution_input import host_rows, replaced
from ops.programs.movement.placement import tilized, to_shards
from ops.programs.movement.reshape import flattened, reshaped
from ops.programs.movement.staged import Staged, owning


def matmul_input(
    source: Staged, config: MemoryConfig, device: DeviceSpec, name: str, *, deallocate: bool, shard: bool
) -> Staged:
    """An input on the device, before weights are uploaded.

    Rows that are not height sharded become tiles first; height sharded ones only after the weights (`matmul_tiles`).

    Args:
        source: The input as the caller left it.
        config: The shards it is dealt to, or would be: their scheme matters in any case.
        device: The machine.
        name: Name of the sharded copy; intermediates start with it.
        deallocate: Conv2dConfig.deallocate_activation.
        shard: Whether it is sharded at all; not if the library chose the shard layout itself.

    Returns: ``owned`` holds the copy, if one was made.
    """
    rows = reshaped(source, flattened(source.spec.shape), device, f"{name}.rows")
    if rows.spec.memory_config == config:
        return rows
    chain = current = rows
    if rows.spec.layout is Layout.ROW_MAJOR and config.memory_layout is not TensorMemoryLayout.HEIGHT_SHARDED:
        tiles = tilized(rows, device, f"{name}.tiles")
        chain = chain.followed_by(replaced(source, rows, tiles, device, deallocate=deallocate))
        current = tiles
    if shard:
        copy = to_shards(current, config, device, name)
        chain = chain.followed_by(replaced(source, current, copy, device, deallocate=deallocate))
    return chain if chain.name == source.name else owning(chain, chain.name)


def matmul_host_input(
    name: str, spec: TensorSpec, config: MemoryConfig, device: DeviceSpec, copy: str, *, shard: bool
) -> Staged:
    """An input on the host, before weights are uploaded; arguments as for `matmul_input`.

    Returns: ``owned`` holds the copy. It is sharded whenever its spec says so, which may be in spite of ``shard``.
    """
    place = config if shard else DRAM_MEMORY_CONFIG
    return owning(host_rows(name, spec, config, place, device, copy), copy)


def matmul_tiles(source: Staged, device: DeviceSpec, name: str, *, deallocate: bool) -> Staged:
    """The input as tiles, after weights were uploaded.

    Args:
        source: What `matmul_input` or `matmul_host_input` ended in, with its ``owned``.
        device: The machine.
        name: Name of the tiles, if they are made here.
        deallocate: Conv2dConfig.deallocate_activation.

    Returns: ``owned`` holds what is released after the matmul.
    """
    consumed = source.name in source.owned or (deallocate and source.in_l1)
    if source.spec.layout is Layout.TILE:
        start = Staged(name=source.name, spec=source.spec)
        return owning(start, source.name) if consumed else start
    tiles = tilized(source, device, name)
    return owning(tiles.then(Free(source.name)) if consumed else tiles, name)
