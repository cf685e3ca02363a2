"""Plans of tilize, untilize, typecast and to_memory_config. Rules: ttnn 0.81.1, compared with recorded plans."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from math import prod
from operator import gt

from device.cores import CoreRangeSet
from device.errors import ArgumentError, DeviceError, NotSimulatedError
from device.memory.layouts import TensorSpec, no_such_axis, require_shard_spec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, TILE, Layout, MemoryConfig, ShardSpec
from device.numbers.formats import BFLOAT16, UINT8, DataFormat
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import FreeL1, PlanBuilder, PlanTensor, plan_of
from ops.programs.buffer_shapes import expected_shard_bytes, in_dram, row_bytes, rows_follow
from ops.programs.data_movement.conversions import (
    RANK,
    copied,
    rows_of,
    seen_in_four,
    tilized_by,
    typecast_by,
    unpadded_by,
    untilized_by,
)
from ops.programs.data_movement.copy import Conversion, misplaced_rows
from ops.programs.data_movement.placement import (
    GATHERED_IN_DRAM,
    blocks_in_dram,
    dealing_refusal,
    move_up,
    reshard_units,
    resharding,
    viewed,
    without_spec,
)

SHOWS_PADDING = (
    "in shards that pad them, in more than four axes, show this padding, whose numbers ttsim does not simulate; "
    "reshape the tensor to four axes"
)


def plan_tilize(
    source: TensorSpec,
    spec: DeviceSpec,
    *,
    padded_shape: tuple[int, ...] | None = None,
    pads: bool = False,
    place: MemoryConfig | None = None,
    data_format: DataFormat | None = None,
    on_one_core: bool = False,
    by_tile: bool = False,
    cores: CoreRangeSet | None = None,
    free_l1: FreeL1 | None = None,
) -> Plan:
    """Plan the rows of the tensor "input" as tiles; a ``place`` of None is the memory of the rows.

    ``cores`` are the cores that may be used; None for all. With ``by_tile`` one core tilizes tile by tile.
    """
    in_rows = source.layout is Layout.ROW_MAJOR
    narrower = in_rows and sees_narrower(source, spec)
    require_shard_spec(source.memory_config if place is None else place, in_rows=False)
    if not in_rows:
        raise DeviceError("Can only tilize row major data\ninput_tensor: it has tiles already")
    if padded_shape is not None:
        _check_padded_shape(source, padded_shape, source.memory_config if place is None else place)
    rows_of_four = viewed(source, seen_in_four(source.shape), spec) if narrower else source
    where = rows_of_four.memory_config if place is None else place
    if pads and padded_shape is None and not where.is_sharded():  # the padding of shards stays, and is rounded up
        padded_shape = TensorSpec(rows_of_four.padded_shape, source.data_format, Layout.TILE).padded_shape

    def write(builder: PlanBuilder, rows: PlanTensor) -> PlanTensor:
        if narrower:
            builder.leave_out_values(f"tilize: rows of {source.shape[-1]} {SHOWS_PADDING}")
        tiles = tilized_by(
            builder,
            PlanTensor(rows.name, rows_of_four),
            "output",
            place=where,
            data_format=data_format,
            padded_shape=padded_shape,
            whole=not pads,
            on_one_core=on_one_core,
            by_tile=by_tile,
            cores=cores,
        )
        if len(source.shape) <= RANK or (where.is_sharded() and not narrower):
            return tiles
        return PlanTensor(tiles.name, tiles.spec.changed(shape=source.shape))  # a view with no more padding than needed

    return plan_of(source, spec, write, free_l1=free_l1)


def sees_narrower(source: TensorSpec, spec: DeviceSpec) -> bool:
    """Whether the library sees rows of more than four axes without the padding of their shards.

    It merges all axes before the last three, but drops leading axes of length 1 instead, for any padding of the
    shards. A DeviceError refuses shards that such a view does not have.
    """
    ones = next((axis for axis, side in enumerate(source.shape) if side != 1), len(source.shape))
    if len(source.shape) - ones <= RANK:
        return False
    seen = viewed(source, seen_in_four(source.shape), spec)
    return seen.padded_shape[-1] != source.padded_shape[-1]


def check_rows(source: TensorSpec, spec: DeviceSpec) -> None:
    """Raises for rows of more than four axes whose shards the library sees without their padding."""
    if sees_narrower(source, spec):
        viewed(source, seen_in_four(source.shape), spec).changed(layout=Layout.TILE)  # refuses shards of no tiles
        raise NotSimulatedError(
            f"tilize: rows of {source.shape[-1]} that shards pad to {source.padded_shape[-1]}, in {len(source.shape)} "
            "axes, are not simulated; reshape the tensor to four axes"
        )


def _check_padded_shape(source: TensorSpec, padded: tuple[int, ...], place: MemoryConfig) -> None:
    """Raises DeviceError if a shape in tiles does not hold a tensor; ArgumentError if it has more axes."""
    shape, padded = seen_in_four(source.shape), seen_in_four(padded)
    rank, way_out = len(shape), "output_tensor_shape: round the last two sides up to whole tiles"
    sides = (1, *shape) if rank == 1 < len(padded) else shape
    if len(padded) > len(sides) and rank not in (2, 3):
        raise NotSimulatedError(f"output_tensor_shape: {len(padded)} axes of a tensor of {rank} are not simulated")
    if place.is_sharded() and len(padded) == rank and padded[:-2] != shape[:-2]:
        raise DeviceError(
            f"Tensor with shape Shape({list(shape)}) (Shape({list(padded)})) cannot be sharded because alignment will "
            f"have rank greater than 2!\n{way_out}, and leave the other sides"
        )
    if source.data_format == UINT8:
        return  # which is refused before its shape is looked at
    fits = len(padded) >= len(sides) and not any(map(gt, sides, padded))
    if not fits or padded[-1] % TILE or prod(padded[:-1]) % TILE:
        TensorSpec(shape, source.data_format, Layout.TILE, place)  # refuses ragged shards first
    for axis, side in enumerate(sides):
        if axis >= len(padded):
            raise DeviceError(f"{no_such_axis(axis)}\n{way_out}")
        if side > padded[axis]:
            raise DeviceError(
                f"Output tensor shape Shape({list(padded)}) must be greater than or equal to input shape "
                f"Shape({list(shape)}) in each dimension, but is smaller in dimension {axis}\n{way_out}"
            )
    if padded[-1] % TILE or prod(padded[:-1]) % TILE:
        raise DeviceError(
            f"To be tilizable output tensor shape Shape({list(padded)}) must be divisible by tile size ({TILE}, "
            f"{TILE})\n{way_out}"
        )


def plan_untilize(
    source: TensorSpec,
    spec: DeviceSpec,
    *,
    place: MemoryConfig | None = None,
    on_one_core: bool = False,
    cores: CoreRangeSet | None = None,
    free_l1: FreeL1 | None = None,
) -> Plan:
    """Plan the tiles of the tensor "input" as rows of the same shape, by ``cores`` that may be used or by all.

    Interleaved tiles lose their padding. Tiles in shards keep it: as padding of interleaved rows, and between the
    images of rows in shards.
    """
    if source.layout is Layout.ROW_MAJOR and place is not None:
        require_shard_spec(place, in_rows=True)
    write = partial(untilized_rows, place=place, name="output", on_one_core=on_one_core, cores=cores)
    return plan_of_rows(source, spec, write, free_l1)


def untilized_rows(
    builder: PlanBuilder,
    tiles: PlanTensor,
    place: MemoryConfig | None,
    name: str,
    *,
    on_one_core: bool = False,
    cores: CoreRangeSet | None = None,
) -> PlanTensor:
    """Tiles as rows of the same shape, as ttnn.untilize makes them; see `plan_untilize`."""
    source, sharded = tiles.spec, tiles.spec.memory_config.is_sharded()
    where = source.memory_config if place is None else place
    cut = source.shape != source.padded_shape and not sharded
    padded = source.padded_shape if sharded and not where.is_sharded() else None
    if cut and (source.data_format != BFLOAT16 or on_one_core or where.is_sharded() or cores is not None):
        seen = source.padded_shape
        return unpadded_by(builder, tiles, source.shape, where, name, on_one_core=on_one_core, cores=cores, seen=seen)
    rows = rows_of(source, source.shape, where, padded)
    return untilized_by(builder, tiles, rows, name, on_one_core=on_one_core, cores=cores)


def plan_of_rows(
    source: TensorSpec,
    spec: DeviceSpec,
    write: Callable[..., PlanTensor],
    free_l1: FreeL1 | None,
) -> Plan:
    """The plan of tiles as rows; raises DeviceError for a tensor of rows."""
    if source.layout is not Layout.TILE:
        sees_narrower(source, spec)  # refuses shards that a view of four axes does not have
        raise DeviceError("Can only untilize tile major data\ninput_tensor: it has rows already")
    return plan_of(source, spec, write, free_l1=free_l1)


def plan_untilize_with_unpadding(
    source: TensorSpec,
    shape: tuple[int, ...],
    spec: DeviceSpec,
    *,
    place: MemoryConfig | None = None,
    on_one_core: bool = False,
    cores: CoreRangeSet | None = None,
    free_l1: FreeL1 | None = None,
) -> Plan:
    """Plan the first rows and columns of the tiles of the tensor "input" as rows, in a shape of at least its rank.

    Axes after the tensor's are ignored. ``cores`` are the cores that may be used; None for all.
    """
    rank, way_out = len(source.shape), "output_tensor_end: give an index for each axis of the tensor"
    if len(shape) < rank:
        raise DeviceError(f"{no_such_axis(len(shape))}\n{way_out}")
    if rank > RANK and prod(shape[rank:]) != 1:
        raise DeviceError(f"Attempting to reshape between two shapes with different volumes\n{way_out}")
    shape = shape[:rank]
    where = source.memory_config if place is None else place
    if not source.memory_config.is_sharded():
        require_shard_spec(where, in_rows=False)
    write = partial(unpadded_by, shape=shape, place=where, name="output", on_one_core=on_one_core, cores=cores)
    return plan_of_rows(source, spec, write, free_l1)


def plan_typecast(
    source: TensorSpec,
    data_format: DataFormat,
    spec: DeviceSpec,
    *,
    place: MemoryConfig | None = None,
    target: TensorSpec | None = None,
    cores: CoreRangeSet | None = None,
) -> Plan:
    """Plan the tensor "input" in another format, written into the caller's tensor "target" if given.

    ``cores`` are the cores that may be used; None for all.

    Raises DeviceError for another sharding, a format without rows, or a target of another format, shape or layout.
    """
    if target is not None and target.data_format != data_format:
        raise DeviceError(
            "If both output dtype and output tensor provided dtype should match\n"
            f"output_tensor: give one of {data_format}, not of {target.data_format}"
        )

    def write(builder: PlanBuilder, read: PlanTensor, into: PlanTensor | None = None) -> PlanTensor:
        return typecast_by(builder, read, data_format, "output", place=place, into=into, cores=cores)

    return plan_of({"input": source, "target": target}, spec, write)


def plan_to_memory_config(
    source: TensorSpec,
    place: MemoryConfig,
    spec: DeviceSpec,
    *,
    data_format: DataFormat | None = None,
    target: TensorSpec | None = None,
    free_l1: FreeL1 | None = None,
) -> Plan:
    """Plan a copy of the tensor "input" in a memory, or the tensor itself, or the caller's tensor "target" there.

    Raises DeviceError for unfit shards, or a target of another shape, layout, memory or format.
    """
    if target is not None:
        if (refused := blocks_in_dram(source.memory_config, place)) is not None:
            raise DeviceError(refused)
        deals = _deals_anew(source, place, spec, data_format) and target.memory_config.is_sharded()
        deals = deals and _reshard_refusal(source, target, spec) is None  # otherwise a program copies
        there = target.memory_config if deals else place  # a program that reshards checks the target's memory
        wanted = source.data_format if data_format is None else data_format
        for text in target_refusals(source, target, there, wanted):
            raise DeviceError(f"{text}\noutput_tensor: give one like the result, or leave it out")
        if deals:
            return plan_reshard(source, there, spec, target=target)

    def write(builder: PlanBuilder, read: PlanTensor, into: PlanTensor | None = None) -> PlanTensor:
        return placed(builder, read, place, "output", data_format=data_format, into=into)

    return plan_of({"input": source, "target": target}, spec, write, free_l1=free_l1)


def target_refusals(
    source: TensorSpec, target: TensorSpec, place: MemoryConfig, data_format: DataFormat
) -> Iterator[str]:
    """The library's errors for a target of a copy to a memory and a format, in its order."""
    if target.shape != source.shape:
        shapes = list(source.shape), list(target.shape)
        yield "Input tensor shape Shape({}) does not match output tensor shape Shape({})".format(*shapes)
    if target.layout is not source.layout:
        before, after = source.layout.name, target.layout.name
        yield f"Input tensor layout (Layout::{before}) must equal output tensor layout (Layout::{after})"
    if target.memory_config != place:
        yield (
            "Mismatched output memory config. Check to see if the preallocated output tensor has a different shard "
            "spec than the one specified in the passed-in memory config."
        )
    if target.data_format != data_format:
        yield "Mismatched output dtype"


def placed(
    builder: PlanBuilder,
    source: PlanTensor,
    place: MemoryConfig,
    name: str,
    *,
    data_format: DataFormat | None = None,
    into: PlanTensor | None = None,
) -> PlanTensor:
    """A copy of a tensor in a memory; the source stays allocated. The tensor itself if it is there, in any format.

    The copy is ``into`` if given: a tensor in that memory.

    Programs that distribute shards need rows that L1 aligns, and change formats of tiles only, and those that gather
    shards need them in L1; a copy program does the rest.
    """
    source_spec, spec = source.spec, builder.device_spec
    if place == source_spec.memory_config and into is None:
        return source
    refused = without_spec(source_spec, place, data_format) or blocks_in_dram(source_spec.memory_config, place)
    if refused is not None:
        raise DeviceError(refused)
    result, current = source_spec.changed(memory_config=place, data_format=data_format), source_spec.memory_config

    def copy(conversion: Conversion, read: PlanTensor) -> PlanTensor:
        return copied(builder, conversion, read, result, name, into=into)

    if not current.is_sharded():
        deals = place.is_sharded() and _may_deal(builder, source, result)
        return copy(Conversion.INTERLEAVED_TO_SHARDED if deals else Conversion.COPY, source)
    gathers = not in_dram(source_spec) and _may_redistribute(source_spec, current.shard_spec, result.data_format, spec)
    if not place.is_sharded():
        return copy(Conversion.SHARDED_TO_INTERLEAVED if gathers else Conversion.COPY, source)
    if _deals_anew(source_spec, place, spec, data_format):
        return copy(Conversion.RESHARD, source)
    if not gathers or (data_format is not None and _stays_in_shards(source_spec, place)):
        return copy(Conversion.COPY, source)
    by_way = source_spec.changed(memory_config=DRAM_MEMORY_CONFIG, data_format=data_format)
    between = copied(builder, Conversion.SHARDED_TO_INTERLEAVED, source, by_way, f"{name}.interleaved")
    if _may_deal(builder, between, result):
        dealt = copy(Conversion.INTERLEAVED_TO_SHARDED, between)
        builder.free(between)
        return dealt
    builder.free(between)  # of no use here
    return copy(Conversion.COPY, source)


def dealt(builder: PlanBuilder, source: PlanTensor, place: MemoryConfig, name: str) -> PlanTensor:
    """An interleaved tensor in shards, by the program that deals them; raises DeviceError for others."""
    require_shard_spec(place, in_rows=source.spec.layout is Layout.ROW_MAJOR)
    result = source.spec.changed(memory_config=place)
    if (refused := dealing_refusal(source.spec, place, builder.device_spec)) is not None:
        raise DeviceError(refused)
    return copied(builder, Conversion.INTERLEAVED_TO_SHARDED, source, result, name)


def _deals_anew(source: TensorSpec, place: MemoryConfig, spec: DeviceSpec, data_format: DataFormat | None) -> bool:
    """Whether one program reshards a tensor; it cannot change the format."""
    sharded = source.memory_config.is_sharded() and place.is_sharded()
    if not sharded or data_format is not None or not _stays_in_shards(source, place):
        return False
    return resharding(source, place, spec) is Conversion.RESHARD


def _stays_in_shards(source: TensorSpec, place: MemoryConfig) -> bool:
    """Whether shards become other shards at once: rows of another width and scheme go by way of DRAM."""
    current = source.memory_config
    ends = current.shard_spec, place.shard_spec
    widths = [0 if shards is None else shards.shape[1] for shards in ends]
    alike = widths[0] == widths[1] or current.memory_layout is place.memory_layout or None in ends
    return source.layout is Layout.TILE or alike


def _may_deal(builder: PlanBuilder, source: PlanTensor, result: TensorSpec) -> bool:
    """Whether the program from interleaved memory to shards takes a tensor, and the library expects L1 to hold it."""
    spec = builder.device_spec
    if not _may_redistribute(source.spec, result.memory_config.shard_spec, result.data_format, spec):
        return False
    return expected_shard_bytes(source, PlanTensor("", result), spec) < builder.free_l1.room_bytes


def _may_redistribute(
    source: TensorSpec, shards: ShardSpec | None, output_format: DataFormat, spec: DeviceSpec
) -> bool:
    """Whether the programs between shards and interleaved memory take a tensor."""
    return source.layout is Layout.TILE or (
        source.data_format == output_format and shards is not None and rows_follow(source, shards.shape[1], spec)
    )


def plan_interleaved_to_sharded(
    source: TensorSpec, place: MemoryConfig, spec: DeviceSpec, *, data_format: DataFormat | None = None
) -> Plan:
    """Plan a sharded copy of the interleaved tensor "input"; raises DeviceError for unsupported calls."""
    result = source.changed(memory_config=place, data_format=data_format)
    require_shard_spec(place, in_rows=source.layout is Layout.ROW_MAJOR)
    refused = dealing_refusal(source, place, spec)
    if source.memory_config.is_sharded():
        refused = (
            "Input tensor memory layout must be INTERLEAVED, but got TensorMemoryLayout::"
            f"{source.memory_config.memory_layout.name}\ninput_tensor: it is sharded; reshard deals shards anew"
        )
    elif place.shard_spec is None:
        refused = "Output memory config must be sharded\noutput_memory_config: give it a ShardSpec"
    elif refused is None and source.layout is Layout.ROW_MAJOR and result.data_format != source.data_format:
        refused = "Input tensor layout must be TILE when dtype conversion is needed\noutput_dtype: leave it out"
    return _plan_of_copy(Conversion.INTERLEAVED_TO_SHARDED, source, result, spec, refused)


def plan_sharded_to_interleaved(
    source: TensorSpec, place: MemoryConfig, spec: DeviceSpec, *, data_format: DataFormat | None = None
) -> Plan:
    """Plan an interleaved copy of the sharded tensor "input"; raises DeviceError for unsupported calls."""
    shards = source.memory_config.shard_spec
    if shards is None:
        raise DeviceError("Input tensor must be sharded\ninput_tensor: it is interleaved already")
    result = source.changed(memory_config=place, data_format=data_format)
    require_shard_spec(place, in_rows=source.layout is Layout.ROW_MAJOR)
    refused = None
    if in_dram(source):
        refused = GATHERED_IN_DRAM
    elif place.is_sharded():
        refused = "Output memory config must be Interleaved\nmemory_config: reshard deals shards anew"
    elif source.layout is Layout.ROW_MAJOR and not rows_follow(source, shards.shape[1], spec):
        refused = (
            f"Shard page size must be aligned to {spec.l1.alignment_bytes}B for L1 Tensor\n"
            f"rows of {shards.shape[1]} elements are no whole multiple of that; to_memory_config copies them"
        )
    elif source.layout is Layout.ROW_MAJOR and data_format not in (None, source.data_format):
        refused = "If diff output type, tensor must be TILED\noutput_dtype: give tiles, or leave it out"
    return _plan_of_copy(Conversion.SHARDED_TO_INTERLEAVED, source, result, spec, refused)


def plan_reshard(
    source: TensorSpec, place: MemoryConfig, spec: DeviceSpec, *, target: TensorSpec | None = None
) -> Plan:
    """Plan a copy of the sharded tensor "input" in other shards; raises DeviceError for unsupported calls.

    The program writes into the tensor "target" if given, with its shards instead of those of ``place``.
    """
    place = place if target is None else target.memory_config
    result = target or source.changed(memory_config=place)
    require_shard_spec(place, in_rows=source.layout is Layout.ROW_MAJOR)
    unlike = None if target is None else next(_unlike_target(source, target), None)
    if not source.memory_config.is_sharded():
        refused: str | None = "input must be sharded\ninput_tensor: use to_memory_config"
    elif unlike is not None or not place.is_sharded():
        refused = unlike or "output must be sharded\nreshard: give shards, or use to_memory_config"
    else:
        refused = _reshard_refusal(source, result, spec)

    def write(builder: PlanBuilder, tensor: PlanTensor, into: PlanTensor | None = None) -> PlanTensor:
        return copied(builder, Conversion.RESHARD, tensor, result, "output", refused=refused, into=into)

    return plan_of({"input": source, "target": target}, spec, write)


def _unlike_target(source: TensorSpec, target: TensorSpec) -> Iterator[str]:
    """The errors of a reshard target that differs from the source, in the library's order."""
    sides = {
        "logical shape": (f"Shape({list(tensor.shape)})" for tensor in (source, target)),
        "dtype": (f"DataType::{tensor.data_format.name.upper()}" for tensor in (source, target)),
        "layout": (f"Layout::{tensor.layout.name}" for tensor in (source, target)),
    }
    for name, (before, after) in sides.items():
        if before != after:
            yield (
                f"Input tensor {name} ({before}) must equal output tensor {name} ({after})\n"
                "output_tensor: give one like the input, or leave it out"
            )


def _reshard_refusal(source: TensorSpec, result: TensorSpec, spec: DeviceSpec) -> str | None:
    """Why Reshard cannot copy between these shards; None if it can."""
    place = result.memory_config
    refused = blocks_in_dram(source.memory_config, place)
    if in_dram(source) and in_dram(result):
        refused = refused or _pages_refusal(source, result, spec)
    elif source.layout is Layout.ROW_MAJOR and resharding(source, place, spec) is not Conversion.RESHARD:
        for which, width, unit in reshard_units(source, place, spec):
            page_bytes = row_bytes(source, width)
            if page_bytes % unit:
                refused = refused or (
                    f"{which} row-major shard width {width} with data type "
                    f"DataType::{source.data_format.name.upper()} gives page size {page_bytes} bytes, which must be "
                    f"aligned to {spec.l1.alignment_bytes} bytes for reshard\ngive tiles, or wider shards"
                )
    return refused or _pages_refusal(source, result, spec)


def _pages_refusal(source: TensorSpec, result: TensorSpec, spec: DeviceSpec) -> str | None:
    """Why no program copies shards into DRAM page by page; None where it does, or where programs of L1 move them."""
    before, after = source.memory_config, result.memory_config
    alike = before.memory_layout is after.memory_layout
    if not in_dram(result) or (alike and not in_dram(source)):
        return None
    pages = [tensor.buffer(spec) for tensor in (source, result)]
    counts = [buffer.size_bytes // buffer.page_bytes for buffer in pages]
    if counts[0] == counts[1] and pages[0].page_bytes != pages[1].page_bytes:
        return (
            "Input and output tensors must have the same page size. Input page size: "
            f"{pages[0].page_bytes}, Output page size: {pages[1].page_bytes}\ngive shards of the same width, or tiles"
        )
    if counts[0] == counts[1]:
        return None
    return (
        f"Number of input ({counts[0]}) and output ({counts[1]}) pages must match\n"
        "give shards of the same width, or tiles; to_memory_config copies other rows"
    )


def require_right_rows(plan: Plan) -> None:
    """Raises ArgumentError for a plan whose Reshard misplaces parts of rows that do not fill their shards."""
    if (text := misplaced_rows(plan)) is not None:
        raise ArgumentError(f"reshard: {text}")


def plan_move(source: TensorSpec, place: MemoryConfig | None, spec: DeviceSpec) -> Plan:
    """Plan the move of the tensor "input": it is freed and reallocated at the highest free address of its memory."""
    where = source.memory_config if place is None else place
    if source.memory_config.is_sharded() and not where.is_sharded():
        raise DeviceError(
            "Expected output tensor memory config to be sharded\nmemory_config: leave it out, or give shards"
        )
    if source.memory_config.shard_spec is not None:  # a tensor keeps its shards
        where = replace(where, shard_spec=source.memory_config.shard_spec)
    return plan_of(source, spec, partial(move_up, target=source.changed(memory_config=where)))


def _plan_of_copy(
    conversion: Conversion, source: TensorSpec, result: TensorSpec, spec: DeviceSpec, refused: str | None = None
) -> Plan:
    return plan_of(
        source, spec, lambda builder, tensor: copied(builder, conversion, tensor, result, "output", refused=refused)
    )
