"""Weights and biases ahead of a call, whose layout has rules of its own (docs/reference/planning.md, Weights)."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Final

from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, Layout, TensorMemoryLayout
from device.numbers.formats import div_up
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder
from ops.planners.conv import checks, operands
from ops.planners.conv.arguments import Check, ConvCall, Folding, SliceConfig, SliceType, refuse_first
from ops.planners.conv.folding import folded_call
from ops.planners.conv.plan import builder_of, plan_convolution
from ops.planners.conv.slicing import choose_slices, first_slice, input_cores, most_slices
from ops.planners.conv.strict import raw_weight
from ops.programs.conv2d.op import choose_scheme
from ops.programs.conv2d.partition import choose_cores, partition_conv, scheme_alignment, sharded_input
from ops.programs.data_movement.placement import whole_shards
from ops.window import NoWindowError

ONE_PIECE: Final = SliceConfig(slice_type=SliceType.L1_FULL)


def checked_preparation(call: ConvCall, role: str, device_spec: DeviceSpec, *, function: str, strict: bool) -> ConvCall:
    """The call as its "weight" or "bias" is prepared, windows folded; ``function`` names the preparation in errors.

    ``strict`` refuses weights for a transposed convolution that the real library gets wrong.
    """
    if role == "bias":  # which no slices are read for; that of a frame of one row is never cut
        call = replace(call, slice_config=ONE_PIECE if call.rules.transposed and _is_row(call) else None)
    if not call.rules.transposed:
        refuse_first(call, (_bias_on_host,) if role == "bias" else ())
        refuse_first(call, (checks.stride_given,), function)
    if call.conv_config.core_grid is None:  # the call's own checks refuse a wrong core grid
        call = replace(call, conv_config=replace(call.conv_config, override_sharding_config=False))
    if call.rules.transposed:
        check_transposed(call, role, device_spec)
        refuse_first(call, (checks.stride_given,), function)
        checks.check_possible(call)
        refuse_first(call, (checks.groups_given, *((raw_weight,) if strict else ())), function)
        checks.check_sizes(call, device_spec)
    else:
        config, place = call.conv_config, call.input.spec.memory_config
        moved = config.shard_layout is not None or config.reshard_if_not_optimal or config.override_sharding_config
        asked = call
        if not moved and not call.is_matmul and place.shard_spec is not None:  # shards are taken to stay where they are
            call = replace(call, conv_config=replace(config, shard_layout=place.memory_layout))
        if call.input_height == call.kernel_size[0] == 1:  # a row is never cut
            call, asked = (replace(each, slice_config=ONE_PIECE) for each in (call, asked))
        refuse_first(call, (_bias_format,) if role == "bias" else ())
        refuse_first(call, (checks.folded_lengths,) if call.folds else ())
        refuse_first(call, (operands.weight_refusals if role == "weight" else operands.bias_shape,))
        refuse_first(call, (_rows_of_blocks, _slices_of_matmul))
        if not call.is_matmul:
            _check_order(asked)
        elif place.is_sharded():
            refuse_first(call, (_missing_shard_layout,))
        refuse_first(call, (checks.placing_ahead,))
        checks.check_possible(call, prepares=True)
        checks.check_sizes(call, device_spec)
        call = _folded(call) if call.folds else call
    slices = call.slice_config
    if slices is not None and not call.in_one_piece:  # into slices that there are
        fewer = min(slices.num_slices, most_slices(call, slices.slice_type))
        call = replace(call, slice_config=replace(slices, num_slices=fewer))
    cut = call if slices is None or call.in_one_piece else _in_dram(call)
    if not call.rules.transposed:
        return cut
    checks.check_slices(cut)
    return call


def _in_dram(call: ConvCall) -> ConvCall:
    """The call with its input in DRAM, out of which slices are cut."""
    return replace(call, input=replace(call.input, spec=call.input.spec.changed(memory_config=DRAM_MEMORY_CONFIG)))


def check_transposed(call: ConvCall, role: str, device_spec: DeviceSpec) -> None:
    """The real library's checks before it prepares for a transposed convolution."""
    if role == "bias":
        refuse_first(call, (_bias_on_host, _bias_format, _bias_place, checks.placing_ahead, operands.bias_refusals))
        return
    refuse_first(call, (operands.weight_refusals,))
    if _searches(call):
        checks.check_search(call, device_spec)
    _check_order(call)
    refuse_first(call, (checks.placing_ahead,))


def _searches(call: ConvCall) -> bool:
    """Whether a number of slices is searched; a transposed convolution searches even for L1_FULL."""
    config = call.slice_config
    if config is None or not call.rules.transposed:
        return not call.takes_l1_path and not (config and config.num_slices)
    return not config.num_slices


def _check_order(call: ConvCall) -> None:
    """The checks of slices, blocks and output cores in the order of a preparation.

    Blocks come first if they are estimated: for a scheme that the library chooses, and for shards that are not kept.
    """
    in_one_piece, layout = call.takes_l1_path, call.conv_config.shard_layout
    sharded = not in_one_piece or call.input.spec.memory_config.is_sharded()
    chosen = not in_one_piece and layout is None
    searched = _searches(call) and layout is not None and not call.rules.transposed  # which was checked before
    stays = sharded and not chosen and (searched or not call.conv_config.reshard_if_not_optimal)
    kept: tuple[Check, ...] = (_missing_shard_layout,) if in_one_piece and sharded else ()
    cut: tuple[Check, ...] = () if in_one_piece else (_missing_shard_layout,)
    estimated: tuple[Check, ...] = () if stays else (checks.block_height,)
    refuse_first(call, (_slice_count, *kept, *estimated, checks.output_override, *cut))
    refuse_first(call, (checks.block_height, checks.block_width))


def _bias_format(call: ConvCall) -> Iterator[str]:
    """The format of a prepared bias, which only its config can state."""
    if call.conv_config.weights_format is None:
        yield "bad optional access\nconv_config.weights_dtype: set it; the bias is prepared in the same data type"


def _bias_on_host(call: ConvCall) -> Iterator[str]:
    """A bias on the device."""
    if call.bias is not None and not call.bias.on_host:
        yield "conv bias should be placed on host\nbias_tensor: use .cpu(), or pass the bias as it was made"


def _bias_place(call: ConvCall) -> Iterator[str]:
    """Plans for an input in DRAM, and shards that are not kept."""
    yield from _rows_of_blocks(call)
    if _plans_in_dram(call) or call.input.spec.memory_config.is_sharded():
        yield from _missing_shard_layout(call)


def _is_row(call: ConvCall) -> bool:
    """Whether the image, or the frame of a transposed convolution, and the kernel have one row."""
    with suppress(NoWindowError):
        return call.kernel_size[0] == call.axis(0).length == 1
    return False


def _plans_in_dram(call: ConvCall) -> bool:
    """Whether a preparation plans slices of the convolution, or of that over the frame, as for an input in DRAM."""
    if call.takes_l1_path or call.prepared_as_matmul or call.is_matmul:
        return False
    if call.rules.transposed:
        return not _is_row(call)
    return not (call.folds and call.kernel_size == call.stride)


def _slices_of_matmul(call: ConvCall) -> Iterator[str]:
    """Windows smaller than the stride that leave a 1x1 kernel, whose slices are planned all the same."""
    config = call.conv_config
    left = tuple(map(div_up, call.kernel_size, call.stride)) == call.dilation == (1, 1) and not any(call.padding)
    by_width = config.shard_layout is TensorMemoryLayout.WIDTH_SHARDED
    if call.folds and left and not by_width and _plans_in_dram(call):
        yield (
            "Conv2D DRAM with matmul should never use the slicing code path.\n"
            f"{checks.UNFOLD}: windows of {call.kernel_size} at stride {call.stride} leave pixels out"
        )


def _rows_of_blocks(call: ConvCall) -> Iterator[str]:
    """Block floats prepared for an input in DRAM: the real preparation plans slices with operands in rows."""
    weights_format = call.conv_config.weights_format
    if _plans_in_dram(call) and weights_format is not None and weights_format.is_block:
        yield (
            "Only TILE layout is supported for BFLOAT8_B dtype!\n"  # said of every block float
            "conv_config.weights_dtype: weights and bias for an input in DRAM can not be prepared in it; pass "
            "them as they were made, on the host, or put the input in L1"
        )


def _slice_count(call: ConvCall) -> Iterator[str]:
    config = call.slice_config
    if config is None or call.takes_l1_path:
        return
    length = call.output_lengths()[0 if config.slice_type is SliceType.DRAM_HEIGHT else 1]
    if config.num_slices > length:
        yield (
            f"Number of slices {config.num_slices} should be less or equal than the dimension being sliced {length} "
            f"in Conv2D DRAM Slicing\ndram_slice_config: at most {length} slices fit the output; 0 finds the number"
        )


def _missing_shard_layout(call: ConvCall) -> Iterator[str]:
    """Shards, or shards of a slice, whose layout is neither given nor preserved."""
    if call.conv_config.reshard_if_not_optimal and call.conv_config.shard_layout is None:
        yield (
            "bad optional access\nconv_config.shard_layout: with reshard_if_not_optimal, set it to what the call will "
            "use, or leave reshard_if_not_optimal out"
        )


def _folded(call: ConvCall) -> ConvCall:
    """The remaining call after its windows are folded into channels, with the shards of the folded image."""
    (rows, columns), (top, bottom, left, right), spec = call.stride, call.padding, call.input.spec
    height, width = (call.input_height + top + bottom) // rows, (call.input_width + left + right) // columns
    shape = (call.batch_size, height, width, rows * columns * call.in_channels)
    if spec.memory_config.is_sharded():  # whose cores and width alone are asked
        padded = (1, 1, *whole_shards(spec.memory_config))
        image = TensorSpec(shape, spec.data_format, spec.layout, spec.memory_config, padded)
    else:
        image = spec.changed(shape=shape)
    folded = folded_call(call, image)
    return replace(folded, folding=Folding(kernel=call.kernel_size, stride=call.stride, weights=True))


def plan_preparation(call: ConvCall, role: str, device_spec: DeviceSpec, *, free_l1_bytes: int) -> Plan:
    """The plan that uploads the "weight" or "bias" of a call of `checked_preparation`; its result has that name.

    A bias is prepared as the call does it, except that 1x1 kernels count as a matmul at any stride and padding. Raises
    DeviceError if no number of slices fits, or the blocks do not fit.
    """
    sharded = call.input.spec.memory_config.is_sharded()
    if call.is_matmul and not call.rules.transposed:
        if not sharded or call.conv_config.reshard_if_not_optimal:
            call = _in_dram(call) if sharded else call
            return plan_convolution(call, device_spec, free_l1_bytes=free_l1_bytes)
    elif role == "bias" and not call.prepared_as_matmul:
        return plan_convolution(call, device_spec, free_l1_bytes=free_l1_bytes)
    slices = None
    if role == "weight" and not call.takes_l1_path:
        slices, cut = call.slice_config, call if call.slice_config is None else _in_dram(call)
        if slices is None or not slices.num_slices:
            slices = choose_slices(cut, device_spec, free_l1_bytes=free_l1_bytes)[0]
            slices = None if call.slices_skip_dram(slices.num_slices) else slices
        call = call if slices is None else cut
    partitioned = partition_preparation(call, device_spec, slices)
    layout, builder = (
        operands.weights_layout(partitioned, operands.read_layout(partitioned)),
        builder_of(call, device_spec),
    )
    name = operands.operand_names(call)[0 if role == "weight" else 1]
    if role == "weight":
        layout = replace(layout, full_inner_dim=partitioned.layout.joins_kernel_rows)
    operands.upload_prepared(builder, name, role, layout)
    return builder.finish({role: builder.tensor(name)})


def plan_rows(call: ConvCall, role: str, device_spec: DeviceSpec) -> Plan:
    """The weights and the bias in rows that the real preparation allocates, and releases, to plan a convolution.

    They are the operands of that convolution, whose input is in DRAM, and nothing is written into them. A preparation
    that plans no convolution allocates none.
    """
    builder = PlanBuilder(device_spec, {})
    if _plans_in_dram(call) and (role == "bias" or not call.rules.transposed):
        data_format = call.weight_format
        groups = 1 if call.rules.transposed else call.groups  # weights of groups are made dense by then
        shapes = {"weight": (call.out_channels, call.in_channels // groups, *call.kernel_size)}
        if call.bias is not None:
            shapes["bias"] = (1, 1, 1, call.out_channels)
        rows = [
            builder.allocate(f"{name}.rows", TensorSpec(shape, data_format, Layout.ROW_MAJOR, DRAM_MEMORY_CONFIG))
            for name, shape in shapes.items()
        ]
        builder.free(*reversed(rows))
    return builder.finish({})


def partition_preparation(
    call: ConvCall, device_spec: DeviceSpec, slices: SliceConfig | None
) -> operands.PartitionedConv:
    """The layout that weights are prepared for, with the slices of the DRAM path, or None for the L1 path.

    The layout differs from the call's: full_inner_dim orders the rows of BLOCK weights; a given core_grid is ignored;
    sharded inputs count as staying in place, unless reshard_if_not_optimal; and an input in DRAM lies as the window of
    a first slice with the paddings of the whole image, also where one slice is enough and where a 1x1 kernel is a
    matmul.
    """
    memory, row_major = call.input.spec.memory_config, call.input.spec.layout is Layout.ROW_MAJOR
    if slices is not None:
        part = first_slice(call, slices)
        memory = input_cores(call, part, device_spec).memory
        by_rows = memory.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED and not call.rules.transposed
        row_major = row_major or (slices.num_slices > 1 and not by_rows)
        height, width = part.down.stop - part.down.start, part.across.stop - part.across.start
        window = replace(call, input_height=height, input_width=width)
        with suppress(NoWindowError):  # a window with the paddings of the whole image may have no outputs
            window.frame()
            call = window
    problem, options = call.lower()
    problem, options = replace(problem, row_major=row_major), replace(options, core_grid=None)
    scheme, matmul = call.conv_config.shard_layout, call.prepared_as_matmul
    before = call.input_alignment(memory, row_major=row_major, matmul=matmul)
    if memory.is_sharded() and not call.conv_config.reshard_if_not_optimal:
        cores, alignment = sharded_input(memory), before
        if call.rules.transposed and slices is None and problem.out_format.is_block:  # no reader is timed for these
            problem = replace(problem, out_format=problem.act_format)
    else:
        scheme = scheme or choose_scheme(problem, options, device_spec, matmul=matmul).scheme
        cores = choose_cores(problem, options, device_spec, scheme, alignment=before, matmul=matmul)
        alignment = scheme_alignment(problem, scheme, matmul=matmul)
    layout = partition_conv(problem, options, device_spec, cores, alignment=alignment, matmul=matmul)
    return operands.PartitionedConv(call=call, layout=layout, input_memory=memory)
