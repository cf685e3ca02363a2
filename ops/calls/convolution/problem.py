"""A call as a convolution over a frame; a transposed one as a stride-1 convolution (docs/planning.md, Frame)."""

from dataclasses import replace

from device.memory.memory_config import Layout, TensorMemoryLayout
from device.numbers.formats import FLOAT32, DataFormat
from ops.calls.convolution.arguments import ComputeConfig, ConvArguments, ConvTranspose2dArguments, Operand
from ops.programs.conv2d.layout import ConvOptions, ConvProblem
from ops.programs.halo.frame import Frame, FrameAxis, convolution_axis, transposed_axis

DEFAULT_PHASES = 4  # HiFi4, when no compute config is given


def weight_format(a: ConvArguments) -> DataFormat:
    """Format of prepared weights and bias."""
    return a.conv_config.weights_format or a.weight.spec.data_format


def output_format(a: ConvArguments) -> DataFormat:
    """Format of the output."""
    return a.out_format or a.input.spec.data_format


def compute_config(a: ConvArguments) -> ComputeConfig:
    """The compute config; by default HiFi4, and a float32 Dst if input and weights are both float32."""
    if a.compute_config is not None:
        return a.compute_config
    both_float32 = a.input.spec.data_format == FLOAT32 and weight_format(a) == FLOAT32
    return ComputeConfig(fidelity_phases=DEFAULT_PHASES, fp32_dest=both_float32)


def is_matmul(a: ConvArguments) -> bool:
    """Whether the call runs as a matmul: a plain 1x1 kernel, not WIDTH sharded (docs/planning.md, Paths)."""
    pointwise = a.kernel_size == a.stride == a.dilation == (1, 1) and not any(a.padding)
    return pointwise and a.conv_config.shard_layout is not TensorMemoryLayout.WIDTH_SHARDED


def frame_of(a: ConvArguments) -> Frame:
    """The padded input; of a transposed convolution, with zeros filled in."""
    return Frame(batch=a.batch_size, rows=_axis(a, 0), columns=_axis(a, 1), replicate=a.conv_config.replicate_padding)


def _axis(a: ConvArguments, axis: int) -> FrameAxis:
    """The rows (0) or the columns (1) of the frame."""
    before, after = a.padding[2 * axis : 2 * axis + 2]
    length = (a.input_height, a.input_width)[axis]
    kernel, stride, dilation = a.kernel_size[axis], a.stride[axis], a.dilation[axis]
    if isinstance(a, ConvTranspose2dArguments):
        return transposed_axis(
            input_length=length,
            kernel=kernel,
            stride=stride,
            padding=(before, after),
            output_padding=a.output_padding[axis],
            dilation=dilation,
        )
    return convolution_axis(
        input_length=length, kernel=kernel, stride=stride, padding=(before, after), dilation=dilation
    )


def lower(a: ConvArguments) -> tuple[ConvProblem, ConvOptions]:
    """The convolution that computes a call, and the choices that lay it out."""
    config, compute = a.conv_config, compute_config(a)
    problem = ConvProblem(
        frame=frame_of(a),
        in_channels=a.in_channels,
        out_channels=a.out_channels,
        in_format=a.input.spec.data_format,
        weight_format=weight_format(a),
        out_format=output_format(a),
        row_major=a.input.spec.layout is Layout.ROW_MAJOR,
        bias=a.bias is not None,
    )
    options = ConvOptions(
        act_block_h_override=config.act_block_h_override,
        act_block_w_div=config.act_block_w_div,
        transpose_shards=config.transpose_shards,
        untilize_out=config.output_layout is Layout.ROW_MAJOR,
        act_double_buffer=config.enable_act_double_buffer,
        weights_double_buffer=config.enable_weights_double_buffer,
        full_inner_dim=config.full_inner_dim,
        force_split_reader=config.force_split_reader,
        config_tensors_in_dram=config.config_tensors_in_dram,
        core_grid=config.core_grid if config.override_sharding_config else None,
        fp32_dest=compute.fp32_dest,
        packer_l1_acc=compute.packer_l1_acc,
    )
    return problem, options


def as_slice(a: ConvArguments, source: Operand) -> ConvArguments:
    """A call as every part of the DRAM path makes it: tiled output, halo moved, its own input released.

    Args:
        a: The call.
        source: The input of the part, which may be in another format than the call's own; what the call's defaults
            take from that is settled first.
    """
    config = replace(
        a.conv_config,
        weights_format=weight_format(a),
        deallocate_activation=True,
        reallocate_halo_output=True,
        output_layout=Layout.TILE,
    )
    return replace(
        a,
        input=source,
        out_format=output_format(a),
        conv_config=config,
        compute_config=compute_config(a),
        memory_config=None,
        slice_config=None,
    )
