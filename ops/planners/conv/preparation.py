"""Weights and biases ahead of a call, whose layout has rules of its own (docs/reference/planning.md, Weights)."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Final

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, TILE, Layout, TensorMemoryLayout
from device.numbers.formats import div_up
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder
from ops.planners.conv import checks, operands
from ops.planners.conv.arguments import CONV2D, Check, ConvCall, Folding, SliceConfig, SliceType, refuse_first
from ops.planners.conv.folding import folded_call
from ops.planners.conv.plan import builder_of
from ops.planners.conv.slicing import choose_slices, first_slice, input_cores
from ops.planners.conv.strict import raw_weight
from ops.programs.conv2d.op import choose_scheme
from ops.programs.conv2d.partition import choose_cores, partition_conv, scheme_alignment, sharded_input
from ops.programs.data_movement.placement import whole_shards
from ops.window import NoWindowError

ONE_PIECE: Final = SliceConfig(slice_type=SliceType.L1_FULL)


def checked_preparation(
    call: ConvCall,
    role: str,
    device_spec: DeviceSpec,
    *,
    function: str,
    strict: bool,
    scheme: TensorMemoryLayout | None = None,
) -> ConvCall:
    """The call as its "weight" or "bias" is prepared, windows folded; ``function`` names the preparation in errors.

    ``strict`` refuses weights for a transposed convolution that the real library gets wrong. ``scheme`` is that of an
    input in shards that are not given.
    """
    call = replace(call, conv_config=replace(call.conv_config, override_sharding_config=False))  # cores do not count
    if role == "bias":
        refuse_first(call, (_bias_on_host, _bias_format))
        call = _over_frame(replace(call, slice_config=None), function)  # no slices are read for a bias
    if call.rules.transposed:
        refuse_first(call, (operands.weight_refusals,))
        if _searches(call):
            checks.check_search(call, device_spec)
        call = _in_shards(call, scheme)
        _check_order(call)
        refuse_first(call, (checks.placing_ahead,))
        refuse_first(call, (checks.stride_given,), function)
        checks.check_possible(call)
        refuse_first(call, (checks.groups_given, *((raw_weight,) if strict else ())), function)
        checks.check_sizes(call, device_spec)
        checks.check_slices(_in_dram(call) if _plans_in_dram(call) else call)
        return call
    refuse_first(call, (checks.stride_given,))
    return _checked_ordinary(_in_shards(call, scheme), device_spec)


def _checked_ordinary(call: ConvCall, device_spec: DeviceSpec) -> ConvCall:
    """The ordinary convolution that weights or a bias are prepared for, windows folded."""
    config, place = call.conv_config, call.input.spec.memory_config
    if call.input_height == call.kernel_size[0] == 1:  # a row is never cut
        call = replace(call, slice_config=ONE_PIECE)
    moved, asked = config.shard_layout is not None or config.reshard_if_not_optimal or _plans_in_dram(call), call
    if not moved and not call.is_matmul and place.shard_spec is not None:  # shards are taken to stay where they are
        call = replace(call, conv_config=replace(config, shard_layout=place.memory_layout))
    refuse_first(call, (checks.folded_lengths,) if call.folds else ())
    refuse_first(call, (_rows_of_blocks, _slices_of_matmul))
    if not (call.is_matmul or (call.folds and call.kernel_size == call.stride)):
        _check_order(asked)
    elif place.is_sharded():
        refuse_first(call, (_missing_shard_layout,))
    refuse_first(call, (checks.placing_ahead,))
    checks.check_possible(call, prepares=True)
    checks.check_sizes(call, device_spec)
    call = _folded(call) if call.folds else call
    return _in_dram(call) if _plans_in_dram(call) else call


def _in_shards(call: ConvCall, scheme: TensorMemoryLayout | None) -> ConvCall:
    """The call on shards of a scheme, if there is one; it counts instead of the config's unless slices are planned."""
    if scheme is None or _plans_in_dram(call):
        return call
    refuse_first(call, (_missing_shard_layout,))
    becomes_matmul = call.is_matmul and scheme is TensorMemoryLayout.WIDTH_SHARDED
    if call.conv_config.reshard_if_not_optimal or becomes_matmul:
        return call
    return replace(call, conv_config=replace(call.conv_config, shard_layout=scheme))


def _over_frame(call: ConvCall, function: str) -> ConvCall:
    """The call over its frame: the ordinary convolution of stride 1 that the bias of a transposed one is prepared for.

    Raises ArgumentError for a frame without outputs.
    """
    if not call.rules.transposed:
        return call
    refuse_first(call, (checks.stride_given,), function)
    checks.check_possible(call)
    refuse_first(call, (checks.groups_given,), function)
    ins, outs, groups = call.in_channels, call.out_channels, call.groups
    groups = 1 if ins % groups or outs % groups else groups
    weight = call.weight.spec.changed(shape=(outs, ins // groups, *call.kernel_size))
    return replace(
        call,
        rules=CONV2D,
        weight=replace(call.weight, spec=weight),
        groups=groups,
        input_height=call.axis(0).length,
        input_width=call.axis(1).length,
        stride=(1, 1),
        padding=(0, 0, 0, 0),
        output_padding=(0, 0),
    )


def _in_dram(call: ConvCall) -> ConvCall:
    """The call with its input in DRAM, out of which slices are cut."""
    return replace(call, input=replace(call.input, spec=call.input.spec.changed(memory_config=DRAM_MEMORY_CONFIG)))


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


def _plans_in_dram(call: ConvCall) -> bool:
    """Whether a preparation plans slices of the convolution, as for an input in DRAM."""
    if call.takes_l1_path or call.prepared_as_matmul or call.is_matmul:
        return False
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


def plan_preparation(
    call: ConvCall,
    role: str,
    device_spec: DeviceSpec,
    *,
    free_l1_bytes: int,
    scheme: TensorMemoryLayout | None = None,
) -> Plan:
    """The plan that uploads the "weight" or "bias" of a call of `checked_preparation`; its result has that name.

    ``scheme`` as in `checked_preparation`: of a memory whose shards nobody knows yet.

    Raises DeviceError if no number of slices fits, or the blocks do not fit, and ArgumentError for a wrong operand.
    """
    slices = None
    if _plans_in_dram(call) or (call.rules.transposed and not call.takes_l1_path):
        slices, cut = call.slice_config, _in_dram(call)
        if slices is None or not slices.num_slices:
            slices = choose_slices(cut, device_spec, free_l1_bytes=free_l1_bytes)[0]
        slices = None if call.slices_skip_dram(slices.num_slices) else slices
        call = call if slices is None else cut
    if role == "weight" and _is_whole_matrix(call):
        call = replace(call, conv_config=replace(call.conv_config, shard_layout=None))
    partitioned = partition_preparation(call, device_spec, slices, bare=scheme is not None)
    _check_operand(call, role)
    layout, builder = (
        operands.weights_layout(partitioned, operands.read_layout(partitioned)),
        builder_of(call, device_spec),
    )
    name = operands.operand_names(call)[0 if role == "weight" else 1]
    if role == "weight":
        layout = replace(layout, full_inner_dim=partitioned.layout.joins_kernel_rows)
    operands.upload_prepared(builder, name, role, layout)
    return builder.finish({role: builder.tensor(name)})


def _is_whole_matrix(call: ConvCall) -> bool:
    """Whether the weights are a matrix that no cores part: of a matmul on an input in DRAM."""
    by_width = call.conv_config.shard_layout is TensorMemoryLayout.WIDTH_SHARDED
    return by_width and call.is_matmul and not (call.rules.transposed or call.takes_l1_path)


def _check_operand(call: ConvCall, role: str) -> None:
    """Raises an error for the "weight" or "bias" of a call, which is looked at once the call is planned."""
    if role == "bias":
        refuse_first(call, (operands.bias_shape,))
        return
    if not call.weight.on_host:
        raise DeviceError("Host conv weights should be placed on host\nweight_tensor: use .cpu()")
    refuse_first(call, (operands.weight_refusals,))


def plan_rows(call: ConvCall, device_spec: DeviceSpec) -> Plan:
    """The weights and the bias in rows that the real preparation allocates, and releases, to plan a convolution.

    They are the operands of that convolution, whose input is in DRAM, and nothing is written into them. A preparation
    that plans no convolution allocates none.
    """
    builder = PlanBuilder(device_spec, {})
    if _plans_in_dram(call) and not call.rules.transposed:
        data_format = call.weight_format
        shapes = {"weight": (call.out_channels, call.in_channels // call.groups, *call.kernel_size)}
        if call.bias is not None:
            shapes["bias"] = (1, 1, 1, call.out_channels)
        rows = [
            builder.allocate(f"{name}.rows", TensorSpec(shape, data_format, Layout.ROW_MAJOR, DRAM_MEMORY_CONFIG))
            for name, shape in shapes.items()
        ]
        builder.free(*reversed(rows))
    return builder.finish({})


def partition_preparation(
    call: ConvCall, device_spec: DeviceSpec, slices: SliceConfig | None, *, bare: bool = False
) -> operands.PartitionedConv:
    """The layout that weights are prepared for, with the slices of the DRAM path, or None for the L1 path.

    The layout differs from the call's: full_inner_dim orders the rows of BLOCK weights; a given core_grid is ignored;
    sharded inputs count as staying in place, unless reshard_if_not_optimal; and an input in DRAM lies as the window of
    a first slice with the paddings of the whole image, also where one slice is enough and where a 1x1 kernel is a
    matmul. A whole image in ``bare`` memory, whose shards nobody knows, is dealt tile by tile.
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
    before = TILE if bare and slices is None else call.input_alignment(memory, row_major=row_major, matmul=matmul)
    if memory.is_sharded() and not call.conv_config.reshard_if_not_optimal:
        cores, alignment = sharded_input(memory), before
    else:
        scheme = scheme or choose_scheme(problem, options, device_spec, matmul=matmul).scheme
        cores = choose_cores(problem, options, device_spec, scheme, alignment=before, matmul=matmul)
        alignment = scheme_alignment(problem, scheme, matmul=matmul)
    known = replace(problem, out_format=problem.act_format)  # no reader is timed, which is not known of all formats
    layout = partition_conv(known, options, device_spec, cores, alignment=alignment, matmul=matmul)
    return operands.PartitionedConv(call=call, layout=layout, input_memory=memory)
