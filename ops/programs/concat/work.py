"""What a concatenation computes, and what it takes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from device.memory.layouts import TensorSpec
from device.numbers.formats import Array
from device.plan import Work
from device.spec.device_spec import DeviceSpec
from device.time.stages import OperationCycles
from ops.meaning import Account, CyclesReading, Ends, Meaning, ValuesReading, given
from ops.programs.movement.account import movement_account
from ops.programs.movement.cycles import movement_cycles
from ops.programs.movement.movement import Movement
from ops.programs.movement.movements import copy_movement


@dataclass(frozen=True, slots=True, kw_only=True)
class Concatenate(Work):
    """Tensors one behind the other.

    Attributes:
        axis: Along which.
        shapes: Of the tensors.
        groups: Parts that each is cut into along the axis: first the first parts of all, then the second, and so on.
    """

    axis: int
    shapes: tuple[tuple[int, ...], ...]
    groups: int = 1


def _joined(work: Concatenate, inputs: Sequence[Array | None], reading: ValuesReading) -> Array:
    arrays = [given(one).reshape(shape) for one, shape in zip(inputs, work.shapes, strict=True)]
    parts = [np.split(array, work.groups, axis=work.axis) for array in arrays]
    return np.concatenate([part[group] for group in range(work.groups) for part in parts], axis=work.axis)


def _cycles(work: Concatenate, ends: Ends, reading: CyclesReading) -> OperationCycles:
    return movement_cycles(_movement(ends, reading.spec), reading.spec, contention=reading.contention)


def _account(work: Concatenate, ends: Ends, spec: DeviceSpec) -> Account:
    return movement_account(_movement(ends, spec))


def _movement(ends: Ends, spec: DeviceSpec) -> Movement:
    """Composed: a copy of the result, page by page, from where the first tensor lies; shards are joined in place."""
    read, written = ends.read.memory_config, ends.written
    place = written.memory_config if read.is_sharded() else read
    return copy_movement(TensorSpec(written.shape, written.data_format, written.layout, place), written, spec)


MEANINGS: Final = (Meaning(work=Concatenate, values=_joined, cycles=_cycles, account=_account),)
