"""Plans that split heads of queries, and of keys and values in another tensor. Rules: ttnn 0.81.1 and its planner."""

from collections.abc import Iterator
from dataclasses import dataclass

from device.errors import DeviceError
from device.memory.layouts import TensorSpec, side
from device.memory.memory_config import TILE, Layout, MemoryConfig, ShardOrientation, TensorMemoryLayout
from device.plan import TARGET, CircularBuffer, Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.planners.attention.heads import FORMATS, ROLES, TARGETS, check_targets, places_of_groups, require_rank
from ops.programs.attention.separate_heads import SplitSeparateHeads
from ops.programs.buffer_shapes import shard_view, views_refusal

HINT = "create_qkv_heads_from_separate_tensors: give BLOCK shards in TILE layout, with an image on each row of cores"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeparateArguments:
    """A call."""

    source: TensorSpec  # [batch, 1, rows, columns], "input": queries
    other: TensorSpec  # [batch, 1, other rows, columns], "kv": a key and a value of each head in turn
    heads: int
    kv_heads: int
    transposed: bool = True
    place: MemoryConfig | None = None
    targets: tuple[TensorSpec, ...] = ()  # The caller's tensors `TARGETS` for the results, if there are any


def plan_separate_split(call: SeparateArguments, spec: DeviceSpec) -> Plan:
    """Plan queries, keys and values ("query", "key", "value") of "input" and "kv"; raises DeviceError."""
    for name, count in (("q", call.heads), ("kv", call.kv_heads)):
        if count < 1:
            raise DeviceError(f"num_{name}_heads must be greater than 0\n{HINT}")
    columns = side(call.source.padded_shape, 3)
    if columns % call.heads:
        text = f"Flattened Q hidden dimension {columns} must be a multiple of Q heads {call.heads}"
        raise DeviceError(f"{text}\n{HINT}")
    if (other := side(call.other.padded_shape, 3)) < 2 * call.kv_heads:
        text = f"2 * num_kv_heads ({call.kv_heads}) exceeds the KV hidden dimension ({other})"
        raise DeviceError(f"{text}\n{HINT}")
    specs = _results(call, columns // call.heads)
    for result in specs:
        result.require_on(spec)
    for text in _refusals(call):
        raise DeviceError(f"{text}\n{HINT}")
    require_rank(call.source, call.other)
    named = dict(zip(TARGETS, call.targets, strict=True)) if call.targets else {}
    builder = PlanBuilder(spec, {"input": call.source, "kv": call.other, **named})
    if call.targets:
        check_targets(builder, call.targets, specs, viewed=True)
        specs = list(call.targets)
    own, others = call.source.shards, call.other.shards
    if (own.grid, own.orientation) != (others.grid, others.orientation):
        builder.leave_out_values(
            "create_qkv_heads_from_separate_tensors: cores read their own shards; give equal cores"
        )
    reads = [builder.tensor("input"), builder.tensor("kv")]
    results = [PlanTensor(name, tensor) for name, tensor in zip(ROLES, specs, strict=True)]
    op = SplitSeparateHeads(
        heads=call.heads, kv_heads=call.kv_heads, transposed=call.transposed, data_format=call.source.data_format
    )
    buffers = _buffers(call, reads, results, spec)
    refused = views_refusal(buffers, (*reads, *results), spec, HINT)
    builder.run(
        "CreateQKVHeadsSeparateTensorsDeviceOperation", op, reads, results[0], buffers, more_outputs=results[1:],
        refused=refused,
    )  # fmt: skip
    made = {tensor.name: tensor for tensor in results}
    if named:
        made = {role: builder.written_into(made[role], builder.tensor(f"{TARGET}.{role}")) for role in ROLES}
    return builder.finish(made)


def _results(call: SeparateArguments, size: int) -> list[TensorSpec]:
    """The three results; raises DeviceError for shards that do not hold them."""
    (batch, rows), (other_batch, other_rows) = (
        [side(tensor.padded_shape, axis) for axis in (0, 2)] for tensor in (call.source, call.other)
    )
    shapes = [(batch, call.heads, rows, size), *[(other_batch, call.kv_heads, other_rows, size)] * 2]
    if call.transposed:
        shapes[1] = (other_batch, call.kv_heads, size, other_rows)
    place = call.source.memory_config if call.place is None else call.place
    places = places_of_groups(call.source, shapes, place)
    return [
        TensorSpec(shape, call.source.data_format, Layout.TILE, config)
        for shape, config in zip(shapes, places, strict=True)  # the library looks at one after the other
    ]


def _refusals(call: SeparateArguments) -> Iterator[str]:
    """The refusals of the device operation, in its order."""
    source, other = call.source, call.other
    tensors = (("Q", source), ("KV", other))
    if source.data_format not in FORMATS or other.data_format != source.data_format:
        yield "Unsupported data format"
    if any(tensor.layout is not Layout.TILE for _, tensor in tensors):
        layouts = ", ".join(f"{name}: Layout::{tensor.layout.name}" for name, tensor in tensors)
        yield f"Q and KV input tensors must have TILE layout but got {layouts}"
    if source.memory_config.shard_spec is None or other.memory_config.shard_spec is None:
        yield "Operands to TM must be sharded"
    for name, tensor in tensors:
        layout = tensor.memory_config.memory_layout
        if layout is not TensorMemoryLayout.BLOCK_SHARDED:
            yield f"{name} input tensor memory layout must be BLOCK_SHARDED but got TensorMemoryLayout::{layout.name}"
    end = source.shards.grid.bounding_box().end
    across, down = end.x + 1, end.y + 1
    if source.shards.orientation is not ShardOrientation.ROW_MAJOR:
        across, down = down, across
    for name, heads in (("q", call.heads), ("kv", call.kv_heads)):
        if heads % across:
            yield f"Number of {name} heads {heads} must fit evenly into cores {across}"
    (depth, batch, columns, rows), (other_depth, other_batch, other_columns, other_rows) = (
        [side(tensor.padded_shape, axis) for axis in (1, 0, 3, 2)] for tensor in (source, other)
    )
    if depth != 1 or other_depth != 1:
        yield "Unsupported input shape"
    if batch != other_batch:
        yield f"Q {batch} and KV {other_batch} batch size must match"
    yield from _uneven(batch, rows, columns, across, down)
    yield from _uneven(batch, other_rows, other_columns, across, down)
    if columns // call.heads != other_columns // (2 * call.kv_heads):
        yield (
            f"Head dims must be equal in size! Q {columns} num_heads {call.heads} KV {other_columns} num_heads "
            f"{call.kv_heads}"
        )
    if batch * rows < across * TILE:
        yield "0 height shards on Q"
    if batch != down:
        yield f"Batch size {batch} must be equal to num cores {down}"


def _uneven(batch: int, rows: int, columns: int, across: int, down: int) -> Iterator[str]:
    """The errors of a tensor whose cores have different numbers of tiles."""
    why = "to ensure that each core gets an even amount of tiles"
    if columns % (across * TILE):
        yield (
            f"Flattened hidden dimension {columns} must be a multiple of width cores {across} * tile width {TILE} {why}"
        )
    if batch * rows % (down * TILE):
        yield f"Batch {batch} * Seq Len {rows} must be a multiple of height cores {down} * tile height {TILE} {why}"


def _buffers(
    call: SeparateArguments, reads: list[PlanTensor], results: list[PlanTensor], spec: DeviceSpec
) -> tuple[CircularBuffer, ...]:
    """All tensors, each in its shards, and keys before they are transposed."""
    grid = reads[0].spec.shards.grid
    views = [shard_view(tensor.name, tensor, spec, grid) for tensor in (*reads, *results)]
    box, tiles = grid.bounding_box(), call.other.matrix[0] * call.other.matrix[1] // TILE**2
    pairs = tiles // ((box.end.x + 1) * (box.end.y + 1)) * call.other.data_format.tile_bytes  # for any shards
    views[1] = views[1]._replace(size_bytes=pairs)
    if not call.transposed:
        return tuple(views)
    keys = views[3]
    return (*views, keys._replace(name="turned", view_of=None, page_bytes=call.source.data_format.tile_bytes))
