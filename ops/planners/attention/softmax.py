"""Plans of a softmax. Rules: ttnn 0.81.1 (normalization/softmax), compared with recorded plans."""

from dataclasses import dataclass
from math import prod

from device.errors import ArgumentError, DeviceError, NotSimulatedError
from device.memory.layouts import TensorSpec, require_shard_spec
from device.memory.memory_config import TILE, Layout, MemoryConfig, ShardOrientation, TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, DataFormat, div_up
from device.plan import Operation, Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.planners.attention.softmax_buffers import (
    SoftmaxBlocks,
    SoftmaxFormats,
    along_a_row,
    along_an_axis,
    core_rectangle,
    in_shards,
)
from ops.planners.shape.reshape import reshaped_by
from ops.programs.attention.softmax import Softmax
from ops.programs.buffer_shapes import borrowing_refusal, page_cores
from ops.programs.data_movement.conversions import tilized_by

RANK = 4
FORMATS = (FLOAT32, BFLOAT16, BFLOAT8_B)
NOT_TILED = "Inputs to softmax must be tilized\ninput_tensor: give it TILE_LAYOUT, with ttnn.to_layout"
HEADS = "This path requires head-uniform masks; apply a per-head bias with a separate ttnn::add before ttnn::softmax."


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftmaxArguments:
    """A call."""

    source: TensorSpec
    axis: int | None = None  # As the caller has it; None for the last axis
    stable: bool
    in_place: bool = False
    fused: bool = False  # One of the functions that scale and mask
    scale: float | None = None
    mask: TensorSpec | None = None
    causal: bool = False
    as_given: bool = False  # The device operation alone, without four axes
    by_heads: bool = False  # The mask of shards is that of an image for each head
    place: MemoryConfig | None = None
    blocks: SoftmaxBlocks | None = None  # The program config of shards; None for the default
    fp32_dest: bool | None = None  # Of the compute config; None without one

    @property
    def dim(self) -> int:
        """The axis counted from the front; raises DeviceError if it does not exist. A scalar counts as a vector."""
        rank = len(self.source.shape) or 1
        axis = rank - 1 if self.axis is None else self.axis
        if not -rank <= axis < rank:
            raise DeviceError(
                f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {axis})\n"
                "dim: give an axis of the tensor"
            )
        return axis % rank


def plan_softmax(call: SoftmaxArguments, spec: DeviceSpec) -> Plan:
    """Plan the softmax of the tensor "input", which may be overwritten, with the tensor "mask" if given.

    The tensor has at least one axis and one element; with ``as_given`` it may have no elements.
    """
    dim, rank = call.dim, len(call.source.shape)
    if (call.in_place or call.fused) and rank > RANK and not call.as_given:
        raise DeviceError("Tensor rank is greater than 4\ninput_tensor: reshape it to rank 4")
    if call.in_place and not call.fused and dim != RANK - 1:
        raise DeviceError(
            f"Invalid dimension: {dim}. Currently softmax inplace supports dim -1.\n"
            "dim: give the last axis of a tensor of rank 4, or call ttnn.softmax"
        )
    source = call.source if call.as_given else _in_four_axes(call.source)

    def write(builder: PlanBuilder, given: PlanTensor, mask: PlanTensor | None = None) -> PlanTensor:
        tensor, axis = PlanTensor(given.name, source), dim - rank
        adjusted = dim + len(source.shape) - rank
        tilizes = call.fused or (rank <= RANK and adjusted == rank - 1)
        if call.fused and not call.in_place and mask is not None:
            _check_fused_mask(source, mask.spec)
        if tilizes and not call.in_place:
            tensor = _tiled(builder, tensor, "input.tiles")
            mask = None if mask is None else _tiled(builder, mask, "mask.tiles")
        output = tensor.spec if call.in_place else _output(call, tensor.spec)
        output.require_on(spec)
        _check(call, tensor.spec, None if mask is None else mask.spec, spec)
        if call.as_given and len(source.shape) < 3:
            raise NotSimulatedError(
                "attention_softmax: ttsim does not simulate scores of rank 2; reshape them to rank 4"
            )
        if mask is not None and mask.spec.layout is Layout.ROW_MAJOR and call.blocks is None:
            mask = _mask_in_tiles(builder, mask)
        result = _run(builder, call, tensor, mask, axis, output)
        if not call.as_given:
            _check_shape(output, given.spec.shape)
        builder.free_own(*(part for part in (mask, tensor) if part is not None), keep=[result])
        return PlanTensor(result.name, result.spec.changed(shape=given.spec.shape, padded_shape=None))

    return plan_of({"input": call.source, "mask": call.mask}, spec, write, attempts=True)


def _in_four_axes(tensor: TensorSpec) -> TensorSpec:
    more = (1,) * (RANK - len(tensor.shape))
    return tensor.changed(shape=(*more, *tensor.shape), padded_shape=None) if more else tensor


def _mask_in_tiles(builder: PlanBuilder, mask: PlanTensor) -> PlanTensor:
    """The rows of an image's mask, [batch, 1, columns / 32, 32], as one row in tiles."""
    batch, _, parts, part = mask.spec.shape
    row = reshaped_by(builder, mask, (batch, 1, 1, parts * part), None, None, "mask.row")
    tiles = tilized_by(builder, row, "mask.tiles", place=mask.spec.memory_config, whole=False)
    builder.free_own(row)
    return tiles


def _tiled(builder: PlanBuilder, tensor: PlanTensor, name: str) -> PlanTensor:
    if tensor.spec.layout is Layout.TILE:
        return tensor
    return tilized_by(builder, tensor, name, place=tensor.spec.memory_config, whole=False)


def _check_fused_mask(source: TensorSpec, mask: TensorSpec) -> None:
    """Raises DeviceError for a mask that does not belong to the tensor."""
    shape, own = source.padded_shape, mask.padded_shape
    text = ""
    if shape[-1] != own[-1]:
        text = f"Input and mask inner dimensions must match, got input: {shape[-1]} vs mask: {own[-1]}"
    elif shape[0] != own[0]:
        text = f"Input and mask batch sizes must match, got input: {shape[0]} vs mask: {own[0]}"
    elif own[-2] not in (1, TILE):
        text = (
            f"Mask height must be 1 or input tensor tile height ({TILE}), got: {own[-2]}. A full causal mask is not "
            "accepted here; for causal attention use ttnn::transformer::scaled_dot_product_attention with "
            "is_causal=true."
        )
    else:
        for axis in range(1, len(shape) - 2):
            if own[axis] != 1:
                text = f"Mask intermediate dimension {axis} must be 1, got: {own[axis]}. {HEADS}"
                break
    if text:
        raise DeviceError(f"{text}\nmask: give [batch, 1, 1 or 32, columns]")


def _check_shape(result: TensorSpec, shape: tuple[int, ...]) -> None:
    """Raises DeviceError where a result in shards does not get its shape without padding back."""
    shards, padded = result.memory_config.shard_spec, result.padded_shape
    if shards is not None and shape[-1] != padded[-1] != shards.shape[1]:
        raise DeviceError(
            "Changing the last dimension of a sharded tensor is not supported unless the shard width matches the input "
            f"last dimension. Input shape: Shape({list(padded)}), New shape: Shape({list(shape)}), Shard width: "
            f"{shards.shape[1]}\nmemory_config: give shards of whole rows"
        )


def _check(call: SoftmaxArguments, source: TensorSpec, mask: TensorSpec | None, spec: DeviceSpec) -> None:
    """Raises DeviceError like the device operation, with checks in the same order."""
    if source.layout is not Layout.TILE:
        raise DeviceError(NOT_TILED)
    if source.data_format not in FORMATS:
        raise DeviceError(
            f"Input tensor must be FLOAT32, BFLOAT16, or BFLOAT8_B, got: DataType::{source.data_format.name.upper()}\n"
            "input_tensor: typecast it"
        )
    if mask is not None:
        _check_mask(call, source, mask)
    elif call.scale is not None:
        raise DeviceError("Scale value must not be set when mask is not present\nscale: multiply the tensor before")
    if call.blocks is not None:
        _check_blocks(call, call.blocks, spec)
    elif call.causal and mask is None:
        raise DeviceError(
            "Causal-mask softmax requires an attention mask (is_causal_mask=true with no mask is unsupported).\n"
            "mask: give one"
        )


def _check_mask(call: SoftmaxArguments, source: TensorSpec, mask: TensorSpec) -> None:
    shape, own, blocks = source.padded_shape, mask.padded_shape, call.blocks
    text = ""
    if mask.memory_config.is_sharded():
        if mask.layout is not Layout.TILE:
            text = "Sharded mask must have TILE layout"
        elif own != shape:
            text = "Sharded mask shape must match input tensor shape"
        if text:
            raise DeviceError(f"{text}\nmask: shard it as the tensor")
        return
    if mask.layout is Layout.ROW_MAJOR and own != (own[0], 1, shape[-1] // TILE, TILE):
        raise DeviceError(
            "Non-sharded mask shape must match expected shape\n"
            f"mask: rows of a mask are [{own[0]}, 1, {shape[-1] // TILE}, {TILE}]"
        )
    for axis in range(1, len(shape) - 2):
        if own[axis] != 1:
            raise DeviceError(
                f"Non-sharded mask intermediate dimensions must be 1, got {own[axis]} at dimension {axis}. {HEADS}\n"
                "mask: give [batch, 1, rows, columns]"
            )
    if blocks is None:
        if shape[0] != own[0]:
            text = (
                f"Input and mask batch sizes must match, got Shape({list(shape)}) for input and Shape({list(own)}) "
                "for mask"
            )
        elif call.by_heads:
            text = "Scale causal mask HW dims softmax not supported in default program config"
    else:
        text = _refusal_of_shards(call, blocks, source, mask)
    if text:
        raise DeviceError(f"{text}\nmask, program_config: both must fit the tensor")


def _refusal_of_shards(call: SoftmaxArguments, blocks: SoftmaxBlocks, source: TensorSpec, mask: TensorSpec) -> str:
    shards, shape = source.memory_config.shard_spec, source.padded_shape
    rows, columns, cores = prod(shape[:-1]), shape[-1], prod(blocks.grid)
    if shards is None:
        return "Input tensor must be sharded when using SoftmaxShardedMultiCoreProgramConfig"
    if blocks.block_width % blocks.subblock_width:
        return "block_w must be divisible by subblock_w."
    if blocks.block_width * TILE != columns:
        return "shard width must equal to input tensor shape[3]!"
    if call.by_heads:
        if mask.layout is not Layout.TILE:
            return "Mask must have TILE layout for scale causal mask HW dims softmax"
        if shards.orientation is not ShardOrientation.ROW_MAJOR:
            return "Input must have ROW_MAJOR shard orientation for scale causal mask HW dims softmax"
        if call.scale is None:
            return "Scale value is required for scale causal mask HW dims softmax"
    elif rows * columns != blocks.block_width * blocks.block_height * TILE**2 * cores:
        return (
            f"number of shards must equal to number of cores. M = {rows}, K = {columns}, block_w = "
            f"{blocks.block_width}, block_h = {blocks.block_height}, num_cores = {cores}"
        )
    return ""


def _check_blocks(call: SoftmaxArguments, blocks: SoftmaxBlocks, spec: DeviceSpec) -> None:
    shards, text = call.source.memory_config.shard_spec, ""
    if shards is None:
        raise DeviceError(
            "output_mem_config must have a shard_spec when using SoftmaxShardedMultiCoreProgramConfig\n"
            "program_config: leave it out, or shard the tensor"
        )
    high, wide = shards.shape
    ends = f"Shard shape is [{high}, {wide}] with tile"
    if blocks.block_height != high // TILE:
        text = (
            f"block_h ({blocks.block_height}) must match the shard height in tiles ({high // TILE}). "
            f"{ends} height {TILE}."
        )
    elif blocks.block_width != wide // TILE:
        text = (
            f"block_w ({blocks.block_width}) must match the shard width in tiles ({wide // TILE}). {ends} width {TILE}."
        )
    elif refusal := _refusal_of_grid(call.source, blocks.grid, spec):
        text = refusal
    elif call.causal and call.mask is None:
        text = "Causal-mask softmax requires an attention mask (is_causal_mask=true with no mask is unsupported)."
    if text:
        raise DeviceError(f"{text}\nprogram_config: give the blocks and cores of the tensor's shards")
    if not blocks.subblock_width or blocks.block_width % blocks.subblock_width or call.source.shape[-1] % wide:
        raise NotSimulatedError(
            "softmax: ttsim does not simulate shards whose columns the tensor does not fill, or blocks that sub-blocks "
            "do not fill; give HEIGHT shards and a subblock_w that divides block_w"
        )


def _refusal_of_grid(tensor: TensorSpec, grid: tuple[int, int], spec: DeviceSpec) -> str:
    """Why shards are not on a grid of cores, or do not cover the tensor; empty if they are valid."""
    shards, scheme = tensor.memory_config.shard_spec, tensor.memory_config.memory_layout
    assert shards is not None
    (high, wide), box, cores = shards.shape, shards.grid.bounding_box(), shards.grid.num_cores()
    *outer, last = tensor.padded_shape
    rows = prod(outer)
    if not (0 < grid[0] <= spec.grid.cols and 0 < grid[1] <= spec.grid.rows):
        return (
            f"program_config grid ({grid[0]}x{grid[1]}) must be contained within device grid "
            f"({spec.grid.cols}x{spec.grid.rows})"
        )
    if box.cols > grid[0] or box.rows > grid[1]:
        return f"shard_spec.grid size {box.cols}x{box.rows} does not fit within program_config grid {grid[0]}x{grid[1]}"
    down, across = div_up(rows, high), div_up(last, wide)
    if scheme is TensorMemoryLayout.HEIGHT_SHARDED:
        down, across = cores, 1
    elif scheme is TensorMemoryLayout.WIDTH_SHARDED:
        down, across = 1, cores
    elif down * across != cores:
        return f"Shard layout requires {down}x{across} = {down * across} shards but shard grid has {cores} cores"
    for name, count, side, whole in (("height", down, high, rows), ("width", across, wide, last)):
        total = count * side
        if not 0 <= total - whole < side:
            return (
                f"Shard-padded {name} ({count}x{side} = {total}) does not align with tensor {name} {whole}: trailing "
                f"pad {total - whole} must be less than one shard {name} ({side})"
            )
    return ""


def _run(
    builder: PlanBuilder,
    call: SoftmaxArguments,
    source: PlanTensor,
    mask: PlanTensor | None,
    axis: int,
    output: TensorSpec,
) -> PlanTensor:
    """The program, which depends on the axis, on the rank and on the program config."""
    spec, tensor, blocks = builder.device_spec, source.spec, call.blocks
    *outer, rows, columns = tensor.padded_shape
    high, wide, images = rows // TILE, columns // TILE, prod(outer)
    by_rows = axis == -1 and (call.fused or len(tensor.shape) == RANK)
    formats = _formats(call, tensor.data_format, along_rows=by_rows)
    refused = None
    if blocks is not None:
        cores, share = core_rectangle(blocks.grid), blocks.block_height * blocks.block_width
    elif by_rows:
        cores = page_cores(images * high, spec.grid, row_wise=True)
        share = div_up(images * high, cores.num_cores()) * wide
    else:
        lines = {-1: images * high, -2: images * wide}.get(axis, images * high * wide // tensor.padded_shape[axis])
        cores = page_cores(lines, spec.grid)
        length = {-1: wide, -2: high}.get(axis, tensor.padded_shape[axis])
        share = div_up(lines, cores.num_cores()) * length
        if tensor.data_format == FLOAT32 and not formats.fp32_dest:
            refused = (
                "FP32 destination accumulation must be enabled when input tensor has FLOAT32 data type. Please update "
                "the compute kernel configuration."
            )
    result = source if call.in_place else PlanTensor("output", output)
    if blocks is not None:
        buffers = in_shards(formats, blocks, source, result, mask, spec, causal=call.causal, by_heads=call.by_heads)
        borrowed = [("in0", "src", source)]
        if mask is not None and any(buffer.view_of == mask.name for buffer in buffers):
            borrowed.append(("fused_attn", "mask", mask))
        refused = borrowing_refusal(borrowed)
    elif by_rows:
        padded = tensor.shape[-1] != columns
        buffers = along_a_row(formats, wide, cores, spec, padded=padded, mask=None if mask is None else mask.spec)
    else:
        buffers = along_an_axis(formats, length, axis, cores, spec)
    op = Softmax(
        axis=axis, data_format=tensor.data_format, stable=call.stable or axis != -1, fp32_dest=formats.fp32_dest,
        exps_format=formats.exps, scale=call.scale, masked=mask is not None,
        mask_in_rows=mask is not None and mask.spec.layout is Layout.ROW_MAJOR, causal=call.causal, cores=cores,
        core_tiles=share, part_columns=0 if blocks is None else blocks.block_width * TILE,
    )  # fmt: skip
    read = [source] if mask is None else [mask, source]
    written = None if call.in_place else result
    return builder.run("SoftmaxDeviceOperation", op, read, written, buffers, dataflow=True, refused=refused)


def _formats(call: SoftmaxArguments, data_format: DataFormat, *, along_rows: bool) -> SoftmaxFormats:
    """Formats between the steps: the default sums in 32 bits, but keeps exponentials of rows in 16 bits."""
    is_float32, fp32_dest = data_format == FLOAT32, call.fp32_dest
    if fp32_dest is None:
        fp32_dest = is_float32 or call.blocks is None
    exps = FLOAT32 if fp32_dest else BFLOAT16 if along_rows else data_format
    if along_rows and call.fp32_dest is None and not is_float32:
        exps = BFLOAT16
    return SoftmaxFormats(source=data_format, exps=exps, fp32_dest=fp32_dest, stable=call.stable)


def _output(call: SoftmaxArguments, tensor: TensorSpec) -> TensorSpec:
    place = call.source.memory_config if call.place is None else call.place
    require_shard_spec(place, in_rows=False)
    if place.shard_spec is not None and any(side % TILE for side in place.shard_spec.shape):
        raise DeviceError(
            f"Physical shard shape ({place.shard_spec.shape[0]}, {place.shard_spec.shape[1]}) must be tile "
            f"{{{TILE}, {TILE}}} sized!\n"
            "memory_config: give shards of whole tiles"
        )
    return TensorSpec(tensor.shape, tensor.data_format, Layout.TILE, place)


def require_whole_rows(plan: Plan) -> None:
    """Raises ArgumentError for shards that hold parts of rows: each shard gets a softmax of its own."""
    for step in plan.steps:
        if isinstance(step, Operation) and isinstance(step.op, Softmax):
            columns, part = plan.tensors[step.inputs[-1]].padded_shape[-1], step.op.part_columns
            if part and part != columns:
                raise ArgumentError(
                    f"softmax: shards hold {part} of {columns} columns, and each shard gets a softmax of its own; give "
                    "shards of whole rows"
                )
