"""Plans of calls and the cycles of what they ran, found again when an equal call comes: planned once, timed once."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, Final, TypeVar

from device.plan import Plan, ProgramKey
from device.spec.device_spec import DeviceSpec
from ops.meaning import Meanings
from ops.meanings import MEANINGS
from ops.readings.cycles import PlanCycles, run_cycles

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


class KeptPlans:
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
            key: All that decides the plan, but for the device.
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
        self, plan: Plan, spec: DeviceSpec, *, ran: tuple[int, ...], meanings: Meanings = MEANINGS
    ) -> PlanCycles:
        """What the device operations of a plan take that ran; arguments as of `run_cycles`."""
        if meanings is not MEANINGS:
            return run_cycles(plan, spec, ran=ran, meanings=meanings)
        return self.made_of(plan, spec, ran, lambda: run_cycles(plan, spec, ran=ran))

    def made_of(self, plan: Plan, spec: DeviceSpec, key: Hashable, make: Callable[[], T]) -> T:
        """What is made of a plan: what was made under this key before, where the plan is kept.

        Args:
            key: All that decides what is made, but for these two.
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
def plans_of_process() -> KeptPlans:
    """Those that all devices of this process share."""
    return KeptPlans()


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
