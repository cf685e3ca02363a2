"""Moving a tensor of a convolution between host, DRAM and L1, interleaved and sharded: allocations and their order.

Rules: tt-metal 0.81.1, compared with recorded runs. Functions leave their source allocated unless they say otherwise.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import Final, NoReturn

from device.errors import DeviceError
from device.memory.layouts import TensorSpec, no_shards
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    TILE,
    BufferType,
    Layout,
    MemoryConfig,
    ShardSpec,
    TensorMemoryLayout as Scheme,
)
from device.numbers.formats import DataFormat, div_up, round_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.programs.buffer_shapes import page_alignment_bytes, row_bytes, rows_follow, shard_buffers, shard_counts
from ops.programs.data_movement.copy import Conversion, CopyTensor
from ops.programs.data_movement.copy_buffers import buffers_of_copy, move_buffers

# Which program copies a tensor, by whether source and target are sharded.
_CONVERSIONS: Final = {
    (True, True): Conversion.RESHARD,
    (True, False): Conversion.SHARDED_TO_INTERLEAVED,
    (False, True): Conversion.INTERLEAVED_TO_SHARDED,
    (False, False): Conversion.COPY,
}
# Why no program gathers shards in DRAM
GATHERED_IN_DRAM: Final = (
    "Input tensor must be in L1\ninput_tensor: its shards are in DRAM; to_memory_config copies them"
)
_SHARDED: Final = frozenset(_CONVERSIONS.values()) - {Conversion.COPY}


def flattened(shape: tuple[int, ...]) -> tuple[int, int, int, int]:
    """[1, 1, rows, C] of any shape [..., C]."""
    return 1, 1, prod(shape[:-1]), shape[-1]


def view_place(source: TensorSpec, shape: tuple[int, ...]) -> MemoryConfig:
    """The memory of a view of a tensor with another shape, whose rows of shards may have other lengths.

    A DeviceError refuses rows with their padding, or tiles of a vector or a number with theirs, that several shards
    share.
    """
    place, columns, row = source.memory_config, source.padded_shape[-1], (1, *shape)[-1]
    shards, tiled = place.shard_spec, source.layout is Layout.TILE
    if shards is not None and shards.shape[1] != columns != row and (len(shape) < 2 or not tiled):
        refuse_other_width(source.padded_shape, shape, shards)
    if shards is None or tiled or columns == row:
        return place
    return replace(place, shard_spec=shards.changed(shape=(shards.shape[0] * columns // row, row)))


def viewed(source: TensorSpec, shape: tuple[int, ...], spec: DeviceSpec) -> TensorSpec:
    """A view of the tensor with another shape; the library does not treat the padding of rows in shards as padding.

    Errors as in `view_place`, and DeviceError if rows do not fill the buffer.
    """
    place, columns, row = view_place(source, shape), source.padded_shape[-1], (1, *shape)[-1]
    tensor_spec = source.changed(shape=shape, memory_config=place)
    if place == source.memory_config and (source.layout is Layout.TILE or source.shape == source.padded_shape):
        return tensor_spec
    size, page = source.buffer(spec).size_bytes, row_bytes(tensor_spec)
    if size % page:
        raise DeviceError(
            f"For valid non-interleaved buffers page size {page} must equal buffer size {size}. For "
            "interleaved-buffers, buffer size should be divisible by the page size\n"
            f"input_tensor: rows of {columns} elements with their padding do not become rows of {row}"
        )
    return tensor_spec


def refuse_other_width(padded_shape: Sequence[int], shape: Sequence[int], shards: ShardSpec) -> NoReturn:
    """Raises DeviceError for rows of another length in shards that cut them."""
    raise DeviceError(
        "Changing the last dimension of a sharded tensor is not supported unless the shard width matches the input "
        f"last dimension. Input shape: Shape({list(padded_shape)}), New shape: Shape({list(shape)}), "
        f"Shard width: {shards.shape[1]}\ninput_tensor: give shards of whole rows"
    )


def converted(
    builder: PlanBuilder,
    conversion: Conversion,
    source: PlanTensor,
    target: TensorSpec,
    name: str,
) -> PlanTensor:
    """A program of a convolution that copies a tensor to a new memory, layout or format."""
    op, output = CopyTensor(conversion), PlanTensor(name, target)
    buffers = () if conversion is Conversion.PAD else _buffers(conversion, source, output, builder.device_spec)
    by_dataflow = conversion is not Conversion.UNTILIZE_CODEGEN
    return builder.run(op.name, op, [source], output, buffers, dataflow=by_dataflow)


def _buffers(
    conversion: Conversion, read: PlanTensor, written: PlanTensor, spec: DeviceSpec
) -> tuple[CircularBuffer, ...]:
    if conversion in _SHARDED:
        return shard_buffers(read, written, spec)
    return buffers_of_copy(conversion, read, written, spec)


def fill(builder: PlanBuilder, conversion: Conversion, source: PlanTensor, target: PlanTensor) -> None:
    """A program of a convolution that writes a tensor into another, already allocated tensor."""
    op, buffers = CopyTensor(conversion), _buffers(conversion, source, target, builder.device_spec)
    builder.run(op.name, op, [source, target], buffers=buffers, dataflow=True)


def to_interleaved(builder: PlanBuilder, source: PlanTensor, config: MemoryConfig, name: str) -> PlanTensor:
    """An interleaved copy of a sharded tensor."""
    return converted(
        builder, Conversion.SHARDED_TO_INTERLEAVED, source, source.spec.changed(memory_config=config), name
    )


def move_up(
    builder: PlanBuilder, tensor: PlanTensor, target: TensorSpec | None = None, *, freed: PlanTensor | None = None
) -> PlanTensor:
    """The tensor, reallocated at the highest free address; shards are moved with views of both buffers.

    `target` is the tensor in another memory; None for its own. `freed` is the tensor that the plan freed just before.
    """
    spec = tensor.spec if target is None else target
    views = tensor.spec.memory_config.is_sharded()
    buffers = () if views else move_buffers(tensor.spec, spec, builder.device_spec)
    moved = PlanTensor(tensor.name, spec)
    room = None if freed is None or not freed.in_l1 else freed.spec.buffer(builder.device_spec).bank_bytes
    builder.relocate(moved, CopyTensor(Conversion.MOVE, room_bytes=room), *buffers)
    return moved


def to_shards(builder: PlanBuilder, source: PlanTensor, config: MemoryConfig, name: str) -> PlanTensor:
    """A sharded copy of a tensor on the device, for a convolution.

    The copy is allocated first, then filled: by one program if the source is interleaved; if it is sharded, by one
    that redistributes the shards, or through DRAM if no such program exists. Unaligned rows are copied by a separate
    program. Only a copy of an interleaved tensor counts whole shards; redistributed shards count the existing rows.
    """
    spec, shards = source.spec, config.shard_spec
    tiled = spec.layout is Layout.TILE
    if not spec.memory_config.is_sharded():
        copy = builder.allocate(name, _in_whole_shards(spec, config))
        whole = tiled or rows_follow(spec, copy.spec.shards.shape[1], builder.device_spec)
        fill(builder, Conversion.INTERLEAVED_TO_SHARDED if whole else Conversion.COPY, source, copy)
        return copy
    padded = None
    by_width = config.memory_layout is Scheme.WIDTH_SHARDED and not tiled
    if shards is not None and by_width and shards.shape[0] == spec.matrix[0]:
        padded = (*spec.padded_shape[:-1], round_up(spec.shape[-1], shards.shape[1]))  # more than the tensor's own
    copy = builder.allocate(name, spec.changed(memory_config=config, padded_shape=padded))
    direct = resharding(spec, config, builder.device_spec)
    if direct is None and not source.in_l1:  # only shards of L1 go by way of DRAM
        direct = Conversion.COPY
    if direct is not None:
        fill(builder, direct, source, copy)
    else:
        by_way = to_interleaved(builder, source, DRAM_MEMORY_CONFIG, f"{name}.interleaved")
        fill(builder, Conversion.INTERLEAVED_TO_SHARDED, by_way, copy)
        builder.free(by_way)
    return copy


def _in_whole_shards(spec: TensorSpec, config: MemoryConfig) -> TensorSpec:
    """A tensor in shards that are whole on both axes, the last of them with padding."""
    alignment = None if config.shard_spec is None else config.shard_spec.shape
    return spec.changed(memory_config=config, alignment=alignment)


def resharding(before: TensorSpec, config: MemoryConfig, spec: DeviceSpec) -> Conversion | None:
    """The program that redistributes shards; None if they are copied through DRAM.

    Reshard moves tiles and, of HEIGHT shards that stay HEIGHT, any rows. Other rows must fill what their memories align
    in both places. Where the width changes with the scheme, and where Reshard can not, rows go by way of DRAM if they
    do, and else through a Copy; within DRAM, rows whose width changes go through a Copy.
    """
    old, new = before.memory_config.shard_spec, config.shard_spec
    if before.layout is Layout.TILE or old is None or new is None:
        return Conversion.RESHARD
    same_scheme = before.memory_config.memory_layout is config.memory_layout
    aligned = [row_bytes(before, width) % unit == 0 for _, width, unit in reshard_units(before, config, spec)]
    if {before.memory_config.buffer_type, config.buffer_type} == {BufferType.DRAM}:
        return Conversion.RESHARD if old.shape[1] == new.shape[1] else Conversion.COPY
    if old.shape[1] == new.shape[1] or same_scheme:
        by_height = same_scheme and config.memory_layout is Scheme.HEIGHT_SHARDED
        if by_height or all(aligned):
            return Conversion.RESHARD
    return None if all(aligned) else Conversion.COPY


def reshard_units(before: TensorSpec, config: MemoryConfig, spec: DeviceSpec) -> Iterator[tuple[str, int, int]]:
    """The ends of a reshard of rows: name, width of the shards, and the bytes that rows must be whole multiples of."""
    unit = page_alignment_bytes(before.memory_config, spec)
    yield "Input", before.shards.shape[1], unit
    if config.shard_spec is not None:
        to_dram = config.buffer_type is BufferType.DRAM
        yield "Output", config.shard_spec.shape[1], unit if to_dram else spec.l1.alignment_bytes


def convert(builder: PlanBuilder, source: PlanTensor, config: MemoryConfig, name: str) -> PlanTensor:
    """A tensor in another memory; the tensor itself if it already has that memory."""
    if config == source.spec.memory_config:
        return source
    result = source.spec.changed(memory_config=config)
    direct: Conversion | None = _CONVERSIONS[source.spec.memory_config.is_sharded(), config.is_sharded()]
    if direct is Conversion.RESHARD:
        direct = resharding(source.spec, config, builder.device_spec)
    if direct is not None:
        return converted(builder, direct, source, result, name)
    by_way = to_interleaved(builder, source, DRAM_MEMORY_CONFIG, f"{name}.interleaved")
    copy = converted(builder, Conversion.INTERLEAVED_TO_SHARDED, by_way, result, name)
    builder.free(by_way)
    return copy


def blocks_in_dram(*places: MemoryConfig) -> str | None:
    """Why no program copies a tensor between these memories, if one has BLOCK shards in DRAM; otherwise None."""
    if any(map(is_dram_blocks, places)):
        return "We don't support DRAM block sharding\nmemory_config: use another layout, or L1"
    return None


def dealing_refusal(tensor: TensorSpec, place: MemoryConfig, spec: DeviceSpec) -> str | None:
    """Why InterleavedToSharded does not deal a tensor to the shards of a memory; None if it does."""
    shards = place.shard_spec
    if (text := blocks_in_dram(place)) is not None:
        return text
    if shards is None or tensor.layout is Layout.TILE or rows_follow(tensor, shards.shape[1], spec):
        return None
    return (
        f"Shard page size must currently have L1 aligned page size\nrows of {shards.shape[1]} elements are no whole "
        f"multiple of {spec.l1.alignment_bytes} bytes; give wider shards"
    )


def is_dram_blocks(place: MemoryConfig) -> bool:
    """Whether a memory config has BLOCK shards in DRAM."""
    return place.memory_layout is Scheme.BLOCK_SHARDED and place.buffer_type is BufferType.DRAM


def without_spec(source: TensorSpec, config: MemoryConfig, data_format: DataFormat | None = None) -> str | None:
    """Why no program moves a tensor to a sharded memory without a shard spec, in any format; None for other memory.

    Rows are refused in another step if the library does not check the shards first: by Reshard of HEIGHT shards, and by
    Copy to another format.
    """
    if not config.is_sharded() or config.shard_spec is not None:
        return None
    by_height = {source.memory_config.memory_layout, config.memory_layout} == {Scheme.HEIGHT_SHARDED}
    copies = data_format is not None and (source.memory_config.is_sharded() or data_format != source.data_format)
    return no_shards(config, in_rows=source.layout is Layout.ROW_MAJOR and (by_height or copies))


def to_config(builder: PlanBuilder, source: PlanTensor, config: MemoryConfig, name: str) -> PlanTensor:
    """The result of a convolution in the caller's memory config; the source is released when it is copied.

    A sharded config that does not fit the output or the device is refused only when all steps before have run, as by
    the real library.
    """
    refused = without_spec(source.spec, config) or blocks_in_dram(config)
    if refused is not None:
        op = CopyTensor(_CONVERSIONS[source.spec.memory_config.is_sharded(), True])
        return builder.run(op.name, op, [source], refused=refused)
    copy = builder.attempt(lambda: convert(builder, source, config, name), source)
    if copy.name != source.name:
        builder.free(source)
    return copy


def tilized(builder: PlanBuilder, source: PlanTensor, name: str) -> PlanTensor:
    """A row-major tensor as tiles; only the padding that fills the last tiles stays.

    HEIGHT shards that do not fill their tiles are padded by separate programs, first in width, then in height. These
    share the rows evenly, unless the added rows fit the existing shards; as tiles, shards are whole.
    """
    spec = source.spec
    whole = all(side % TILE == 0 for side in spec.padded_shape[-2:])
    padded = (*spec.padded_shape[:-2], *(round_up(side, TILE) for side in spec.shape[-2:]))
    place, current = spec.memory_config, source
    if not whole and place.shard_spec is not None and place.memory_layout is Scheme.HEIGHT_SHARDED:
        current, whole = _filled_tiles(builder, source, name), True
        shard_spec = current.spec.memory_config.shard_spec or place.shard_spec
        place = replace(place, shard_spec=shard_spec.changed(shape=(round_up(shard_spec.shape[0], TILE), padded[-1])))
    tensor_spec = TensorSpec(spec.shape, spec.data_format, Layout.TILE, place, padded)
    conversion = Conversion.TILIZE if whole else Conversion.TILIZE_WITH_VAL_PADDING
    tiles = converted(builder, conversion, current, tensor_spec, name)
    if current is not source:
        builder.free(current)
    return tiles


def _filled_tiles(builder: PlanBuilder, source: PlanTensor, name: str) -> PlanTensor:
    """HEIGHT shards whose last tiles are filled; the source stays allocated."""
    current, (rows, columns) = source, source.spec.shape[-2:]
    wide = round_up(columns, TILE)
    for axis, filled in (("across", (rows, wide)), ("down", (round_up(rows, TILE), wide))):
        spec, shards = current.spec, current.spec.memory_config.shard_spec
        before = (rows, columns) if current is source else spec.matrix
        if shards is None or filled == before:
            continue
        fits = axis == "down" and shards.shape[0] * shards.num_cores() >= filled[0]
        shard_rows = shards.shape[0] if fits else div_up(filled[0], shards.num_cores())
        place = replace(spec.memory_config, shard_spec=shards.changed(shape=(shard_rows, wide)))
        tensor_spec = spec.changed(memory_config=place, padded_shape=(*spec.shape[:-2], *filled))
        copy = converted(builder, Conversion.PAD, current, tensor_spec, f"{name}.{axis}")
        if current is not source:
            builder.free(current)
        current = copy
    return current


def whole_shards(config: MemoryConfig) -> tuple[int, int]:
    """Rows and columns that all cores of a sharded config hold together."""
    if config.shard_spec is None:
        raise AssertionError("an interleaved config has no shards")
    down, across = shard_counts(config.memory_layout, config.shard_spec)
    rows, cols = config.shard_spec.shape
    return rows * down, cols * across


def uploaded_image(builder: PlanBuilder, source: PlanTensor) -> PlanTensor:
    """A host tensor in DRAM as it is."""
    return builder.upload(f"{source.name}.uploaded", source.spec.changed(memory_config=DRAM_MEMORY_CONFIG), source.name)


def replace_input(
    builder: PlanBuilder, source: PlanTensor, old: PlanTensor, new: PlanTensor, *, deallocate: bool
) -> None:
    """Replaces ``old`` by its copy ``new``.

    An ``old`` that the call created is freed. With ``deallocate`` the caller's tensor in L1 is also freed, and ``new``
    is moved up into the freed memory.
    """
    if deallocate and old.in_l1:
        builder.free(old)
        move_up(builder, new, freed=old)
    elif old.name != source.name:
        builder.free(old)


def uploaded_rows(
    builder: PlanBuilder, source: PlanTensor, shards: MemoryConfig, place: MemoryConfig, name: str
) -> PlanTensor:
    """A host tensor padded to whole shards and uploaded to `place`: the shards, or DRAM.

    Tiles are uploaded to their cores as they are. Rows are padded on the host first if whole rows go to each core.
    Otherwise they are uploaded unpadded, and the padding on the device counts as a part of the tensor; or they are
    uploaded through DRAM if channels do not fill whole shards.
    """
    spec, flat = source.spec, flattened(source.spec.shape)
    if spec.layout is Layout.TILE:
        padded = None if spec.shape == flat else flattened(spec.padded_shape)
        return builder.upload(name, spec.changed(shape=flat, memory_config=place, padded_shape=padded), source.name)
    whole = (1, 1, *whole_shards(shards))
    if shards.memory_layout is Scheme.HEIGHT_SHARDED:
        return builder.upload(name, spec.changed(shape=flat, memory_config=place, padded_shape=whole), source.name)
    rows = spec.changed(shape=flat, memory_config=DRAM_MEMORY_CONFIG)
    if shards.shard_spec is not None and flat[-1] % shards.shard_spec.shape[1]:
        target = builder.allocate(name, _in_whole_shards(rows, shards))
        by_way = builder.upload(f"{source.name}.rows", rows, source.name)
        fill(builder, Conversion.INTERLEAVED_TO_SHARDED, by_way, target)
        builder.free(by_way)
        return target
    if flat == whole:
        return builder.upload(name, rows.changed(memory_config=place), source.name)
    short = builder.upload(f"{name}.unpadded", rows.changed(memory_config=place), source.name)
    copy = converted(builder, Conversion.PAD, short, spec.changed(shape=whole, memory_config=place), name)
    builder.free(short)
    return copy
