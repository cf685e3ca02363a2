"""What the works of the data movement operations mean."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeAlias

from device.memory.layouts import TensorSpec
from device.numbers.formats import Array
from device.plan import DeviceOp
from device.spec.device_spec import DeviceSpec
from device.time.stages import OperationCycles
from ops.op_model import (
    CyclesContext,
    Description,
    Ends,
    OpModel,
    ValuesContext,
    ValuesOf,
    W,
    given,
    unchanged,
    values_of_first,
)
from ops.programs.data_movement.copy import CopyTensor, copy_movement, measured_name, partitioned, tensor_copy_movement
from ops.programs.data_movement.fold import FoldWindows, fold_movement, folded_windows
from ops.programs.data_movement.movement import Movement
from ops.programs.data_movement.movement_cycles import describe_movement, movement_cycles
from ops.programs.data_movement.pad import FillPad, PadImage, padded_image
from ops.programs.data_movement.reshape import Reshape, reshape_movement
from ops.programs.data_movement.slice import (
    PaddedSlice,
    SliceWrite,
    padded_slice,
    slice_movement,
    slice_write_movement,
    written_part,
    written_slice,
)
from ops.programs.data_movement.typecast import Typecast, cast_movement, converted

# Movements of which there are no public measurements, besides those of `copy.measured_name`.
UNMEASURED: Final = (FillPad, PadImage, FoldWindows)
MovementOf: TypeAlias = Callable[[W, TensorSpec, TensorSpec, DeviceSpec], Movement]


def _moves(work: type[W], values: ValuesOf[W], movement: MovementOf[W]) -> OpModel[W]:
    """The meaning of a work whose cycles follow from the pages of both ends."""

    def cycles(work: W, ends: Ends, reading: CyclesContext) -> OperationCycles:
        made = movement(work, ends.read, ends.written, reading.spec)
        return movement_cycles(made, reading.spec, contention=reading.contention)

    def account(work: W, ends: Ends, spec: DeviceSpec) -> Description:
        details = work.window.details if isinstance(work, PaddedSlice | SliceWrite) else ()
        if isinstance(work, CopyTensor):
            measured_as = measured_name(work.conversion)
        else:
            measured_as = "" if isinstance(work, UNMEASURED) else type(work).__name__
        found = partial(movement, work, ends.read, ends.written, spec)
        return describe_movement(found, measured_as=measured_as, details=details)

    return OpModel(work=work, values=values, cycles=cycles, account=account)


def _reshaped(work: Reshape, values: Array) -> Array:
    return values.reshape(work.shape)


def _written(work: SliceWrite, inputs: Sequence[Array | None], reading: ValuesContext) -> Array:
    source, target = inputs
    return written_slice(work, given(source), target)


def _copy_tensor(work: CopyTensor, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
    return tensor_copy_movement(work.conversion, read, written, spec)


def _copy(work: DeviceOp, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
    return copy_movement(read, written, spec)


def _cast(work: Typecast, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
    return cast_movement(read, written, spec)


def _reshape(work: Reshape, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
    return reshape_movement(read, written, spec)


def _slice(work: PaddedSlice, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
    return slice_movement(read, written, spec, columns=(work.window.begins[2], work.window.ends[2]))


def _fold(work: FoldWindows, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
    return fold_movement(read, written, work.window, spec)


def _slice_write(work: SliceWrite, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
    return slice_write_movement(read, written_part(written, work.window), spec)


OP_MODELS: Final = (
    _moves(CopyTensor, values_of_first(partitioned), _copy_tensor),
    _moves(Reshape, values_of_first(_reshaped), _reshape),
    _moves(Typecast, values_of_first(converted), _cast),
    _moves(FillPad, values_of_first(unchanged), _copy),
    _moves(PadImage, values_of_first(padded_image), _copy),
    _moves(FoldWindows, values_of_first(folded_windows), _fold),
    _moves(PaddedSlice, values_of_first(padded_slice), _slice),
    _moves(SliceWrite, _written, _slice_write),
)
