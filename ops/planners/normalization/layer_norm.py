"""Plans of ttnn.layer_norm and ttnn.rms_norm."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from device.cores import CoreRangeSet
from device.errors import DeviceError
from device.memory.layouts import TensorSpec, require_shard_spec, side
from device.memory.memory_config import TILE, Layout, MemoryConfig, ShardOrientation, TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, div_up
from device.plan import CircularBuffer, Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.planners.normalization.shards import grid_fault, program_fault
from ops.programs.buffer_shapes import in_dram, not_in_l1, page_cores, spread_evenly
from ops.programs.data_movement.conversions import cloned
from ops.programs.normalization.layer_norm import Exchange, LayerNorm, RowBuffers, shard_buffers
from ops.programs.normalization.layer_norm_welford import WelfordRows, reciprocals, welford_shard_buffers

PROGRAM = "LayerNormDeviceOperation"
MOST_ADDED_TILES = 8  # of a row with a residual, up to which Welford's algorithm is the cheaper
ROWS_REFUSED = (
    "ttnn::rms_norm does not support ROW_MAJOR input tensors. Use TILE layout.\n"
    "input_tensor: use to_layout(TILE_LAYOUT)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NormProgram:
    """A program config; blocks are those of sharded tensors."""

    grid: tuple[int, int] | None = None  # Columns and rows of cores; None for the config of interleaved tensors
    subblock_w: int = 1
    block_h: int = 0
    block_w: int = 0
    inplace: bool = False
    legacy_reduction: bool = False
    use_welford: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NormArguments:
    """A call of layer_norm or rms_norm."""

    rms: bool
    source: TensorSpec
    residual: TensorSpec | None = None
    weight: TensorSpec | None = None
    bias: TensorSpec | None = None
    reciprocals: TensorSpec | None = None  # A table, which some programs of Welford's algorithm read
    epsilon: float = 1e-12
    place: MemoryConfig | None = None  # Of the result; None for that of the tensor
    program: NormProgram | None = None  # None lets the call choose
    fidelity_phases: int = 4
    fp32_dest: bool = True
    full_dst: bool = False  # Dst is not halved

    @property
    def tensors(self) -> dict[str, TensorSpec | None]:
        """Its tensors by their names in the plan."""
        named = {"input": self.source, "residual": self.residual, "weight": self.weight, "bias": self.bias}
        return named | {"reciprocals": self.reciprocals}

    def by_welford(self, program: "NormProgram") -> bool:
        """Whether the vector unit computes means and variances: needs a 32-bit Dst, and float32 if sharded."""
        sharded = self.source.memory_config.is_sharded()
        return program.use_welford and self.fp32_dest and (not sharded or self.source.data_format == FLOAT32)

    @property
    def name(self) -> str:
        """The function."""
        return "rms_norm" if self.rms else "layer_norm"


def plan_norm(call: NormArguments, spec: DeviceSpec, *, l1_bytes: int) -> Plan:
    """Plan a call of its tensors; raises DeviceError for a wrong one.

    ``l1_bytes`` is the free L1 of a core below all its L1 buffers, including the result's.
    """
    _require_elements(call)
    if not call.source.volume and not (call.rms and call.source.layout is Layout.ROW_MAJOR):  # copied in any case
        where = call.place or call.source.memory_config
        return plan_of(
            call.tensors,
            spec,
            lambda builder, tensor, *_: cloned(builder, tensor, where, "output"),
        )
    sharded = call.source.memory_config.is_sharded()
    program = call.program or _chosen(call.source)
    place = call.place or call.source.memory_config
    by_rows = call.source.layout is Layout.ROW_MAJOR
    if by_rows and call.rms:
        raise DeviceError(ROWS_REFUSED)
    if not sharded or program.grid is None:
        require_shard_spec(place, in_rows=by_rows)
    faults = (*_tensor_faults(call), *_shard_faults(call, place), *_config_faults(call, program, place, spec))
    if faults and program.inplace:
        raise DeviceError(faults[0])
    if sharded and place.shard_spec is None:
        place = replace(place, shard_spec=call.source.memory_config.shard_spec)

    def write(builder: PlanBuilder, *tensors: PlanTensor) -> PlanTensor:
        named = {tensor.name: tensor for tensor in tensors}
        layout = Layout.TILE if sharded else None  # of shards, whatever the tensor's
        output = PlanTensor("output", call.source.changed(memory_config=place, layout=layout))
        if faults:  # the library allocates the result before it checks the call
            op = _op(call, cores=CoreRangeSet([]), core_tiles=(0, 0))
            return builder.run(PROGRAM, op, tensors, output, refused=faults[0])
        if sharded:
            return _on_shards(builder, call, program, named, output)
        return _on_rows(builder, call, program, named, output, l1_bytes)

    return plan_of(call.tensors, spec, write)


def _require_elements(call: NormArguments) -> None:
    if not call.source.shape and not call.rms:
        raise DeviceError(
            "LayerNorm operation not supported for 0D tensors. (rank=0)\ninput_tensor: reshape it to one axis or more"
        )
    if not call.source.shape:  # in tiles it is made of element-wise functions
        raise DeviceError(ROWS_REFUSED)


def _chosen(source: TensorSpec) -> NormProgram:
    shards = source.memory_config.shard_spec
    if shards is None:
        return NormProgram()
    box, (high, wide) = shards.grid.bounding_box(), shards.shape
    return NormProgram(grid=(box.cols, box.rows), block_h=high // TILE, block_w=wide // TILE)


def _on_rows(
    builder: PlanBuilder,
    call: NormArguments,
    program: NormProgram,
    named: dict[str, PlanTensor],
    output: PlanTensor,
    l1_bytes: int,
) -> PlanTensor:
    padded = call.source.padded_shape
    images, high = prod(padded[:-2]), padded[-2] if len(padded) > 1 else 1
    tile_rows = images * div_up(high, TILE)
    cores = page_cores(tile_rows, builder.device_spec.grid, row_wise=True)
    width_tiles = div_up(padded[-1], TILE)
    rows, by_welford = (
        RowBuffers(
            op=_op(
                call,
                cores=cores,
                core_tiles=(spread_evenly(tile_rows, cores.num_cores())[1], width_tiles),
                welford=welford,
            ),
            width_tiles=width_tiles,
            by_rows=call.source.layout is Layout.ROW_MAJOR,
            vectors_by_rows=any(
                vector is not None and vector.layout is Layout.ROW_MAJOR for vector in (call.weight, call.bias)
            ),
        )
        for welford in (False, True)
    )
    if call.by_welford(program):
        welford = WelfordRows(rows=by_welford)
        if not builder.device_spec.compute.reciprocal_table or _takes_welford(call, rows, welford, l1_bytes):
            return _by_welford(builder, call, named, output, welford, l1_bytes)
    buffers = rows.buffers(l1_bytes)
    refused = _narrow_rows_fault(call) or rows.shortage(buffers, l1_bytes)
    if rows.by_rows and rows.vectors_by_rows and rows.exceeds(l1_bytes):
        refused = (
            "The LayerNorm large-tensor path does not support row-major gamma/beta; pass gamma/beta in TILE layout\n"
            "weight, bias: use to_layout(TILE_LAYOUT)"
        )
    return _run(builder, call, rows.op, list(named.values()), output, buffers, refused)


def _takes_welford(call: NormArguments, rows: RowBuffers, welford: WelfordRows, l1_bytes: int) -> bool:
    """Whether a device with a table of reciprocals takes Welford's algorithm where the call allows it.

    Of rows in bfloat16 with a weight or a bias, the library chooses the program that it counts the cheaper, as long as
    whole rows fit. It counts float32, and bfloat16 without both, in favor of Welford's, and block floats against it.
    """
    vectors = (call.weight is not None) + (call.bias is not None)
    if call.source.data_format != BFLOAT16 or not vectors:
        return not call.source.data_format.is_block
    cheaper = vectors == 2 and (call.residual is None or rows.width_tiles <= MOST_ADDED_TILES)
    return welford.in_two_passes(l1_bytes) is not None and (cheaper or rows.exceeds(l1_bytes))


def _by_welford(
    builder: PlanBuilder,
    call: NormArguments,
    named: dict[str, PlanTensor],
    output: PlanTensor,
    welford: WelfordRows,
    l1_bytes: int,
) -> PlanTensor:
    op, table, refused = welford.rows.op, named.get("reciprocals"), None
    buffers = welford.in_two_passes(l1_bytes)
    if buffers is None:
        refused = _table_fault(table)
        buffers = welford.by_tiles(l1_bytes)
        if table is not None:
            buffers = (*buffers, reciprocals(table, op, builder.device_spec))
    return _run(builder, call, op, list(named.values()), output, buffers, refused)


def _table_fault(table: PlanTensor | None) -> str | None:
    """The real library's error text for a program without its table of reciprocals, or with one in DRAM."""
    if table is None:
        return (
            "Reciprocal tensor not provided for Welford layernorm\n"
            "recip_tensor: give create_layer_norm_reciprocals(device, core_range_set, width)"
        )
    if in_dram(table.spec):
        return f"{not_in_l1('reciprocals', 'recip')}\nrecip_tensor: put it into L1"
    return None


def _on_shards(
    builder: PlanBuilder, call: NormArguments, program: NormProgram, named: dict[str, PlanTensor], output: PlanTensor
) -> PlanTensor:
    shards = call.source.shards
    cores, high, wide = shards.grid.merged(), program.block_h, program.block_w
    exchange = _exchange(call.source, program, builder.device_spec)
    welford = call.by_welford(program)
    op = _op(call, cores=cores, core_tiles=(high, wide), partners=exchange.partners, welford=welford)
    tensors = list(named.values())
    if program.inplace:
        output = named["input"]
        tensors = [*tensors, output]
    views = (named["input"], named.get("residual"))
    buffers = (welford_shard_buffers if welford else shard_buffers)(op, views, output, exchange)
    refused = _program_fault(call, program, exchange)
    if welford:
        table = named.get("reciprocals")
        refused = refused or _table_fault(table)
        buffers = buffers if table is None else (*buffers, reciprocals(table, op, builder.device_spec))
    if refused is None and in_dram(call.source):
        refused = f"{not_in_l1('in0', 'input')}\ninput_tensor: move its shards to L1"
    return _run(builder, call, op, tensors, output, buffers, refused)


def _run(
    builder: PlanBuilder,
    call: NormArguments,
    op: LayerNorm,
    reads: Sequence[PlanTensor],
    output: PlanTensor,
    buffers: tuple[CircularBuffer, ...],
    refused: str | None,
) -> PlanTensor:
    """The program, which writes into the last of the tensors that it reads if that is the output."""
    return builder.run(
        PROGRAM,
        op,
        reads,
        None if output in reads else output,
        () if refused is not None else buffers,
        dataflow=True,
        key=_key(call, output),
        refused=refused,
    )


def _op(call: NormArguments, **placed: object) -> LayerNorm:
    tensors = (call.residual, call.weight, call.bias)
    residual, weight, bias = (None if tensor is None else tensor.data_format for tensor in tensors)
    return LayerNorm(
        shape=call.source.shape,
        rms=call.rms,
        epsilon=call.epsilon,
        data_format=call.source.data_format,
        residual_format=residual,
        weight_format=weight,
        bias_format=bias,
        fidelity_phases=call.fidelity_phases,
        fp32_dest=call.fp32_dest,
        **placed,  # type: ignore[arg-type]
    )


def _key(call: NormArguments, output: PlanTensor) -> tuple[object, ...]:
    return ("layer_norm", call, output.spec)


def _exchange(source: TensorSpec, program: NormProgram, spec: DeviceSpec) -> Exchange:
    """The cores that share a row: all cores if there is only one row of blocks, in two stages if possible."""
    shards = source.shards
    box, by_rows = shards.grid.bounding_box(), shards.orientation is ShardOrientation.ROW_MAJOR
    if source.matrix[0] != program.block_h * TILE:
        return Exchange(partners=box.cols if by_rows else box.rows, first_stage=0, second_stage=0)
    partners = shards.grid.num_cores()
    if by_rows and box.cols > 1 and box.cols <= spec.grid.cols and box.rows > 1:
        return Exchange(partners=partners, first_stage=box.cols, second_stage=box.rows)
    if not by_rows and box.cols > 1 and box.rows == spec.grid.rows:
        return Exchange(partners=partners, first_stage=box.rows, second_stage=box.cols)
    return Exchange(partners=partners, first_stage=0, second_stage=0)


def _narrow_rows_fault(call: NormArguments) -> str | None:
    """The real library's error text for float32 rows that would become tiles of fewer bits."""
    if call.source.layout is Layout.TILE or call.source.data_format != FLOAT32 or call.fp32_dest:
        return None
    return (
        "ROW_MAJOR float32 input requires fp32_dest_acc_en=True in the compute kernel config (SRCA is 16-bit when "
        "fp32_dest_acc_en=False, silently truncating float32 to bfloat16 during tilize)\n"
        "compute_kernel_config: set fp32_dest_acc_en=True"
    )


def _program_fault(call: NormArguments, program: NormProgram, exchange: Exchange) -> str | None:
    """The real library's error text for a program that it cannot build."""
    most = (8 if call.full_dst else 4) * (1 if call.fp32_dest else 2)
    if program.subblock_w > most:
        mode, full = (" in fp32 mode" if call.fp32_dest else ""), str(call.full_dst).lower()
        return (
            f"subblock_wt={program.subblock_w}, but subblock width must less than {most} tiles{mode} when "
            f"dst_full_sync_en is {full}"
        )
    shards = call.source.shards
    if exchange.partners < 2 or call.source.matrix[0] != program.block_h * TILE:
        return None
    box = shards.grid.bounding_box()
    if shards.orientation is ShardOrientation.ROW_MAJOR:
        outside = not exchange.second_stage and box.cols == 1 and box.end.x > 0
    else:
        high, first = program.block_h, exchange.first_stage
        outside = (div_up(high, div_up(high, first)) if first else box.rows) == 1
        summing = div_up(high, div_up(high, exchange.partners))  # cores; the others begin behind whole columns of them
        below = box.start.y > 0 and not first  # the library takes the columns to end at their number of rows
        outside = outside or (below and summing % box.rows == 0 and summing < exchange.partners)
    return "Start core must be within grid size" if outside else None


def _shape(shape: tuple[int, ...]) -> str:
    return f"Shape({list(shape)})"


def _tensor_faults(call: NormArguments) -> Iterator[str]:
    """The errors of the tensors, in the real library's order."""
    source, residual = call.source, call.residual
    if call.rms and source.layout is Layout.ROW_MAJOR:
        yield ROWS_REFUSED
    if source.layout is Layout.ROW_MAJOR and source.memory_config.is_sharded():
        yield (
            "Input tensor must have TILE layout (ROW_MAJOR is only supported for non-sharded tensors), got: "
            "Layout::ROW_MAJOR\ninput_tensor: use to_layout(TILE_LAYOUT)"
        )
    if source.layout is Layout.ROW_MAJOR and source.shape[-1] % TILE:
        yield (
            f"ROW_MAJOR input requires W ({source.shape[-1]}) to be a multiple of tile width ({TILE})\n"
            "input_tensor: use to_layout(TILE_LAYOUT)"
        )
    if source.data_format not in (FLOAT32, BFLOAT16, BFLOAT8_B):
        yield (
            f"Input tensor must be FLOAT32, BFLOAT16, or BFLOAT8_B, got: DataType::{source.data_format.name.upper()}\n"
            "input_tensor: typecast it"
        )
    if residual is not None and residual.layout is not Layout.TILE:
        yield (
            f"Residual tensor must have TILE layout, got: Layout::{residual.layout.name}\n"
            "residual_input_tensor: use to_layout(TILE_LAYOUT)"
        )
    if residual is not None and (source.shape, source.padded_shape) != (residual.shape, residual.padded_shape):
        shapes = [
            f"logical={_shape(tensor.shape)} padded={_shape(tensor.padded_shape)}" for tensor in (source, residual)
        ]
        yield (
            f"Input and residual logical and padded shapes must match, got input: {shapes[0]} vs residual: {shapes[1]}"
            "\nresidual_input_tensor: give a tensor of the input's shape"
        )
    if call.weight is not None:
        yield from _vector_faults(call, "Gamma", call.weight)
        if call.bias is not None and call.weight.layout is not call.bias.layout:
            yield "Gamma and beta must have the same layout!\nbias: give it the layout of the weight"
    if call.bias is not None:
        yield from _vector_faults(call, "Beta", call.bias)


def _vector_faults(call: NormArguments, name: str, vector: TensorSpec) -> Iterator[str]:
    source, low = call.source, name.lower()
    advice = f"\n{'weight' if name == 'Gamma' else 'bias'}: give [1, {source.shape[-1]}] in TILE_LAYOUT"
    width, padded = source.padded_shape[-1], vector.padded_shape
    if vector.layout is Layout.TILE:
        if padded[-1] != width or side(vector.shape, -1) < source.shape[-1]:
            sides = (source.shape[-1], width, side(vector.shape, -1), padded[-1])
            yield (
                f"Input and {low} padded widths must match and {low} logical width must be >= input logical width "
                f"(otherwise valid input columns would be {'multiplied by' if name == 'Gamma' else 'offset by'} {low} "
                f"padding). Got input: logical[-1]={sides[0]} padded[-1]={sides[1]} vs {low}: logical[-1]={sides[2]} "
                f"padded[-1]={sides[3]}{advice}"
            )
        high = padded[-2] if len(padded) > 1 else 1
        if high != TILE:
            yield f"{name} tensor height must equal tile height ({TILE}), got: {high}{advice}"
        return
    volume = prod(padded)
    if padded[-1] != TILE or volume // TILE != width // TILE:
        if name == "Gamma":
            yield (
                "Gamma's last padded dim needs to equal tile width and gamma's volume needs to align with last padded "
                f"dim of input. Error with gamma.value().padded_shape(): {_shape(padded)}, tile_width: {TILE}, "
                f"gamma.value().physical_volume(): {volume}, a.padded_shape(): {_shape(source.padded_shape)}{advice}"
            )
        yield (
            f"Beta tensor dimensions must align with input tensor. Got beta padded shape: {padded[-1]}, physical "
            f"volume: {volume}, input padded shape: {width}, tile_width: {TILE}{advice}"
        )
    if vector.data_format not in (FLOAT32, BFLOAT16):
        yield (f"{name} tensor must be FLOAT32 or BFLOAT16, got: DataType::{vector.data_format.name.upper()}{advice}")


def _shard_faults(call: NormArguments, place: MemoryConfig) -> Iterator[str]:
    """The errors of the shards."""
    source, residual = call.source, call.residual
    if not source.memory_config.is_sharded():
        return
    if source.memory_config.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED:
        yield "Height sharded inputs are not supported.\ninput_tensor: use BLOCK_SHARDED or WIDTH_SHARDED"
    if not place.is_sharded() or place.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED:
        yield "Sharded inputs require sharded outputs.\nmemory_config: give that of the input"
    if residual is not None:
        if not residual.memory_config.is_sharded():
            yield "residual tensor b should be sharded if input a is sharded\nresidual_input_tensor: shard it alike"
        if residual.memory_config.shard_spec != source.memory_config.shard_spec:
            yield "Both a and b should have the same shard spec\nresidual_input_tensor: shard it alike"
        if residual.memory_config != source.memory_config:
            yield "Both a and b should have the same memory config\nresidual_input_tensor: shard it alike"
    fault = grid_fault(source.shards)
    if fault is not None:
        yield f"{fault}\ninput_tensor: use a rectangle of cores"


def _config_faults(call: NormArguments, program: NormProgram, place: MemoryConfig, spec: DeviceSpec) -> Iterator[str]:
    """The errors of the program config."""
    source = call.source
    if program.grid is not None and source.memory_config.is_sharded():
        fault = program_fault(source, program.grid)
        if fault is not None:
            yield f"{fault}\nprogram_config: leave it out to let the call choose"
    if program.use_welford and source.layout is Layout.ROW_MAJOR:
        yield (
            "LayerNorm with use_welford=True requires TILE input; the SFPU two-pass kernels do not implement ROW_MAJOR "
            "input tilization.\ninput_tensor: use to_layout(TILE_LAYOUT)"
        )
    if program.use_welford and call.rms:
        yield "Welford's algorithm is not supported for RMSNorm\nprogram_config: leave use_welford out"
    if program.grid is None:
        if source.memory_config.is_sharded():
            yield "std::get: wrong index for variant\nprogram_config: use LayerNormShardedMultiCoreProgramConfig"
        return
    if not source.memory_config.is_sharded():
        yield "bad optional access\nprogram_config: use LayerNormDefaultProgramConfig for interleaved tensors"
        return
    if place.shard_spec is None and not program.inplace:
        source.changed(memory_config=replace(place, shard_spec=source.shards))  # raises for shards that do not fit
    before = source.memory_config
    if before.buffer_type is not place.buffer_type:
        yield (
            f"Input and output buffer types must match, got input: BufferType::{before.buffer_type.name} vs output: "
            f"BufferType::{place.buffer_type.name}\nmemory_config: give that of the input"
        )
    if before.memory_layout is not place.memory_layout:
        yield (
            "Input and output memory layouts must match, got input: "
            f"TensorMemoryLayout::{before.memory_layout.name} vs output: "
            f"TensorMemoryLayout::{place.memory_layout.name}\nmemory_config: give that of the input"
        )
    yield from _block_faults(source, program, spec)


def _block_faults(source: TensorSpec, program: NormProgram, spec: DeviceSpec) -> Iterator[str]:
    advice = "\nprogram_config: leave it out to let the call choose"
    shards = source.shards
    rows, columns = source.matrix[0] // TILE, source.matrix[1] // TILE
    if not program.subblock_w or program.block_w % program.subblock_w:
        yield f"block_w must be divisible by subblock_w.{advice}"
    box, by_rows = shards.grid.bounding_box(), shards.orientation is ShardOrientation.ROW_MAJOR
    across, down = (box.cols, box.rows) if by_rows else (box.rows, box.cols)
    suffix = ("c", "r") if by_rows else ("r", "c")
    if rows == program.block_h:
        across, down, suffix = shards.grid.num_cores(), 1, ("", "")
    of = [f"num_cores{f'_{letter}' if letter else ''}" for letter in suffix]
    if div_up(columns, across) != program.block_w:
        yield f"block_w ({program.block_w}) must equal to K (in tiles) / {of[0]} ({div_up(columns, across)}){advice}"
    if div_up(rows, down) != program.block_h:
        yield (
            f"block_h ({program.block_h}) must equal ceil(Mt / {of[1]}) ({div_up(rows, down)}); Mt={rows}, "
            f"{of[1]}={down}{advice}"
        )
    for name, axis, block in (("height", 0, program.block_h), ("width", 1, program.block_w)):
        if block * TILE != shards.shape[axis]:
            yield (
                f"Block {name} * tile_{name} must match shard shape[{axis}], got {block * TILE} vs "
                f"{shards.shape[axis]}{advice}"
            )
