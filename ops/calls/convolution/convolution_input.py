"""What a transposed convolution does to its input and output around halo and micro-op.

Two paths (reference, section 2): on the *DRAM path* the input is an image tensor [N, H, W, C] in DRAM and the output is
allocated before anything runs, then given up again when no slicing is needed; on the *L1 path* the input is sharded as
it comes. Rules: recorded runs, and tt-metal 0.81.1 on a device without kernels.
"""

from math import prod

from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, Layout, MemoryConfig, TensorMemoryLayout
from device.plan import Allocate, Free
from device.spec.device_spec import DeviceSpec
from ops.programs.movement.placement import (
    in_memory,
    moved,
    padded_rows,
    sharded_spec,
    to_interleaved,
    to_shards,
    whole_shards,
)
from ops.programs.movement.reshape import flattened, reshaped
from ops.programs.movement.staged import Staged, allocated, in_place, owning, uploaded
from ops.programs.movement.work import Relayout


def dram_image(
    name: str, spec: TensorSpec, shape: tuple[int, int, int, int], device: DeviceSpec, *, on_host: bool
) -> Staged:
    """The input as an image tensor in DRAM.

    Args:
        name: The caller's tensor.
        spec: Its shape and format; for a host tensor the memory config does not matter.
        shape: [N, H, W, C].
        device: The machine.
        on_host: Whether it is still on the host.

    Returns: ``owned`` holds what the call must release when it returns.
    """
    start = Staged(name=name, spec=spec)
    if on_host:
        start = uploaded_image(name, spec, device)
    image = reshaped(start, shape, device, f"{name}.image")
    result = start.followed_by(image)
    if image.name == start.name:
        return result
    if on_host:
        result = result.then(Free(start.name))
    return owning(result, image.name)


def uploaded_image(name: str, spec: TensorSpec, device: DeviceSpec) -> Staged:
    """A host tensor in DRAM as it is; ``owned`` holds the copy."""
    copy = uploaded(f"{name}.uploaded", in_memory(spec, DRAM_MEMORY_CONFIG), device, name)
    return owning(copy, copy.name)


def reserved_output(name: str, spec: TensorSpec, device: DeviceSpec, *, given_up: bool) -> Staged:
    """The output in DRAM, allocated before the number of slices is known; ``given_up`` when one slice is enough."""
    reserve = Allocate(name, spec.buffer(device))
    steps = (reserve, Free(name)) if given_up else (reserve,)
    return Staged(name=name, spec=spec, steps=steps, tensors={name: spec})


def sharded_input(source: Staged, config: MemoryConfig, device: DeviceSpec, name: str, *, deallocate: bool) -> Staged:
    """An input on the device, flattened to rows of channels and dealt to cores.

    Args:
        source: The input as the caller or `dram_image` left it; its own steps are not repeated.
        config: Where its shards go; a sharded input that lies there already is used as it is.
        device: The machine.
        name: Name of the sharded copy.
        deallocate: Conv2dConfig.deallocate_activation: an input in L1 is released once it is copied, and the copy
            moved up.

    Returns: ``owned`` holds the copy, which the call must release after halo (with ``deallocate`` or on the DRAM path)
    or else when it returns; it is empty when the caller's own tensor is used.
    """
    rows = reshaped(source, flattened(source.spec.shape), device, f"{name}.rows")
    if rows.spec.memory_config == config:
        return rows
    copy = replaced(source, rows, to_shards(rows, config, device, name), device, deallocate=deallocate)
    return owning(rows.followed_by(copy), copy.name)


def replaced(source: Staged, old: Staged, new: Staged, device: DeviceSpec, *, deallocate: bool) -> Staged:
    """``new``, made from ``old``, takes its place.

    A copy that the call made is released; so is the caller's tensor in L1 with ``deallocate``, and then ``new`` is
    moved up into the room that it leaves.
    """
    if deallocate and old.in_l1:
        return new.then(Free(old.name)).followed_by(moved(new, device))
    return new if old.name == source.name else new.then(Free(old.name))


def sharded_host_input(name: str, spec: TensorSpec, config: MemoryConfig, device: DeviceSpec, copy: str) -> Staged:
    """A host tensor dealt to cores on the L1 path.

    Tiles are uploaded to their cores as they are. Rows are padded on the host first if whole rows go to each core.
    Otherwise they are uploaded unpadded and padded on the device; or, if channels do not fill the shards, by way of
    DRAM.

    Args:
        name: The caller's tensor, which the names of intermediates start with.
        spec: Its shape, format and layout.
        config: Where its shards go.
        device: The machine.
        copy: Name of the sharded tensor.

    Returns: ``owned`` holds the sharded tensor.
    """
    return owning(host_rows(name, spec, config, config, device, copy), copy)


def host_rows(
    name: str, spec: TensorSpec, shards: MemoryConfig, place: MemoryConfig, device: DeviceSpec, copy: str
) -> Staged:
    """A host tensor padded to whole shards of ``shards`` and uploaded to ``place``, which is that config or DRAM."""
    flat = flattened(spec.shape)
    if spec.layout is Layout.TILE:
        padded = None if spec.shape == flat else flattened(spec.padded_shape)
        return uploaded(copy, TensorSpec(flat, spec.data_format, spec.layout, place, padded), device, name)
    whole = (1, 1, *whole_shards(shards))
    if shards.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED:
        return uploaded(copy, TensorSpec(flat, spec.data_format, spec.layout, place, whole), device, name)
    rows = TensorSpec(flat, spec.data_format, spec.layout, DRAM_MEMORY_CONFIG)
    if flat[-1] != whole[-1]:
        target = allocated(copy, sharded_spec(rows, shards), device)
        by_way = uploaded(f"{name}.rows", rows, device, name)
        filled = in_place("InterleavedToSharded", by_way, target, Relayout())
        return target.followed_by(by_way).followed_by(filled).then(Free(by_way.name))
    if flat == whole:
        return uploaded(copy, in_memory(rows, place), device, name)
    short = uploaded(f"{copy}.unpadded", in_memory(rows, place), device, name)
    return short.followed_by(padded_rows(short, whole, device, copy))


def dram_output(source: Staged, device: DeviceSpec, name: str) -> Staged:
    """The sharded output of a single slice, copied to DRAM and released."""
    return to_interleaved(source, DRAM_MEMORY_CONFIG, device, name).then(Free(source.name))


def image_output(source: Staged, device: DeviceSpec, name: str) -> Staged:
    """The assembled output [N, OH, OW, O] of a sliced run as [1, 1, N*OH*OW, O]; a copy releases its source."""
    shape = source.spec.shape
    rows = reshaped(source, (1, 1, prod(shape[:-1]), shape[-1]), device, name)
    return rows if rows.name == source.name else rows.then(Free(source.name))
