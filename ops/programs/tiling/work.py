"""What the programs compute that lay a tensor out anew, and change its format on the way."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Final

import numpy as np

from device.matrix_unit.typecast import typecast
from device.numbers.formats import Array, DataFormat
from device.plan import DeviceOp
from device.spec.device_spec import DeviceSpec
from device.time.stages import OperationCycles
from ops.op_model import CyclesContext, Description, Ends, OpModel, ValuesContext, given
from ops.programs.movement.account import describe_movement
from ops.programs.movement.cycles import movement_cycles
from ops.programs.movement.meaning import UNMEASURED
from ops.programs.movement.movement import Movement
from ops.programs.movement.movements import tensor_copy_movement
from ops.programs.movement.values import TILIZES, packed_tiles
from ops.programs.movement.work import Conversion


@dataclass(frozen=True, slots=True, kw_only=True)
class TilizeOp(DeviceOp):
    """The same numbers in another place, another order of bytes, or another format."""

    conversion: Conversion  # By which program
    source_format: DataFormat
    data_format: DataFormat
    kept: tuple[int, ...] | None = None  # Shape of what is kept of the source, from its first element on; None for all
    # Padded shape of the source if the result takes its rows of padding for rows of its own; None if not
    padded: tuple[int, ...] | None = None
    on_one_core: bool = False  # One core does all


def _values(work: TilizeOp, inputs: Sequence[Array | None], reading: ValuesContext) -> Array:
    values = given(inputs[0])
    if work.kept is not None:
        values = values[tuple(slice(side) for side in work.kept)]
    if work.padded is not None:
        values = _with_padding(values, work.padded)
    if work.source_format == work.data_format:
        return packed_tiles(values) if work.conversion in TILIZES else values
    return typecast(values, work.source_format, work.data_format)


def _with_padding(values: Array, padded: tuple[int, ...]) -> Array:
    """As many rows as there were, with zeros below each image, which pushes the last images out."""
    below = [(0, 0)] * (values.ndim - 2) + [(0, padded[-2] - values.shape[-2]), (0, 0)]
    rows = np.pad(values, below).reshape(-1, values.shape[-1])
    return rows[: prod(values.shape[:-1])].reshape(values.shape)


def _cycles(work: TilizeOp, ends: Ends, reading: CyclesContext) -> OperationCycles:
    return movement_cycles(_movement(work, ends, reading.spec), reading.spec, contention=reading.contention)


def _describe(work: TilizeOp, ends: Ends, spec: DeviceSpec) -> Description:
    name, changes = work.conversion.value, work.source_format != work.data_format
    # programs that change formats on the way are not measured, either
    measured_as = "" if changes or name in UNMEASURED else name
    return describe_movement(partial(_movement, work, ends, spec), measured_as=measured_as)


def _movement(work: TilizeOp, ends: Ends, spec: DeviceSpec) -> Movement:
    return tensor_copy_movement(work.conversion, ends.read, ends.written, spec, on_one_core=work.on_one_core)


OP_MODELS: Final = (OpModel(work=TilizeOp, values=_values, cycles=_cycles, account=_describe),)
