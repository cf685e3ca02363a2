"""What calls moved in a device's memory that left nothing there, done again at once when an equal call comes."""

from collections.abc import Callable, Hashable
from typing import Final, NamedTuple

from device.machine import Machine, Program
from device.memory.free_list import Blocks
from device.moments import Standing
from device.plan import Operation, Plan, ProgramKey, Relocate

MOST_KEPT: Final = 256  # calls in turn number the blocks they give back in turn, too: a few ways for each
MOST_BUFFERS: Final = 64  # on the device besides: to compare more of them would take as long as to move


class _Moves(NamedTuple):
    """What a call did."""

    plan: Plan
    # What it found in the program cache, which fitted into L1 from the same blocks
    programs: tuple[tuple[Hashable, Program], ...]
    after: tuple[Blocks, ...]  # The blocks when it was done
    buffers: int  # How many it made


class KeptMoves:
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
            key: All that decides the plan, but for the device.
            machine: The device, always the same; it is this thread's turn.
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
