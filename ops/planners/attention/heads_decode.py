"""Plans that split and join heads of one token per user. Rules: ttnn 0.81.1, compared with its plans."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from device.cores import CoreCoord, CoreRangeSet, cores_from, first_cores
from device.errors import DeviceError, NotSimulatedError
from device.memory.layouts import TensorSpec, side
from device.memory.memory_config import (
    TILE,
    BufferType,
    Layout,
    MemoryConfig,
    ShardOrientation,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import BFLOAT16, FLOAT32, round_up
from device.plan import CircularBuffer, Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.planners.attention.heads import require_rank
from ops.programs.attention.heads_decode import HALF_ROW, JoinDecodeHeads, SplitDecodeHeads
from ops.programs.buffer_shapes import (
    beyond_shards,
    borrowing_refusal,
    buffer,
    in_dram,
    page_alignment_bytes,
    shard_view,
    tile_buffer,
)

MOST_USERS = 32
FORMATS = (FLOAT32, BFLOAT16)
SPLIT_HINT = "nlp_create_qkv_heads_decode: give [1, 1, users, columns] of bfloat16 or float32 in TILE layout"
WAY_OUT = "output_tensor: give one in the shards of the result"
JOIN_HINT = "nlp_concat_heads_decode: give [1, users, heads, head size] in HEIGHT shards of a user each"


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitDecodeArguments:
    """A call that splits heads."""

    source: TensorSpec  # [1, 1, users, columns], "input"
    heads: int
    kv_heads: int
    apart: bool = False  # Keys are on other cores than queries and values
    offset: TensorSpec | None = None  # The first user, "batch_offset"
    users: int | None = None  # How many users; None for all
    place: MemoryConfig | None = None  # Its cores count

    @property
    def count(self) -> int:
        """Users of the results."""
        return side(self.source.shape, 2) if self.users is None else self.users


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinDecodeArguments:
    """A call that joins heads."""

    source: TensorSpec  # [1, users, heads, head size], "input"
    heads: int
    within: CoreRangeSet | None = None  # Cores that the result may take; None for all, from the first on
    target: TensorSpec | None = None  # The caller's tensor "target" for the result


def plan_split_decode(call: SplitDecodeArguments, spec: DeviceSpec) -> Plan:
    """Plan queries, keys and values ("query", "key", "value") of "input"; raises DeviceError."""
    source, parts = call.source, call.heads + 2 * call.kv_heads
    if parts < 1:
        raise NotSimulatedError(f"{SPLIT_HINT}; ttsim does not simulate calls without heads")
    columns = side(source.padded_shape, 3)
    if columns % parts:
        text = f"Input shape {columns} must be divisible by num_heads + 2*num_kv_heads = {parts}"
        raise DeviceError(f"{text}\n{SPLIT_HINT}")
    specs = _split_results(call, columns // parts, spec)
    for result in specs:
        result.require_on(spec)
    for text in _split_refusals(call, columns // parts):
        raise DeviceError(f"{text}\n{SPLIT_HINT}")
    require_rank(source)
    op = SplitDecodeHeads(users=call.count, heads=call.heads, kv_heads=call.kv_heads)
    sharded = source.memory_config.is_sharded()
    offset = call.offset if sharded else None
    builder = PlanBuilder(spec, {"input": source, "batch_offset": offset})
    if sharded and in_dram(source):
        builder.leave_out_values("nlp_create_qkv_heads_decode: shards are read out of L1; give shards there")
    if call.count > source.shape[2]:
        builder.leave_out_values(f"nlp_create_qkv_heads_decode: slice_size asks for more users than {source.shape[2]}")
    reads = [builder.tensor("input")] + ([] if offset is None else [builder.tensor("batch_offset")])
    results = [PlanTensor(name, tensor) for name, tensor in zip(("query", "key", "value"), specs, strict=True)]
    refused = next(_core_refusals(call, specs[0]), None)
    builder.run(
        "NLPCreateQKVHeadsDecodeDeviceOperation", op, reads, results[0], _split_buffers(call, results, spec),
        more_outputs=results[1:], dataflow=True, refused=refused and f"{refused}\n{SPLIT_HINT}",
    )  # fmt: skip
    return builder.finish({tensor.name: tensor for tensor in results})


def _split_results(call: SplitDecodeArguments, size: int, spec: DeviceSpec) -> list[TensorSpec]:
    """The three results; raises DeviceError for too few cores, and for shards that cannot hold them."""
    shards = None if call.place is None else call.place.shard_spec
    grid = first_cores(spec.grid.cores, spec.grid.cols, spec.grid.rows) if shards is None else shards.grid
    start, count = grid.ranges[0].start, call.count
    queries = keys = cores_from(start, count, grid)
    if call.apart:
        keys = cores_from(cores_from(start, count + 1, grid).ranges[-1].end, count, grid)
    results = []
    for heads, cores in ((call.heads, queries), (call.kv_heads, keys), (call.kv_heads, queries)):
        if not heads or not size:
            rows = round_up(heads, TILE)
            text = f"Shard shape must be greater than 0 in each sharded dim, got [{rows}, {size}]"
            raise DeviceError(f"{text}\n{SPLIT_HINT}")
        place = MemoryConfig(
            TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, ShardSpec(cores, (round_up(heads, TILE), size))
        )
        shape = (call.source.shape[0], count, heads, size)
        results.append(TensorSpec(shape, call.source.data_format, call.source.layout, place))
    return results


def _split_refusals(call: SplitDecodeArguments, size: int) -> Iterator[str]:
    """The refusals of the device operation, in its order."""
    source, shards = call.source, call.source.memory_config.shard_spec
    unsupported = f"Unsupported input shape = Shape({list(source.shape)})"
    if source.data_format not in FORMATS:
        yield "Unsupported data format"
    if source.layout is not Layout.TILE:
        yield "Only tile layout is supported for input tensor"
    if side(source.shape, 3) % TILE or source.shape[2] > MOST_USERS or source.shape[:2] != (1, 1):
        yield unsupported
    if shards is not None:
        layout = source.memory_config.memory_layout
        if layout is not TensorMemoryLayout.WIDTH_SHARDED:
            yield f"Current input memory layout is TensorMemoryLayout::{layout.name}. It must be width sharded"
        if shards.orientation is not ShardOrientation.ROW_MAJOR:
            yield "Shard orientation must be ROW_MAJOR"
        if call.apart and size % shards.shape[1]:
            yield "We don't support partial heads in shards when q and k heads are not overlapping coregrid"
        if (call.offset is None) != (call.users is None):
            yield "Both batch_offset and slice_size must be provided or neither"
        if call.offset is not None and call.offset.shape[0] != 1:
            yield "batch_offset must be unary tensor"
    if call.heads < call.kv_heads:
        yield f"num_q_heads={call.heads} must be greater than or equal to num_kv_heads={call.kv_heads}"
    if shards is None and call.place is not None and call.place.shard_spec is not None:
        cores = call.place.shard_spec.num_cores()  # which must hold all users, not a slice of them
        if cores < side(source.shape, 2):
            yield f"Grid Size is {cores}. Need at least {MOST_USERS} cores for decode"


def _core_refusals(call: SplitDecodeArguments, query: TensorSpec) -> Iterator[str]:
    """The errors of kernels that number cores from the first core, if results are on other cores."""
    shards, cores = call.source.memory_config.shard_spec, query.shards.grid
    if shards is not None and (len(shards.grid.ranges) > 1 or shards.grid.ranges[0].start != CoreCoord(0, 0)):
        return
    name, values = ("reader", "runtime_arg_values") if shards is None else ("q_reader", "runtime_varargs")
    box = cores.bounding_box()
    counted = first_cores(cores.num_cores(), box.end.x + 1, box.end.y + 1)
    for core in counted.cores():
        if not cores.contains(core):
            yield f"Kernel '{name}' is setting {values} for node {core}, but the kernel does not run on that node."


def _split_buffers(
    call: SplitDecodeArguments, results: list[PlanTensor], spec: DeviceSpec
) -> tuple[CircularBuffer, ...]:
    """The results, on sorted cores; for shards a tile for the first user, else room to align half rows of tiles in."""
    cores_of = (CoreRangeSet(set(tensor.spec.shards.grid.ranges)) for tensor in results)
    views = tuple(shard_view(tensor.name, tensor, spec, cores) for tensor, cores in zip(results, cores_of, strict=True))
    source, place = call.source, call.source.memory_config
    if place.is_sharded():
        cores = views[0].cores.union(views[1].cores)
        first = () if call.offset is None else (tile_buffer("batch_offset", 1, call.offset.data_format, cores),)
        return (*first, *views)
    unit, half_row = page_alignment_bytes(place, spec), HALF_ROW * (source.data_format.element_bytes or 0)
    if not half_row % unit:
        return views
    room = unit * (results[0].spec.shape[3] // TILE + 1)
    return (*views, *(buffer(name, room, source.data_format, views[0].cores) for name in ("left", "right")))


def plan_join_decode(call: JoinDecodeArguments, spec: DeviceSpec) -> Plan:
    """Plan the heads of "input" side by side, or in the caller's target; raises DeviceError."""
    source, target = call.source, call.target
    result = target or _joined(call, spec)
    result.require_on(spec)
    for text in _join_refusals(call):
        raise DeviceError(f"{text}\n{JOIN_HINT}")
    require_rank(source)
    if result.memory_config.shard_spec is None:
        raise DeviceError(f"bad optional access\n{WAY_OUT}")
    refused = None if target is None else _misplaced(call, target, spec)
    op = JoinDecodeHeads(heads=call.heads)

    def write(builder: PlanBuilder, tensor: PlanTensor, into: PlanTensor | None = None) -> PlanTensor:
        if refused is None and into is not None and not _holds(call, into.spec):
            builder.leave_out_values(
                "nlp_concat_heads_decode: output_tensor is not like the result, of shape "
                f"{list(_joined_shape(call))} in row-major WIDTH shards of a head each in L1; give one like this"
            )
        if in_dram(source):
            builder.leave_out_values("nlp_concat_heads_decode: shards are read out of L1; give shards there")
        if call.heads > source.shape[2]:
            builder.leave_out_values(f"nlp_concat_heads_decode: the tensor has {source.shape[2]} heads and padding")
        output = PlanTensor("output", result)
        buffers = (shard_view("output", output, spec),)
        name = "NLPConcatHeadsDecodeDeviceOperation"
        made = builder.run(name, op, [tensor], output, buffers, dataflow=True, refused=refused)
        return made if into is None else builder.written_into(made, into)

    return plan_of({"input": source, "target": target}, spec, write)


def _misplaced(call: JoinDecodeArguments, target: TensorSpec, spec: DeviceSpec) -> str | None:
    """The refusal of a target's shards; a call on chosen cores (`_on_some_cores`) uses the target's cores."""
    shards = target.shards
    cores, tile_bytes = shards.grid, call.source.data_format.tile_bytes
    tiles, size = prod(shards.shape) // TILE**2, target.buffer(spec).bank_bytes
    if not tiles:
        return (
            f"DataflowBufferSpec 'q_out' has num_entries = 0. num_entries must be set to a non-zero value.\n{WAY_OUT}"
        )
    if borrowed := borrowing_refusal([("q_out", "output", PlanTensor("output_tensor", target))]):
        return borrowed
    for text in beyond_shards("q_out", tile_bytes, tiles, "output", size):
        return f"{text}\n{WAY_OUT}"
    for number in range(0 if _on_some_cores(call) else min(cores.num_cores(), call.heads)):
        y, x = divmod(number, cores.bounding_box().end.x + 1)
        if not cores.contains(CoreCoord(x, y)):
            return (
                f"Kernel 'reader' is setting runtime_varargs for node {x}-{y}, but the kernel does not run on that "
                f"node.\n{WAY_OUT}"
            )
    return None


def _joined(call: JoinDecodeArguments, spec: DeviceSpec) -> TensorSpec:
    """The result; raises DeviceError for too few cores, and for shards that cannot hold it."""
    shards, grid = call.source.memory_config.shard_spec, spec.grid
    if _on_some_cores(call) and shards is not None:
        if call.within is None:
            raise DeviceError(f"bad optional access\n{JOIN_HINT}, and sub_core_grids where its cores are not the first")
        if not call.heads:
            raise DeviceError("Target number of cores must be greater than 0\nnum_heads: give 1 or more")
        cores = cores_from(shards.grid.ranges[0].start, call.heads, call.within)
    elif not call.heads:
        raise DeviceError("Cannot get bounding_box of an empty CoreRangeSet!\nnum_heads: give 1 or more")
    elif call.heads > grid.cores:
        text = f"Target number of cores {call.heads} is greater than total number of available cores {grid.cores}"
        raise DeviceError(f"{text}\n{JOIN_HINT}")
    else:
        cores = first_cores(call.heads, grid.cols, grid.rows)
    return TensorSpec(_joined_shape(call), call.source.data_format, Layout.TILE, _joined_place(call, cores))


def _joined_shape(call: JoinDecodeArguments) -> tuple[int, ...]:
    """Shape of the result."""
    first, users, size = (side(call.source.padded_shape, axis) for axis in (0, 1, 3))
    return first, 1, max(users, MOST_USERS), call.heads * size


def _joined_place(call: JoinDecodeArguments, cores: CoreRangeSet) -> MemoryConfig:
    """A head for each core."""
    shards = ShardSpec(cores, (max(side(call.source.padded_shape, 1), MOST_USERS), side(call.source.padded_shape, 3)))
    return MemoryConfig(TensorMemoryLayout.WIDTH_SHARDED, BufferType.L1, shards)


def _holds(call: JoinDecodeArguments, target: TensorSpec) -> bool:
    """Whether a target matches the result; it must be on the first cores unless the call chooses cores."""
    cores = target.shards.grid
    alike = (target.shape, target.data_format, target.layout, target.memory_config) == (
        _joined_shape(call),
        call.source.data_format,
        Layout.TILE,
        _joined_place(call, cores),
    )
    box = cores.bounding_box()
    return alike and (
        _on_some_cores(call) or cores.merged() == first_cores(call.heads, box.end.x + 1, box.end.y + 1).merged()
    )


def _on_some_cores(call: JoinDecodeArguments) -> bool:
    """Whether the call chooses among given cores, or its shards are not one block from core (0, 0)."""
    shards = call.source.memory_config.shard_spec
    if shards is None:
        return False
    ranges = shards.grid.ranges
    return call.within is not None or len(ranges) > 1 or ranges[0].start != CoreCoord(0, 0)


def _join_refusals(call: JoinDecodeArguments) -> Iterator[str]:
    """The refusals of the device operation, in its order."""
    source, place = call.source, call.source.memory_config
    first, users, heads, size = (side(source.padded_shape, axis) for axis in (0, 1, 2, -1))
    if source.data_format not in FORMATS:
        yield "Unsupported data format"
    if source.layout is not Layout.TILE:
        yield f"Input tensor layout must be TILE but got Layout::{source.layout.name}"
    if first != 1:
        yield "seqlen=1 for decode"
    if users > MOST_USERS:
        yield f"currently only support less than {MOST_USERS} users"
    if heads % TILE:
        yield f"padded heads must be a multiple of TILE_HEIGHT ({TILE}), got {heads}"
    if heads < call.heads:
        yield "head_dim must be multiple of TILE_WIDTH"
    if place.shard_spec is None:
        yield "Input tensor must be sharded"
        return
    layout = place.memory_layout
    if layout is not TensorMemoryLayout.HEIGHT_SHARDED:
        yield f"Input tensor memory layout must be HEIGHT_SHARDED but got TensorMemoryLayout::{layout.name}"
    high, wide = place.shard_spec.shape
    if wide != size:
        yield f"Shard spec shape[1] ({wide}) must match input tensor padded shape[-1] ({size})"
    if high != heads:
        yield f"Shard spec shape[0] ({high}) must match input tensor padded shape[-2] ({heads})"
    if place.shard_spec.grid.num_cores() != users:
        yield "Input core grid num_cores must be equal to num users"
    if call.within is None and _on_some_cores(call):
        yield "Subcoregrids must be provided if on_subcoregrids is true"
    if call.within is not None and call.within.num_cores() < call.heads:
        yield "Subcoregrids must have at least num_heads cores"
