"""What each kind of work does to numbers."""

from dataclasses import dataclass

import numpy as np
import pytest

from device.matrix_unit.arithmetic import EXACT, FAST
from device.memory.memory_config import TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32
from device.spec.device_spec import load_spec
from ops.programs.conv2d.host_work import PrepareBias, PrepareWeights
from ops.programs.conv2d.weights import WeightsLayout
from ops.programs.halo.frame import Frame, FrameAxis
from ops.programs.halo.work import HaloWork
from ops.programs.movement.work import Relayout, Reshape
from ops.readings.values import evaluator, halo_values

SPEC = load_spec("wormhole_n150")
EVALUATE = evaluator(SPEC, EXACT)
AXIS = FrameAxis(input_length=2, before=0, after=0, kernel=1)


def halo(in_format, *, tiled, fp32_dest):
    frame = Frame(batch=1, rows=AXIS, columns=AXIS)
    return HaloWork(frame=frame, in_format=in_format, tiled=tiled, fp32_dest=fp32_dest)


THIRD = np.full((4, 32), 1 / 3, np.float32)


def bits_kept(values):
    """Mantissa bits of 1/3 that are left."""
    zeros = int(values.view(np.uint32)[0, 0])
    return 23 - min(23, (zeros & -zeros).bit_length() - 1)


@pytest.mark.parametrize(
    ("tiled", "fp32_dest", "bits"), [(False, False, 23), (False, True, 23), (True, True, 10), (True, False, 7)]
)
def test_untilizing_cuts_float32(tiled, fp32_dest, bits):
    """Rows pass untouched; tiles go through Dst, which keeps what an operand has."""
    got = halo_values(halo(FLOAT32, tiled=tiled, fp32_dest=fp32_dest), THIRD)
    assert bits_kept(got) <= bits
    assert np.abs(got - THIRD).max() < 2.0 ** -(bits + 1)
    assert (got == THIRD).all() == (not tiled)


@pytest.mark.parametrize("fmt", [BFLOAT16, BFLOAT8_B])
def test_untilizing_keeps_narrow_formats(fmt):
    values = THIRD.astype(fmt.storage)
    assert halo_values(halo(fmt, tiled=True, fp32_dest=False), values) is values


def test_a_halo_is_evaluated():
    work = halo(FLOAT32, tiled=True, fp32_dest=False)
    assert np.array_equal(EVALUATE(work, [THIRD]), halo_values(work, THIRD))


LAYOUT = WeightsLayout(
    in_channels=2,
    out_channels=3,
    kernel=(1, 1),
    scheme=TensorMemoryLayout.HEIGHT_SHARDED,
    padded_in_channels=8,
    padded_out_channels=32,
    data_format=BFLOAT16,
)


def test_weights_and_bias_are_prepared():
    weights = np.arange(6, dtype=np.float32).reshape(2, 3, 1, 1)
    got = EVALUATE(PrepareWeights(LAYOUT), [weights])
    assert (got.shape, got.dtype) == ((1, 1, 32, 32), BFLOAT16.storage)
    assert got[0, 0, :2, :3].tolist() == [[0, 1, 2], [3, 4, 5]]
    row = EVALUATE(PrepareBias(LAYOUT), [np.array([[[[7, 8, 9]]]], np.float32)])
    assert row.shape == (1, 1, 32, 32)
    assert row[0, 0, 0, :3].tolist() == [7, 8, 9]


def test_data_movement_is_passed_on():
    values = np.arange(4)
    assert EVALUATE(Relayout(), [values]).tolist() == values.tolist()
    assert EVALUATE(Reshape((2, 2)), [values]).tolist() == [[0, 1], [2, 3]]


@dataclass(frozen=True)
class Unheard:
    """A kind of work nobody knows."""


def test_unknown_work_is_our_own_mistake():
    with pytest.raises(AssertionError, match=r"^nothing is known of Unheard\(\) with inputs \[True, False\]$"):
        evaluator(SPEC, FAST)(Unheard(), [THIRD, None])
