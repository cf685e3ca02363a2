"""The data movement processors of a core: who does what there are hands for.

A program has *roles* for them, in the order in which they matter: to bring one operand, to bring the other, to write.
On a machine with fewer processors than roles the last one does what is left, in the order of the program; on one with
more, nobody needs the rest.
"""

from device.spec.device_spec import DeviceSpec
from device.time.engine import Processor


def movers(processors: int, roles: int) -> tuple[Processor, ...]:
    """The processor of each role of a program on a core of so many; roles may have the same one."""
    made = [Processor() for _ in range(min(roles, processors))]
    return tuple(made[min(role, len(made) - 1)] for role in range(roles))


def hands(spec: DeviceSpec, roles: int) -> int:
    """How many of some roles are done at a time."""
    return min(roles, spec.data_movement.processors)


def side_by_side_cycles(spec: DeviceSpec, first: float, second: float) -> float:
    """Cycles of two roles that do not wait for each other: together if there are two processors, else in turn."""
    return first + second if spec.data_movement.processors == 1 else max(first, second)
