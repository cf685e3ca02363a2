"""Caches of plans, of their cycles, and of moves that leave nothing allocated."""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, Final, Generic, NamedTuple, TypeVar

import numpy as np

from device.machine import Machine, Program
from device.memory.allocator import Blocks
from device.numbers.formats import Array, bit_patterns
from device.plan import DeviceOp, Operation, Plan, ProgramKey, Relocate, Standing
from device.spec.device_spec import DeviceSpec
from ops.passes.cycles import PlanCycles, run_cycles

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
T = TypeVar("T")


class BoundedCache(Generic[K, V]):
    """Values by key, up to a size of all together; what was not used for longest goes first.

    Threads may ask at once: each look and each change is one step of a dict. Where two put values under one key, one
    stays.
    """

    def __init__(self, most: int, size_of: Callable[[V], int] = lambda value: 1) -> None:
        self._most, self._size_of = most, size_of
        self._values: dict[K, V] = {}  # in the order of use

    def __contains__(self, key: K) -> bool:
        """Whether a value is there, which counts for no use of it."""
        return key in self._values

    @property
    def size(self) -> int:
        """Of all values."""
        return sum(map(self._size_of, list(self._values.values())))

    def latest_first(self) -> Iterator[V]:
        """All values, the one that was used last first."""
        return reversed(list(self._values.values()))

    def get(self, key: K) -> V | None:
        """The value of a key, which is used now."""
        value = self._values.pop(key, None)
        if value is not None:
            self._values[key] = value
        return value

    def put(self, key: K, value: V) -> None:
        """Keeps a value, unless it is larger than all may be together."""
        if self._size_of(value) > self._most:
            return
        self._values[key] = value
        while self.size > self._most:
            for oldest in list(self._values)[:1]:
                self._values.pop(oldest, None)

    def clear(self) -> None:
        """Forgets everything."""
        self._values.clear()


MOST_BYTES: Final = 256 << 20  # weights of thirty million parameters, and what was made of them: a U-Net
FEW: Final = 16  # numbers that tell most arrays apart


class _Made(NamedTuple):
    """A raw array, and what was made of it."""

    raw: Array
    made: Array


class WeightCache:
    """Prepared arrays by what prepared them, found again by the content of the raw ones.

    Contents are compared, not hashed: reading both once costs a tenth of a hash that could be trusted, and is right.
    An array that somebody may still write to is neither kept nor looked up: it would change on both sides of the
    comparison.

    Args:
        most_bytes: Bytes of raw and prepared arrays together that are kept, although a raw one may be somebody else's.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._made = BoundedCache[Hashable, list[_Made]](
            most_bytes, lambda several: sum(one.raw.nbytes + one.made.nbytes for one in several)
        )

    @property
    def bytes(self) -> int:
        """Of all that is kept."""
        return self._made.size

    def made_of(self, raw: Array, op: DeviceOp, make: Callable[[], Array]) -> Array:
        """What an operation makes of a host tensor; read-only where it is kept."""
        if not _lasting(raw):
            return make()
        key = op, raw.shape, raw.dtype, bit_patterns(raw).flat[:FEW].tobytes()
        several = self._made.get(key) or []
        found = next((one for same in (_same_memory, _same_bits) for one in several if same(one.raw, raw)), None)
        if found is None:
            found = _Made(raw, make())
            found.made.flags.writeable = False
            self._made.put(key, [*several, found])
        return found.made

    def clear(self) -> None:
        """Forgets everything."""
        self._made.clear()


def _lasting(array: Array) -> bool:
    """Whether nobody can write to an array, nor to the one whose memory it is."""
    one: object = array
    while isinstance(one, np.ndarray):
        if one.flags.writeable:
            return False
        one = one.base
    return one is None


def _same_memory(kept: Array, raw: Array) -> bool:
    """Whether two arrays of one shape and type are the same numbers in the same place."""
    here, there = kept.__array_interface__, raw.__array_interface__
    return (here["data"], here["strides"]) == (there["data"], there["strides"])


def _same_bits(kept: Array, raw: Array) -> bool:
    """Whether two arrays of one shape and type hold the same bits."""
    return np.array_equal(bit_patterns(kept), bit_patterns(raw))


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
    many buffers there were.

    Args:
        most: Calls that are kept.
    """

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._kept = BoundedCache[Hashable, _Moves](most)

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
            self._kept.put(call, _Moves(plan, programs, after.blocks, after.buffers - before.buffers))
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


MOST_STEPS: Final = 2000  # 5 KB each with their cycles, 15 KB once reports on them are read in full
MOST_MADE: Final = 8  # of a plan: tensors may move in one call and stay in another, so that it takes other cycles
MOST_SPECS: Final = 64  # that are equal, but written in different ways


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """A plan, for which device, and what was made of both: its cycles and texts on them, each under a key."""

    plan: Plan
    spec: DeviceSpec
    made: dict[Hashable, Any] = field(default_factory=dict)


class PlanCache:
    """Plans by all that they came from, as a device keeps programs.

    A plan holds neither addresses nor values, so that equal calls on devices of one spec have the same one wherever
    their tensors lie. What it takes is kept with it, for the device operations that ran, the device and the project's
    own table of models. Threads of several devices may ask at once.

    Args:
        most_steps: Steps of all plans together that are kept; a longer plan is not.
    """

    def __init__(self, most_steps: int = MOST_STEPS) -> None:
        # By the number of a spec that is held there
        self._kept = BoundedCache[tuple[int, ProgramKey], _Kept](most_steps, lambda kept: len(kept.plan.steps))

    @property
    def steps(self) -> int:
        """Steps of all plans that are kept."""
        return self._kept.size

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
        kept = self._kept.get(here)
        if kept is not None:
            return kept.plan
        plan = make()
        self._kept.put(here, _Kept(plan=plan, spec=spec))
        return plan

    def cycles_of(self, plan: Plan, spec: DeviceSpec, *, ran: tuple[int, ...]) -> PlanCycles:
        """What the device operations of a plan take that ran; arguments as of `run_cycles`."""
        return self.made_of(plan, spec, ran, lambda: run_cycles(plan, spec, ran=ran))

    def made_of(self, plan: Plan, spec: DeviceSpec, key: Hashable, make: Callable[[], T]) -> T:
        """What is made of a plan: what was made under this key before, where the plan is kept.

        Args:
            make: Makes it, of nothing that lives on a device; it must not be changed.
        """
        kept = next((one for one in self._kept.latest_first() if one.plan is plan), None)
        if kept is None or kept.spec is not spec:
            return make()
        result: T | None = kept.made.get(key)
        if result is None:
            result = make()
            if len(kept.made) >= MOST_MADE:
                kept.made.clear()
            kept.made[key] = result
        return result


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
