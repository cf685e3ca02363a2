"""Tuning the convolutions of a recorded network together with the layouts of their outputs.

Consecutive convolutions whose outputs have no other reader form a chain. Every chain is solved by dynamic programming
over output layouts: the best call for every shard scheme and every layout of its input. The rest of the network stays
the same: if a chain's last output is in another memory than before, the copy back is counted; if the next call only
moves the output, the change of its cycles is counted. Arithmetic, formats and output layouts stay.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from device.errors import ArgumentError, DeviceError
from device.machine import Machine
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout
from device.numbers.formats import BFLOAT16, FLOAT32
from device.plan import Operation, WrittenTensor
from device.spec.device_spec import DeviceSpec
from ops.passes.cycles import run_cycles
from ops.planners.conv.arguments import ConvCall, Operand
from ops.planners.conv.lower_bounds import ConvTimes
from ops.planners.to_config import plan_to_memory_config
from ops.programs.data_movement.copy import CopyTensor
from ttsim.diagnose import MachineSnapshot, fill_order
from ttsim.recording.profiling import Profile, places
from ttsim.recording.suggestions import LEAST_SHARE
from ttsim.report.advice import Advice, Change
from ttsim.report.cycles import whole
from ttsim.report.network import OpRun
from ttsim.runtime.call_source import raw_weight_shape
from ttsim.runtime.device import Device
from ttsim.runtime.traces import RanCall
from ttsim.runtime.types.call import require_type
from ttsim.study.tune.search import Candidate, Search, evaluate
from ttsim.study.tune.space import SCHEMES, Space
from ttsim.study.tune.tune import choice_of
from ttsim.study.tune.tuned import TunedLayer, TunedNetwork


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A convolution that ran."""

    number: int  # Of its call in the profile
    ran: RanCall
    # Its arguments with raw weights: another config needs other prepared weights, which the host makes once
    call: ConvCall
    output: TensorSpec  # Its output
    # The output after its only reader, if that call only copied it elsewhere; else None
    moved_to: TensorSpec | None


def chains(calls: Sequence[RanCall]) -> tuple[tuple[Recorded, ...], ...]:
    """The convolutions in order, grouped in chains: the next convolution is the only reader of each output."""
    readers: dict[int, list[RanCall]] = {}
    for call in calls:
        for number in {buffer.number for _, buffer in call.inputs}:
            readers.setdefault(number, []).append(call)
    joined: list[list[Recorded]] = []
    handed: int | None = None  # The output buffer of the last convolution, if it has a single reader
    for number, ran in enumerate(calls):
        output = None if ran.asked is None else _output(ran)
        if ran.asked is None or output is None:
            handed = None
            continue
        own = readers.get(output.number, [])
        moved = _moved(own[0], output.spec) if len(own) == 1 else None
        recorded = Recorded(number=number, ran=ran, call=_unprepared(ran.asked), output=output.spec, moved_to=moved)
        if handed is None or _input_number(ran) != handed:
            joined.append([])
        joined[-1].append(recorded)
        handed = output.number if len(own) == 1 else None
    return tuple(map(tuple, joined))


def _output(ran: RanCall) -> WrittenTensor | None:
    return dict(ran.results).get(ran.plan.results.get("output", ""))


def _moved(ran: RanCall, source: TensorSpec) -> TensorSpec | None:
    """The result of a call that only copies a tensor to another memory; None for any other call."""
    steps, output = [step for step in ran.plan.steps if isinstance(step, Operation)], _output(ran)
    if output is None or not steps or not all(isinstance(step.op, CopyTensor) for step in steps):
        return None
    same = (source.shape, source.data_format, source.layout)
    return output.spec if same == (output.spec.shape, output.spec.data_format, output.spec.layout) else None


def snapshot_before(recorded: Recorded, device: Device, source: TensorSpec) -> MachineSnapshot:
    """The device before a call, with another layout of the call's input.

    Live buffers are allocated again, from one end of each memory to the other, without gaps between buffers.
    """
    machine = Machine(device.spec, l1_small_bytes=device.machine.l1_small_bytes)
    number, call_buffers = _input_number(recorded.ran), {}
    for buffer in sorted(recorded.ran.before, key=lambda before: fill_order(before.buffer.buffer_type, before.address)):
        own = buffer.number == number
        allocated = machine.allocate(source.buffer(device.spec) if own else buffer.buffer, buffer.name)
        if own:
            call_buffers["input"] = allocated
    return MachineSnapshot(machine, call_buffers, device.strict)


def _input_number(ran: RanCall) -> int | None:
    buffer = dict(ran.inputs).get("input")
    return None if buffer is None else buffer.number


def _unprepared(call: ConvCall) -> ConvCall:
    """The call with raw weights and bias on the host, to be prepared in the same format."""
    prepared = call.weight_format
    data_format = FLOAT32 if prepared == FLOAT32 else BFLOAT16

    def raw(shape: tuple[int, ...]) -> Operand:
        return Operand(spec=TensorSpec(shape, data_format, Layout.ROW_MAJOR), on_host=True)

    return replace(
        call,
        weight=raw(raw_weight_shape(call)),
        bias=None if call.bias is None else raw((1, 1, 1, call.out_channels)),
        conv_config=replace(call.conv_config, weights_format=prepared),
    )


FIXED: Final = frozenset(
    {"shard_layout", "core_grid", "transpose_shards", "output_layout", "enable_activation_reuse", "full_inner_dim"}
)
EFFORT: Final = 24  # calls that are tried, for each layer, layout of its input, and scheme


class _Way(NamedTuple):
    cycles: int  # Of the layers, movements included
    steps: tuple[Candidate, ...]  # The call of each layer


def tune_network(profile: Profile, *, effort: int = EFFORT) -> TunedNetwork:
    """The fastest configs of all convolutions that a profile recorded, chosen together.

    Args:
        profile: The profile of one pass of a network; if there are several passes, every pass is tuned.
        effort: Maximum number of calls to evaluate for each layer, layout of its input, and sharding scheme.

    Returns:
        The changes of every layer, and the cycles of the network before and after.

    Raises:
        ArgumentTypeError: The argument is not a Profile.
        ArgumentError: The profile has no convolution.

    Examples:
        >>> image, weights = ttnn.zeros((1, 1, 64, 32), device=device), ttnn.zeros((32, 16, 2, 2))
        >>> with ttnn.profile(device) as profile:
        ...     output = ttnn.conv_transpose2d(
        ...         input_tensor=image, weight_tensor=weights, device=device, in_channels=32, out_channels=16,
        ...         batch_size=1, input_height=8, input_width=8, kernel_size=(2, 2), stride=(2, 2))
        >>> tuned = ttnn.tune_network(profile, effort=2)
        >>> tuned.cycles <= tuned.cycles_before
        True
    """
    require_type("tune_network", Profile, profile=profile)
    calls = [call for call in profile.calls if call.ran]
    chained = chains(calls)
    if not chained:
        raise ArgumentError("tune: the profile holds no convolution; run the network while it listens")
    where, network = places(calls), profile.network()
    times = ConvTimes(profile.device.spec)
    layers = [layer for chain in chained for layer in _Chain(chain, profile.device, effort, times).layers(where)]
    return TunedNetwork(
        device=profile.device.spec.name,
        clock_hz=profile.device.spec.clock_hz,
        cycles_before=network.cycles,
        cycles=network.cycles - sum(layer.cycles_before - layer.cycles - layer.moved_cycles for layer in layers),
        layers=tuple(layers),
        chains=len(chained),
    )


SHORT_EFFORT: Final = 3  # calls that are tried for each scheme of a long convolution
MOST_LONG: Final = 3  # convolutions


def advice_on_longest(profile: Profile) -> Advice:
    """Faster configs of the longest convolutions of a profile, from a short search for each convolution.

    Later calls stay unchanged, so copying an output back to its original memory is part of the cycles.
    """
    calls, network = [call for call in profile.calls if call.ran], profile.network()
    where, cycles, first = places(calls), Counter[int](), dict[int, OpRun]()
    times = ConvTimes(profile.device.spec)
    for op in network.operations:
        cycles[op.call] += op.cycles
        first.setdefault(op.call, op)
    distinct = {recorded.call: recorded for recorded in reversed([own for chained in chains(calls) for own in chained])}
    longest = sorted(distinct.values(), key=lambda recorded: -cycles[recorded.number])[:MOST_LONG]
    changes = []
    for recorded in longest:
        (layer,) = _Chain((recorded,), profile.device, SHORT_EFFORT, times).layers(where)
        saved = layer.cycles_before - layer.cycles - layer.moved_cycles
        if layer.choice is not None and saved > LEAST_SHARE * network.cycles:
            op = first[recorded.number]
            text = f"another config of #{op.number} {op.place}"
            changes.append(Change("", text, layer.choice.arguments, network.cycles - saved, saved / network.cycles))
    best_first = sorted(changes, key=lambda change: change.cycles)
    return Advice(cycles=network.cycles, changes=tuple(best_first), tried=len(longest) * SHORT_EFFORT * len(SCHEMES))


@dataclass(frozen=True, slots=True)
class _Chain:
    """Convolutions in a chain."""

    recorded: tuple[Recorded, ...]
    device: Device
    effort: int
    times: ConvTimes  # On the device

    def layers(self, where: list[str]) -> Iterator[TunedLayer]:
        """The best choice for each layer; a chain stays as it is if a call cannot be repeated as it ran."""
        layers = [
            TunedLayer(where=where[recorded.number], function=recorded.ran.function) for recorded in self.recorded
        ]
        try:
            before = [
                evaluate(recorded.call, snapshot_before(recorded, self.device, recorded.call.input.spec))
                for recorded in self.recorded
            ]
        except DeviceError as error:
            yield from (replace(layer, note=f"left as it is: {str(error).splitlines()[0]}") for layer in layers)
            return
        best = self._best(before)
        moved = best.cycles - sum(step.cycles for step in best.steps)
        for layer, old, new in zip(layers, before, best.steps, strict=True):
            yield replace(
                layer,
                cycles_before=old.cycles,
                cycles=new.cycles,
                moved_cycles=moved if layer is layers[-1] else 0,
                choice=choice_of(new, self.device.spec, measured=False),
                changed=new.call.conv_config != old.call.conv_config or new.call.slice_config != old.call.slice_config,
            )

    def _best(self, before: list[Candidate]) -> _Way:
        """The best choice for all layers with the copy back to the former output; at worst the calls as they were."""
        best = _Way(sum(candidate.cycles for candidate in before), tuple(before))
        saved = self._copied_cycles(self.recorded[-1].output) or 0  # at most, by another place of the last output
        ways: Mapping[TensorSpec, _Way] = {self.recorded[0].call.input.spec: _Way(0, ())}
        for at, (recorded, old) in enumerate(zip(self.recorded, before, strict=True)):
            further: dict[TensorSpec, _Way] = {}
            for source, way in sorted(ways.items(), key=lambda item: item[1].cycles):
                for step in self._steps(recorded, old, source, best.cycles + saved - way.cycles):
                    output, so_far = step.output, _Way(way.cycles + step.cycles, (*way.steps, step))
                    if recorded is self.recorded[-1]:
                        moved = self._moved_cycles(output)
                        if moved is not None and so_far.cycles + moved < best.cycles:
                            best = so_far._replace(cycles=so_far.cycles + moved)
                        continue
                    shape = self.recorded[at + 1].call.input.spec.shape
                    if shape != output.shape:  # the next layer may take the tensor in another shape
                        output = output.changed(shape=shape)
                    if output not in further or so_far.cycles < further[output].cycles:
                        further[output] = so_far
            ways = further
        return best

    def _moved_cycles(self, output: TensorSpec) -> int | None:
        """Extra cycles (may be negative) to copy the last output to its former memory; None if unknown."""
        before, now = (self._copied_cycles(source) for source in (self.recorded[-1].output, output))
        return None if now is None or before is None else now - before

    def _copied_cycles(self, output: TensorSpec) -> int | None:
        """Cycles to copy the last output from a memory to where it was read; None without a model."""
        last = self.recorded[-1]
        return moving_cycles(output, last.moved_to or last.output, self.device.spec)

    def _steps(self, recorded: Recorded, old: Candidate, source: TensorSpec, most_cycles: int) -> Iterator[Candidate]:
        """The call as it was, and the best call of every scheme for an input of this layout, if it may be faster."""
        call = replace(recorded.call, input=replace(recorded.call.input, spec=source))
        try:
            snapshot = snapshot_before(recorded, self.device, source)
        except DeviceError:  # an input of this layout does not fit beside the other buffers
            return
        free = snapshot.machine.allocator.statistics(BufferType.L1).free_bytes_per_bank
        if source == recorded.call.input.spec:
            yield old
        for scheme in SCHEMES:
            config = replace(
                call.conv_config,
                shard_layout=scheme,
                reshard_if_not_optimal=source.memory_config.is_sharded() or call.conv_config.reshard_if_not_optimal,
                override_sharding_config=False,
                core_grid=None,
            )
            search = Search(
                snapshot=snapshot,
                effort=self.effort,
                fastest_only=True,
                most_cycles=most_cycles,
                times=self.times,
            )
            space = Space(call=replace(call, conv_config=config), spec=self.device.spec, free_l1_bytes=free, keep=FIXED)
            search.run(space, most_untimed=old.untimed)
            for step in search.front[:1]:
                yield step
                # Nothing follows the last call but the copy back, which another scheme may spare
                if recorded is self.recorded[-1] and (copied := self._copied_cycles(step.output)) is not None:
                    most_cycles = min(most_cycles, step.cycles + copied)


def moving_cycles(source: TensorSpec, target: TensorSpec, spec: DeviceSpec) -> int | None:
    """Cycles of ``to_memory_config`` between two memory configs; None without a model."""
    if source.memory_config == target.memory_config:
        return 0
    try:
        plan = plan_to_memory_config(source, target.memory_config, spec)
    except DeviceError:
        return None
    timed = run_cycles(plan, spec).operations
    took = [whole(op.cycles.cycles) for op in timed if op.cycles is not None]
    return sum(took) if len(took) == len(timed) else None
