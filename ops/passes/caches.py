"""Caches of plans, of their cycles, and of prepared weights."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cache, lru_cache
from threading import RLock
from typing import Any, Final, Generic, TypeVar

import numpy as np

from device.numbers.formats import Array, bit_patterns
from device.plan import DeviceOp, Plan, ProgramKey
from device.spec.device_spec import DeviceSpec
from ops.passes.cycles import PlanCycles, run_cycles

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
T = TypeVar("T")


class BoundedCache(Generic[K, V]):
    """Values by key, up to a total size; the least recently used values are dropped first.

    Threads may use the cache concurrently. A lookup or a change takes the same time however many values there are.
    """

    def __init__(self, most: int, size_of: Callable[[V], int] = lambda value: 1) -> None:
        self._most, self._size_of = most, size_of
        self._values: OrderedDict[K, tuple[int, V]] = OrderedDict()  # each with its size, in the order of use
        self._size = 0
        self._lock = RLock()

    def __contains__(self, key: K) -> bool:
        """Whether a value is cached; the lookup does not count as a use."""
        return key in self._values

    @property
    def size(self) -> int:
        """Total size of all values."""
        return self._size

    def latest(self, condition: Callable[[V], bool]) -> V | None:
        """The most recently used value that fulfills a condition; None if none does."""
        with self._lock:
            return next((value for _, value in reversed(self._values.values()) if condition(value)), None)

    def get(self, key: K) -> V | None:
        """The value of a key, which becomes the most recently used."""
        with self._lock:
            found = self._values.get(key)
            if found is None:
                return None
            self._values.move_to_end(key)
            return found[1]

    def put(self, key: K, value: V) -> None:
        """Caches a value, unless the value alone exceeds the total size."""
        size = self._size_of(value)
        if size > self._most:
            return
        with self._lock:
            replaced, _ = self._values.pop(key, (0, None))
            self._values[key] = size, value
            self._size += size - replaced
            while self._size > self._most and self._values:
                _, (dropped, _) = self._values.popitem(last=False)
                self._size -= dropped

    def clear(self) -> None:
        """Drops all values."""
        with self._lock:
            self._values.clear()
            self._size = 0


MOST_BYTES: Final = 256 << 20  # thirty million raw weights and the prepared weights: a U-Net
FEW: Final = 16  # numbers that tell most arrays apart


class WeightCache:
    """Prepared arrays by the operation that prepared them and the content of the raw arrays.

    Contents are compared, not hashed: reading both arrays once costs a tenth of a trustworthy hash, and is exact. A
    writable array is neither cached nor looked up: a change would reach both sides of the comparison. ``most_bytes``
    limits raw and prepared arrays together, although the caller may own the raw array.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._arrays: BoundedCache[Hashable, list[tuple[Array, Array]]] = BoundedCache(  # raw and prepared
            most_bytes, lambda pairs: sum(array.nbytes for pair in pairs for array in pair)
        )

    @property
    def bytes(self) -> int:
        """Bytes of all cached arrays."""
        return self._arrays.size

    def derived_from(self, raw: Array, op: DeviceOp, make: Callable[[], Array]) -> Array:
        """The array that an operation makes of a host tensor; read-only if it is cached."""
        if not _lasting(raw):
            return make()
        key = op, raw.shape, raw.dtype, bit_patterns(raw).flat[:FEW].tobytes()
        pairs, (place, bits) = self._arrays.get(key) or [], (raw.__array_interface__, bit_patterns(raw))
        known = next((pair for pair in pairs if pair[0].__array_interface__ == place), None)  # the same memory
        known = known or next((pair for pair in pairs if np.array_equal(bit_patterns(pair[0]), bits)), None)
        if known is None:
            known = raw, make()
            known[1].flags.writeable = False
            self._arrays.put(key, [*pairs, known])
        return known[1]

    def clear(self) -> None:
        """Drops all arrays."""
        self._arrays.clear()


def _lasting(array: Array) -> bool:
    """Whether neither an array nor the owner of its memory is writable."""
    owner: object = array
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            return False
        owner = owner.base
    return owner is None


MOST_STEPS: Final = 2000  # 5 KB each with their cycles, 15 KB once reports on them are read in full
MOST_MADE: Final = 8  # results of a plan: tensors may move in one call and stay in another, with other cycles
MOST_SPECS: Final = 64  # equal specs with different texts


@dataclass(frozen=True, slots=True, kw_only=True)
class _CachedPlan:
    """A plan with its device, and the cached results of both: cycles and texts, each under a key."""

    plan: Plan
    spec: DeviceSpec
    results: dict[Hashable, Any] = field(default_factory=dict)


class PlanCache:
    """Plans by all their inputs, as a device caches programs.

    A plan has neither addresses nor values, so equal calls on devices with equal specs share a plan. The cycles of a
    plan are cached with the plan, keyed by the device operations that ran, the device and the table of models. Threads
    of several devices may use the cache concurrently. ``most_steps`` limits the total steps of all plans; a longer plan
    is not cached.
    """

    def __init__(self, most_steps: int = MOST_STEPS) -> None:
        # By the id of a spec, which the cached plan keeps alive
        self._plans = BoundedCache[tuple[int, ProgramKey], _CachedPlan](
            most_steps, lambda cached: len(cached.plan.steps)
        )

    @property
    def steps(self) -> int:
        """Steps of all cached plans."""
        return self._plans.size

    def holds(self, key: ProgramKey, spec: DeviceSpec) -> bool:
        """Whether the plan of a call is cached; arguments as in `plan_of`."""
        return (id(spec), key) in self._plans

    def plan_of(self, key: ProgramKey, spec: DeviceSpec, make: Callable[[], Plan]) -> Plan:
        """The plan of a call on ``spec`` (`canonical_spec` of equal specs); an error of ``make`` is not cached."""
        here = (id(spec), key)
        cached = self._plans.get(here)
        if cached is not None:
            return cached.plan
        plan = make()
        self._plans.put(here, _CachedPlan(plan=plan, spec=spec))
        return plan

    def cycles_of(self, plan: Plan, spec: DeviceSpec, *, ran: tuple[int, ...]) -> PlanCycles:
        """Cycles of the device operations of a plan that ran; arguments as in `run_cycles`."""
        return self.derived_from(plan, spec, ran, lambda: run_cycles(plan, spec, ran=ran))

    def derived_from(self, plan: Plan, spec: DeviceSpec, key: Hashable, make: Callable[[], T]) -> T:
        """The value that ``make`` derives from a plan, cached under a key as long as the plan is.

        The value must not refer to anything that lives on a device, and must not be changed.
        """
        cached = self._plans.latest(lambda entry: entry.plan is plan)
        if cached is None or cached.spec is not spec:
            return make()
        result: T | None = cached.results.get(key)
        if result is None:
            result = make()
            if len(cached.results) >= MOST_MADE:
                cached.results.clear()
            cached.results[key] = result
        return result


@cache
def plans_of_process() -> PlanCache:
    """The plans that all devices of this process share."""
    return PlanCache()


# Canonical specs by their ids: trial calls open a device each, and to hash all figures of one takes as long as the rest
_CANONICAL: Final = BoundedCache[int, DeviceSpec](MOST_SPECS)


def canonical_spec(spec: DeviceSpec) -> DeviceSpec:
    """The first of all specs that are equal and have the same text.

    Equal is not enough: 1 is equal to 1.0, and reports show the difference.
    """
    if _CANONICAL.get(id(spec)) is spec:
        return spec
    try:
        first = _first_of_equal(spec)
    except TypeError:  # a list instead of a tuple cannot be hashed and is its own key
        return spec
    if first is not spec:
        return first if repr(first) == repr(spec) else spec
    _CANONICAL.put(id(spec), spec)
    return spec


@lru_cache(MOST_SPECS)
def _first_of_equal(spec: DeviceSpec) -> DeviceSpec:
    return spec
