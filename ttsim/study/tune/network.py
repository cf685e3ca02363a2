"""Tuning the convolutions of a network, as a profile recorded it: each for what it gets, and all for what they hand on.

Convolutions that hand their outputs to each other alone form a chain, and every chain is solved by dynamic programming
over the layouts handed on: of every scheme the best way, for every layout it may get. What comes before and after a
chain stays as it was: where its last output lies elsewhere than it did, the movement back counts; or, if a call follows
that only moves it, what that call takes more, or less. All other operations, arithmetic, formats, and tiles or rows of
outputs stay.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Final

from device.errors import ArgumentError, DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType
from device.spec.device_spec import DeviceSpec
from ops.passes.cycles import run_cycles
from ops.planners.to_config import plan_to_memory_config
from ttsim.recording.network import places
from ttsim.recording.profiling import Profile
from ttsim.report.cycles.whole import whole
from ttsim.runtime.device import Device
from ttsim.study.tune.candidate import Candidate, evaluate
from ttsim.study.tune.recorded import Recorded, chains, ground_of
from ttsim.study.tune.search import Search
from ttsim.study.tune.space import SCHEMES, Space
from ttsim.study.tune.tune import choice_of
from ttsim.study.tune.tuned_network import TunedLayer, TunedNetwork

KEPT: Final = frozenset(
    {"shard_layout", "core_grid", "transpose_shards", "output_layout", "enable_activation_reuse", "full_inner_dim"}
)
EFFORT: Final = 24  # calls that are tried, for each layer, layout of its input, and scheme


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """A way through the first layers of a chain."""

    cycles: int  # Of the layers, movements included
    steps: tuple[Candidate, ...]  # What each layer does


def tune_network(profile: Profile, *, effort: int = EFFORT) -> TunedNetwork:
    """The best configs of all convolutions that a profile recorded, together.

    Args:
        profile: Of one pass of a network; of several, every pass is tuned.
        effort: Calls that are tried for each layer, layout of its input, and scheme.

    Raises:
        ArgumentError: The profile holds no convolution.
    """
    calls = [call for call in profile.calls if call.ran]
    found = chains(calls)
    if not found:
        raise ArgumentError("tune: the profile holds no convolution; run the network while it listens")
    where, network = places(calls), profile.network()
    layers = [layer for chain in found for layer in _Chain(chain, profile.device, effort).layers(where)]
    return TunedNetwork(
        device=profile.device.spec.name,
        clock_hz=profile.device.spec.clock_hz,
        cycles_before=network.cycles,
        cycles=network.cycles - sum(one.cycles_before - one.cycles - one.moved_cycles for one in layers),
        layers=tuple(layers),
        chains=len(found),
    )


class _Chain:
    """Convolutions that hand their outputs to each other alone."""

    def __init__(self, recorded: tuple[Recorded, ...], device: Device, effort: int) -> None:
        self.recorded = recorded
        self.device = device
        self.effort = effort

    def layers(self, where: list[str]) -> Iterator[TunedLayer]:
        """What is best for each; one that cannot be made again as it ran keeps its chain as it was."""
        try:
            before = [evaluate(one.call, ground_of(one, self.device, one.call.input.spec)) for one in self.recorded]
        except DeviceError as error:
            reason = str(error).splitlines()[0]
            for one in self.recorded:
                yield TunedLayer(where=where[one.number], function=one.ran.function, note=f"left as it is: {reason}")
            return
        best = self._best(before)
        moved = best.cycles - sum(step.cycles for step in best.steps)
        for one, old, new in zip(self.recorded, before, best.steps, strict=True):
            last = one is self.recorded[-1]
            yield TunedLayer(
                where=where[one.number],
                function=one.ran.function,
                cycles_before=old.cycles,
                cycles=new.cycles,
                moved_cycles=moved if last else 0,
                choice=choice_of(new, self.device.spec, measured=False),
                changed=new.call.conv_config != old.call.conv_config or new.call.slice_config != old.call.slice_config,
            )

    def _best(self, before: list[Candidate]) -> _Way:
        """The best way through all layers, back to what was handed on before; at worst the one as it was."""
        known = _Way(cycles=sum(one.cycles for one in before), steps=tuple(before))
        ways: Mapping[TensorSpec, _Way] = {self.recorded[0].call.input.spec: _Way(cycles=0, steps=())}
        for one, old in zip(self.recorded, before, strict=True):
            further: dict[TensorSpec, _Way] = {}
            for given, way in ways.items():
                for step in self._steps(one, old, given):
                    handed, cycles = _as_input(step.output, one, self.recorded), way.cycles + step.cycles
                    if handed not in further or cycles < further[handed].cycles:
                        further[handed] = _Way(cycles=cycles, steps=(*way.steps, step))
            ways = further
        back = [
            replace(way, cycles=way.cycles + moved)
            for handed, way in ways.items()
            if (moved := self._moved_cycles(handed)) is not None
        ]
        return min([known, *back], key=lambda way: way.cycles)

    def _moved_cycles(self, handed: TensorSpec) -> int | None:
        """What it takes more than before to bring the last output to where it was expected, or moved to; None: unknown.

        Less than nothing, where the call that moves it has an easier way.
        """
        last = self.recorded[-1]
        target = last.moved_to or last.output
        before = moving_cycles(last.output, target, self.device.spec)
        now = moving_cycles(handed, target, self.device.spec)
        return None if now is None or before is None else now - before

    def _steps(self, one: Recorded, old: Candidate, given: TensorSpec) -> list[Candidate]:
        """Of every scheme the best way to make a call with an input that is laid out in a given way, and as it was."""
        call = replace(one.call, input=replace(one.call.input, spec=given))
        try:
            ground = ground_of(one, self.device, given)
        except DeviceError:  # an input laid out so does not fit beside what else is there
            return []
        free = ground.machine.allocator.statistics(BufferType.L1).free_bytes_per_bank
        kept = Space(call=call, spec=self.device.spec, free_l1_bytes=free, kept=KEPT)
        found = [old] if given == one.call.input.spec else []
        for scheme in SCHEMES:
            anew = given.memory_config.is_sharded() or call.conv_config.reshard_if_not_optimal
            config = replace(
                call.conv_config,
                shard_layout=scheme,
                reshard_if_not_optimal=anew,
                override_sharding_config=False,
                core_grid=None,
            )
            search = Search(ground=ground, effort=self.effort, most_cycles=inf)
            search.run(replace(kept, call=replace(call, conv_config=config)), most_untimed=old.untimed)
            found += search.front[:1]
        return found


def _as_input(handed: TensorSpec, one: Recorded, chain: tuple[Recorded, ...]) -> TensorSpec:
    """What a layer hands on as the next one takes it, which may give it another shape; the last one's as it is."""
    at = chain.index(one) + 1
    if at == len(chain):
        return handed
    wanted = chain[at].call.input.spec
    if wanted.shape == handed.shape:
        return handed
    return TensorSpec(wanted.shape, handed.data_format, handed.layout, handed.memory_config)


def moving_cycles(source: TensorSpec, target: TensorSpec, spec: DeviceSpec) -> int | None:
    """Cycles of ``to_memory_config`` from where a tensor lies to another place; None where no model knows them."""
    if source.memory_config == target.memory_config:
        return 0
    try:
        plan = plan_to_memory_config(source, target.memory_config, spec)
    except DeviceError:
        return None
    timed = run_cycles(plan, spec).operations
    if any(one.cycles is None for one in timed):
        return None
    return sum(whole(one.cycles.cycles) for one in timed if one.cycles is not None)
