"""Plans of ttnn.group_norm: arguments and checks, and the program of images in shards."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from device.errors import DeviceError, NotSimulatedError
from device.memory.layouts import TensorSpec, side
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    TILE,
    Layout,
    ShardOrientation,
    TensorMemoryLayout,
)
from device.numbers.formats import BFLOAT16, FLOAT32
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from device.spec.releases import release_of
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.planners.normalization.group_arguments import GroupNormArguments
from ops.planners.normalization.group_grids import widest_span
from ops.planners.normalization.group_interleaved import MOST_GROUPS, grid_faults, write_interleaved
from ops.planners.normalization.shards import program_fault, rectangle_fault
from ops.programs.buffer_shapes import association_refusal
from ops.programs.normalization.group_norm import GroupNorm, group_buffers, tiles_of_shard

RANK = 4


def plan_group_norm(call: GroupNormArguments, spec: DeviceSpec, *, l1_bytes: int) -> Plan:
    """Plan a call of the tensors "input", "weight", "bias", "mask" and "negative_mask"; raises DeviceError.

    ``l1_bytes`` is the L1 of a core for tensors and circular buffers.
    """
    sharded = call.source.memory_config.is_sharded()
    for text in chain(
        _call_faults(call, spec), grid_faults(call, spec), _source_faults(call, spec), _core_faults(call, spec),
        _vector_faults(call), _mask_faults(call),
    ):  # fmt: skip
        raise DeviceError(text)
    _require_simulated(call)
    inputs = {"input": call.source, "weight": call.weight, "bias": call.bias}
    inputs |= {"mask": call.stacked_mask, "negative_mask": call.negative_mask}

    def write(builder: PlanBuilder, *tensors: PlanTensor) -> PlanTensor:
        if not sharded:
            return write_interleaved(builder, call, tensors, l1_bytes)
        refused = next(_shard_faults(call), None)
        source = tensors[0]
        output = source
        if not call.inplace:
            place = call.place or DRAM_MEMORY_CONFIG
            output = PlanTensor("output", call.source.changed(layout=call.written_layout, memory_config=place))
        refused = refused or association_refusal([source, output])
        op = _op(call)
        buffers = () if refused is not None else group_buffers(op, source, output, spec)
        held = {tensor.name: tensor.spec.buffer(spec).bank_bytes for tensor in (source, output)}
        own = sum(buffer.size_bytes for buffer in buffers if buffer.view_of is None)
        if refused is None and op.makes_rows and own + sum(held.values()) > l1_bytes:
            op = replace(op, negative_mask_format=BFLOAT16)  # that the program makes itself, to write into its input
            buffers = group_buffers(op, source, output, spec)
        return builder.run(
            "GroupNormDeviceOperation",
            op,
            [*tensors, source] if call.inplace else tensors,
            None if call.inplace else output,
            buffers,
            key=("group_norm", call, output.spec),
            refused=refused,
        )

    return plan_of(inputs, spec, write)


def _op(call: GroupNormArguments) -> GroupNorm:
    source, shards = call.source, call.source.shards
    high, wide = tiles_of_shard((shards.shape[0], shards.shape[1]))
    channels, images = source.shape[3], source.shape[0]
    down = max(1, source.matrix[0] // shards.shape[0])
    tensors = (call.weight, call.bias, call.negative_mask)
    weight, bias, negative_mask = (None if tensor is None else tensor.data_format for tensor in tensors)
    return GroupNorm(
        shape=(images, 1, source.shape[2], channels),
        groups=call.groups,
        epsilon=call.epsilon,
        data_format=source.data_format,
        weight_format=weight,
        bias_format=bias,
        mask_format=call.mask_format,
        negative_mask_format=negative_mask,
        fidelity_phases=call.fidelity_phases,
        fp32_dest=call.wide,
        cores=shards.grid.merged(),
        core_tiles=(high, wide),
        block_tiles=(max(1, high // max(1, images // down)), widest_span(shards.shape[1], channels // call.groups)),
        parts=max(1, channels // shards.shape[1]),
        partners=max(1, down // images),
        from_rows=source.layout is Layout.ROW_MAJOR,
        to_rows=call.written_layout is Layout.ROW_MAJOR,
        padded=call.padded,
        welford=call.welford,
    )


def _require_simulated(call: GroupNormArguments) -> None:
    """Raises for calls that other programs of the real library compute."""
    fault = None
    if call.mask is None and call.negative_mask is not None:
        fault = "negative_mask without input_mask is not simulated; give both"
    if fault is not None:
        raise NotSimulatedError(f"group_norm: {fault}")


def _call_faults(call: GroupNormArguments, spec: DeviceSpec) -> Iterator[str]:
    source = call.source
    if source.layout is Layout.TILE and call.inplace:
        yield (
            "In-place operation not supported: Tile layout requires non-inplace tensors. (inplace=true)\n"
            "inplace: give False, or a tensor in ROW_MAJOR_LAYOUT"
        )
    if call.written_layout is not source.layout and call.inplace:
        yield (
            "In-place operation not allowed: Input and output tensor layouts differ. (input_layout=Layout::"
            f"{source.layout.name}, output_layout=Layout::{call.written_layout.name})\ninplace: give False"
        )
    if source.memory_config.memory_layout is TensorMemoryLayout.WIDTH_SHARDED:
        yield (
            "Unsupported memory layout: Input tensor cannot be width-sharded.\n"
            "input_tensor: shard it by HEIGHT or BLOCK"
        )
    if len(source.shape) != RANK:
        yield (
            f"Invalid tensor shape: Input tensor must have rank 4. (rank={len(source.shape)})\n"
            "input_tensor: reshape it to [N, 1, H*W, C]"
        )
    if source.shape[3] % call.groups:
        yield (
            f"Invalid channel configuration: Number of channels ({source.shape[3]}) must be divisible by the number of "
            f"groups ({call.groups}).\nnum_groups: give a divisor"
        )
    pixels = source.matrix[0]
    if pixels % TILE:
        yield (
            f"Invalid tensor dimensions: The product of NHW dimensions ({pixels}) must be divisible by the tile size "
            f"({TILE}).\ninput_tensor: pad its rows"
        )
    for vector in (call.weight, call.bias):
        if vector is not None and len(vector.shape) > RANK:
            yield f"Tensor rank is greater than {RANK}\nweight, bias: use create_group_norm_weight_bias_rm"
    if call.out_format not in (None, source.data_format):
        yield (
            f"group_norm output dtype must match input dtype (DataType::{source.data_format.name.upper()}), got "
            f"dtype=DataType::{call.out_format.name.upper()}\ndtype: leave it out, and typecast the result"
        )
    if source.memory_config.is_sharded() or spec.family in release_of(spec.release).group_norm_of_rows:
        return
    if source.layout is Layout.ROW_MAJOR:
        yield (
            "group_norm: interleaved (non-sharded) input must be in TILE layout, got ROW_MAJOR. Convert the input with "
            "ttnn.to_layout(input, ttnn.TILE_LAYOUT) before calling group_norm. ROW_MAJOR is supported only for "
            "sharded inputs, or on Wormhole."
        )
    if call.written_layout is Layout.ROW_MAJOR:
        yield (
            "group_norm: interleaved (non-sharded) output must be in TILE layout, got ROW_MAJOR output_layout. "
            "Request TILE output and convert it yourself with ttnn.to_layout(output, ttnn.ROW_MAJOR_LAYOUT). "
            "ROW_MAJOR output is supported only for sharded inputs, or on Wormhole.\noutput_layout: leave it out"
        )


def _source_faults(call: GroupNormArguments, spec: DeviceSpec) -> Iterator[str]:
    source, interleaved = call.source, not call.source.memory_config.is_sharded()
    place = source.memory_config if call.inplace else call.place
    result = TensorSpec(source.shape, source.data_format, call.written_layout, place or DRAM_MEMORY_CONFIG)
    result.require_on(spec)
    if interleaved and call.inplace:
        yield "inplace groupnorm not supported for unsharded tensors\ninplace: give False"
    if source.data_format not in (BFLOAT16, FLOAT32):
        yield (
            f"Input tensor must be BFLOAT16 or FLOAT32, got: DataType::{source.data_format.name.upper()}\n"
            "input_tensor: typecast it"
        )
    if source.padded_shape[3] % call.groups:
        yield "channel must be divisible by num_groups!\ninput_tensor: give shards whose columns its channels fill"
    if source.padded_shape[1] != 1:
        yield "input tensor shape[1] must be 1!\ninput_tensor: reshape it to [N, 1, H*W, C]"
    if source.layout is Layout.ROW_MAJOR and source.shape[2] % TILE:
        yield f"H*W (1*{source.shape[2]}) must be a multiple of the tile height ({TILE})\ninput_tensor: pad its rows"
    if interleaved and call.use_welford and (source.layout, call.written_layout) != (Layout.TILE, Layout.TILE):
        yield (
            "group_norm: ROW_MAJOR interleaved input/output is not supported on the SFPU two-pass path yet. Use TILE "
            "layout for both input and output, or use the tile-reduction path (use_welford=false)."
        )


def _core_faults(call: GroupNormArguments, spec: DeviceSpec) -> Iterator[str]:
    """The real library's error text for the cores of shards."""
    if not call.source.memory_config.is_sharded():
        return
    grid = _grid(call)
    if grid[0] > spec.grid.cols or grid[1] > spec.grid.rows:
        yield (
            f"program_config grid ({grid[0]}x{grid[1]}) must be contained within device grid "
            f"({spec.grid.cols}x{spec.grid.rows})\ncore_grid: give the cores of the shards, or leave it out"
        )
    for fault in (rectangle_fault(call.source), program_fault(call.source, grid)):
        if fault is not None:
            yield fault


def _grid(call: GroupNormArguments) -> tuple[int, int]:
    """Columns and rows of cores of the program of shards."""
    box = call.source.shards.grid.bounding_box()
    return call.grid or (box.cols, box.rows)


def _vector_faults(call: GroupNormArguments) -> Iterator[str]:
    source = call.source
    for name, vector in (("Gamma", call.weight), ("Beta", call.bias)):
        if vector is None:
            continue
        width = (1, *vector.padded_shape)[-1]
        advice = f"\n{'weight' if name == 'Gamma' else 'bias'}: use create_group_norm_weight_bias_rm"
        if vector.layout is Layout.TILE and width != source.padded_shape[3]:
            sides = f"{source.padded_shape[3]} != {width}"
            if name == "Beta":
                sides = (
                    f"Input and beta inner dimensions must match, got input: {source.padded_shape[3]} vs beta: {width}"
                )
            yield sides + advice
        if vector.layout is Layout.ROW_MAJOR and width != TILE:
            yield f"{name} tensor inner dimension must equal tile width ({TILE}), got: {width}{advice}"
        if vector.data_format not in (BFLOAT16, FLOAT32):
            kind = vector.data_format.name.upper()
            yield f"{name} tensor must be BFLOAT16 or FLOAT32, got: DataType::{kind}{advice}"
        if name == "Gamma":
            yield from _pair_faults(call)


def _pair_faults(call: GroupNormArguments) -> Iterator[str]:
    weight, bias = call.weight, call.bias
    if weight is None or bias is None:
        return
    if weight.layout is not bias.layout:
        yield (
            f"Gamma and beta must have the same layout, got gamma: Layout::{weight.layout.name} vs beta: "
            f"Layout::{bias.layout.name}\nbias: give it the layout of the weight"
        )
    if weight.data_format != bias.data_format:
        yield (
            "Gamma and beta must have the same dtype (the program factories use a single gamma/beta CB format for "
            f"both), got gamma: DataType::{weight.data_format.name.upper()} vs beta: "
            f"DataType::{bias.data_format.name.upper()}\nbias: give it the data type of the weight"
        )


def _mask_faults(call: GroupNormArguments) -> Iterator[str]:
    mask, negative = call.mask, call.negative_mask
    advice = "\ninput_mask: use create_group_norm_input_mask"
    if mask is not None:
        if mask.layout is not Layout.TILE:
            yield f"Input mask must have TILE layout, got: Layout::{mask.layout.name}{advice}"
        if (groups := side(mask.padded_shape, 1)) != call.groups:
            yield f"Input mask dim1 must be {call.groups} (num_groups={call.groups}), got: {groups}{advice}"
        if (high := side(mask.padded_shape, 2)) != TILE:
            yield f"Input mask height must equal tile height ({TILE}), got: {high}{advice}"
        side(mask.padded_shape, 3)
        if len(mask.shape) > RANK:
            raise NotSimulatedError(f"group_norm: masks of {len(mask.shape)} axes are not simulated{advice}")
    if negative is None:
        return
    advice = "\nnegative_mask: leave it out"
    if call.use_welford:
        yield f"Negative mask is not supported with use_welford=True.{advice}"
    if not call.source.memory_config.is_sharded():
        yield f"Negative mask support is only available for sharded input tensors.{advice}"
    if call.source.layout is not Layout.ROW_MAJOR:
        yield (
            "If using negative mask, input tensor must be in ROW_MAJOR layout, but layout is "
            f"Layout::{call.source.layout.name}{advice}"
        )
    if call.written_layout is not Layout.ROW_MAJOR:
        yield (
            "If using negative mask, output tensor must be in ROW_MAJOR layout, but layout is "
            f"Layout::{call.written_layout.name}{advice}"
        )


def _shard_faults(call: GroupNormArguments) -> Iterator[str]:
    """The real library's error text for shards that do not hold whole groups, or for a mask of another width."""
    source, shards = call.source, call.source.shards
    box, grid = shards.grid.bounding_box(), _grid(call)
    for name, vector in (("Gamma", call.weight), ("Beta", call.bias)):
        if vector is not None and vector.layout is Layout.TILE:
            yield f"{name} tensor must have ROW_MAJOR layout, but has Layout::TILE layout"
    if grid != (box.cols, box.rows):
        yield (
            f"program_config compute_with_storage_grid_size ({grid[0]}x{grid[1]}) must match shard grid dimensions "
            f"({box.cols}x{box.rows})\ncore_grid: give the cores of the shards, or leave it out"
        )
    (high, wide), channels = shards.shape, source.padded_shape[3]
    group = channels // call.groups
    if wide % group:
        yield f"per_core_N ({wide}) must be divisible by num_datum_row_per_group ({group})"
    turned = shards.orientation is ShardOrientation.COL_MAJOR
    if wide != channels:
        across, down = (grid[1], grid[0]) if turned else grid
        letters = ("r", "c") if turned else ("c", "r")
        if wide * across != channels:
            yield (f"per_core_N ({wide}) * num_cores_{letters[0]} ({across}) must equal total width W ({channels})")
        if high * down != source.matrix[0]:
            yield (
                f"per_core_M ({high}) * num_cores_{letters[1]} ({down}) must equal total height H ({source.matrix[0]})"
            )
    if source.matrix[0] % high:
        yield f"H dim ({source.matrix[0]}) must be divisible by per_core_M ({high})"
    images, parts = source.shape[0], source.matrix[0] // high
    if images >= parts and images % parts:
        yield f"num_batches ({images}) must be divisible by number of cores in a full column ({parts})"
    if images < parts and parts % images:
        yield f"number of cores in a full column ({parts}) must be divisible by num_batches ({images})"
    own_groups = call.groups * wide // channels
    if call.welford and own_groups > MOST_GROUPS:
        yield (
            f"num_groups_per_core ({own_groups}) must be <= {MOST_GROUPS} when use_welfords is true. Increase the "
            "width of shard spec to address this."
        )
    span = widest_span(wide, group) * TILE
    if call.mask is not None and call.mask.padded_shape[-1] != span:
        width = call.mask.padded_shape[-1]
        yield f"input mask width ({width}) must have the same width as block_wt * tile_width ({span})"
    if source.data_format == FLOAT32 and not call.wide:
        yield (
            "group_norm with Float32 input requires fp32_dest_acc_en=true in the compute kernel config; otherwise the "
            "DEST accumulator is bfloat16 and intermediate/accumulated results are silently rounded to bf16."
        )
    split = own_groups == 1 if turned else images <= parts
    across = box.cols if turned else box.rows
    if wide != channels and split and across % images:
        kind, letter = ("CM", "c") if turned else ("RM", "r")
        yield (
            f"for {kind} shard, when each batch is split across cores, num_cores_{letter} ({across}) must be divisible "
            f"by num_batches ({images})"
        )
