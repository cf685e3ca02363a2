"""What a convolution does to its input and output around halo and micro-op.

Two paths (docs/planning.md): on the *DRAM path* the input is an image tensor [N, H, W, C] in DRAM and the output is
allocated before anything runs, then given up again when no slicing is needed; on the *L1 path* the input is sharded as
it comes. Rules: recorded runs, and tt-metal 0.81.1 on a device without kernels.
"""

from math import prod

from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, Layout, MemoryConfig, TensorMemoryLayout
from ops.builder import PlanBuilder, PlanTensor
from ops.programs.movement.placement import (
    fill,
    in_memory,
    move_up,
    padded_rows,
    sharded_spec,
    to_interleaved,
    to_shards,
    whole_shards,
)
from ops.programs.movement.reshape import flattened, reshaped
from ops.programs.movement.work import Conversion


def dram_image(
    builder: PlanBuilder, source: PlanTensor, shape: tuple[int, int, int, int], *, on_host: bool
) -> PlanTensor:
    """The input as an image tensor in DRAM; a copy is released when the call returns.

    Args:
        builder: The plan.
        source: The caller's tensor; if it is on the host, its memory config does not matter.
        shape: [N, H, W, C].
        on_host: Whether it is still on the host.
    """
    start = uploaded_image(builder, source) if on_host else source
    image = reshaped(builder, start, shape, f"{source.name}.image")
    if image.name != start.name and on_host:
        builder.free(start)
    if image.name != source.name:
        builder.adopt(image)
    return image


def uploaded_image(builder: PlanBuilder, source: PlanTensor) -> PlanTensor:
    """A host tensor in DRAM as it is."""
    return builder.upload(f"{source.name}.uploaded", in_memory(source.spec, DRAM_MEMORY_CONFIG), source.name)


def sharded_input(
    builder: PlanBuilder, source: PlanTensor, config: MemoryConfig, name: str, *, deallocate: bool
) -> PlanTensor:
    """An input on the device, flattened to rows of channels and dealt to cores.

    Args:
        builder: The plan.
        source: The input as the caller or `dram_image` left it.
        config: Where its shards go; a sharded input that lies there already is used as it is.
        name: Name of the sharded copy.
        deallocate: Conv2dConfig.deallocate_activation: an input in L1 is released once it is copied, and the copy
            moved up.
    """
    rows = reshaped(builder, source, flattened(source.spec.shape), f"{name}.rows")
    if rows.spec.memory_config == config:
        return rows
    copy = to_shards(builder, rows, config, name)
    replace_input(builder, source, rows, copy, deallocate=deallocate)
    return copy


def replace_input(
    builder: PlanBuilder, source: PlanTensor, old: PlanTensor, new: PlanTensor, *, deallocate: bool
) -> None:
    """``new``, made from ``old``, takes its place.

    A copy that the call made is released; so is the caller's tensor in L1 with ``deallocate``, and then ``new`` is
    moved up into the room that it leaves.
    """
    if deallocate and old.in_l1:
        builder.free(old)
        move_up(builder, new)
    elif old.name != source.name:
        builder.free(old)


def uploaded_rows(
    builder: PlanBuilder, source: PlanTensor, shards: MemoryConfig, place: MemoryConfig, name: str
) -> PlanTensor:
    """A host tensor padded to whole shards and uploaded.

    Tiles are uploaded to their cores as they are. Rows are padded on the host first if whole rows go to each core.
    Otherwise they are uploaded unpadded and padded on the device; or, if channels do not fill the shards, by way of
    DRAM.

    Args:
        builder: The plan.
        source: The caller's tensor, which the names of intermediates start with.
        shards: The shards to pad to.
        place: Where to: that config, or DRAM.
        name: Name of the copy.
    """
    spec, flat = source.spec, flattened(source.spec.shape)
    if spec.layout is Layout.TILE:
        padded = None if spec.shape == flat else flattened(spec.padded_shape)
        return builder.upload(name, TensorSpec(flat, spec.data_format, spec.layout, place, padded), source.name)
    whole = (1, 1, *whole_shards(shards))
    if shards.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED:
        return builder.upload(name, TensorSpec(flat, spec.data_format, spec.layout, place, whole), source.name)
    rows = TensorSpec(flat, spec.data_format, spec.layout, DRAM_MEMORY_CONFIG)
    if flat[-1] != whole[-1]:
        target = builder.allocate(name, sharded_spec(rows, shards))
        by_way = builder.upload(f"{source.name}.rows", rows, source.name)
        fill(builder, Conversion.INTERLEAVED_TO_SHARDED, by_way, target)
        builder.free(by_way)
        return target
    if flat == whole:
        return builder.upload(name, in_memory(rows, place), source.name)
    short = builder.upload(f"{name}.unpadded", in_memory(rows, place), source.name)
    return padded_rows(builder, short, whole, name)


def dram_output(builder: PlanBuilder, source: PlanTensor, name: str) -> PlanTensor:
    """The sharded output of a single slice, copied to DRAM and released."""
    copy = to_interleaved(builder, source, DRAM_MEMORY_CONFIG, name)
    builder.free(source)
    return copy


def image_output(builder: PlanBuilder, source: PlanTensor, name: str) -> PlanTensor:
    """The assembled output [N, OH, OW, O] of a sliced run as [1, 1, N*OH*OW, O]; a copy releases its source."""
    shape = source.spec.shape
    rows = reshaped(builder, source, (1, 1, prod(shape[:-1]), shape[-1]), name)
    if rows.name != source.name:
        builder.free(source)
    return rows
