"""What a halo does to numbers, and that its cycles are those of the halo that was planned."""

from dataclasses import replace

import numpy as np
import pytest

from device.cores import first_cores
from device.matrix_unit.arithmetic import EXACT
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout, ShardOrientation, TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32
from device.spec.device_spec import load_spec
from ops.op_model import CyclesContext, Ends, ValuesContext
from ops.op_models import OP_MODELS
from ops.programs.halo.cycles import halo_cycles
from ops.programs.halo.model import halo_values
from ops.programs.halo.plan import HaloArguments, HaloOp, plan_halo
from ops.window import PaddedAxis, PaddedInput

SPEC = load_spec("wormhole_n150")
AXIS = PaddedAxis(input_length=8, before=1, after=1, kernel=3)
THIRD = np.full((4, 32), 1 / 3, np.float32)


def halo(data_format=BFLOAT16, *, tiled=False, fp32_dest=False, output="halo"):
    arguments = HaloArguments(
        frame=PaddedInput(batch=1, rows=AXIS, columns=AXIS),
        scheme=TensorMemoryLayout.HEIGHT_SHARDED,
        orientation=ShardOrientation.ROW_MAJOR,
        cores=first_cores(2, 8, 8),
        nhw_cores=2,
        channel_cores=1,
        input_rows=32,
        output_rows=32,
        shard_width=32,
        data_format=data_format,
        stick_alignment_bytes=16,
        tiled=tiled,
    )
    return HaloOp(plan=plan_halo(arguments, input_tensor="x", output_tensor=output), fp32_dest=fp32_dest)


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
    assert halo_values(halo(fmt, tiled=True), values) is values


def test_the_table_knows_both():
    op, tensor = halo(FLOAT32, tiled=True), TensorSpec((1, 1, 64, 32), BFLOAT16, Layout.ROW_MAJOR)
    got = OP_MODELS[HaloOp].values(op, [THIRD], ValuesContext(spec=SPEC, arithmetic=EXACT))
    assert np.array_equal(got, halo_values(op, THIRD))
    context = CyclesContext(spec=SPEC, contention=True)
    assert OP_MODELS[HaloOp].cycles(op, Ends(read=tensor, written=tensor), context) == halo_cycles(op.plan, SPEC)


def test_works_are_equal_whatever_their_tensors_are_called():
    assert halo() == halo(output="slice3.halo")
    assert hash(halo()) == hash(halo(output="slice3.halo"))
    assert halo() != halo(tiled=True)
    assert halo() != replace(halo(), fp32_dest=True)


def test_padding_that_is_not_zero_is_filled_by_stick():
    op = replace(halo(), filled_by_stick=True)
    tensor = TensorSpec((1, 1, 64, 32), BFLOAT16, Layout.ROW_MAJOR)
    model = OP_MODELS[HaloOp]
    assert model.cycles is not None
    cycles = model.cycles(op, Ends(read=tensor, written=tensor), CyclesContext(spec=SPEC, contention=True))
    assert cycles.cycles == halo_cycles(op.plan, SPEC, filled_by_stick=True).cycles
    assert cycles.cycles > halo_cycles(op.plan, SPEC).cycles
