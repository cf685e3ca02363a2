"""What the works of the data movement operations mean."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeAlias

from device.memory.layouts import TensorSpec
from device.numbers.formats import Array
from device.plan import Work
from device.spec.device_spec import DeviceSpec
from device.time.stages import OperationCycles
from ops.op_model import (
    Account,
    CyclesReading,
    Ends,
    Meaning,
    ValuesOf,
    ValuesReading,
    W,
    given,
    unchanged,
    values_of_first,
)
from ops.programs.movement.account import movement_account
from ops.programs.movement.cycles import movement_cycles
from ops.programs.movement.movement import Movement
from ops.programs.movement.movements import (
    cast_movement,
    copy_movement,
    fold_movement,
    relayout_movement,
    reshape_movement,
    slice_movement,
    slice_write_movement,
    written_part,
)
from ops.programs.movement.values import converted, folded_windows, laid_out, padded_image, padded_slice, written_slice
from ops.programs.movement.work import (
    Conversion,
    FillPad,
    FoldWindows,
    PaddedSlice,
    PadImage,
    Relayout,
    Reshape,
    SliceWrite,
    Typecast,
)

# Movements of which there are no public measurements.
UNMEASURED: Final = (
    Conversion.PAD.value,
    Conversion.UNTILIZE_CODEGEN.value,
    FillPad.__name__,
    PadImage.__name__,
    FoldWindows.__name__,
)
MovementOf: TypeAlias = Callable[[W, TensorSpec, TensorSpec, DeviceSpec], Movement]


def _moves(work: type[W], values: ValuesOf[W], movement: MovementOf[W]) -> Meaning[W]:
    """The meaning of a work whose cycles follow from the pages of both ends."""

    def cycles(work: W, ends: Ends, reading: CyclesReading) -> OperationCycles:
        made = movement(work, ends.read, ends.written, reading.spec)
        return movement_cycles(made, reading.spec, contention=reading.contention)

    def account(work: W, ends: Ends, spec: DeviceSpec) -> Account:
        window = work.window if isinstance(work, PaddedSlice | SliceWrite) else None
        name = work.conversion.value if isinstance(work, Relayout) else type(work).__name__
        measured_as = "" if name in UNMEASURED else name
        found = partial(movement, work, ends.read, ends.written, spec)
        return movement_account(found, measured_as=measured_as, window=window)

    return Meaning(work=work, values=values, cycles=cycles, account=account)


def _reshaped(work: Reshape, values: Array) -> Array:
    return values.reshape(work.shape)


def _written(work: SliceWrite, inputs: Sequence[Array | None], reading: ValuesReading) -> Array:
    source, target = inputs
    return written_slice(work, given(source), target)


def _relayout(work: Relayout, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
    return relayout_movement(work.conversion, read, written, spec)


def _copy(work: Work, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
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


MEANINGS: Final = (
    _moves(Relayout, values_of_first(laid_out), _relayout),
    _moves(Reshape, values_of_first(_reshaped), _reshape),
    _moves(Typecast, values_of_first(converted), _cast),
    _moves(FillPad, values_of_first(unchanged), _copy),
    _moves(PadImage, values_of_first(padded_image), _copy),
    _moves(FoldWindows, values_of_first(folded_windows), _fold),
    _moves(PaddedSlice, values_of_first(padded_slice), _slice),
    _moves(SliceWrite, _written, _slice_write),
)
