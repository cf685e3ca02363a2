"""Lower bounds of a call's cycles and L1, from its partition alone: they rule candidates out and are never reported."""

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NamedTuple

from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, BufferType, Layout
from device.numbers.formats import BFLOAT16
from device.spec.device_spec import DeviceSpec
from ops.planners.conv.arguments import ConvCall, Operand
from ops.planners.conv.l1_path import halo_arguments, reads_input
from ops.planners.conv.operands import PartitionedConv, micro_op, output_spec, partition_call
from ops.planners.conv.slicing import OutputSlice, choose_slices, input_cores, output_slices
from ops.programs.conv2d.cycles import least_cycles, least_cycles_of_blocks
from ops.programs.conv2d.op import Conv2dOp, ConvBuffers, buffer_requests, local_bytes
from ops.programs.conv2d.partition import WIDTH, ConvOptions
from ops.programs.data_movement.movement import MovementCosts
from ops.programs.halo.cycles import HaloCosts
from ops.programs.halo.plan import halo_output
from ops.programs.halo.transfers import most_sticks


class Extent(IntEnum):
    """The calls that a lower bound holds for, by what may differ from the call that is asked about."""

    CALL = 0  # Nothing
    BLOCKS = 1  # Blocks and readers; the cores stay the same
    CORES = 2  # Blocks, readers and cores; the call has the most cores that its scheme can have for rows


class RestKey(NamedTuple):
    """Calls with equal keys take equally long besides convolutions and moves within L1."""

    on_l1_path: bool
    slices: Hashable
    output_layout: Layout
    pieces: Hashable


@dataclass(frozen=True, slots=True, kw_only=True)
class LowerBound:
    """Lower bounds of a call."""

    cycles: int = 0  # Of its convolutions alone
    rest_cycles: int = 0  # Of its other operations, which start
    # On a core: a halo's output with its input, or with the convolution's circular buffers and output
    l1_bytes: int = 0
    # Calls that differ only in their configs and share this key have equal plans; None if unknown
    plan_key: Hashable = None
    rest_key: RestKey | None = None  # None if unknown
    ops: tuple[tuple[Conv2dOp, int], ...] = ()  # Its convolutions, each with how often it runs


UNKNOWN = LowerBound()  # nothing is known without a plan


def lower_bound_of(
    call: ConvCall, device_spec: DeviceSpec, *, free_l1_bytes: int, extent: Extent = Extent.CALL
) -> LowerBound:
    """Lower bound of a call, or of all calls that are like it up to `extent`.

    Unknown for matmuls, folded windows, output phases and split calls, and where slices depend on what may differ.
    """
    on_l1_path = call.takes_l1_path
    if extent and not on_l1_path and (call.slice_config is None or not call.slice_config.num_slices):
        return UNKNOWN
    calls = l1_path_calls(call, device_spec, free_l1_bytes=free_l1_bytes)
    bounds = [(_in_one_piece(piece, device_spec, extent), count) for piece, count in calls]
    if not bounds:
        return UNKNOWN
    costs = device_spec.costs_of(MovementCosts)
    start = min(costs.start_cycles, costs.compiled_start_cycles, costs.local_start_cycles)
    moving = 2 * int(start) if len(calls) > 1 or calls[0][1] > 1 else 0  # a slice comes from DRAM and goes there
    rests = tuple((bound.rest_key, count) for bound, count in bounds)
    layout = call.conv_config.output_layout
    return LowerBound(
        cycles=sum(count * bound.cycles for bound, count in bounds),
        rest_cycles=sum(count * (bound.rest_cycles + moving) for bound, count in bounds),
        l1_bytes=max(bound.l1_bytes for bound, _ in bounds),
        plan_key=(on_l1_path, call.slice_config, layout, tuple((bound.plan_key, count) for bound, count in bounds)),
        rest_key=RestKey(on_l1_path, call.slice_config, layout, rests),
        ops=tuple((op, times * count) for bound, count in bounds for op, times in bound.ops),
    )


def l1_path_calls(call: ConvCall, device_spec: DeviceSpec, *, free_l1_bytes: int) -> tuple[tuple[ConvCall, int], ...]:
    """The calls on the L1 path that a call runs, and how often: itself, or its slices; errors as of `lower_bound_of`.

    Slices that differ only in their place count as one call. Empty for matmuls, folded windows, output phases and
    split calls.
    """
    if call.is_matmul or call.runs_by_phases or call.rules.splits or call.folds:
        return ()
    if call.takes_l1_path:
        return ((call, 1),)
    slices = call.slice_config
    if slices is None or not slices.num_slices:
        slices = choose_slices(call, device_spec, free_l1_bytes=free_l1_bytes)[0]
    if call.slices_skip_dram(slices.num_slices):
        return ((call, 1),)

    def slice_of(part: OutputSlice) -> ConvCall:
        """A slice as a call of its own, whose window has come to L1."""
        dealt, data_format = input_cores(call, part, device_spec), call.input.spec.data_format
        shape = (1, 1, dealt.problem.in_rows, dealt.call.in_channels)
        row_format = BFLOAT16 if data_format.is_block else data_format
        window = TensorSpec(shape, row_format, Layout.ROW_MAJOR, dealt.memory)
        return dealt.call.as_slice(Operand(spec=window, on_host=False), dealt.cores.scheme)

    if slices.num_slices > 1:
        counts = Counter(part.at_origin for part in output_slices(call, slices) if not part.is_empty)
        return tuple((slice_of(part), count) for part, count in counts.items())
    image = call.input.spec.changed(shape=call.image_shape, memory_config=DRAM_MEMORY_CONFIG)
    return ((call.as_slice(Operand(spec=image, on_host=False)), 1),)


class _Piece(NamedTuple):
    """Lower bounds of a call on the L1 path, with the keys of `LowerBound`."""

    cycles: int
    rest_cycles: int
    l1_bytes: int
    plan_key: Hashable
    rest_key: Hashable
    ops: tuple[tuple[Conv2dOp, int], ...]


def _in_one_piece(call: ConvCall, device_spec: DeviceSpec, extent: Extent) -> _Piece:
    partitioned = partition_call(call, device_spec)
    layout, in_format = partitioned.layout, partitioned.problem.in_format
    joins = not call.rules.transposed and layout.scheme is not WIDTH  # a member may join kernel rows
    buffers = ConvBuffers.of(layout)
    op = micro_op(call, layout, buffers, k_blocks=())
    rest_cycles = 0 if reads_input(partitioned) else int(device_spec.costs_of(HaloCosts).start_cycles)
    if extent is Extent.CORES:
        cycles = least_cycles_of_blocks(op, device_spec, any_cores=True, joins_rows=joins)
        return _Piece(int(cycles), rest_cycles, 0, None, None, ())
    shards, in_bytes, halo_bytes, own_bytes = partitioned.input_memory.shard_spec, 0, 0, 0
    if shards is not None and partitioned.reshards and not in_format.is_block:  # the call makes the input's shards
        in_bytes = shards.shape[0] * shards.shape[1] * (in_format.element_bytes or 0)
    if not reads_input(partitioned):
        halo = halo_arguments(partitioned, device_spec)
        sticks = most_sticks(halo.frame, output_rows=halo.output_rows, cores=halo.nhw_cores)
        halo_bytes = halo_output(halo, sticks).buffer(device_spec).bank_bytes
    if extent is Extent.BLOCKS:
        cycles = least_cycles_of_blocks(op, device_spec, joins_rows=joins)
        buffers = _smallest(buffers)
    else:
        cycles = least_cycles(op, device_spec)
    if not extent or not (joins or layout.scheme is WIDTH):
        own_bytes = local_bytes(buffer_requests(buffers))
    output_bytes = output_spec(partitioned).buffer(device_spec).bank_bytes
    return _Piece(
        cycles=int(cycles),
        rest_cycles=rest_cycles,
        l1_bytes=halo_bytes + max(in_bytes, own_bytes + output_bytes),
        plan_key=None if extent else _plan_key(partitioned),
        rest_key=(layout.config, layout.out_config, layout.shards, partitioned.input_memory, partitioned.reshards),
        ops=((op, 1),),
    )


def _smallest(buffers: ConvBuffers) -> ConvBuffers:
    """Buffers that take no more than those of any height of blocks and any readers, on the same cores."""
    layout = buffers.layout
    blocks = replace(layout.blocks, act_h_tiles=1, subblock_h_tiles=1)
    layout = replace(layout, blocks=blocks, split_reader=False)
    # Several output blocks keep the weights of all kernel rows, a single one those of one row
    return replace(buffers, layout=layout, kernel=(1, buffers.kernel[1]))


def _plan_key(partitioned: PartitionedConv) -> Hashable:
    """All of a layout, without settings whose consequences the layout states."""
    config = replace(
        partitioned.call.conv_config,
        act_block_h_override=0,
        core_grid=None,
        force_split_reader=None,
        override_sharding_config=False,
        reshard_if_not_optimal=False,
        shard_layout=None,
        transpose_shards=False,
    )
    place = partitioned.input_memory
    in_l1 = place.buffer_type is BufferType.L1
    return (
        replace(partitioned.layout, options=ConvOptions()),
        place,
        in_l1 and partitioned.reshards,
        config,
        partitioned.call.compute_config,
    )
