"""Plans of a rotary embedding whose pairs a matrix exchanges. Rules: ttnn 0.81.1, compared with its plans."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from device.cores import CoreRangeSet, core_rectangle
from device.errors import DeviceError, NotSimulatedError
from device.memory.layouts import TensorSpec, require_shard_spec, side
from device.memory.memory_config import TILE, Layout, MemoryConfig, ShardOrientation, TensorMemoryLayout
from device.numbers.formats import BFLOAT16, div_up
from device.plan import CircularBuffer, Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.programs.attention.rotary_llama import MOST_KEPT_ROWS, RotaryLlama, rotary_llama_buffers
from ops.programs.buffer_shapes import beyond_shards, not_in_l1

RANK = 4
MOST_COLUMNS, MOST_COLUMNS_OF_FLOAT32 = 256, 128
HINT = "rotary_embedding_llama: give bfloat16 in tiles, tables [1, 1, rows, columns] and a matrix [1, 1, 32, 32]"
NAMES = ("input", "cos", "sin", "trans_mat")


@dataclass(frozen=True, slots=True, kw_only=True)
class RotaryLlamaArguments:
    """A call."""

    source: TensorSpec
    cosines: TensorSpec
    sines: TensorSpec
    matrix: TensorSpec
    decode: bool = False
    place: MemoryConfig | None = None  # None for that of the tensor
    fidelity_phases: int = 4
    fp32_dest: bool = False

    @property
    def tensors(self) -> tuple[TensorSpec, ...]:
        """All tensors in order."""
        return self.source, self.cosines, self.sines, self.matrix

    @property
    def written(self) -> MemoryConfig:
        """Memory of the result."""
        return self.source.memory_config if self.place is None else self.place


def plan_rotary_llama(call: RotaryLlamaArguments, spec: DeviceSpec) -> Plan:
    """Plan the rotation of "input" by "cos", "sin" and "trans_mat"; raises DeviceError."""
    require_shard_spec(call.written, in_rows=False)
    result = TensorSpec(call.source.shape, BFLOAT16, call.source.layout, call.written)
    result.require_on(spec)
    for text in _refusals(call, spec):
        raise DeviceError(f"{text}\n{HINT}")
    for axis in range(RANK):
        side(call.source.shape, axis)  # which the program counts
    if any(len(tensor.shape) != RANK for tensor in call.tensors):
        raise NotSimulatedError(f"{HINT}; ttsim simulates tensors of {RANK} axes")
    op = _decoded(call) if call.decode else _whole(call, spec)
    lost = _unknown(call, op)

    def write(builder: PlanBuilder, *tensors: PlanTensor) -> PlanTensor:
        output = PlanTensor("output", result)
        buffers = rotary_llama_buffers(op, tensors, output)
        viewed = (*tensors, output) if call.decode else ()
        refused = next(_buffer_refusals(viewed, buffers, spec), None)
        if lost and not refused:
            builder.leave_out_values(f"rotary_embedding_llama: {lost}")
        return builder.run(
            "RotaryEmbeddingLlamaDeviceOperation", op, tensors, output, buffers,
            dataflow=True, refused=refused and f"{refused}\n{HINT}",
        )  # fmt: skip

    return plan_of(dict(zip(NAMES, call.tensors, strict=True)), spec, write)


def _whole(call: RotaryLlamaArguments, spec: DeviceSpec) -> RotaryLlama:
    """The program of whole sequences, whose images and rows of tiles the cores share; few rows keep their tables."""
    batch, heads, rows, _ = shape = call.source.padded_shape
    lines, cores = rows // TILE, spec.grid.cores
    core_batch = div_up(batch, min(batch, cores))
    core_lines = div_up(lines, min(cores // min(batch, cores), lines))
    by_head = call.cosines.padded_shape[1] == heads
    reloads = by_head or core_lines * heads > MOST_KEPT_ROWS
    read = core_batch * core_lines * (heads if reloads else 1)
    return RotaryLlama(
        shape=shape, decode=False, fidelity_phases=call.fidelity_phases, fp32_dest=call.fp32_dest,
        cores=core_rectangle(spec.grid.cols, spec.grid.rows), core_rows=core_batch * heads * core_lines,
        table_rows=read, kept_rows=1 if reloads else core_lines,
    )  # fmt: skip


def _decoded(call: RotaryLlamaArguments) -> RotaryLlama:
    """The program of one token per user, on the rectangle around the cores of the shards."""
    shards = call.source.shards
    box = CoreRangeSet([shards.grid.bounding_box()])
    users = call.source.padded_shape[1]
    return RotaryLlama(
        shape=call.source.padded_shape, decode=True, fidelity_phases=call.fidelity_phases, fp32_dest=call.fp32_dest,
        cores=box, core_rows=shards.shape[0] // TILE, table_rows=div_up(users, min(users, box.num_cores())),
        kept_rows=1,
    )  # fmt: skip


def _unknown(call: RotaryLlamaArguments, op: RotaryLlama) -> str:
    """Why values of the result depend on memory outside the tensors; empty if they do not."""
    rows, known = call.source.shape[2], call.cosines.shape[2]
    if not call.decode:
        if known < rows:
            return f"tables of {known} rows have none for {rows - known} of {rows} rows; give longer tables"
        by_head = call.source.padded_shape[1] == call.cosines.padded_shape[1] > 1
        if by_head and call.cosines.padded_shape[2] != call.source.padded_shape[2]:
            return "tables of each head are read as if they had the rows of the tensor; give them as many"
        return ""
    if call.source.shards.shape[0] != call.source.padded_shape[2]:
        return f"a core has one user; give shards of {call.source.padded_shape[2]} rows"
    users = [_dealt(tensor) for tensor in call.tensors]
    count = call.source.shape[1]
    if any(cores[:count] != users[0][:count] for cores in users):
        return "every core reads the tables and the matrix of its own L1; give all tensors the same cores"
    return ""


def _dealt(tensor: TensorSpec) -> tuple[object, ...]:
    """The cores of a tensor's shards in order."""
    return tensor.shards.grid.cores(tensor.shards.orientation is ShardOrientation.ROW_MAJOR)


def _refusals(call: RotaryLlamaArguments, spec: DeviceSpec) -> Iterator[str]:
    """The refusals of the library, in its order."""
    source, cosines, columns = call.source, call.cosines, side(call.source.shape, -1)
    for name, tensor in zip(
        ("input tensor", "cos tensor", "sin tensor", "transformation matrix"), call.tensors, strict=True
    ):
        if tensor.layout is not Layout.TILE:
            yield f"{name} to rotary embedding must be tilized"
    if columns > MOST_COLUMNS_OF_FLOAT32 and call.fp32_dest:
        yield f"If head_dim is > {MOST_COLUMNS_OF_FLOAT32}, fp32_dest_acc_en must be False"
    if columns > MOST_COLUMNS:
        yield f"Head dim must be less than {MOST_COLUMNS}"
    if call.decode and columns % TILE:
        yield "Head dim must be a multiple of TILE_WIDTH in decode mode"
    if any(tensor.data_format != BFLOAT16 for tensor in call.tensors):
        yield "All input tensors must have dtype = bfloat16"
    if source.memory_config.memory_layout is not call.written.memory_layout:
        yield "Input tensor and output tensor must have same memory layout"
    if cosines.shape != call.sines.shape:
        yield "Cos and Sin dims must match"
    yield from _decode_refusals(call, spec) if call.decode else _whole_refusals(call)


def _decode_refusals(call: RotaryLlamaArguments, spec: DeviceSpec) -> Iterator[str]:
    if side(call.source.shape, 0) != 1:
        yield (
            "rotary_embedding_llama currently only supports sharded inputs in decode mode, and therefore, seq_len (in "
            "dim 0) must be 1."
        )
    names = ("Sharded inputs for RoPE", "cos tensor for RoPE", "sin tensor for RoPE", "transformation matrix for RoPE")
    for name, tensor in zip(names, call.tensors, strict=True):
        if tensor.memory_config.memory_layout is not TensorMemoryLayout.HEIGHT_SHARDED:
            yield f"{name} must be HEIGHT_SHARDED."
    if (users := side(call.source.shape, 1)) > spec.grid.cores:
        yield (
            "In decode mode, RoPE is parallelized over batch dimension, and therefore, batch size must be less than or "
            "equal to the number of cores"
        )
    if side(call.cosines.shape, 1) != users:
        yield "Cos and Sin must have the same batch size as the input"
    if call.cosines.shards.shape[0] != TILE:
        yield "In decode mode, RoPE only supports n_heads (shard_shape[0]) less than equal to TILE_HEIGHT"
    yield from _matrix_refusals(call.matrix, *call.matrix.shards.shape)


def _whole_refusals(call: RotaryLlamaArguments) -> Iterator[str]:
    source, cosines, columns = call.source, call.cosines, side(call.source.shape, -1)
    if source.memory_config.is_sharded():
        yield "Input tensor must be interleaved in prefill mode"
    if side(cosines.shape, 0) != 1 or side(cosines.shape, -1) != columns:
        shape = f"Shape({list(cosines.shape)})"
        yield f"Cos dims must match input dims: cos.shape = {shape}, head_dim = {columns}"
    own, heads = side(cosines.shape, 1), side(source.shape, 1)
    if own not in (1, heads):
        yield f"Num heads in cos/sin must match input tensor num heads or be 1. Expected {heads}, got {own}"
    by_height = [
        tensor.memory_config.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED for tensor in (cosines, call.sines)
    ]
    if by_height[0] is not by_height[1]:
        yield "Cos and sin must both be HEIGHT_SHARDED or both be INTERLEAVED for prefill RoPE"
    if cosines.memory_config.is_sharded() and not by_height[0]:
        yield "Cos tensor must be either INTERLEAVED or HEIGHT_SHARDED for prefill RoPE"
    for name, tensor in (("cos", cosines), ("sin", call.sines)):
        if by_height[0] and tensor.shards.shape[0] != TILE:
            yield f"HEIGHT_SHARDED {name} shard height must equal TILE_HEIGHT for prefill RoPE"
    yield from _matrix_refusals(call.matrix, *(side(call.matrix.shape, axis) for axis in (-2, -1)))


def _matrix_refusals(matrix: TensorSpec, rows: int, columns: int) -> Iterator[str]:
    """The errors of a transformation matrix; each core reads a part of this size."""
    if side(matrix.shape, 0) != 1 or side(matrix.shape, 1) != 1:
        yield "Transformation matrix must have 1st & 2nd dim equal to 1"
    if columns != TILE:
        yield "Transformation matrix must have 4th dim equal to TILE_WIDTH"
    if rows != TILE:
        yield "Transformation matrix must have 3rd dim equal to TILE_HEIGHT"


def _buffer_refusals(
    tensors: Sequence[PlanTensor], buffers: Sequence[CircularBuffer], spec: DeviceSpec
) -> Iterator[str]:
    """The errors of buffers that cannot be views of the shards of tensors."""
    for tensor in tensors:
        view = next(buffer for buffer in buffers if buffer.view_of == tensor.name)
        name = "out" if tensor.name == "output" else tensor.name
        if not tensor.in_l1:
            yield not_in_l1(name, tensor.name)
        pages, bank_bytes = view.size_bytes // view.page_bytes, tensor.spec.buffer(spec).bank_bytes
        yield from beyond_shards(name, view.page_bytes, pages, tensor.name, bank_bytes)
