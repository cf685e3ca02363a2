import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from device.matrix_unit.arithmetic import EXACT, FAST
from device.numbers.formats import BFLOAT16, FLOAT16, FLOAT32
from device.spec.device_spec import load_spec
from ops.op_model import ValuesContext
from ops.op_models import OP_MODELS
from ops.planners.onednn.plan import frame_axis, strided_axis
from ops.programs.patch_matmul import values
from ops.programs.patch_matmul.gather import bundle_count
from ops.programs.patch_matmul.op import FillRows, Patches, Precision, SumSections, slicing_of
from ops.programs.patch_matmul.plan import patch_matmul_work, pixel_matmul_work
from ops.reference import conv_transpose, plan_geometry
from ops.window import axis_of_windows
from tests.gradients import data_gradient, weights_gradient

SPEC = load_spec("wormhole_n150")
READINGS = [ValuesContext(spec=SPEC, arithmetic=arithmetic) for arithmetic in (FAST, EXACT)]
TOLERANCE = {FLOAT32: 2e-6, FLOAT16: 2e-3, BFLOAT16: 8e-3}


@st.composite
def problems(draw):
    axes = draw(st.integers(1, 3))
    sizes = {1: 9, 2: 5, 3: 3}[axes]
    geometry = plan_geometry(
        [draw(st.integers(1, sizes)) for _ in range(axes)],
        [draw(st.integers(1, 3)) for _ in range(axes)],
        stride=[draw(st.integers(1, 3)) for _ in range(axes)],
        pad_before=[draw(st.integers(0, 1)) for _ in range(axes)],
        pad_after=[draw(st.integers(0, 1)) for _ in range(axes)],
        output_padding=[draw(st.integers(0, 2)) for _ in range(axes)],
        dilation=[draw(st.integers(1, 2)) for _ in range(axes)],
    )
    groups = draw(st.sampled_from([1, 1, 2, 3]))
    return geometry, groups, groups * draw(st.integers(1, 5)), groups * draw(st.integers(1, 20))


def numbers(rng, shape, data_format):
    return rng.standard_normal(shape).astype(np.float32).astype(data_format.storage)


def close(got, want, data_format):
    scale = max(np.abs(want).max(initial=0), 1e-30)
    return np.abs(got.astype(np.float64) - want).max(initial=0) <= TOLERANCE[data_format] * scale


def taps_first(weights, groups, *, back):
    """[groups, *taps, in, out] of weights [I, O / groups, *kernel]."""
    grouped = weights.reshape(groups, -1, *weights.shape[1:]).astype(np.float32)
    moved = np.moveaxis(grouped, (1, 2), (-2, -1))
    return moved.swapaxes(-1, -2) if back else moved


@pytest.mark.parametrize("context", READINGS, ids=["fast", "exact"])
@pytest.mark.parametrize("data_format", [FLOAT32, FLOAT16, BFLOAT16], ids=str)
@given(problem=problems(), seed=st.integers(0, 9))
@settings(max_examples=6, deadline=None)  # of six pairs of arithmetic and format
def test_all_directions_agree_with_the_definition(context, data_format, problem, seed):
    geometry, groups, ins, outs = problem
    if min(geometry.output_shape) < 1:
        return
    rng, batch, slicing = np.random.default_rng(seed), 2, slicing_of(data_format, Precision.IEEE)
    src = numbers(rng, (batch, ins, *geometry.input_shape), data_format)
    weights = numbers(rng, (ins, outs // groups, *geometry.kernel_shape), data_format)
    diff = numbers(rng, (batch, outs, *geometry.output_shape), data_format)
    bias = numbers(rng, (outs,), data_format)
    bundles = bundle_count(groups, ins, outs)
    common = {"slicing": slicing, "out_format": data_format, "spec": SPEC}

    axes = tuple(frame_axis(axis) for axis in geometry.axes)
    patches = Patches(batch=batch, axes=axes, channels=ins, groups=groups, bundles=bundles)
    op = patch_matmul_work(patches, out_channels=outs, out_shape=geometry.output_shape, bias=True, **common)
    mirrored = taps_first(np.flip(weights, tuple(range(2, weights.ndim))), groups, back=False)
    added = bias.astype(np.float32)
    got = values.patch_matmul(op, [np.moveaxis(src, 1, -1), mirrored, added, None], context)
    assert close(np.moveaxis(got, -1, 1), conv_transpose(src, weights, geometry, bias=bias, groups=groups), data_format)

    axes = tuple(strided_axis(axis) for axis in geometry.axes)
    patches = Patches(batch=batch, axes=axes, channels=outs, groups=groups, bundles=bundles)
    op = patch_matmul_work(patches, out_channels=ins, out_shape=geometry.input_shape, bias=False, **common)
    got = values.patch_matmul(op, [np.moveaxis(diff, 1, -1), taps_first(weights, groups, back=True), None], context)
    assert close(np.moveaxis(got, -1, 1), data_gradient(diff, weights, geometry, groups=groups), data_format)

    op = pixel_matmul_work(patches, channels=ins, **common)
    sums = values.pixel_matmul(op, [np.moveaxis(src, 1, -1), np.moveaxis(diff, 1, -1)], context)
    if op.sections > 1:
        done = SumSections(sections=op.sections, rows=ins, columns=1, out_format=data_format)
        sums = values.sum_sections(done, sums)[None]
    want = taps_first(weights_gradient(src, diff, geometry, groups=groups), groups, back=False)
    assert close(sums[0], want, data_format)


def test_sections_are_added_in_float32_and_rounded_once():
    op = SumSections(sections=3, rows=1, columns=1, out_format=BFLOAT16)
    half = 2.0**-8  # of the last place of 1.0: one alone would be rounded away, two are a whole place
    total = values.sum_sections(op, np.array([[[1.0]], [[half]], [[half]]], np.float32))
    assert total.dtype == BFLOAT16.storage
    assert total.astype(np.float32) == 1.0 + 2.0**-7


@pytest.mark.parametrize("bias", [False, True])
def test_rows_are_filled_in_what_others_wrote(bias):
    target = np.full((1, 3, 1), 7, np.float32)
    middle = axis_of_windows(input_length=3, outputs=1, kernel=0, start=0, output_offset=1)
    op = FillRows(batch=1, axes=(middle,), out_channels=1, out_shape=(3,), bias=bias, out_format=FLOAT32)
    added = [np.array([5], np.float32)] if bias else []
    got = OP_MODELS[FillRows].values(op, [*added, target], ValuesContext(spec=SPEC, arithmetic=EXACT))
    assert got is target
    assert got.ravel().tolist() == [7, 5 if bias else 0, 7]
