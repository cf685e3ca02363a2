"""What the table says of the patch programs."""

import numpy as np
import pytest

from device.matrix_unit.arithmetic import EXACT, FAST
from device.numbers.formats import FLOAT32
from device.spec.device_spec import load_spec
from ops.op_model import ValuesContext
from ops.op_models import OP_MODELS
from ops.programs.patch_matmul.op import (
    FillRows,
    Patches,
    PatchMatmul,
    PixelMatmul,
    Precision,
    PrepareBias,
    PrepareSticks,
    SumSections,
    slicing_of,
)
from ops.programs.patch_matmul.plan import patch_matmul_work, pixel_matmul_work
from ops.window import PaddedAxis, axis_of_windows

SPEC = load_spec("wormhole_n150")
AXIS = PaddedAxis(input_length=3, before=0, after=0, kernel=1)
PATCHES = Patches(batch=2, axes=(AXIS,), channels=2, groups=1, bundles=1)
COMMON = {"slicing": slicing_of(FLOAT32, Precision.DEVICE, fidelity_phases=3), "out_format": FLOAT32, "spec": SPEC}
each_arithmetic = pytest.mark.parametrize("arithmetic", [EXACT, FAST], ids=lambda one: one.name)


@each_arithmetic
@pytest.mark.parametrize("shape", [(2, 3, 2), (1, 1, 6, 2), (12,)])
@pytest.mark.parametrize("bias", [False, True])
def test_an_image_may_have_been_flattened(arithmetic, shape, bias):
    op = patch_matmul_work(PATCHES, out_channels=1, out_shape=(3,), bias=bias, **COMMON)
    image, weights = np.arange(12, dtype=np.float32), np.array([10, 1], np.float32).reshape(1, 1, 2, 1)
    added = [np.array([100], np.float32)] if bias else []
    context = ValuesContext(spec=SPEC, arithmetic=arithmetic)
    got = OP_MODELS[PatchMatmul].values(op, [image.reshape(shape), weights, *added, None], context)
    assert got.shape == (2, 3, 1)
    assert got.ravel().tolist() == [100 * bias + one for one in (1, 23, 45, 67, 89, 111)]


@each_arithmetic
def test_pixels_times_patches_are_summed(arithmetic):
    op = pixel_matmul_work(PATCHES, channels=1, **COMMON)
    image, other = np.ones((2, 3, 1), np.float32), np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    context = ValuesContext(spec=SPEC, arithmetic=arithmetic)
    got = OP_MODELS[PixelMatmul].values(op, [image, other], context)
    assert got.ravel().tolist() == [30, 36]


def test_both_multiply_in_the_phases_of_their_matmul():
    patch = patch_matmul_work(PATCHES, out_channels=1, out_shape=(3,), bias=False, **COMMON)
    pixel = pixel_matmul_work(PATCHES, channels=1, **COMMON)
    assert [OP_MODELS[type(op)].fidelity_phases(op) for op in (patch, pixel)] == [3, 3]


@pytest.mark.parametrize("bias", [False, True])
def test_rows_are_filled_in_what_others_wrote(bias):
    target = np.full((1, 3, 1), 7, np.float32)
    middle = axis_of_windows(input_length=3, outputs=1, kernel=0, start=0, output_offset=1)
    op = FillRows(batch=1, axes=(middle,), out_channels=1, out_shape=(3,), bias=bias, out_format=FLOAT32)
    added = [np.array([5], np.float32)] if bias else []
    got = OP_MODELS[FillRows].values(op, [*added, target], ValuesContext(spec=SPEC, arithmetic=EXACT))
    assert got is target
    assert got.ravel().tolist() == [7, 5 if bias else 0, 7]


def test_what_is_summed_and_prepared():
    context = ValuesContext(spec=SPEC, arithmetic=EXACT)
    sums = np.array([[1.0], [2.0]], np.float32)
    op = SumSections(sections=2, rows=1, columns=1, out_format=FLOAT32)
    assert OP_MODELS[SumSections].values(op, [sums], context).tolist() == [3.0]
    image = np.arange(6).reshape(1, 2, 3)
    assert OP_MODELS[PrepareSticks].values(PrepareSticks(True), [image], context) is image
    assert OP_MODELS[PrepareSticks].values(PrepareSticks(False), [image], context).tolist() == [
        [[0, 3], [1, 4], [2, 5]]
    ]
    row = OP_MODELS[PrepareBias].values(PrepareBias(), [np.array([[[[1, 2]]]])], context)
    assert (row.dtype, row.tolist()) == (np.float32, [1.0, 2.0])
