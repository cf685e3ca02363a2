"""Searches the best calls of a space by branch and bound, the node with the lowest bound first.

Schemes are divided into placements, families and calls, each with a lower bound (`ops.planners.conv.lower_bounds`).
A node is skipped if it can neither be faster than the fastest evaluated call nor extend the Pareto front. So the search
finds the fastest call of the space, and the Pareto front up to `GRAIN`, unless the effort is exhausted. A candidate is
a call that was planned, placed and timed on a copy of the device.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Final, NamedTuple

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout
from device.plan import MOVE, Plan, usage_per_core
from ops.op_models import OP_MODELS
from ops.passes.cycles import run_cycles, steps_that_ran
from ops.planners.conv.arguments import ConvCall
from ops.planners.conv.l1_path import CONV2D
from ops.planners.conv.lower_bounds import UNKNOWN, ConvTimes, Extent, LowerBound, LowerBounds, RestKey
from ops.programs.conv2d.op import Conv2dOp
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
    """Bytes of L1 per core that are allocated before a call."""
    live = snapshot.machine.memory.live()
    return sum(buffer.spec.bank_bytes for buffer in live if buffer.spec.buffer_type is not BufferType.DRAM)


GRAIN: Final = 0.01  # of the cycles, and of a core's L1: smaller gains of choices behind the fastest are not searched


@dataclass(slots=True, kw_only=True)
class Count:
    """The number of calls of a space by outcome; the names are those of `Tuned`."""

    tried: int = 0  # Planned, placed and timed
    alike: int = 0  # Calls and families with the plans of others
    passed: int = 0  # Calls, families, placements and schemes that cannot win or fit
    refused: int = 0  # Do not fit, or are refused
    untried: int = 0  # Calls, families, placements and schemes left when the effort was used up
    least_untried_cycles: int | None = None  # Lower bound of the best of them; None if there is none


class Kind(IntEnum):
    """The kind of a search node: all calls of a scheme, of a placement or of a family; a walked family; or one call.

    The bound of a walked family is the cycles of its convolutions with all buffers doubled.
    """

    SCHEME = 0
    PLACEMENT = 1
    FAMILY = 2
    WALKED = 3
    MEMBER = 4


class Node(NamedTuple):
    """A set of calls with a lower bound of their cycles; nodes are sorted by this bound."""

    cycles: int
    number: int  # Of nodes with equal bounds the first comes first
    kind: Kind
    call: ConvCall
    least: LowerBound


@dataclass(slots=True, kw_only=True)
class Search:
    """A search on one device."""

    snapshot: MachineSnapshot
    effort: int  # Calls that may be tried
    most_cycles: float = inf  # Candidates with more cycles are dropped
    fastest_only: bool = False  # Ends with the proof that nothing is faster; slower calls with less L1 are not searched
    front: tuple[Candidate, ...] = ()  # The Pareto front, the fastest first
    count: Count = field(default_factory=Count)  # Calls by outcome
    seen: set[Hashable] = field(default_factory=set)  # Plans of families and of calls that were looked at
    # Cycles besides convolutions and moves, of layouts that were tried
    around: dict[RestKey | None, int] = field(default_factory=dict)
    times: ConvTimes | None = None  # Of convolutions on the device, which searches can share

    def attempt(self, call: ConvCall, *, rms_error: float = 0.0) -> Candidate:
        """Evaluates a call without using bounds; raises the errors of the call."""
        self.count.tried += 1
        candidate = evaluate(call, self.snapshot, rms_error=rms_error)
        self.front = front([*self.front, candidate])
        return candidate

    def run(self, space: Space, *, most_untimed: int, rms_error: float = 0.0, begin: Iterable[ConvCall] = ()) -> None:
        """Searches a space of calls with the arithmetic error `rms_error`; evaluates the calls `begin` first.

        Calls with more than `most_untimed` device operations without a model are not candidates, because their cycles
        would be incomplete.
        """
        self.times = self.times or ConvTimes(space.spec)
        bounds = LowerBounds(self.times, space.free_l1_bytes)
        _Run(self, space, bounds, most_untimed, rms_error).go(begin)

    def covers(self, cycles: int, l1_bytes: int, rms_error: float) -> bool:
        """Whether calls with these lower bounds can neither be the fastest nor, up to `GRAIN`, be on the front."""
        usable = self.snapshot.machine.spec.l1.usable_bytes
        if cycles > self.most_cycles or l1_bytes > usable:
            return True
        if not self.front or cycles < self.front[0].cycles:
            return False
        l1_bytes += round(GRAIN * usable)
        return self.fastest_only or any(
            (1 - GRAIN) * candidate.cycles <= cycles
            and candidate.l1_peak_bytes <= l1_bytes
            and candidate.rms_error <= rms_error
            for candidate in self.front
        )


@dataclass(slots=True)
class _Run:
    """The search of one space."""

    search: Search
    space: Space
    bounds: LowerBounds
    most_untimed: int
    rms_error: float
    queue: list[Node] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=count)

    def go(self, begin: Iterable[ConvCall]) -> None:
        """Opens nodes, the lowest bound first, until the queue is empty or the effort is exhausted."""
        search, counted = self.search, self.search.count
        for call in begin:
            if counted.tried < search.effort:
                self._evaluate(call, self._bound(call))
        for chosen, largest in self.space.schemes():
            self._push(Kind.SCHEME, chosen, UNKNOWN if largest is None else self._bound(largest, Extent.CORES))
        while self.queue:
            node = heappop(self.queue)
            floor = self._floor(node)
            if self._covered(floor, node.call, node.least):
                counted.passed += 1
            elif counted.tried >= search.effort:
                counted.untried += len(self.queue) + 1
                before = counted.least_untried_cycles
                counted.least_untried_cycles = floor if before is None else min(before, floor)
                return
            elif floor > node.cycles:
                heappush(self.queue, node._replace(cycles=floor))
            else:
                self._open(node)

    def _open(self, node: Node) -> None:
        """Replaces a node by narrower ones; a call is evaluated."""
        call, space = node.call, self.space
        match node.kind:
            case Kind.SCHEME:
                for placed in space.placements(call):
                    self._push(
                        Kind.PLACEMENT, placed, self._bound(placed, Extent.BLOCKS, floor=node.cycles), node.cycles
                    )
            case Kind.PLACEMENT:
                for first in space.families(call):
                    self._push_new(Kind.FAMILY, first, node.cycles)
            case Kind.FAMILY:
                self._push(Kind.WALKED, call, self._walked(node.least, doubled=True))
            case Kind.WALKED:
                for member in space.members(call):
                    self._push_new(Kind.MEMBER, member, 0)
            case Kind.MEMBER:
                self._evaluate(call, node.least)

    def _push(self, kind: Kind, call: ConvCall, least: LowerBound | None, floor: int = 0) -> None:
        """Adds a node with a bound of at least `floor`; the bound None means that the calls are refused."""
        if least is None:
            self.search.count.refused += 1
            return
        node = Node(floor, next(self.numbers), kind, call, least)
        node = node._replace(cycles=self._floor(node))
        if self._covered(node.cycles, call, least):
            self.search.count.passed += 1
        else:
            heappush(self.queue, node)

    def _push_new(self, kind: Kind, call: ConvCall, floor: int) -> None:
        """Adds a family or a member unless one with equal plans was added."""
        least = self._bound(call, floor=floor)
        if least is not None and least.plan_key is not None:
            # Of a family whose scheme the library chooses, members may have another scheme
            automatic = kind is Kind.FAMILY and call.conv_config.shard_layout is None
            key = kind, automatic, least.plan_key, self.rms_error
            if key in self.search.seen:
                self.search.count.alike += 1
                return
            self.search.seen.add(key)
            if kind is Kind.MEMBER:
                floor_cycles = self._floor(Node(0, 0, kind, call, least))
                least = least if self._covered(floor_cycles, call, least) else self._walked(least)
        self._push(kind, call, least, floor)

    def _bound(self, call: ConvCall, extent: Extent | None = None, *, floor: int | None = None) -> LowerBound | None:
        """The lower bound of a call, or of all calls up to an extent; None if the call is refused.

        With `floor`, another bound of their cycles, the bound may be that of some slices if it covers the calls.
        """
        if extent is Extent.BLOCKS and not self.space.keeps_cores(call):
            if call.conv_config.shard_layout is None:
                return UNKNOWN
            extent = Extent.CORES  # of all heights, the library's has the most cores

        def enough(least: LowerBound) -> bool:
            return floor is not None and self._covered(max(floor, least.cycles + least.rest_cycles), call, least)

        try:
            return self.bounds.of(call, enough) if extent is None else self.bounds.of_all(call, extent, enough)
        except (DeviceError, NoWindowError):
            return None if extent is None else self.bounds.of_starts(call)  # another height of blocks may run

    def _walked(self, least: LowerBound, *, doubled: bool = False) -> LowerBound:
        """A bound from the cycles of the convolutions, unchanged or with all buffers doubled."""
        cycles = 0
        for op, steps, times in least.programs:
            cycles += times * self.bounds.times.walked(_doubled(op) if doubled else op, steps)
        return least._replace(cycles=max(least.cycles, cycles))

    def _evaluate(self, call: ConvCall, least: LowerBound | None) -> None:
        """Plans, places and times a call."""
        search = self.search
        if least is None:
            search.count.refused += 1
            return
        try:
            search.count.tried += 1
            candidate = evaluate(call, search.snapshot, rms_error=self.rms_error)
        except (DeviceError, NoWindowError):
            search.count.refused += 1
            return
        if candidate.untimed <= self.most_untimed and candidate.cycles <= search.most_cycles:
            search.front = front([*search.front, candidate])
        if least.rest_key is not None:
            search.around[least.rest_key] = candidate.around_cycles

    def _floor(self, node: Node) -> int:
        """A lower bound of the cycles of all calls of a node, including the known rest of similar calls."""
        least, rest = node.least, node.least.rest_key
        if rest is None or node.kind < Kind.FAMILY:
            return max(node.cycles, least.cycles + least.rest_cycles)
        layouts = (rest.output_layout,) if node.kind is Kind.MEMBER else (Layout.TILE, Layout.ROW_MAJOR)
        known = (self.search.around.get(rest._replace(output_layout=layout), 0) for layout in layouts)
        return max(node.cycles, least.cycles + max(least.rest_cycles, min(known)))

    def _covered(self, cycles: int, call: ConvCall, least: LowerBound) -> bool:
        before = 0 if call.conv_config.deallocate_activation else l1_bytes_before(self.search.snapshot)
        return self.search.covers(cycles, before + least.l1_bytes, self.rms_error)


def _doubled(op: Conv2dOp) -> Conv2dOp:
    options = replace(op.options, act_double_buffer=True, weights_double_buffer=True)
    return replace(op, layout=replace(op.layout, options=options))


def front(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """The Pareto front by cycles, L1 and error, the fastest first; the first of equal candidates."""
    costs = [(candidate.cycles, candidate.l1_peak_bytes, candidate.rms_error) for candidate in candidates]
    return tuple(candidates[at] for at in unbeaten(costs))
