"""Lower bounds of a call's cycles and L1, from its partition alone: they rule candidates out and are never reported."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from enum import IntEnum
from functools import partial
from math import prod
from operator import attrgetter
from typing import Final, NamedTuple

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, TILE, BufferType, Layout
from device.numbers.formats import BFLOAT16, div_up
from device.spec.device_spec import DeviceSpec
from device.time.network import read_latency_cycles
from ops.planners.conv.arguments import ConvCall, ConvConfig, Operand, SliceConfig
from ops.planners.conv.l1_path import halo_arguments, reads_input
from ops.planners.conv.operands import PartitionedConv, micro_op, output_spec, partition_call
from ops.planners.conv.slicing import OutputSlice, choose_slices, input_cores, output_slices
from ops.programs.conv2d.block_costs import ConvCosts, ConvSteps, conv_steps
from ops.programs.conv2d.cycles import least_cycles, least_cycles_of_blocks
from ops.programs.conv2d.op import Conv2dOp, ConvBuffers, buffer_requests, local_bytes
from ops.programs.conv2d.partition import WIDTH, ConvOptions
from ops.programs.conv2d.walk import time_conv
from ops.programs.data_movement.movement import MovementCosts, movement_cycles
from ops.programs.data_movement.slice import slice_movement
from ops.programs.halo.cycles import HaloCosts
from ops.programs.halo.plan import halo_output
from ops.programs.halo.transfers import most_sticks
from ops.programs.kernel_costs import write_latency_cycles
from ops.window import NoWindowError


class Extent(IntEnum):
    """The calls that a lower bound holds for, by the differences that they may have from a given call."""

    BLOCKS = 1  # Blocks and readers; the cores stay the same
    CORES = 2  # Blocks, readers and cores; the call has the most cores that its scheme can have for rows


CountedSlices = tuple[tuple[OutputSlice, int], ...]  # Slices, and how often a call has them


class RestKey(NamedTuple):
    """Calls with equal keys take equally long besides convolutions and moves within L1."""

    on_l1_path: bool
    slices: Hashable
    output_layout: Layout
    pieces: Hashable


class Buffered(NamedTuple):
    """How a call buffers blocks and moves its halo, by which calls of a family differ."""

    act: bool  # Activations are double buffered
    weights: bool
    moves_halo: bool


BUFFERED: Final = ("enable_act_double_buffer", "enable_weights_double_buffer", "reallocate_halo_output")
# Their consequences stand in the layout
LAID_OUT: Final = (
    *("act_block_h_override", "core_grid", "force_split_reader", "override_sharding_config", "reshard_if_not_optimal"),
    *("shard_layout", "transpose_shards"),
)
_unbuffered = attrgetter(*(each.name for each in fields(ConvConfig) if each.name not in BUFFERED))
_settled = attrgetter(*(each.name for each in fields(ConvConfig) if each.name not in (*BUFFERED, *LAID_OUT)))


class Program(NamedTuple):
    """A convolution of a call."""

    op: Conv2dOp
    steps: ConvSteps  # Its steps on the device
    times: int  # How often it runs


class LowerBound(NamedTuple):
    """Lower bounds of a call."""

    cycles: int = 0  # Of its convolutions alone
    rest_cycles: int = 0  # Of its other operations, which start
    # On a core: a halo's output with its input, or with the convolution's circular buffers and output
    l1_bytes: int = 0
    # Calls that differ only in their configs and share this key have equal plans; None if unknown
    plan_key: Hashable = None
    rest_key: RestKey | None = None  # None if unknown
    programs: tuple[Program, ...] = ()  # Its convolutions

    def with_piece(self, piece: "_Piece") -> "LowerBound":
        """The bound together with a piece that runs as often as the piece says."""
        return self._replace(
            cycles=self.cycles + piece.times * piece.cycles,
            rest_cycles=self.rest_cycles + piece.times * piece.rest_cycles,
            l1_bytes=max(self.l1_bytes, piece.l1_bytes),
        )


UNKNOWN = LowerBound()  # nothing is known without a plan


@dataclass(slots=True)
class ConvTimes:
    """A cache of the cycles of convolutions on a device."""

    device_spec: DeviceSpec
    _walked: dict[Conv2dOp, int] = field(default_factory=dict)

    def walked(self, op: Conv2dOp, steps: ConvSteps) -> int:
        """The cycles of a convolution with these steps."""
        if op not in self._walked:
            self._walked[op] = int(time_conv(op, self.device_spec, steps).end.cycles)
        return self._walked[op]


@dataclass(slots=True)
class LowerBounds:
    """Lower bounds of calls that differ in their configs and slices; common parts are computed once."""

    times: ConvTimes  # On the device of the calls
    free_l1_bytes: int  # Free bytes of every L1 bank when the call begins
    # Of each family, by what its calls share: its pieces on the L1 path, or why it is refused
    _families: dict[Hashable, "tuple[_Family, ...] | DeviceError | NoWindowError"] = field(default_factory=dict)
    _places: dict[Hashable, "_Place"] = field(default_factory=dict)
    _windows: dict[TensorSpec, int] = field(default_factory=dict)  # Cycles of the copies of windows from DRAM
    _slices: dict[Hashable, CountedSlices] = field(default_factory=dict)  # By what calls with the same slices share

    @property
    def device_spec(self) -> DeviceSpec:
        """The device of the calls."""
        return self.times.device_spec

    def of(self, call: ConvCall, enough: Callable[[LowerBound], bool] | None = None) -> LowerBound:
        """Lower bound of a call; raises the errors of its plan.

        The bound of some slices alone, without keys, as soon as it is ``enough``: slices that run most often come
        first. Unknown for matmuls, folded windows, output phases and split calls.
        """
        on_l1_path, config = call.takes_l1_path, call.conv_config
        buffered = Buffered(
            config.enable_act_double_buffer,
            config.enable_weights_double_buffer,
            config.reallocate_halo_output or not on_l1_path,
        )
        least, pieces = UNKNOWN, list[_Piece]()
        for family in self._family(call):
            pieces.append(family.piece(buffered))
            least = least.with_piece(pieces[-1])
            if enough is not None and enough(least):
                return least
        if not pieces:
            return UNKNOWN
        same = on_l1_path, call.slice_config, config.output_layout
        return least._replace(
            plan_key=(*same, tuple((piece.plan_key, piece.times) for piece in pieces)),
            rest_key=RestKey(*same, tuple((piece.rest_key, piece.times) for piece in pieces)),
            programs=tuple(Program(*piece.program, piece.times) for piece in pieces if piece.program is not None),
        )

    def of_all(self, call: ConvCall, extent: Extent, enough: Callable[[LowerBound], bool] | None = None) -> LowerBound:
        """Lower bound of all calls that differ from a call up to `extent`; raises the errors of its plan.

        ``enough`` as in `of`. Unknown as in `of`, and if slices depend on the differences.
        """
        if not call.takes_l1_path and (call.slice_config is None or not call.slice_config.num_slices):
            return UNKNOWN
        least, calls = UNKNOWN, self._calls(call)
        for _, piece, times in calls:
            least = least.with_piece(self._like(call, piece(), extent, cut=_cuts(calls))._replace(times=times))
            if enough is not None and enough(least):
                break
        return least

    def of_starts(self, call: ConvCall) -> LowerBound:
        """The bound of all calls with the slices of a call: the start of their operations."""
        slices = call.slice_config
        if slices is None or slices.num_slices < 2 or call.is_matmul or call.folds:
            return UNKNOWN
        try:
            count = sum(not part.is_empty for part in output_slices(call, slices))
        except (DeviceError, NoWindowError):
            return UNKNOWN
        start = int(self.device_spec.costs_of(ConvCosts).start_cycles)
        copy = self._least_start_cycles() + int(self.device_spec.costs_of(MovementCosts).start_cycles)
        return LowerBound(cycles=count * start, rest_cycles=count * copy if count > 1 else 0)

    def _least_start_cycles(self) -> int:
        """The start of any movement."""
        costs = self.device_spec.costs_of(MovementCosts)
        return int(min(costs.start_cycles, costs.compiled_start_cycles, costs.local_start_cycles))

    def _copy_cycles(self, call: ConvCall, partitioned: PartitionedConv) -> int:
        """The minimum cycles to copy a slice's window from DRAM and its output to DRAM, on the partition's cores."""
        window = partitioned.call.input.spec
        if window not in self._windows:
            self._windows[window] = self._window_cycles(call, window)
        return self._windows[window] + self._written_cycles(call, partitioned)

    def _window_cycles(self, call: ConvCall, window: TensorSpec) -> int:
        spec, image = self.device_spec, call.input.spec
        if prod(window.shape[:-1]) == prod(call.image_shape[:-1]):  # other programs than slices copy a whole image
            return self._least_start_cycles()
        if call.input.on_host or image.layout is Layout.TILE:  # rows of tiles are waited for
            return int(spec.costs_of(MovementCosts).start_cycles + read_latency_cycles(spec))
        rows = window.changed(memory_config=DRAM_MEMORY_CONFIG)  # their place in the image does not matter
        return int(movement_cycles(slice_movement(rows, window, spec), spec).cycles)

    def _written_cycles(self, call: ConvCall, partitioned: PartitionedConv) -> int:
        """The minimum cycles to write the output, in tiles or untilized; rows of WIDTH shards are on other cores."""
        spec, layout = self.device_spec, partitioned.layout
        costs, latency = spec.costs_of(MovementCosts), write_latency_cycles(spec, in_dram=True)
        if call.conv_config.output_layout is Layout.TILE:
            return int(costs.start_cycles + div_up(layout.shards.out_rows, TILE) * latency)
        rows = layout.shards.out_rows if layout.scheme is not WIDTH else 1
        return self._least_start_cycles() + int(costs.start_cycles + latency + rows * costs.box_stick_cycles)

    def _calls(self, call: ConvCall) -> "list[_Counted]":
        """The calls from `l1_path_calls`, numbered in its order; calls that run most often come first."""
        calls = l1_path_calls(call, self.device_spec, free_l1_bytes=self.free_l1_bytes, counted=self._counted)
        return sorted((_Counted(number, *each) for number, each in enumerate(calls)), key=lambda each: -each.times)

    def _counted(self, call: ConvCall, slices: SliceConfig) -> CountedSlices:
        """The slices of a call, which calls share whose outputs have the same layout."""
        key = slices, call.conv_config.output_layout
        if key not in self._slices:
            self._slices[key] = counted_slices(call, slices)
        return self._slices[key]

    def _family(self, call: ConvCall) -> "Iterator[_Family]":
        """The pieces of a call, which calls with other buffers share: the same cores and blocks."""
        config, slices = call.conv_config, call.slice_config
        shares = config.shard_layout is not None and (call.takes_l1_path or (slices is not None and slices.num_slices))
        key = slices, _unbuffered(config) if shares else config
        found = self._families.get(key)
        if isinstance(found, Exception):
            raise found.with_traceback(None)
        if found is not None:
            yield from found
            return
        made = list[_Family]()
        try:
            calls = self._calls(call)
            for counted in calls:
                made.append(self._piece(call, counted, cut=_cuts(calls)))
                yield made[-1]
        except (DeviceError, NoWindowError) as error:
            self._families[key] = error
            raise
        self._families[key] = tuple(made)

    def _piece(self, call: ConvCall, counted: "_Counted", *, cut: bool) -> "_Family":
        """A piece of a call, which may be cut into several."""
        number, piece, times = counted.number, counted.call(), counted.times
        partitioned = partition_call(piece, self.device_spec)
        layout = partitioned.layout
        cores = _cores_key(partitioned)
        key = call.slice_config, number, layout.options.untilize_out, cores
        if key not in self._places:
            self._places[key] = _Place.of(partitioned, self.device_spec)
        place = self._places[key]
        if cut:
            place = place._replace(rest_cycles=place.rest_cycles + self._copy_cycles(call, partitioned))
        buffers = ConvBuffers.of(layout)
        op = micro_op(piece, layout, buffers, k_blocks=())
        steps = conv_steps(op, self.device_spec)
        return _Family(
            partitioned=partitioned,
            times=times,
            place=place,
            buffers=buffers,
            op=op,
            steps=steps,
            cycles=int(least_cycles(op, steps)),
            plan_key=_plan_key(partitioned),
            rest_key=cores,
        )

    def _like(self, call: ConvCall, piece: ConvCall, extent: Extent, *, cut: bool) -> "_Piece":
        """The bound of all parts of a call on the L1 path, which may have several slices."""
        spec, partitioned = self.device_spec, partition_call(piece, self.device_spec)
        layout, buffers = partitioned.layout, ConvBuffers.of(partitioned.layout)
        joins = not piece.rules.transposed and layout.scheme is not WIDTH  # a member may join kernel rows
        any_cores = extent is Extent.CORES
        op = micro_op(piece, layout, buffers, k_blocks=())
        cycles = int(least_cycles_of_blocks(op, spec, any_cores=any_cores, joins_rows=joins))
        rest_cycles = 0 if reads_input(partitioned) else int(spec.costs_of(HaloCosts).start_cycles)
        if cut:
            rest_cycles += self._copy_cycles(call, partitioned)
        if any_cores:
            return _Piece(cycles, rest_cycles)
        known = not (joins or layout.scheme is WIDTH)
        own_bytes = local_bytes(buffer_requests(_smallest(buffers))) if known else 0
        place = _Place.of(partitioned, spec)
        return _Piece(cycles, rest_cycles, place.l1_bytes(own_bytes), rest_key=_cores_key(partitioned))


def counted_slices(call: ConvCall, slices: SliceConfig) -> CountedSlices:
    """The slices of a call without their positions."""
    return tuple(Counter(part.at_origin for part in output_slices(call, slices) if not part.is_empty).items())


def l1_path_calls(
    call: ConvCall,
    device_spec: DeviceSpec,
    *,
    free_l1_bytes: int,
    counted: Callable[[ConvCall, SliceConfig], CountedSlices] = counted_slices,
) -> tuple[tuple[Callable[[], ConvCall], int], ...]:
    """The calls on the L1 path that a call runs, and how often: itself, or its slices; errors as in `LowerBounds`.

    A call is made when it is asked for. Slices that differ only in their position count as one call; ``counted`` may
    be a cache of `counted_slices`. Empty for matmuls, folded windows, output phases and split calls.
    """
    if call.is_matmul or call.runs_by_phases or call.rules.splits or call.folds:
        return ()

    def itself() -> ConvCall:
        return call

    if call.takes_l1_path:
        return ((itself, 1),)
    slices = call.slice_config
    if slices is None or not slices.num_slices:
        slices = choose_slices(call, device_spec, free_l1_bytes=free_l1_bytes)[0]
    if call.slices_skip_dram(slices.num_slices):
        return ((itself, 1),)

    def slice_of(part: OutputSlice) -> ConvCall:
        """A slice as a separate call, whose window is in L1."""
        dealt, data_format = input_cores(call, part, device_spec), call.input.spec.data_format
        shape = (1, 1, dealt.problem.in_rows, dealt.call.in_channels)
        row_format = BFLOAT16 if data_format.is_block else data_format
        window = TensorSpec(shape, row_format, Layout.ROW_MAJOR, dealt.memory)
        return dealt.call.as_slice(Operand(spec=window, on_host=False), dealt.cores.scheme)

    if slices.num_slices > 1:
        return tuple((partial(slice_of, part), count) for part, count in counted(call, slices))
    image = call.input.spec.changed(shape=call.image_shape, memory_config=DRAM_MEMORY_CONFIG)
    return ((partial(call.as_slice, Operand(spec=image, on_host=False)), 1),)


class _Counted(NamedTuple):
    """A call from `l1_path_calls`."""

    number: int
    call: Callable[[], ConvCall]
    times: int  # How often it runs


def _cuts(calls: Iterable[_Counted]) -> bool:
    """Whether calls are several slices."""
    return sum(each.times for each in calls) > 1


class _Piece(NamedTuple):
    """Lower bounds of a call on the L1 path, with the keys of `LowerBound`."""

    cycles: int
    rest_cycles: int
    l1_bytes: int = 0
    plan_key: Hashable = None
    rest_key: Hashable = None
    program: tuple[Conv2dOp, ConvSteps] | None = None
    times: int = 1  # How often it runs


class _Place(NamedTuple):
    """The tensors of a call on the L1 path on a core, and the cycles of its other operations."""

    in_bytes: int  # Of shards that the call makes
    halo_bytes: int
    output_bytes: int
    rest_cycles: int

    @classmethod
    def of(cls, partitioned: PartitionedConv, device_spec: DeviceSpec) -> "_Place":
        """The tensors of a partitioned call."""
        shards, in_format = partitioned.input_memory.shard_spec, partitioned.problem.in_format
        in_bytes, halo_bytes, rest_cycles = 0, 0, 0
        if shards is not None and partitioned.reshards and not in_format.is_block:
            in_bytes = shards.shape[0] * shards.shape[1] * (in_format.element_bytes or 0)
        if not reads_input(partitioned):
            halo = halo_arguments(partitioned, device_spec)
            sticks = most_sticks(halo.frame, output_rows=halo.output_rows, cores=halo.nhw_cores)
            halo_bytes = halo_output(halo, sticks).buffer(device_spec).bank_bytes
            rest_cycles = int(device_spec.costs_of(HaloCosts).start_cycles)
        output_bytes = output_spec(partitioned).buffer(device_spec).bank_bytes
        return cls(in_bytes, halo_bytes, output_bytes, rest_cycles)

    def l1_bytes(self, buffers_bytes: int) -> int:
        """The lower bound of a core's L1 with these circular buffers."""
        return self.halo_bytes + max(self.in_bytes, buffers_bytes + self.output_bytes)


@dataclass(slots=True, kw_only=True)
class _Family:
    """A call on the L1 path with a scheme, cores and blocks; its members buffer blocks and move halos otherwise."""

    partitioned: PartitionedConv
    times: int  # How often it runs
    place: _Place
    buffers: ConvBuffers
    op: Conv2dOp
    steps: ConvSteps
    cycles: int
    plan_key: Hashable
    rest_key: Hashable
    _pieces: dict[Buffered, _Piece] = field(default_factory=dict)

    def piece(self, buffered: Buffered) -> _Piece:
        """The bounds of a member."""
        if buffered not in self._pieces:
            self._pieces[buffered] = self._piece(buffered)
        return self._pieces[buffered]

    def _piece(self, buffered: Buffered) -> _Piece:
        layout, buffers, op = self.partitioned.layout, self.buffers, self.op
        options = replace(layout.options, act_double_buffer=buffered.act, weights_double_buffer=buffered.weights)
        # Most requests are for the buffers of the family's own partition, and copies are slow
        if options != layout.options and not options.activation_reuse:
            layout = replace(layout, options=options)
            buffers, op = replace(buffers, layout=layout), replace(op, layout=layout)
        own_bytes = local_bytes(buffer_requests(buffers))
        return _Piece(
            self.cycles,
            self.place.rest_cycles,
            self.place.l1_bytes(own_bytes),
            (self.plan_key, buffered),
            self.rest_key,
            (op, self.steps),
            self.times,
        )


def _cores_key(partitioned: PartitionedConv) -> Hashable:
    """The cores of the tensors of a call on the L1 path, as a key."""
    layout = partitioned.layout
    return layout.config, layout.out_config, layout.shards, partitioned.input_memory, partitioned.reshards


def _smallest(buffers: ConvBuffers) -> ConvBuffers:
    """The smallest buffers over all block heights and readers, on the same cores."""
    layout = buffers.layout
    blocks = replace(layout.blocks, act_h_tiles=1, subblock_h_tiles=1)
    layout = replace(layout, blocks=blocks, split_reader=False)
    # Several output blocks keep the weights of all kernel rows, a single one those of one row
    return replace(buffers, layout=layout, kernel=(1, buffers.kernel[1]))


def _plan_key(partitioned: PartitionedConv) -> Hashable:
    """All of a layout, without settings whose consequences the layout states, and without `Buffered`."""
    place = partitioned.input_memory
    in_l1 = place.buffer_type is BufferType.L1
    return (
        replace(partitioned.layout, options=ConvOptions()),
        place,
        in_l1 and partitioned.reshards,
        _settled(partitioned.call.conv_config),
        partitioned.call.compute_config,
    )
