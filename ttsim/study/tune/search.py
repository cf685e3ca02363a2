"""Searches the best calls of a space: families in order of their lower bounds, without those that cannot win.

A family is skipped if a tried call takes neither more cycles than the family's lower bound, nor more L1, nor is less
exact (`ops.planners.conv.lower_bounds`): no member of the family could be better in any respect. So the result is the
Pareto front of the whole space, unless the search ran out of effort. A candidate is a call that was planned, placed and
timed on a copy of the device.
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
    """A call that runs, and its costs."""

    call: ConvCall
    cycles: int  # Of all its device operations that have a model
    around_cycles: int  # Cycles of all operations except convolutions and moves within L1
    untimed: int  # Operations without one
    l1_peak_bytes: int  # Of a core, with all that lay there before
    rms_error: float  # Of its arithmetic, relative to float64; 0 where no arithmetic is compared
    plan: Plan  # Its plan
    ran: tuple[int, ...]  # The device operations that ran

    @property
    def output(self) -> TensorSpec:
        """The output tensor."""
        return self.plan.tensors[self.plan.results["output"]]


def evaluate(call: ConvCall, snapshot: MachineSnapshot, *, rms_error: float = 0.0) -> Candidate:
    """The cost of a call on a device; raises DeviceError with the call's own text if the call fails."""
    trial = attempt(call, snapshot, returns_weights=False)
    if trial.error is not None or trial.plan is None:
        raise DeviceError(trial.error or "it was not planned")
    ran = steps_that_ran(trial.events)
    timed = run_cycles(trial.plan, snapshot.machine.spec, ran=ran, op_models=OP_MODELS).operations
    took = [(op.name, whole(op.cycles.cycles)) for op in timed if op.cycles is not None]
    return Candidate(
        call=call,
        cycles=sum(cycles for _, cycles in took),
        around_cycles=sum(cycles for name, cycles in took if name not in (CONV2D, MOVE)),
        untimed=len(timed) - len(took),
        l1_peak_bytes=l1_bytes_before(snapshot) + usage_per_core(trial.events).peak_total,
        rms_error=rms_error,
        plan=trial.plan,
        ran=ran,
    )


def l1_bytes_before(snapshot: MachineSnapshot) -> int:
    """Bytes of L1 on a core that are allocated before a call."""
    live = snapshot.machine.memory.live()
    return sum(buffer.spec.bank_bytes for buffer in live if buffer.spec.buffer_type is not BufferType.DRAM)


GRAIN: Final = 0.01  # of the cycles, and of a core's L1: smaller gains are not searched


@dataclass(slots=True, kw_only=True)
class Count:
    """The number of calls of a space by outcome; the names are those of `Tuned`."""

    tried: int = 0  # Planned, placed and timed
    alike: int = 0  # Calls with the plan of a tried call
    passed: int = 0  # Calls that cannot win or fit; a skipped family counts as one call
    refused: int = 0  # Do not fit, or are refused
    untried: int = 0  # Families left when the effort was used up
    least_untried_cycles: int | None = None  # Lower bound of the best untried family; None if there is none


@dataclass(slots=True, kw_only=True)
class Search:
    """A search on one device."""

    snapshot: MachineSnapshot
    effort: int  # Calls that may be tried
    most_cycles: float = inf  # Candidates with more cycles are dropped
    most_families: int | None = None  # The first families of a space that are searched; None for all
    front: tuple[Candidate, ...] = ()  # The Pareto front, the fastest first
    count: Count = field(default_factory=Count)  # Calls by outcome
    seen: set[Hashable] = field(default_factory=set)  # Plans that were tried
    # Cycles besides convolutions and moves, of layouts that were tried (`LowerBound.rest_key`)
    around: dict[Hashable, int] = field(default_factory=dict)

    def attempt(self, call: ConvCall, *, rms_error: float = 0.0) -> Candidate:
        """Evaluates a call without looking at bounds; raises what the call raises."""
        self.count.tried += 1
        candidate = evaluate(call, self.snapshot, rms_error=rms_error)
        self.front = front([*self.front, candidate])
        return candidate

    def run(self, space: Space, *, most_untimed: int, rms_error: float = 0.0, begin: Iterable[ConvCall] = ()) -> None:
        """Searches a space of calls with the arithmetic error `rms_error`; the calls `begin` are tried first.

        Calls with more than `most_untimed` device operations without a model are no candidates: hiding cycles is no
        gain.
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
        """Every family that can be partitioned, with its lower bound."""
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
        """Evaluates a member of a family unless its bounds rule it out or its plan was tried."""
        try:
            least = lower_bound_of(call, space.spec, free_l1_bytes=space.free_l1_bytes)
            if least.plan_key is not None and (least.plan_key, rms_error) in self.seen:
                self.count.alike += 1
                return
            if self._covers(least, call, rms_error) or self._covers(least.timed(space.spec), call, rms_error):
                self.count.passed += 1
                return
            self.count.tried += 1
            candidate = evaluate(call, self.snapshot, rms_error=rms_error)
        except (DeviceError, NoWindowError):
            self.count.refused += 1
            return
        if candidate.untimed <= most_untimed and candidate.cycles <= self.most_cycles:
            self.front = front([*self.front, candidate])
        if least.plan_key is not None:
            self.seen.add((least.plan_key, rms_error))
            self.around[least.rest_key] = candidate.around_cycles

    def _floor(self, least: LowerBound) -> float:
        """A lower bound of a call's cycles, with the measured rest of similar calls."""
        return least.cycles + self.around.get(least.rest_key, 0)

    def _covers(self, least: LowerBound, call: ConvCall, rms_error: float) -> bool:
        """Whether a candidate is at least as good as these bounds, up to `GRAIN`."""
        machine = self.snapshot.machine
        before = 0 if call.conv_config.deallocate_activation else l1_bytes_before(self.snapshot)
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
    """The Pareto front by cycles, L1 and error, the fastest first; of equal candidates the first."""
    costs = [(candidate.cycles, candidate.l1_peak_bytes, candidate.rms_error) for candidate in candidates]
    return tuple(candidates[at] for at in unbeaten(costs))
