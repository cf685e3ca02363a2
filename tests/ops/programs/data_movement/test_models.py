"""What the table says of data movement."""

import numpy as np
import pytest

from device.matrix_unit.arithmetic import EXACT
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32
from device.spec.device_spec import load_spec
from ops.op_model import CyclesContext, Ends, ValuesContext
from ops.op_models import OP_MODELS
from ops.programs.data_movement.copy import Conversion, CopyTensor, tensor_copy_movement
from ops.programs.data_movement.fold import FoldWindows
from ops.programs.data_movement.movement import copy_movement
from ops.programs.data_movement.movement_cycles import movement_cycles
from ops.programs.data_movement.pad import FillPad, PadImage
from ops.programs.data_movement.reshape import Reshape
from ops.programs.data_movement.slice import PaddedSlice, SliceWrite, Window, slice_movement, slice_write_movement
from ops.programs.data_movement.typecast import Typecast

SPEC = load_spec("wormhole_n150")
WINDOW = Window(shape=(1, 64, 64, 32), begins=(0, 8, 16, 0), ends=(1, 40, 48, 32))
IMAGE = TensorSpec((1, 64, 64, 32), BFLOAT16, Layout.TILE, DRAM_MEMORY_CONFIG)
PART = TensorSpec((1, 1, 1024, 32), BFLOAT16, Layout.TILE, DRAM_MEMORY_CONFIG)
ROWS = TensorSpec((1, 1, 1024, 32), BFLOAT16, Layout.ROW_MAJOR, L1_MEMORY_CONFIG)

FOLD = FoldWindows(window=(2, 2), image=(1, 32, 32, 32), data_format=BFLOAT16)
FOLDED = TensorSpec((1, 16, 16, 128), BFLOAT16, Layout.ROW_MAJOR, DRAM_MEMORY_CONFIG)


def values(op, *inputs):
    return OP_MODELS[type(op)].values(op, list(inputs), ValuesContext(spec=SPEC, arithmetic=EXACT))


def test_what_only_moves_changes_nothing():
    x = np.arange(24, dtype=np.float32).reshape(1, 1, 6, 4)
    for conversion in Conversion:
        assert values(CopyTensor(conversion), x) is x
        assert values(CopyTensor(conversion), x, None) is x  # into a tensor that was allocated before
    assert values(FillPad(), x) is x
    assert values(Reshape((2, 3, 4)), x).tolist() == x.reshape(2, 3, 4).tolist()


def test_what_changes_the_shape():
    x = np.arange(4, dtype=np.float32).reshape(1, 1, 4, 1)
    padded = values(PadImage(image=(1, 2, 2, 1), padding=(0, 0, 1, 0)), x)
    assert padded[0, :, :, 0].tolist() == [[0, 0, 1], [0, 2, 3]]
    folded = values(FoldWindows(window=(2, 2), image=(1, 2, 2, 1), data_format=FLOAT32), x)
    assert folded.tolist() == [[[[0, 1, 2, 3]]]]
    window = Window(shape=(1, 2, 2, 1), begins=(0, 1, 0, 0), ends=(1, 2, 2, 1))
    assert values(PaddedSlice(window), x).ravel().tolist() == [2, 3]
    written = values(SliceWrite(window, 2), np.array([[8], [9]], np.float32), x.reshape(1, 2, 2, 1).copy())
    assert written.ravel().tolist() == [0, 1, 8, 9]
    assert values(SliceWrite(window, 2), np.array([[8], [9]], np.float32), None).ravel()[2:].tolist() == [8, 9]
    assert values(Typecast(BFLOAT8_B, BFLOAT16), x).dtype == BFLOAT16.storage


@pytest.mark.parametrize(
    ("op", "read", "written", "movement"),
    [
        (CopyTensor(Conversion.UNTILIZE), PART, ROWS, tensor_copy_movement(Conversion.UNTILIZE, PART, ROWS, SPEC)),
        (Reshape((1, 64, 16, 32)), PART, ROWS, Reshape((1, 64, 16, 32)).movement(PART, ROWS, SPEC)),
        (Typecast(BFLOAT8_B, BFLOAT16), PART, PART, Typecast(BFLOAT8_B, BFLOAT16).movement(PART, PART, SPEC)),
        (FillPad(), PART, PART, copy_movement(PART, PART, SPEC)),
        (PadImage(image=(1, 64, 64, 32), padding=(1, 1, 1, 1)), IMAGE, IMAGE, copy_movement(IMAGE, IMAGE, SPEC)),
        (FOLD, ROWS, FOLDED, FOLD.movement(ROWS, FOLDED, SPEC)),
        (PaddedSlice(WINDOW), IMAGE, ROWS, slice_movement(IMAGE, ROWS, SPEC, columns=(16, 48))),
        (SliceWrite(WINDOW, 32), ROWS, IMAGE, slice_write_movement(ROWS, PART, SPEC)),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("contention", [False, True])
def test_cycles_are_those_of_the_pages_of_both_ends(op, read, written, movement, contention):
    context = CyclesContext(spec=SPEC, contention=contention)
    found = OP_MODELS[type(op)].cycles(op, Ends(read=read, written=written), context)
    assert found == movement_cycles(movement, SPEC, contention=contention)
