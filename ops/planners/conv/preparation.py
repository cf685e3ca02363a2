"""The layout that the real library prepares weights for ahead of a transposed convolution (docs/planning.md, Weights).

It is found by rules of its own, so that it can be another one than the call's.
"""

from dataclasses import replace

from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, Layout, MemoryConfig
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder
from ops.op_models import OP_MODELS
from ops.planners.conv.arguments import (
    ConvCall,
    SliceConfig,
    frame_of,
    lower,
    prepared_as_matmul,
    slices_skip_dram,
    takes_l1_path,
    weight_format,
)
from ops.planners.conv.operands import PartitionedConv, operand_names, weights_layout
from ops.planners.conv.plan import builder_of, plan_convolution
from ops.planners.conv.slicing import choose_slices, first_slice, input_cores, input_memory
from ops.programs.conv2d.estimates import choose_scheme
from ops.programs.conv2d.parallel_config import channel_alignment
from ops.programs.conv2d.partition import choose_cores, partition_conv, scheme_alignment, sharded_input
from ops.programs.conv2d.weights import PrepareBias, PrepareWeights
from ops.window import NoWindowError


def plan_weights_preparation(call: ConvCall, device_spec: DeviceSpec, *, free_l1_bytes: int) -> Plan:
    """The upload of weights for a call to come; its result is "weight".

    Raises:
        DeviceError: No number of slices fits, or the blocks do not fit.
    """
    partitioned = partition_preparation(call, device_spec, _slices(call, device_spec, free_l1_bytes=free_l1_bytes))
    layout = replace(weights_layout(partitioned), full_inner_dim=partitioned.options.full_inner_dim)
    made = TensorSpec(layout.logical_shape, layout.data_format, Layout.TILE, padded_shape=layout.padded_shape)
    builder = builder_of(call, device_spec)
    name = operand_names(call)[0]
    builder.upload(name, made, "weight", PrepareWeights(layout))
    return builder.finish({"weight": name}, known_works=OP_MODELS)


def plan_bias_preparation(call: ConvCall, device_spec: DeviceSpec, *, free_l1_bytes: int) -> Plan:
    """The upload of a bias for a call to come, as `plan_weights_preparation`; its result is "bias".

    A bias is prepared as the call does it, but that 1x1 kernels count as a matmul at any stride and padding.
    """
    if not prepared_as_matmul(call):
        return plan_convolution(call, device_spec, free_l1_bytes=free_l1_bytes)
    layout = weights_layout(partition_preparation(call, device_spec, None))
    made = TensorSpec(layout.bias_logical_shape, layout.data_format, Layout.TILE, padded_shape=layout.bias_padded_shape)
    builder = builder_of(call, device_spec)
    name = operand_names(call)[1]
    builder.upload(name, made, "bias", PrepareBias(layout))
    return builder.finish({"bias": name}, known_works=OP_MODELS)


def plan_rows(call: ConvCall, device_spec: DeviceSpec) -> Plan:
    """The weights and the bias in rows that the real preparation allocates, and releases, to plan a convolution.

    They are the operands of that convolution, whose input is in DRAM, and nothing is written into them.
    """
    data_format = weight_format(call)
    builder = PlanBuilder(device_spec, {})
    groups = 1 if call.rules.transposed else call.groups  # weights of groups are made dense by then
    shape = (call.out_channels, call.in_channels // groups, *call.kernel_size)
    rows = [builder.allocate("weight.rows", TensorSpec(shape, data_format, Layout.ROW_MAJOR, DRAM_MEMORY_CONFIG))]
    if call.bias is not None:
        bias = TensorSpec((1, 1, 1, call.out_channels), data_format, Layout.ROW_MAJOR, DRAM_MEMORY_CONFIG)
        rows.append(builder.allocate("bias.rows", bias))
    builder.free(*reversed(rows))
    return builder.finish({}, known_works=OP_MODELS)


def partition_preparation(call: ConvCall, device_spec: DeviceSpec, slices: SliceConfig | None) -> PartitionedConv:
    """The layout that weights are prepared for.

    It differs from the call's in this: full_inner_dim orders the rows of BLOCK weights; a given core_grid is not looked
    at; sharded inputs are taken to stay where they are, unless reshard_if_not_optimal; and an input in DRAM lies as the
    window of a first slice with the paddings of the whole image, also where one slice is enough and where a 1x1 kernel
    is a matmul.

    Args:
        slices: How it is cut on the DRAM path; None on the L1 path.
    """
    memory, row_major = call.input.spec.memory_config, call.input.spec.layout is Layout.ROW_MAJOR
    if slices is not None:
        part = first_slice(call, slices)
        memory = input_memory(call, part, input_cores(call, part, device_spec).cores)
        row_major = row_major or slices.num_slices > 1
        height, width = part.down.stop - part.down.start, part.across.stop - part.across.start
        window = replace(call, input_height=height, input_width=width)
        call = window if _has_outputs(window) else call
    problem, options = lower(call)
    problem, options = replace(problem, row_major=row_major), replace(options, core_grid=None)
    scheme, matmul = call.conv_config.shard_layout, prepared_as_matmul(call)
    before = _alignment(memory, row_major=row_major, matmul=matmul)
    if memory.is_sharded() and not call.conv_config.reshard_if_not_optimal:
        cores, alignment = sharded_input(memory), before
    else:
        scheme = scheme or choose_scheme(problem, options, device_spec, matmul=matmul).scheme
        cores = choose_cores(problem, options, device_spec, scheme, alignment=before, matmul=matmul)
        alignment = scheme_alignment(problem, scheme, matmul=matmul)
    layout = partition_conv(problem, options, device_spec, cores, alignment=alignment, matmul=matmul)
    return PartitionedConv(arguments=call, layout=layout, input_memory=memory)


def _has_outputs(call: ConvCall) -> bool:
    """Whether there are any: a window with the paddings of the whole image may have none."""
    try:
        frame_of(call)
    except NoWindowError:
        return False
    return True


def _slices(call: ConvCall, device_spec: DeviceSpec, *, free_l1_bytes: int) -> SliceConfig | None:
    """The slices that the call will run in; None if it takes the L1 path."""
    if takes_l1_path(call):
        return None
    config = call.slice_config
    if config is None or not config.num_slices:
        config = choose_slices(call, device_spec, free_l1_bytes=free_l1_bytes).config
        if slices_skip_dram(call, config.num_slices):
            return None
    return config


def _alignment(memory: MemoryConfig, *, row_major: bool, matmul: bool) -> int:
    """Channels that a shard of the input to come is a multiple of, by the memory that it comes in."""
    shards = memory.shard_spec
    width = None if shards is None else shards.shape[1]
    return channel_alignment(memory.memory_layout, row_major=row_major, sliced=False, matmul=matmul, shard_width=width)
