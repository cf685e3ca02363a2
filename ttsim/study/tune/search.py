"""The search for the best ways to make a call: every family of its space, the least first, the hopeless passed over.

A family is passed over where a call that was tried takes neither more cycles than the family at least takes, nor more
L1, nor is less exact (`ops.planners.conv.lower_bounds`): no member of the family could be better in any respect. So
the result is the Pareto front of the whole space, unless the search ran out of its effort. A candidate is a call that
was planned, placed and timed on a copy of the device.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import islice
from math import inf
from typing import Final

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType
from device.plan import MOVE, Plan, usage_per_core
from ops.op_models import OP_MODELS
from ops.passes.cycles import run_cycles, steps_that_ran
from ops.planners.conv.arguments import ConvCall
from ops.planners.conv.l1_path import CONV2D
from ops.planners.conv.lower_bounds import LowerBound, lower_bound_of
from ops.window import NoWindowError
from ttsim.diagnose import MachineSnapshot, attempt
from ttsim.report.cycles import whole
from ttsim.study.store import front as unbeaten
from ttsim.study.tune.space import Space


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A call that runs, and what it takes."""

    call: ConvCall
    cycles: int  # Of all its device operations that have a model
    around_cycles: int  # Those of all but convolutions and moves within L1
    untimed: int  # Operations without one
    l1_peak_bytes: int  # Of a core, with all that lay there before
    rms_error: float  # Of its arithmetic, relative to float64; 0 where no arithmetic is compared
    plan: Plan  # What it does
    ran: tuple[int, ...]  # The device operations that ran

    @property
    def output(self) -> TensorSpec:
        """What it hands on."""
        return self.plan.tensors[self.plan.results["output"]]


def evaluate(call: ConvCall, ground: MachineSnapshot, *, rms_error: float = 0.0) -> Candidate:
    """What a call takes on a device as it is.

    Raises DeviceError if it is refused, or does not fit; the text is the call's own.
    """
    trial = attempt(call, ground, returns_weights=False)
    if trial.error is not None or trial.plan is None:
        raise DeviceError(trial.error or "it was not planned")
    ran = steps_that_ran(trial.events)
    timed = run_cycles(trial.plan, ground.machine.spec, ran=ran, op_models=OP_MODELS).operations
    took = [(one.name, whole(one.cycles.cycles)) for one in timed if one.cycles is not None]
    return Candidate(
        call=call,
        cycles=sum(cycles for _, cycles in took),
        around_cycles=sum(cycles for name, cycles in took if name not in (CONV2D, MOVE)),
        untimed=sum(one.cycles is None for one in timed),
        l1_peak_bytes=l1_bytes_before(ground) + usage_per_core(trial.events).peak_total,
        rms_error=rms_error,
        plan=trial.plan,
        ran=ran,
    )


def l1_bytes_before(ground: MachineSnapshot) -> int:
    """Bytes of L1 on a core that lie there before a call."""
    live = ground.machine.memory.live()
    return sum(buffer.spec.bank_bytes for buffer in live if buffer.spec.buffer_type is not BufferType.DRAM)


GRAIN: Final = 0.01  # of the cycles, and of a core's L1: what is less than this better is not looked for


@dataclass(slots=True, kw_only=True)
class Count:
    """What became of the calls of a space; the names are those of `Tuned`."""

    tried: int = 0  # Planned, placed and timed
    alike: int = 0  # Have the plan of one that was tried
    passed: int = 0  # Cannot be better than what was found, or fit; of a family that is passed over, one counts
    refused: int = 0  # Do not fit, or are refused
    untried: int = 0  # Families that the effort did not suffice for
    least_untried_cycles: int | None = None  # What the best of those takes at least; None without any


@dataclass(slots=True, kw_only=True)
class Search:
    """A search on one device."""

    ground: MachineSnapshot
    effort: int  # Calls that may be tried
    most_cycles: float = inf  # What takes more is of no use to anybody
    most_families: int | None = None  # Families of a space that are looked at, the first ones; None for all
    front: tuple[Candidate, ...] = ()  # The best of those that run, the fastest first
    count: Count = field(default_factory=Count)  # What became of all calls
    seen: set[Hashable] = field(default_factory=set)  # Plans that were tried
    # Cycles beside convolutions and moves, of layouts that were tried (`LowerBound.rest_key`)
    around: dict[Hashable, int] = field(default_factory=dict)

    def attempt(self, call: ConvCall, *, rms_error: float = 0.0) -> Candidate:
        """A call that is tried whatever is known of it; raises what it raises."""
        self.count.tried += 1
        candidate = evaluate(call, self.ground, rms_error=rms_error)
        self.front = front([*self.front, candidate])
        return candidate

    def run(self, space: Space, *, most_untimed: int, rms_error: float = 0.0, begin: Iterable[ConvCall] = ()) -> None:
        """Tries a space.

        Args:
            most_untimed: Device operations without a model that a call may have: hiding some is no gain.
            rms_error: Of the arithmetic of its calls.
            begin: Calls of the space that are tried first, as far as the effort goes.
        """
        for call in begin:
            if self.count.tried < self.effort:
                self._try(call, space, most_untimed, rms_error)
        queue = [(least.cycles, number, least, first) for number, (least, first) in enumerate(self._bounded(space))]
        heapify(queue)
        while queue:
            cycles, number, least, first = heappop(queue)
            floor = self._floor(least)
            if self.count.tried >= self.effort:
                self.count.untried += len(queue) + 1
                before = self.count.least_untried_cycles
                self.count.least_untried_cycles = int(cycles if before is None else min(before, cycles))
                return
            if self._covers(least, first, rms_error):
                self.count.passed += 1
            elif floor > cycles:
                heappush(queue, (floor, number, least, first))
            else:
                for member in space.members(first):
                    self._try(member, space, most_untimed, rms_error)

    def _bounded(self, space: Space) -> Iterator[tuple[LowerBound, ConvCall]]:
        """Every family that can be laid out, and what it takes at least."""
        families = space.families()
        for first in islice(families, self.most_families):
            try:
                yield lower_bound_of(first, space.spec, free_l1_bytes=space.free_l1_bytes), first
            except (DeviceError, NoWindowError):
                self.count.refused += 1
        if next(families, None) is not None:
            self.count.untried += 1
            self.count.least_untried_cycles = 0

    def _try(self, call: ConvCall, space: Space, most_untimed: int, rms_error: float) -> None:
        """A member of a family, if it can be better and is not like another."""
        try:
            least = lower_bound_of(call, space.spec, free_l1_bytes=space.free_l1_bytes)
            if least.plan_key is not None and (least.plan_key, rms_error) in self.seen:
                self.count.alike += 1
                return
            if self._covers(least, call, rms_error) or self._covers(least.timed(space.spec), call, rms_error):
                self.count.passed += 1
                return
            self.count.tried += 1
            candidate = evaluate(call, self.ground, rms_error=rms_error)
        except (DeviceError, NoWindowError):
            self.count.refused += 1
            return
        if candidate.untimed <= most_untimed and candidate.cycles <= self.most_cycles:
            self.front = front([*self.front, candidate])
        if least.plan_key is not None:
            self.seen.add((least.plan_key, rms_error))
            self.around[least.rest_key] = candidate.around_cycles

    def _floor(self, least: LowerBound) -> float:
        """Cycles that a call is never below, with what is known of others like it."""
        return least.cycles + self.around.get(least.rest_key, 0)

    def _covers(self, least: LowerBound, call: ConvCall, rms_error: float) -> bool:
        """Whether something found is as good as anything with these bounds, but for a gain too small to tell."""
        machine = self.ground.machine
        before = 0 if call.conv_config.deallocate_activation else l1_bytes_before(self.ground)
        l1_bytes, cycles = before + least.l1_bytes, self._floor(least)
        if cycles > self.most_cycles or l1_bytes > machine.spec.l1.usable_bytes:
            return True
        l1_bytes += round(GRAIN * machine.spec.l1.usable_bytes)
        return any(
            (1 - GRAIN) * candidate.cycles <= cycles
            and candidate.l1_peak_bytes <= l1_bytes
            and candidate.rms_error <= rms_error
            for candidate in self.front
        )


def front(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Those that nothing else beats or equals in cycles, L1 and error; of equals the first. The fastest first."""
    return tuple(
        candidates[at]
        for at in unbeaten(
            [(candidate.cycles, candidate.l1_peak_bytes, candidate.rms_error) for candidate in candidates]
        )
    )
