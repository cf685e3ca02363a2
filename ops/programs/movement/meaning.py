"""What the works of the data movement operations mean."""

from collections.abc import Callable, Sequence
from typing import Final

from device.memory.layouts import TensorSpec
from device.numbers.formats import Array
from device.plan import Work
from device.spec.device_spec import DeviceSpec
from device.time.stages import OperationCycles
from ops.meaning import CyclesOf, CyclesReading, Ends, Meaning, ValuesReading, W, given, unchanged, values_of_first
from ops.programs.movement.cycles import movement_cycles
from ops.programs.movement.movement import Movement
from ops.programs.movement.movements import (
    cast_movement,
    copy_movement,
    relayout_movement,
    reshape_movement,
    slice_movement,
    slice_write_movement,
    written_part,
)
from ops.programs.movement.values import converted, folded_windows, padded_image, padded_slice, written_slice
from ops.programs.movement.work import (
    FillPad,
    FoldWindows,
    PaddedSlice,
    PadImage,
    Relayout,
    Reshape,
    SliceWrite,
    Typecast,
)


def _of_movement(movement: Callable[[W, TensorSpec, TensorSpec, DeviceSpec], Movement]) -> CyclesOf[W]:
    """Cycles that follow from the pages of both ends."""

    def cycles(work: W, ends: Ends, reading: CyclesReading) -> OperationCycles:
        made = movement(work, ends.read, ends.written, reading.spec)
        return movement_cycles(made, reading.spec, contention=reading.contention)

    return cycles


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


def _slice_write(work: SliceWrite, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
    return slice_write_movement(read, written_part(written, work.window), spec)


MEANINGS: Final = (
    Meaning(work=Relayout, values=values_of_first(unchanged), cycles=_of_movement(_relayout)),
    Meaning(work=Reshape, values=values_of_first(_reshaped), cycles=_of_movement(_reshape)),
    Meaning(work=Typecast, values=values_of_first(converted), cycles=_of_movement(_cast)),
    Meaning(work=FillPad, values=values_of_first(unchanged), cycles=_of_movement(_copy)),
    Meaning(work=PadImage, values=values_of_first(padded_image), cycles=_of_movement(_copy)),
    Meaning(
        work=FoldWindows,
        values=values_of_first(folded_windows),
        no_model="there is no model of Fold; known are conversions, moves, slices and reshapes",
    ),
    Meaning(work=PaddedSlice, values=values_of_first(padded_slice), cycles=_of_movement(_slice)),
    Meaning(work=SliceWrite, values=_written, cycles=_of_movement(_slice_write)),
)
