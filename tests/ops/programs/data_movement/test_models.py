"""What operations of data movement compute, and that their cycles are those of their pages."""

import numpy as np
import pytest

from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32
from device.spec.device_spec import load_spec
from ops.programs.data_movement.copy import Conversion, CopyTensor
from ops.programs.data_movement.fold import FoldWindows
from ops.programs.data_movement.movement import copy_movement, movement_cycles
from ops.programs.data_movement.pad import FillPad, PadWith, around_image
from ops.programs.data_movement.reshape import Reshape
from ops.programs.data_movement.slice import PaddedSlice, SliceWrite, Window, slice_movement, slice_write_movement
from tests.build import op_cycles, op_values, tensor_spec

SPEC = load_spec("wormhole_n150")
WINDOW = Window(shape=(1, 64, 64, 32), begins=(0, 8, 16, 0), ends=(1, 40, 48, 32))
IMAGE, PART, ROWS = (tensor_spec(text) for text in ("1x64x64x32 tile", "1x1x1024x32 tile", "1x1x1024x32 l1"))


def test_what_only_moves_changes_nothing():
    x = np.arange(24, dtype=np.float32).reshape(1, 1, 6, 4)
    for conversion in Conversion:
        assert op_values(CopyTensor(conversion), x) is x
        assert op_values(CopyTensor(conversion), x, None) is x  # into a tensor that was allocated before
    assert op_values(FillPad(), x) is x
    assert op_values(Reshape((2, 3, 4)), x).tolist() == x.reshape(2, 3, 4).tolist()


def test_what_changes_the_shape():
    x = np.arange(4, dtype=np.float32).reshape(1, 1, 4, 1)
    padded = op_values(PadWith(shape=(1, 2, 2, 1), padding=around_image((0, 0, 1, 0))), x)
    assert padded[0, :, :, 0].tolist() == [[0, 0, 1], [0, 2, 3]]
    folded = op_values(FoldWindows(window=(2, 2), image=(1, 2, 2, 1), data_format=FLOAT32), x)
    assert folded.tolist() == [[[[0, 1, 2, 3]]]]
    window = Window(shape=(1, 2, 2, 1), begins=(0, 1, 0, 0), ends=(1, 2, 2, 1))
    assert op_values(PaddedSlice(window), x).ravel().tolist() == [2, 3]
    assert op_values(CopyTensor(Conversion.TYPECAST, (BFLOAT8_B, BFLOAT16)), x).dtype == BFLOAT16.storage


@pytest.mark.parametrize(
    ("op", "read", "written", "movement"),
    [
        (FillPad(), PART, PART, copy_movement(PART, PART, SPEC)),
        (PaddedSlice(WINDOW), IMAGE, ROWS, slice_movement(IMAGE, ROWS, SPEC, columns=(16, 48))),
        (SliceWrite(WINDOW, 32), ROWS, IMAGE, slice_write_movement(ROWS, PART, SPEC)),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("contention", [False, True])
def test_cycles_are_those_of_the_pages_of_both_ends(op, read, written, movement, contention):
    cycles = op_cycles(op, read, written, contention=contention)
    assert cycles == movement_cycles(movement, SPEC, contention=contention)
