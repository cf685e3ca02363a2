"""Prepared weights and bias of a call: their layout, their upload, and their names in a plan."""

from dataclasses import replace
from math import prod

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.memory.tiles import TILE
from device.numbers.integers import round_up
from ops.builder import PlanBuilder, PlanTensor
from ops.calls.convolution.arguments import ConvArguments
from ops.calls.convolution.laid_out import LaidOut
from ops.calls.convolution.operand_checks import refuse_operands
from ops.calls.convolution.problem import is_matmul
from ops.programs.conv2d.partition import HEIGHT, WIDTH, channel_alignment
from ops.programs.conv2d.weights import PrepareBias, PrepareWeights, WeightsLayout


def upload_weights(builder: PlanBuilder, laid_out: LaidOut) -> None:
    """Prepare weights and bias on the host and upload them; of those on the device, say what they are taken for.

    Where they can not be prepared, the plan ends in a refusal.
    """
    refuse_operands(builder, laid_out.arguments)
    if builder.refused:
        return
    call, taken_for = laid_out.arguments, read_layout(laid_out)
    layout, names = _prepared_layout(laid_out, taken_for), operand_names(call)
    if not call.weight.on_host or (layout is not taken_for and layout != taken_for):
        builder.expect(names[0], PrepareWeights(taken_for))
    if call.weight.on_host:
        made = TensorSpec(layout.logical_shape, layout.data_format, Layout.TILE, padded_shape=layout.padded_shape)
        builder.upload("weight.prepared", made, "weight", PrepareWeights(layout))
    if call.bias is not None and not call.bias.on_host:
        builder.expect(names[1], PrepareBias(layout))
    elif call.bias is not None:
        if call.out_channels <= layout.padded_out_channels:  # raw weights may have others
            layout = replace(layout, out_channels=call.out_channels)
        made = TensorSpec(
            layout.bias_logical_shape, layout.data_format, Layout.TILE, padded_shape=layout.bias_padded_shape
        )
        builder.upload("bias.prepared", made, "bias", PrepareBias(layout))


def weights_layout(laid_out: LaidOut) -> WeightsLayout:
    """How the weights of a call are prepared.

    Where the windows of an image in DRAM were folded, the real library lays out the kernel as it was.

    Raises:
        DeviceError: A row of that kernel does not fit a K block of HEIGHT shards.
    """
    return _prepared_layout(laid_out, read_layout(laid_out))


def _prepared_layout(laid_out: LaidOut, read: WeightsLayout) -> WeightsLayout:
    """The layout that weights are prepared in, of a call whose program takes them for ``read``."""
    folding = laid_out.arguments.folding
    if folding is not None and not folding.weights and laid_out.input_memory.is_sharded() and laid_out.sharded:
        channels = read.in_channels // prod(folding.stride)
        return _made_of(laid_out, read, channels, read.out_channels, folding.kernel)
    raw = _raw_sizes(laid_out.arguments)
    if raw is None or raw == (read.in_channels, read.out_channels, *read.kernel):
        return read
    return _made_of(laid_out, read, raw[0], raw[1], raw[2:])


def _raw_sizes(call: ConvArguments) -> tuple[int, int, int, int] | None:
    """Input channels, output channels and kernel that a weight on the host is prepared with: its own, padding included.

    The real library asks the tensor and not the call; None where it was asked for another weight, or has groups.
    """
    spec = call.weight.spec
    if call.folding is not None or call.groups != 1 or not call.weight.on_host:
        return None
    first, second, rows, columns = spec.padded_shape[:4]
    return (first, second, rows, columns) if call.rules.transposed else (second, first, rows, columns)


def _made_of(
    laid_out: LaidOut, read: WeightsLayout, in_channels: int, out_channels: int, kernel: tuple[int, int]
) -> WeightsLayout:
    """The layout of weights of other sizes than the call's, made for the cores and blocks of the call.

    Raises:
        DeviceError: A row of the kernel does not fit a K block of HEIGHT shards.
    """
    shards = laid_out.input_memory.shard_spec
    alignment = channel_alignment(
        laid_out.layout.scheme,
        row_major=laid_out.problem.row_major,
        sliced=False,
        matmul=is_matmul(laid_out.arguments),
        shard_width=None if shards is None else shards.shape[1],
    )
    made = replace(
        read,
        in_channels=in_channels,
        out_channels=out_channels,
        kernel=kernel,
        folded=(1, 1),
        raw_kernel=None,
        padded_in_channels=round_up(in_channels, alignment * read.channel_shards),
        padded_out_channels=round_up(
            out_channels, laid_out.layout.shards.out_width if laid_out.sharded else read.padded_out_channels
        ),
        whole_blocks=True,
    )
    inner = made.shard_channels * made.kernel[1] * (made.kernel[0] if made.full_inner_dim else 1)
    if laid_out.sharded and laid_out.layout.scheme is HEIGHT and made.k_block_rows < inner:
        raise DeviceError(
            f"Block height {made.k_block_rows} must be >= inner dimension {inner}\n{_why_blocks_differ(laid_out)}"
        )
    return made


def _why_blocks_differ(laid_out: LaidOut) -> str:
    call = laid_out.arguments
    if call.folding is not None:
        return (
            "conv_config.enable_kernel_stride_folding: the image in DRAM was folded, but not the weights, whose "
            "kernel rows do not fit the blocks; set it to False, or put the input in L1"
        )
    return (
        f"weight_tensor: the kernel rows of its shape {list(call.weight.spec.padded_shape)}, padding included, do not "
        "fit the blocks of the call; give the weights of the call, in ROW_MAJOR_LAYOUT"
    )


def read_layout(laid_out: LaidOut) -> WeightsLayout:
    """What the program of a call takes its weights for."""
    call, layout = laid_out.arguments, laid_out.layout
    shards, rules = layout.shards, call.rules
    columns = shards.out_channels
    if layout.scheme in (HEIGHT, WIDTH):
        columns = round_up(columns, layout.blocks.subblock_w_tiles * TILE)
    return WeightsLayout(
        in_channels=call.in_channels,
        out_channels=call.out_channels,
        kernel=call.kernel_size,
        groups=call.groups,
        out_first=not rules.transposed,
        folded=call.folding.stride if call.folding else (1, 1),
        raw_kernel=call.folding.kernel if call.folding else None,
        mirror=rules.transposed and call.mirror_kernel,
        full_inner_dim=rules.orders_full_inner_dim and laid_out.options.joins_kernel_rows(layout.scheme),
        scheme=layout.scheme,
        padded_in_channels=shards.in_channels,
        padded_out_channels=columns,
        channel_shards=layout.config.channel_cores,
        k_block_rows=layout.blocks.act_w_tiles * TILE,
        data_format=laid_out.problem.weight_format,
    )


def operand_names(call: ConvArguments) -> tuple[str, ...]:
    """Names of the prepared weights and, if there is one, of the prepared bias."""
    weight = "weight.prepared" if call.weight.on_host else call.weight.name or "weight"
    if call.bias is None:
        return (weight,)
    return weight, "bias.prepared" if call.bias.on_host else call.bias.name or "bias"


def operands(builder: PlanBuilder, call: ConvArguments) -> list[PlanTensor]:
    """The prepared weights and, if there is one, the prepared bias, as the plan has them by then."""
    return [builder.tensor(name) for name in operand_names(call)]
