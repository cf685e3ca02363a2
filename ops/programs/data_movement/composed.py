"""Meanings of programs of which nobody has a measurement: their cycles are those of a movement of pages."""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias, TypeVar

from device.numbers.formats import Array
from device.plan import DeviceOp
from device.spec.device_spec import DeviceSpec
from device.time.stages import OperationCycles
from ops.op_model import CyclesContext, Description, Ends, OpModel, values_of_first
from ops.programs.data_movement.copy import copy_movement
from ops.programs.data_movement.movement import Movement
from ops.programs.data_movement.movement_cycles import describe_movement, movement_cycles

W = TypeVar("W", bound=DeviceOp)

MovementOf: TypeAlias = Callable[[W, Ends, DeviceSpec], Movement]


def copied(work: DeviceOp, ends: Ends, spec: DeviceSpec) -> Movement:
    """Pages of the source are waited for and those of the result written, as in measured copies."""
    return copy_movement(ends.read, ends.written, spec)


def composed(work: type[W], values: Callable[[W, Array], Array], movement: MovementOf[W] = copied) -> OpModel[W]:
    """What the works of one class mean.

    Args:
        values: What one makes of its first input.
        movement: The movement that takes as long.
    """

    def cycles(one: W, ends: Ends, reading: CyclesContext) -> OperationCycles:
        return movement_cycles(movement(one, ends, reading.spec), reading.spec, contention=reading.contention)

    def account(one: W, ends: Ends, spec: DeviceSpec) -> Description:
        return describe_movement(partial(movement, one, ends, spec))

    return OpModel(work=work, values=values_of_first(values), cycles=cycles, account=account)
