"""Meanings of programs of which nobody has a measurement: their cycles are those of a movement of pages."""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias, TypeVar

from device.numbers.formats import Array
from device.plan import Work
from device.spec.device_spec import DeviceSpec
from device.time.stages import OperationCycles
from ops.op_model import Account, CyclesReading, Ends, Meaning, values_of_first
from ops.programs.movement.account import movement_account
from ops.programs.movement.cycles import movement_cycles
from ops.programs.movement.movement import Movement
from ops.programs.movement.movements import copy_movement

W = TypeVar("W", bound=Work)

MovementOf: TypeAlias = Callable[[W, Ends, DeviceSpec], Movement]


def copied(work: Work, ends: Ends, spec: DeviceSpec) -> Movement:
    """Pages of the source are waited for and those of the result written, as in measured copies."""
    return copy_movement(ends.read, ends.written, spec)


def composed(work: type[W], values: Callable[[W, Array], Array], movement: MovementOf[W] = copied) -> Meaning[W]:
    """What the works of one class mean.

    Args:
        values: What one makes of its first input.
        movement: The movement that takes as long.
    """

    def cycles(one: W, ends: Ends, reading: CyclesReading) -> OperationCycles:
        return movement_cycles(movement(one, ends, reading.spec), reading.spec, contention=reading.contention)

    def account(one: W, ends: Ends, spec: DeviceSpec) -> Account:
        return movement_account(partial(movement, one, ends, spec))

    return Meaning(work=work, values=values_of_first(values), cycles=cycles, account=account)
