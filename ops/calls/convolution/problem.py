"""A call as a convolution over a frame, with what it leaves to defaults, and the path that it takes.

A transposed convolution is one of stride 1 over a frame with zeros inserted (docs/planning.md, Frame and Paths). Checks
and plans ask here alone which path a call takes.
"""

from dataclasses import replace

from device.memory.memory_config import BufferType, Layout, MemoryConfig, ShardOrientation, TensorMemoryLayout
from device.memory.tiles import TILE
from device.numbers.formats import FLOAT32, DataFormat
from device.numbers.integers import round_up
from device.spec.parts import GridSpec
from ops.calls.convolution.arguments import ComputeConfig, ConvArguments, ConvConfig, Operand, SliceType
from ops.frame.frame import Frame
from ops.programs.conv2d.partition import channel_alignment
from ops.programs.conv2d.problem import ConvOptions, ConvProblem
from ops.programs.movement.reshape import flattened, memory_after

DEFAULT_PHASES = 4  # HiFi4, when no compute config is given


def weight_format(call: ConvArguments) -> DataFormat:
    """Format of prepared weights and bias."""
    return call.conv_config.weights_format or call.weight.spec.data_format


def output_format(call: ConvArguments) -> DataFormat:
    """Format of the output."""
    return call.out_format or call.input.spec.data_format


def compute_config(call: ConvArguments) -> ComputeConfig:
    """The compute config, or else the default."""
    return call.compute_config or default_compute_config(call.input.spec.data_format, weight_format(call))


def default_compute_config(in_format: DataFormat, weights: DataFormat) -> ComputeConfig:
    """HiFi4, and a float32 Dst if input and weights, as they are prepared, are both float32."""
    return ComputeConfig(fidelity_phases=DEFAULT_PHASES, fp32_dest=in_format == weights == FLOAT32)


def image_shape(call: ConvArguments) -> tuple[int, int, int, int]:
    """[N, H, W, C] of the input."""
    return call.batch_size, call.input_height, call.input_width, call.in_channels


def frame_of(call: ConvArguments) -> Frame:
    """The padded input; of a transposed convolution, with zeros filled in."""
    return Frame(
        batch=call.batch_size,
        rows=call.rules.axis(call, 0),
        columns=call.rules.axis(call, 1),
        replicate=call.conv_config.replicate_padding,
    )


def lower(call: ConvArguments, frame: Frame | None = None) -> tuple[ConvProblem, ConvOptions]:
    """The convolution that computes a call, and the choices that lay it out; its frame may be at hand."""
    config, compute = call.conv_config, compute_config(call)
    problem = ConvProblem(
        frame=frame or frame_of(call),
        in_channels=call.in_channels,
        out_channels=call.out_channels,
        in_format=call.input.spec.data_format,
        weight_format=weight_format(call),
        out_format=output_format(call),
        row_major=call.input.spec.layout is Layout.ROW_MAJOR,
        bias=call.bias is not None,
    )
    options = ConvOptions(
        act_block_h_override=config.act_block_h_override,
        act_block_w_div=config.act_block_w_div,
        transpose_shards=config.transpose_shards,
        untilize_out=config.output_layout is Layout.ROW_MAJOR,
        act_double_buffer=config.enable_act_double_buffer,
        weights_double_buffer=config.enable_weights_double_buffer,
        full_inner_dim=config.full_inner_dim,
        activation_reuse=config.enable_activation_reuse,
        force_split_reader=config.force_split_reader,
        config_tensors_in_dram=config.config_tensors_in_dram,
        core_grid=config.core_grid if config.override_sharding_config else None,
        output_grid=_output_grid(config),
        fp32_dest=compute.fp32_dest,
        packer_l1_acc=compute.packer_l1_acc,
    )
    return problem, options


def _output_grid(config: ConvConfig) -> GridSpec | None:
    if not config.override_output_sharding_config or config.core_grid is None:
        return None
    box = config.core_grid.bounding_box()
    return GridSpec(cols=box.cols, rows=box.rows)


def fills_alignment(call: ConvArguments) -> bool:
    """Whether the input has more channels than the call says, just those that its own width aligns them to."""
    held, tiled = call.input.spec.shape[-1], call.input.spec.layout is Layout.TILE
    unit = TILE if tiled else next((one for one in (TILE, TILE // 2) if held % one == 0), TILE // 4)
    return held > call.in_channels and held == round_up(call.in_channels, unit)


def placed_options(call: ConvArguments, estimated: ConvOptions) -> ConvOptions:
    """The choices that the micro-op is built with, where they differ from what estimates count with."""
    if not estimated.activation_reuse:
        return estimated
    if not call.rules.reuses_activations:
        return replace(estimated, activation_reuse=False)
    return replace(estimated, act_double_buffer=False, weights_double_buffer=False)


def as_slice(call: ConvArguments, source: Operand, scheme: TensorMemoryLayout | None = None) -> ConvArguments:
    """A call as every part of the DRAM path makes it: tiled output, halo moved, its own input released.

    Args:
        source: The input of the part, which may be in another format than the call's own; what the call's defaults take
            from that is settled first.
        scheme: How the input of the part is sharded; None for what the call says.
    """
    config = replace(
        call.conv_config,
        weights_format=weight_format(call),
        deallocate_activation=True,
        reallocate_halo_output=True,
        output_layout=Layout.TILE,
        shard_layout=scheme or call.conv_config.shard_layout,
    )
    return replace(
        call,
        input=source,
        out_format=output_format(call),
        conv_config=config,
        compute_config=compute_config(call),
        memory_config=None,
        slice_config=None,
    )


def is_matmul(call: ConvArguments) -> bool:
    """Whether the call runs as a matmul: a plain 1x1 kernel, not WIDTH sharded.

    Windows side by side that were folded on the L1 path do in any case.
    """
    if call.folding is not None and call.folding.weights:
        return call.folding.whole
    pointwise = call.kernel_size == call.stride == call.dilation == (1, 1) and not any(call.padding)
    return pointwise and call.conv_config.shard_layout is not TensorMemoryLayout.WIDTH_SHARDED


def prepared_as_matmul(call: ConvArguments) -> bool:
    """Whether weights and bias are prepared for a matmul.

    Of a transposed convolution, stride and padding are spent by then; and 1x1 windows of stride 1 that are to be folded
    are one in any scheme and with any padding, though the call itself folds none.
    """
    config, stride = call.conv_config, (1, 1) if call.rules.transposed else call.stride
    pointwise = call.kernel_size == stride == call.dilation == (1, 1)
    if pointwise and config.enable_kernel_stride_folding and call.folding is None:
        return True
    if not call.rules.transposed:
        return is_matmul(call)
    return call.kernel_size == call.dilation == (1, 1) and config.shard_layout is not TensorMemoryLayout.WIDTH_SHARDED


def takes_l1_path(call: ConvArguments) -> bool:
    """Whether the call runs in one piece on an input in L1: asked for, or because the input is there."""
    if call.slice_config is None:
        return not call.input.on_host and call.input.spec.memory_config.buffer_type is not BufferType.DRAM
    return call.slice_config.slice_type is SliceType.L1_FULL or slices_skip_dram(call, call.slice_config.num_slices)


def slices_skip_dram(call: ConvArguments, slices: int) -> bool:
    """Whether so many slices, given or found for a given slice config, mean the L1 path instead."""
    return call.slice_config is not None and slices == 1 and call.rules.one_slice_skips_dram


def input_alignment(call: ConvArguments, memory: MemoryConfig) -> int:
    """Channels that a shard of the input is a multiple of, asked with the memory that it came in."""
    shards = memory.shard_spec
    return channel_alignment(
        memory.memory_layout,
        row_major=call.input.spec.layout is Layout.ROW_MAJOR,
        sliced=False,
        matmul=False,
        shard_width=None if shards is None else shards.shape[1],
    )


def needs_new_shards(call: ConvArguments, memory: MemoryConfig) -> bool:
    """Whether the L1 path deals its input to cores anew: always, unless its shards lie as a convolution reads them."""
    shards, config = memory.shard_spec, call.conv_config
    if shards is None or config.reshard_if_not_optimal or config.override_sharding_config:
        return True
    by_columns = shards.orientation is ShardOrientation.COL_MAJOR
    if by_columns and memory.memory_layout is not TensorMemoryLayout.BLOCK_SHARDED:
        return True
    return shards.shape[1] % input_alignment(call, memory) != 0


def flattened_memory(call: ConvArguments) -> MemoryConfig:
    """Where an input on the device lies as rows of channels."""
    return memory_after(call.input.spec, flattened(call.input.spec.shape))
