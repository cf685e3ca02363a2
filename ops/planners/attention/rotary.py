"""Plans of a rotary embedding. Rules: ttnn 0.81.1 (experimental/transformer), compared with recorded plans."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from device.cores import first_cores
from device.errors import DeviceError, NotSimulatedError
from device.memory.layouts import TensorSpec, side
from device.memory.memory_config import TILE, Layout, MemoryConfig, ShardSpec, TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, div_up, round_up
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.programs.attention.rotary import RotaryEmbedding, rotary_buffers
from ops.programs.buffer_shapes import page_cores, views_refusal

RANK = 4
FORMATS = (FLOAT32, BFLOAT16, BFLOAT8_B)
HINT = "cos_cache, sin_cache: give [1, 1, rows, columns] of one data type, of the tensor's columns"


@dataclass(frozen=True, slots=True, kw_only=True)
class RotaryArguments:
    """A call, of tensors that were brought into TILE layout."""

    source: TensorSpec
    cosines: TensorSpec
    sines: TensorSpec
    token: int | None = None
    place: MemoryConfig | None = None  # None for that of the tensor
    fidelity_phases: int = 4
    fp32_dest: bool = False


def check_tables(call: RotaryArguments) -> None:
    """Raises DeviceError for tables that do not fit the tensor, before tensors are brought into TILE layout."""
    for text in _table_faults(call):
        raise DeviceError(f"{text}\n{HINT}")


def _table_faults(call: RotaryArguments) -> Iterator[str]:
    columns, table = call.source.padded_shape[-1], call.cosines.padded_shape
    rows, known = side(call.source.shape, -2), side(call.cosines.shape, -2)
    if columns != TILE and columns % (2 * TILE):
        yield (
            f"Input X dimension ({columns}) must be either {TILE} (single tile) or divisible by {2 * TILE} "
            "(rotate_half midpoint must align with a tile boundary)."
        )
    if call.cosines.shape != call.sines.shape:
        yield (
            f"Cosine and Sine cache dimensions must match. Cos cache dimensions: Shape({list(table)}), Sin cache "
            f"dimensions: Shape({list(call.sines.padded_shape)})."
        )
    if side(table, 0) != 1 or side(table, 1) != 1 or table[-1] != columns:
        yield (
            f"Cosine cache dimensions must match input dimensions. Expected (1, 1, {columns}), but got "
            f"Shape({list(table)})."
        )
    if len(table) != RANK:
        raise NotSimulatedError(f"rotary_embedding: ttsim does not simulate tables of another rank; {HINT}")
    if call.token is None:
        if known < rows:
            yield (
                f"Cosine cache must cover the input sequence length. Input sequence length: {rows}, Cos cache sequence "
                f"length: {known}."
            )
        return
    first = call.source.padded_shape[0]
    if first != 1:
        yield f"When token index is provided, sequence length must be 1. Current sequence length: {first}."
    if known <= call.token:
        yield f"Cosine cache must cover the token index. Token index: {call.token}, Cos cache sequence length: {known}."


def plan_rotary_embedding(call: RotaryArguments, spec: DeviceSpec) -> Plan:
    """Plan the rotation of "input" by "cosines" and "sines"; raises DeviceError."""
    place = call.source.memory_config if call.place is None else call.place
    shape = call.source.padded_shape
    if place.is_sharded():
        place = replace(place, shard_spec=_shards(call.source, spec))
    result = TensorSpec(shape, call.source.data_format, Layout.TILE, place)
    result.require_on(spec)
    for text in _faults(call, place):
        raise DeviceError(f"{text}\n{HINT}")
    lines, shards = call.source.matrix[0] // TILE, call.source.memory_config.shard_spec or place.shard_spec
    cores = page_cores(lines, spec.grid, row_wise=True) if shards is None else shards.grid
    own = div_up(lines, cores.num_cores()) if shards is None else shards.shape[0] // TILE
    op = RotaryEmbedding(
        shape=shape, token=call.token, data_format=call.source.data_format, table_format=call.cosines.data_format,
        fidelity_phases=call.fidelity_phases, fp32_dest=call.fp32_dest, cores=cores,
        core_tiles=own * shape[-1] // TILE,
    )  # fmt: skip

    def write(builder: PlanBuilder, source: PlanTensor, *tables: PlanTensor) -> PlanTensor:
        output = PlanTensor("output", result)
        buffers = rotary_buffers(op, source, output, spec)
        if any(tensor.spec.data_format not in FORMATS for tensor in (source, *tables)):
            builder.leave_out_values(
                "rotary_embedding: ttsim does not rotate integers or bfloat4_b; give float32, bfloat16 or bfloat8_b"
            )
        refused = views_refusal(buffers, (source, output), spec, HINT)
        return builder.run("RotaryEmbeddingDeviceOperation", op, [source, *tables], output, buffers, refused=refused)

    return plan_of({"input": call.source, "cosines": call.cosines, "sines": call.sines}, spec, write)


def _shards(source: TensorSpec, spec: DeviceSpec) -> ShardSpec:
    """Those of the tensor; or of rows of tiles on as many cores as divide them."""
    if source.memory_config.shard_spec is not None:
        return source.memory_config.shard_spec
    lines, columns = source.matrix[0] // TILE, source.padded_shape[-1]
    count = next(cores for cores in range(spec.grid.cores, 0, -1) if lines % cores == 0)
    cores = first_cores(count, spec.grid.cols, spec.grid.rows, row_wise=True)
    return ShardSpec(cores.merged(), (round_up(lines // count * TILE, TILE), columns))


def _faults(call: RotaryArguments, place: MemoryConfig) -> Iterator[str]:
    """The refusals of the device operation, in its order."""
    if call.cosines.data_format != call.sines.data_format:
        yield "Cos and Sin dtypes must match"
    shards, columns = call.source.memory_config.shard_spec, call.source.padded_shape[-1]
    if shards is not None:
        if call.source.memory_config.memory_layout is TensorMemoryLayout.WIDTH_SHARDED:
            yield "Input tensor memory layout must not be WIDTH_SHARDED but got TensorMemoryLayout::WIDTH_SHARDED"
        if shards.shape[1] != columns:
            yield f"Input tensor shard width ({shards.shape[1]}) must equal padded width ({columns})"
        if call.source.matrix[0] % shards.shape[0]:
            yield "Error"
    if place.memory_layout is TensorMemoryLayout.WIDTH_SHARDED:
        yield "Output memory config layout must not be WIDTH_SHARDED but got TensorMemoryLayout::WIDTH_SHARDED"
