"""Plans that split and join heads. Rules: ttnn 0.81.1 (transformer, experimental/transformer) and recorded plans."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from device.cores import first_cores
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
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, round_up
from device.plan import TARGET, CircularBuffer, Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.planners.attention.head_shards import refusals_of_other_shards, refusals_of_shards
from ops.planners.to_config import placed
from ops.programs.attention.heads import JoinHeads, SplitHeads
from ops.programs.buffer_shapes import (
    BUFFERING,
    ONLY_L1,
    association_refusal,
    borrowing_refusal,
    page_cores,
    shard_view,
    tile_buffer,
)

RANK = 4
ROLES = "query", "key", "value"
TARGETS = tuple(f"{TARGET}.{role}" for role in ROLES)  # names of the caller's tensors for the results
FORMATS = (FLOAT32, BFLOAT16, BFLOAT8_B)
AHEAD = 4  # tiles on their way through a core that splits heads
HINT = "input_tensor: give [batch, 1, rows, columns] of floats in TILE layout"
SEGFORMER_SIZE, VIT_HEADS, VIT_SIZE = 32, 12, 64
FALCON, FALCON_HEADS, FALCON_SIZE = "NlpCreateHeadsFalcon7B", 71, 64  # one head of keys and of values


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitArguments:
    """A call that splits heads."""

    # Of NlpCreateHeads, NlpCreateHeadsSegformer, NlpCreateHeadsVit, NlpCreateHeadsFalcon7B, CreateQKVHeads
    program: str = "NlpCreateHeads"
    source: TensorSpec  # [batch, 1, rows, columns], "input"
    other: TensorSpec | None = None  # Keys and values, "kv"
    heads: int = 1
    kv_heads: int = 1
    transposed: bool = False
    tied: bool = False  # Keys are the values
    place: MemoryConfig | None = None
    rows: int | None = None  # Rows of the results without padding, of a call that names them; None for the source's
    targets: tuple[TensorSpec, ...] = ()  # The caller's tensors `TARGETS` for the results, if there are any

    @property
    def sections(self) -> int:
        """Columns of heads for each key head: those of the key and those of the value, or of both together."""
        return 1 if self.tied else 2


def plan_split(call: SplitArguments, spec: DeviceSpec) -> Plan:
    """Plan queries, keys and values ("query", "key", "value") of "input" and perhaps "kv".

    The program writes into the caller's targets, if given, without checking them.
    """
    size = _head_size(call)
    place = call.source.memory_config if call.place is None else call.place
    specs = _results(call, size, place, spec)
    for result in specs:
        result.require_on(spec)
    for text in _refusals(call, place, spec):
        raise DeviceError(f"{text}\n{HINT}")
    require_rank(call.source, call.other)
    named = dict(zip(TARGETS, call.targets, strict=True)) if call.targets else {}
    builder = PlanBuilder(spec, {"input": call.source, "kv": call.other, **named})
    if call.targets:
        check_targets(builder, call.targets, specs, viewed=call.program == "CreateQKVHeads")
        specs = call.targets
    if call.program == "NlpCreateHeads" and call.source.memory_config.is_sharded():
        builder.leave_out_values(
            "nlp_create_qkv_heads: ttsim does not simulate numbers of heads that are split out of shards; give "
            "interleaved memory, or BLOCK shards to ttnn.transformer.split_query_key_value_and_split_heads"
        )
    if call.program == "NlpCreateHeads" and size % TILE:
        builder.leave_out_values(
            f"nlp_create_qkv_heads: ttsim does not simulate numbers of heads of {size} columns, of which the library "
            f"moves whole tiles alone; give a multiple of {TILE}"
        )
    read = [builder.tensor("input")] + ([] if call.other is None else [builder.tensor("kv")])
    query, key, value = (PlanTensor(name, tensor) for name, tensor in zip(ROLES, specs, strict=True))
    op = SplitHeads(
        heads=call.heads, kv_heads=call.kv_heads, head_size=size, transposed=call.transposed, tied=call.tied,
        groups=call.kv_heads if call.program == "CreateQKVHeads" else 1,
        queries_alone=call.program == "NlpCreateHeadsSegformer", data_format=call.source.data_format,
    )  # fmt: skip
    buffers = _split_buffers(call, read[0], (query, key, value), spec)
    refused, in_shards = None, call.source.memory_config.is_sharded()
    if call.program == "CreateQKVHeads":
        refused = association_refusal([*read, query, key, value])
    elif call.program == "NlpCreateHeads" and in_shards:
        refused = borrowing_refusal([("q_out", "q", query), ("k_out", "k", key), ("v_out", "v", value)])
    builder.run(
        f"{call.program}DeviceOperation", op, read, query, buffers, more_outputs=[key, value],
        dataflow=call.program == "NlpCreateHeads", refused=refused,
    )  # fmt: skip
    made = {"query": query, "key": key, "value": value}
    if named:
        made = {role: builder.written_into(made[role], builder.tensor(f"{TARGET}.{role}")) for role in ROLES}
    if call.rows is not None:
        turned = call.transposed
        made = {name: _with_rows(made[name], call.rows, last=turned and name == "key") for name in made}
        whole = call.rows % TILE == 0  # other results keep their shards
        if whole and call.place is not None and call.place.shard_spec is not None:
            at_first = made
            made = {name: placed(builder, tensor, call.place, f"{name}_moved") for name, tensor in made.items()}
            builder.free_own(*at_first.values(), keep=list(made.values()))
    return builder.finish(made)


def check_targets(
    builder: PlanBuilder, targets: Sequence[TensorSpec], results: Sequence[TensorSpec], *, viewed: bool
) -> None:
    """Leaves out the values of targets of another shape, format or layout.

    Where circular buffers are views of targets (``viewed``), raises DeviceError for targets in DRAM, and
    NotSimulatedError for other shards than those of the results.
    """
    for target, result in zip(targets, results, strict=True):
        if viewed and target.memory_config.buffer_type is not BufferType.L1:
            raise DeviceError(f"{ONLY_L1}\noutput_tensors: give the shards of the results")
        if viewed and target.memory_config != result.memory_config:
            raise NotSimulatedError("output_tensors in other shards than the results are not simulated; leave them out")
        if (target.shape, target.data_format, target.layout) != (result.shape, result.data_format, result.layout):
            builder.leave_out_values(
                f"output_tensors: {list(target.shape)} of {target.data_format} in {target.layout.name} layout is not "
                f"like a result, {list(result.shape)} of {result.data_format}; give tensors like the results"
            )


def require_rank(*tensors: TensorSpec | None) -> None:
    """Raises NotSimulatedError for tensors of other ranks, for which the library reads only some axes."""
    if any(tensor is not None and len(tensor.shape) != RANK for tensor in tensors):
        raise NotSimulatedError(f"heads: ttsim simulates tensors of {RANK} axes alone; reshape them")


def _with_rows(tensor: PlanTensor, rows: int, *, last: bool) -> PlanTensor:
    """A tensor whose rows are fewer than its tiles hold."""
    *outer, high, wide = tensor.spec.shape
    shape = (*outer, high, rows) if last else (*outer, rows, wide)
    return tensor._replace(spec=tensor.spec.changed(shape=shape, padded_shape=None))


def _head_size(call: SplitArguments) -> int:
    """Columns of a head; raises DeviceError where heads do not fill the columns."""
    heads, kv_heads = call.heads, call.kv_heads
    if call.program == "NlpCreateHeadsSegformer":
        return SEGFORMER_SIZE
    if call.program == "NlpCreateHeadsVit":
        return VIT_SIZE
    if call.program == FALCON:
        return FALCON_SIZE
    if heads < 1:
        raise DeviceError(f"num_q_heads must be greater than 0\n{HINT}")
    if call.program == "NlpCreateHeads" and call.other is not None and kv_heads < 1:
        raise DeviceError(f"num_kv_heads must be greater than 0 when a KV tensor is given\n{HINT}")
    if call.program == "CreateQKVHeads" and kv_heads < 1:
        raise DeviceError(f"num_kv_heads must be greater than 0\n{HINT}")
    alone = call.program == "NlpCreateHeads" and call.other is None  # queries, and no keys and values
    if heads < 1 or kv_heads < 0 or not (kv_heads or alone):
        raise NotSimulatedError("nlp_create_qkv_heads: ttsim does not simulate calls without heads; give 1 or more")
    columns, sections = side(call.source.padded_shape, 3), call.sections * kv_heads
    if call.other is not None:
        other = side(call.other.padded_shape, 3)
        if columns < heads:
            raise DeviceError(f"num_q_heads ({heads}) exceeds the Q width ({columns})\n{HINT}")
        if other < sections:
            text = f"{call.sections} * num_kv_heads ({kv_heads}) exceeds the KV width ({other})"
            raise DeviceError(f"{text}\n{HINT}")
        if columns % heads or other % sections:
            raise DeviceError(f"Unsupported input shape\n{HINT}")
        if other // sections != columns // heads:
            raise DeviceError(f"Head dims must be the same for Q and K, V\n{HINT}")
        return columns // heads
    if columns < heads + sections:
        factor = "" if call.tied else "2 * "
        what = "fused width" if call.program == "NlpCreateHeads" else "flattened hidden dimension"
        text = f"num_q_heads ({heads}) + {factor}num_kv_heads ({kv_heads}) exceeds the {what} ({columns})"
        raise DeviceError(f"{text}\n{HINT}")
    if columns % (heads + sections):
        first = "Unsupported input shape"
        if call.program == "CreateQKVHeads":
            first = (
                f"Flattened hidden dimension {columns} must be a multiple of the combined Q {heads}, K {kv_heads} and "
                f"V {kv_heads} heads"
            )
        raise DeviceError(f"{first}\n{HINT}")
    if call.tied and not columns % (heads + 2 * kv_heads):
        raise DeviceError(
            f"Ambiguous kv_tied fused input shape: width {columns} is divisible by both {heads + kv_heads} (tied) and "
            f"{heads + 2 * kv_heads} (untied) sections\nkv_tied: give keys as input_kv"
        )
    return columns // (heads + sections)


def _results(call: SplitArguments, size: int, place: MemoryConfig, spec: DeviceSpec) -> tuple[TensorSpec, ...]:
    """The three results; raises DeviceError for shards that do not hold them."""
    source, grouped = call.source, call.program == "CreateQKVHeads"
    if call.program == "NlpCreateHeadsSegformer":
        side(source.padded_shape, 3)  # which the library reads first
    batch, rows = (
        side(source.shape if call.program == "NlpCreateHeads" else source.padded_shape, axis) for axis in (0, 2)
    )
    heads, kv_heads = call.heads, call.kv_heads
    if call.program == "NlpCreateHeadsSegformer":
        heads = kv_heads = side(source.padded_shape, 3) // size
    elif call.program == "NlpCreateHeadsVit":
        heads = kv_heads = VIT_HEADS
    elif call.program == FALCON:
        heads, kv_heads = FALCON_HEADS, 1
    wide = round_up(size, TILE) if not grouped else size
    shapes = [(batch, heads, rows, wide), (batch, kv_heads, rows, wide), (batch, kv_heads, rows, wide)]
    if call.transposed:
        shapes[1] = (batch, kv_heads, wide, rows)
    places: Iterable[MemoryConfig] = [place] * 3
    if grouped:
        places = places_of_groups(source, shapes, place)
    elif place.is_sharded():
        for program, name in (("NlpCreateHeadsSegformer", "segformer"), (FALCON, "falcon7b")):
            if call.program == program:
                text = f"Sharded output memory config is not supported for nlp_create_qkv_heads_{name}"
                raise DeviceError(f"{text}\n{HINT}")
        if call.program == "NlpCreateHeadsVit":
            return tuple(TensorSpec(shape, source.data_format, Layout.TILE) for shape in shapes)  # refused below
        places = [_one_head_a_core(place, count, size, spec) for count in (heads, kv_heads, kv_heads)]
    return tuple(
        TensorSpec(shape, source.data_format, Layout.TILE, config) for shape, config in zip(shapes, places, strict=True)
    )


def _one_head_a_core(place: MemoryConfig, heads: int, size: int, spec: DeviceSpec) -> MemoryConfig:
    """Shards of one tile row of a head on each core, row by row."""
    if heads > spec.grid.cores:
        raise NotSimulatedError(f"nlp_create_qkv_heads: ttsim does not simulate shards of {heads} heads; give fewer")
    cores = first_cores(heads, spec.grid.cols, spec.grid.rows)
    return replace(place, shard_spec=ShardSpec(cores, (TILE, size)))


def places_of_groups(
    source: TensorSpec, shapes: Sequence[tuple[int, int, int, int]], place: MemoryConfig
) -> Iterator[MemoryConfig]:
    """HEIGHT shards on the cores of BLOCK shards; raises DeviceError for one without rows."""
    shards = source.memory_config.shard_spec
    if shards is None:
        raise DeviceError(f"bad optional access\n{HINT}, in BLOCK shards")
    box = shards.grid.bounding_box()
    count = box.rows * box.cols
    for shape in shapes:
        dealt = ShardSpec(shards.grid, (prod(shape[:-1]) // count, shape[-1]), shards.orientation)
        yield replace(place, shard_spec=dealt)


def _kind_refusals(source: TensorSpec) -> Iterator[str]:
    if source.data_format not in FORMATS:
        yield "Unsupported data format"
    if source.layout is not Layout.TILE:
        yield f"Input tensor layout must be TILE but got Layout::{source.layout.name}"


def _refusals(call: SplitArguments, place: MemoryConfig, spec: DeviceSpec) -> Iterator[str]:
    """The refusals of the device operation, in its order."""
    source, grouped = call.source, call.program == "CreateQKVHeads"
    yield from _kind_refusals(source)
    depth = side(source.padded_shape, 1)
    if grouped:
        yield from _refusals_of_groups(call, place)
        return
    whole = {"NlpCreateHeadsVit": VIT_HEADS * VIT_SIZE * 3, FALCON: (FALCON_HEADS + 2) * FALCON_SIZE}
    if call.program in whole or (call.program == "NlpCreateHeadsSegformer" and len(source.shape) > RANK):
        if (rows := side(source.padded_shape, 2)) % TILE:
            yield f"Input shape[2] ({rows}) must be divisible by TILE_HEIGHT ({TILE})"
        if call.program not in whole or source.padded_shape[1:] != (1, rows, whole[call.program]):
            yield "Unsupported input shape"
    if call.program == "NlpCreateHeads" and depth != 1:
        yield f"Unsupported input sequence length {depth} is not equal to 1"
    shards = source.memory_config.shard_spec
    if shards is not None and call.program == "NlpCreateHeads" and shards.shape[0] != source.matrix[0]:
        yield (
            f"Shard spec shape[0] ({shards.shape[0]}) must equal physical volume / padded shape[-1] "
            f"({source.matrix[0]})"
        )
    if shards is not None and call.program == "NlpCreateHeads":
        layout = place.memory_layout
        if layout in (TensorMemoryLayout.INTERLEAVED, TensorMemoryLayout.WIDTH_SHARDED):
            yield (
                "Output memory config must be sharded and not WIDTH_SHARDED but got memory_layout: "
                f"TensorMemoryLayout::{layout.name}"
            )
        counts = call.heads, call.kv_heads, _head_size(call)
        yield from refusals_of_shards(source, call.other, counts, spec.grid.cores)
        if call.transposed:
            yield "Transpose K heads must be false"
    elif place.is_sharded():
        yield f"Output memory config layout must be INTERLEAVED but got TensorMemoryLayout::{place.memory_layout.name}"
    if call.other is not None:
        yield from _refusals_of_other(call, call.other)


def _refusals_of_other(call: SplitArguments, other: TensorSpec) -> Iterator[str]:
    source = call.source
    if other.data_format != source.data_format:
        yield "KV tensor dtype must be same as Q tensor dtype!"
    if other.layout is not Layout.TILE:
        yield f"Input tensor KV layout must be TILE but got Layout::{other.layout.name}"
    if side(other.padded_shape, 0) != side(source.padded_shape, 0):
        yield "KV tensor batch dim must be same as Q tensor batch!"
    if (other_depth := side(other.padded_shape, 1)) != 1:
        yield f"Unsupported input shape {other_depth} is not equal to 1"
    if side(other.padded_shape, 2) != side(source.padded_shape, 2):
        yield "KV tensor seq_len dim must be same as Q tensor seq_len!"
    if other.memory_config.is_sharded():
        if not source.memory_config.is_sharded():
            yield "Input tensor must be sharded when KV tensor is sharded"
        yield from refusals_of_other_shards(other, call.kv_heads, _head_size(call))


def _refusals_of_groups(call: SplitArguments, place: MemoryConfig) -> Iterator[str]:
    """The same of BLOCK shards."""
    source = call.source
    shards, scheme = source.memory_config.shard_spec, source.memory_config.memory_layout
    assert shards is not None
    batch, depth, columns = (side(source.padded_shape, axis) for axis in (0, 1, 3))
    if depth != 1:
        yield "Unsupported input shape"
    if scheme is not TensorMemoryLayout.BLOCK_SHARDED:
        yield f"Input tensor memory layout must be BLOCK_SHARDED but got TensorMemoryLayout::{scheme.name}"
    box = shards.grid.bounding_box()
    across, down = box.end.x + 1, box.end.y + 1
    if shards.orientation is not ShardOrientation.ROW_MAJOR:
        across, down = down, across
    if call.heads % call.kv_heads:
        yield f"Number of q heads {call.heads} must fit evenly into number of kv heads {call.kv_heads}"
    if columns % (across * TILE):
        yield (
            f"Flattened hidden dimension {columns} must be a multiple of width cores {across} * tile width {TILE} to "
            "ensure that each core gets an even amount of tiles"
        )
    if place.memory_layout is not TensorMemoryLayout.HEIGHT_SHARDED:
        yield (
            f"Output memory config layout must be HEIGHT_SHARDED but got TensorMemoryLayout::{place.memory_layout.name}"
        )
    if batch != down:
        yield f"Batch size {batch} must be equal to num cores {down}"
    if call.kv_heads % across:
        yield f"number of groups {call.kv_heads} must be a multiple of the number of width cores {across}"


def _split_buffers(
    call: SplitArguments, source: PlanTensor, results: tuple[PlanTensor, ...], spec: DeviceSpec
) -> tuple[CircularBuffer, ...]:
    """Circular buffers of a program that splits heads."""
    tensor, data_format = source.spec, source.spec.data_format
    batch, depth, rows, columns = tensor.padded_shape
    lines = batch * depth * rows // TILE
    if call.program == "CreateQKVHeads":
        if not call.transposed:
            return ()
        views = [shard_view("input", source, spec)]
        views += [shard_view(result.name, result, spec) for result in results]
        turned = views[2]
        return (*views, turned._replace(name="turned", view_of=None, page_bytes=data_format.tile_bytes))
    if call.program in ("NlpCreateHeadsSegformer", "NlpCreateHeadsVit", FALCON):
        cores = first_cores(min(lines, spec.grid.cores), spec.grid.cols, spec.grid.rows, row_wise=False)
        return (tile_buffer("input", BUFFERING * columns // TILE, data_format, cores),)
    if tensor.memory_config.is_sharded():
        return tuple([shard_view(result.name, result, spec) for result in results])
    alone = call.other is None and not call.transposed
    cores = page_cores(lines * (call.heads + call.sections * call.kv_heads) if alone else lines, spec.grid)
    names = ("input", "turning", "turned") if call.transposed else ("input",)
    wide = _head_size(call) // TILE  # 0 is a multiple of any run
    ahead = AHEAD if call.transposed else next((BUFFERING * run for run in (8, 4) if wide % run == 0), AHEAD)
    return tuple([tile_buffer(name, ahead, data_format, cores) for name in names])


def plan_join(
    source: TensorSpec, spec: DeviceSpec, *, place: MemoryConfig | None = None, squeezed: bool = False
) -> Plan:
    """Plan the heads of the tensor "input" [batch, heads, rows, head size] side by side; `squeezed` drops axis 1."""
    if squeezed:
        _check_joined(source)
    where = source.memory_config if place is None else place
    result = _joined(source, where)
    result.require_on(spec)
    text = next(_join_refusals(source, where, squeezed=squeezed), None)
    refused = text and f"{text}\ninput_tensor: give [batch, heads, rows, head size] of floats in TILE layout"
    if side(source.padded_shape, 3) < TILE:
        require_rank(source)  # heads of no tile, by whose number the library divides

    def write(builder: PlanBuilder, given: PlanTensor) -> PlanTensor:
        if len(source.shape) > RANK:
            builder.leave_out_values("nlp_concat_heads: ttsim does not calculate numbers of more than 4 axes")
        if source.shape[-1] % TILE:
            builder.leave_out_values(
                f"nlp_concat_heads: ttsim does not simulate numbers of heads of {source.shape[-1]} columns, whose "
                f"padding would lie between heads; give a multiple of {TILE}"
            )
        tensor = given
        if refused is None and given.spec.memory_config.is_sharded() and not where.is_sharded():
            tensor = placed(builder, given, where, "gathered")
        output = PlanTensor("output", result)
        fault = refused or borrowing_refusal([("in0", "input", tensor), ("out0", "output", output)])
        builder.run(
            "NLPConcatHeadsDeviceOperation", JoinHeads(), [tensor], output,
            () if fault else _join_buffers(tensor, output, spec), dataflow=True, refused=fault,
        )  # fmt: skip
        builder.free_own(tensor, keep=[output])
        batch, _, rows, columns = result.shape
        if not squeezed:
            return output
        return output._replace(spec=result.changed(shape=(batch, rows, columns), padded_shape=None))

    return plan_of(source, spec, write)


def _check_joined(source: TensorSpec) -> None:
    if len(source.shape) != RANK:
        shape = f"Shape({list(source.shape)})"
        raise DeviceError(f"Input tensor must have rank 4. Shape: {shape}\ninput_tensor: reshape it")
    size = source.shape[-1]
    if size % TILE:
        raise DeviceError(
            f"Head size must be a multiple of {TILE} but was found to be {size}. Update the matmul that uses the "
            "output of this operation to include padding in the weights.\ninput_tensor: pad its heads"
        )
    if source.padded_shape[-1] != size:
        raise DeviceError(
            f"Head size ({size}) cannot have tile padding. Ensure that the head size is not padded.\n"
            "input_tensor: give TILE layout"
        )


def _joined(source: TensorSpec, where: MemoryConfig) -> TensorSpec:
    """The result; raises DeviceError for shards that do not hold it."""
    heads, rows, size, batch = (side(source.shape, axis) for axis in (1, 2, 3, 0))
    shape = (batch, 1, rows, heads * size)
    if not where.is_sharded():
        return TensorSpec(shape, source.data_format, Layout.TILE, where)
    shards = source.memory_config.shard_spec
    if shards is None:
        raise DeviceError("bad optional access\nmemory_config: give interleaved memory, as the tensor's is")
    high, wide = shards.shape
    count = max(1, high // source.padded_shape[-2])
    dealt = ShardSpec(shards.grid, (high // count, wide * count), shards.orientation)
    return TensorSpec(shape, source.data_format, Layout.TILE, replace(where, shard_spec=dealt))


def _join_refusals(source: TensorSpec, where: MemoryConfig, *, squeezed: bool) -> Iterator[str]:
    shards, scheme = source.memory_config.shard_spec, source.memory_config.memory_layout
    heads, rows, size = (side(source.padded_shape, axis) for axis in (1, -2, -1))
    yield from _kind_refusals(source)
    if shards is None:
        if where.is_sharded():
            scheme = where.memory_layout
            yield f"Output memory config layout must be INTERLEAVED but got TensorMemoryLayout::{scheme.name}"
        return
    if squeezed and not where.is_sharded():
        return
    if scheme is TensorMemoryLayout.WIDTH_SHARDED:
        yield "Input tensor memory layout must not be WIDTH_SHARDED but got TensorMemoryLayout::WIDTH_SHARDED"
    high, wide = shards.shape
    if wide != size:
        yield f"Input tensor shard width ({wide}) must equal padded width ({size})"
    if high % rows:
        yield f"Input tensor shard height ({high}) must be divisible by padded height ({rows})"
    if heads % (high // rows):
        yield (
            f"Input tensor padded height ({heads}) must be divisible by shard height / padded height ({high} / {rows})"
        )
    if not where.is_sharded():
        yield "Sharded input requires a sharded output memory config but got TensorMemoryLayout::INTERLEAVED"
    if where.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED:
        yield "Output memory config layout must not be HEIGHT_SHARDED but got TensorMemoryLayout::HEIGHT_SHARDED"


def _join_buffers(source: PlanTensor, output: PlanTensor, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """The tiles of a row of heads, twice; or the shards on both sides."""
    tensor = source.spec
    if tensor.memory_config.is_sharded():
        return shard_view("input", source, spec), shard_view("output", output, spec)
    batch, heads, rows, size = tensor.padded_shape[:RANK]
    cores = page_cores(max(1, batch * heads * rows // TILE), spec.grid)
    return (tile_buffer("input", BUFFERING * heads * size // TILE, tensor.data_format, cores),)
