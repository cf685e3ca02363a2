"""Caches of plans, of their cycles, and of moves that leave nothing allocated."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from device.machine import Machine, Program
from device.memory.allocator import Blocks
from device.numbers.formats import Array, bit_patterns
from device.plan import DeviceOp, Operation, Plan, ProgramKey, Relocate, Standing
from device.spec.device_spec import DeviceSpec
from ops.op_model import Meanings
from ops.op_models import OP_MODELS
from ops.passes.cycles import PlanCycles, run_cycles

MOST_BYTES: Final = 256 << 20  # weights of thirty million parameters, and what was made of them: a U-Net
FEW: Final = 16  # numbers that tell most arrays apart


@dataclass(frozen=True, slots=True)
class _Made:
    """An array, and what was made of it."""

    raw: Array
    made: Array

    @property
    def bytes(self) -> int:
        """Memory that both take, although the raw array may be somebody else's, too."""
        return self.raw.nbytes + self.made.nbytes


class WeightCache:
    """Prepared arrays by what prepared them, found again by the content of the raw ones.

    Contents are compared, not hashed: reading both once costs a tenth of a hash that could be trusted, and is right.
    An array that somebody may still write to is neither kept nor looked up: it would change on both sides of the
    comparison. What was not used for longest goes first.

    Args:
        most_bytes: Bytes of raw and prepared arrays together that are kept.

    Attributes:
        bytes: Of all that is kept.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._made: OrderedDict[DeviceOp, list[_Made]] = OrderedDict()
        self.bytes = 0

    def made_of(self, raw: Array, work: DeviceOp, make: Callable[[], Array]) -> Array:
        """What a work makes of a host tensor.

        Returns:
            The array, read-only where it is kept.
        """
        if not _lasting(raw):
            return make()
        several = self._made.get(work, [])
        found = next((one for same in (_same_memory, _same_bits) for one in several if same(one.raw, raw)), None)
        if found is None:
            found = _Made(raw, make())
            found.made.flags.writeable = False
            self._made.setdefault(work, []).append(found)
            self.bytes += found.bytes
        self._made.move_to_end(work)
        self._drop()
        return found.made

    def clear(self) -> None:
        """Forgets everything."""
        self._made.clear()
        self.bytes = 0

    def _drop(self) -> None:
        """Forgets what was not used for longest, until the rest fits."""
        while self.bytes > self._most_bytes:
            work, several = next(iter(self._made.items()))
            self.bytes -= several.pop(0).bytes
            if not several:
                del self._made[work]


def _lasting(array: Array) -> bool:
    """Whether nobody can write to an array, nor to the one whose memory it is."""
    one: object = array
    while isinstance(one, np.ndarray):
        if one.flags.writeable:
            return False
        one = one.base
    return one is None


def _same_memory(kept: Array, raw: Array) -> bool:
    """Whether two arrays are the same numbers in the same place."""
    if kept.shape != raw.shape or kept.dtype != raw.dtype:
        return False
    here, there = kept.__array_interface__, raw.__array_interface__
    return (here["data"], here["strides"]) == (there["data"], there["strides"])


def _same_bits(kept: Array, raw: Array) -> bool:
    """Whether two arrays hold the same bits; others mostly differ at once."""
    if kept.shape != raw.shape or kept.dtype != raw.dtype:
        return False
    here, there = bit_patterns(kept), bit_patterns(raw)
    return np.array_equal(here.flat[:FEW], there.flat[:FEW]) and np.array_equal(here, there)


MOST_KEPT: Final = 256  # calls in turn number the blocks they give back in turn, too: a few ways for each
MOST_BUFFERS: Final = 64  # on the device besides: to compare more of them would take as long as to move


class _Moves(NamedTuple):
    """What a call did."""

    plan: Plan
    # What it found in the program cache, which fitted into L1 from the same blocks
    programs: tuple[tuple[Hashable, Program], ...]
    after: tuple[Blocks, ...]  # The blocks when it was done
    buffers: int  # How many it made


class ReplayCache:
    """Plans of calls that left nothing on a device, by the call and by the blocks of the device's memories before.

    From the same blocks an equal call takes the same addresses, and gives them back alike: if it finds its programs in
    the cache as before, and nobody listens, all that stays of its moves is which numbers of blocks are spare, and how
    many buffers there were. What was kept first goes first.

    Args:
        most: Calls that are kept.
    """

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._kept: dict[Hashable, _Moves] = {}

    def placed(self, key: ProgramKey, machine: Machine, place: Callable[[], Plan]) -> Plan:
        """The plan of a call whose moves were made.

        Args:
            place: Plans the call and makes its moves; to be called if they are not known or somebody listens.
        """
        if machine.recorders:
            return place()
        before = machine.standing()
        call = key, *(blocks.key for blocks in before.blocks)
        known = self._kept.get(call)
        if known is not None and all(machine.program_cache.get(one) is program for one, program in known.programs):
            machine.go_on(known.after, buffers=known.buffers)
            return known.plan
        plan = place()
        after = machine.standing()
        if _repeats(plan, before, after):
            keys = [step.key for step in plan.steps if isinstance(step, Operation)]
            programs = tuple((one, machine.program_cache[one]) for one in keys)
            self._kept[call] = _Moves(plan, programs, after.blocks, after.buffers - before.buffers)
            while len(self._kept) > self._most:
                del self._kept[next(iter(self._kept))]
        return plan

    def clear(self) -> None:
        """Forgets everything."""
        self._kept.clear()


def _repeats(plan: Plan, before: Standing, after: Standing) -> bool:
    """Whether an equal call would do the same: all programs were there, nothing was left, and one memory changed.

    Memories change one after the other, so that an interrupt could come between two of them.
    """
    pairs = list(zip(before.blocks, after.blocks, strict=True))
    return (
        before.programs == after.programs
        and not any(isinstance(step, Relocate) for step in plan.steps)
        and all(one.used == other.used and len(one.used) <= MOST_BUFFERS for one, other in pairs)
        and sum(one != other for one, other in pairs) < 2
    )


T = TypeVar("T")

MOST_STEPS: Final = 2000  # 5 KB each with their cycles, 15 KB once reports on them are read in full
MOST_MADE: Final = 8  # of a plan: tensors may move in one call and stay in another, so that it takes other cycles
MOST_SPECS: Final = 64  # told apart from equal ones


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """A plan, for which device, and what was made of both: its cycles, and what is told of them, each under a key."""

    plan: Plan
    spec: DeviceSpec
    made: dict[Hashable, Any] = field(default_factory=dict)


class PlanCache:
    """Plans by all that they came from, as a device keeps programs. What was not used for longest goes first.

    A plan holds neither addresses nor values, so that equal calls on devices of one spec have the same one wherever
    their tensors lie. What it takes is kept with it, for the device operations that ran, the device and the project's
    own meanings; cycles by another table are read anew, since such a table may be changed.

    Threads of several devices may ask at once: each look and each change is one step of a dict. Where two plan the same
    call meanwhile, both plans are the same and one is kept.

    Args:
        most_steps: Steps of all plans together that are kept; a longer plan is not.
    """

    def __init__(self, most_steps: int = MOST_STEPS) -> None:
        self._most_steps = most_steps
        self._kept: dict[tuple[int, ProgramKey], _Kept] = {}  # in the order of use; by the number of a spec held there

    @property
    def steps(self) -> int:
        """Steps of all plans that are kept."""
        return sum(len(one.plan.steps) for one in list(self._kept.values()))

    def holds(self, key: ProgramKey, spec: DeviceSpec) -> bool:
        """Whether the plan of a call is kept; arguments as of `plan_of`."""
        return (id(spec), key) in self._kept

    def plan_of(self, key: ProgramKey, spec: DeviceSpec, make: Callable[[], Plan]) -> Plan:
        """The plan of a call.

        Args:
            spec: The device; of equal ones `one_of_alike`.
            make: Plans the call; what it raises comes through, and nothing is kept.
        """
        here = (id(spec), key)
        kept = self._kept.pop(here, None)
        if kept is not None:
            self._kept[here] = kept
            return kept.plan
        plan = make()
        if len(plan.steps) <= self._most_steps:
            self._kept[here] = _Kept(plan=plan, spec=spec)
            self._drop()
        return plan

    def cycles_of(
        self, plan: Plan, spec: DeviceSpec, *, ran: tuple[int, ...], meanings: Meanings = OP_MODELS
    ) -> PlanCycles:
        """What the device operations of a plan take that ran; arguments as of `run_cycles`."""
        if meanings is not OP_MODELS:
            return run_cycles(plan, spec, ran=ran, meanings=meanings)
        return self.made_of(plan, spec, ran, lambda: run_cycles(plan, spec, ran=ran))

    def made_of(self, plan: Plan, spec: DeviceSpec, key: Hashable, make: Callable[[], T]) -> T:
        """What is made of a plan: what was made under this key before, where the plan is kept.

        Args:
            make: Makes it, of nothing that lives on a device; it must not be changed.
        """
        latest = reversed(list(self._kept.values()))
        kept = next((one for one in latest if one.plan is plan), None)
        if kept is None or kept.spec is not spec:
            return make()
        made: T | None = kept.made.get(key)
        if made is None:
            made = make()
            if len(kept.made) >= MOST_MADE:
                kept.made.clear()
            kept.made[key] = made
        return made

    def _drop(self) -> None:
        """Forgets what was not used for longest, until the rest is short enough."""
        while self.steps > self._most_steps:
            for oldest in list(self._kept)[:1]:
                self._kept.pop(oldest, None)


@cache
def plans_of_process() -> PlanCache:
    """Those that all devices of this process share."""
    return PlanCache()


def one_of_alike(spec: DeviceSpec) -> DeviceSpec:
    """The spec that stands for all that are the same: of two that are equal, and are written alike, the first.

    Equal is not enough: 1 is equal to 1.0, and reports show the difference.
    """
    try:
        first = _first_of_equal(spec)
    except TypeError:  # somebody put a list where a tuple belongs: it stands for itself
        return spec
    return first if first is spec or repr(first) == repr(spec) else spec


@lru_cache(MOST_SPECS)
def _first_of_equal(spec: DeviceSpec) -> DeviceSpec:
    """The first of all equal specs."""
    return spec
