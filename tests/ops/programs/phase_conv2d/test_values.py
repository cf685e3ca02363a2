"""What a program of output phases computes, and the matrix of its weights."""

from itertools import product

import ml_dtypes
import numpy as np
import pytest

from device.matrix_unit.arithmetic import EXACT
from device.memory.memory_config import Layout
from device.numbers.formats import BFLOAT16, FLOAT32
from device.plan import Allocate
from ops.op_model import ValuesContext
from ops.planners.conv.arguments import ComputeConfig
from ops.programs.conv2d.gather import GatheredInput
from ops.programs.conv2d.model import OP_MODELS as CONV2D
from ops.programs.k_blocks import finish, sum_blocks
from ops.programs.phase_conv2d.model import PreparePhaseWeights, phases_convolved, prepared_phase_weights
from tests.build import op_values

CONFIGS = {
    "LoFi": ComputeConfig(fidelity_phases=1),
    "HiFi4": ComputeConfig(fidelity_phases=4),
    "HiFi2, 32-bit Dst": ComputeConfig(fidelity_phases=2, fp32_dest=True),
    "HiFi3, sums in L1": ComputeConfig(fidelity_phases=3, packer_l1_acc=True),
}
GEOMETRIES = {
    "2x2": {},
    "3x3": {"kernel": (3, 3), "padding": (1, 1, 0, 1)},
    "4x3, strides differ": {"kernel": (4, 3), "stride": (2, 3), "padding": (1, 2, 0, 1)},
    "smaller than the stride": {"kernel": (1, 2), "stride": (2, 3)},
}


def numbers(planned, seed=0):
    rng = np.random.default_rng(seed)
    call = planned.call
    sticks = rng.normal(size=(call.batch_size * call.input_height * call.input_width, call.in_channels))
    kernel = rng.normal(size=call.weight.spec.shape)
    row = rng.normal(size=call.out_channels)
    return tuple(one.astype(ml_dtypes.bfloat16) for one in (sticks, kernel, row))


def prepared(planned, kernel):
    return op_values(preparing_op(planned), kernel)


def phase_values(planned, sticks, kernel, row, arithmetic=EXACT):
    context = ValuesContext(spec=planned.spec, arithmetic=arithmetic)
    bias = [] if planned.call.bias is None else [row[None]]
    return phases_convolved(planned.op, [sticks, prepared(planned, kernel), *bias], context)


def frame_values(planned, sticks, kernel, row, arithmetic=EXACT):
    context = ValuesContext(spec=planned.spec, arithmetic=arithmetic)
    bias = [] if planned.call.bias is None else [row[None]]
    inputs = [sticks, prepared(planned, kernel), *bias]
    return CONV2D[0].values(planned.op, inputs, context)


def plainly(planned, sticks, kernel, row):
    """Output by output: zeros where a tap lies outside, K block by K block through the packer, as the device does."""
    call, op = planned.call, planned.op
    (height, width), channels = (call.input_height, call.input_width), call.in_channels
    frame, bias = op.problem.frame, None if call.bias is None else row.astype(np.float32)
    taps = kernel[..., ::-1, ::-1].astype(np.float32)
    images = sticks.astype(np.float32).reshape(-1, height, width, channels)
    result = np.empty((call.batch_size, frame.rows.outputs, frame.columns.outputs, call.out_channels), np.float32)

    def tap_of(image, place, y, x):
        """An input, and the tap of the frame that meets this input under this output."""
        inside = 0 <= y < height and 0 <= x < width
        above, beside = y * call.stride[0] + frame.rows.before, x * call.stride[1] + frame.columns.before
        pixel = images[image, y, x] if inside else np.zeros(channels, np.float32)
        return pixel, taps[:, :, above - place[0], beside - place[1]]

    for part, image in product(op.parts, range(call.batch_size)):
        conv, mode = part.conv, GatheredInput(part.conv, EXACT, planned.spec).mode
        for phase in part.frames:
            down, across = phase.rows, phase.columns
            for m, n in product(range(down.outputs), range(across.outputs)):
                place = (range(frame.rows.outputs)[down.places][m], range(frame.columns.outputs)[across.places][n])
                rows = range(down.kernel if across.kernel else 0)
                blocks = [rows] if down.kernel * across.kernel <= call.kernel_size[1] else [[i] for i in rows]
                blocks = [
                    [
                        tap_of(image, place, m + down.start + i * down.dilation, n + across.start + j * across.dilation)
                        for i, j in product(block, range(across.kernel))
                    ]
                    for block in (blocks if rows else [])
                ]
                parts = [list(zip(*met, strict=True)) for met in blocks]
                operands = [(np.concatenate(a)[None], np.concatenate(b), None) for a, b in parts]
                dst = sum_blocks(
                    operands, len(operands), EXACT, mode, conv.partials_format,
                    accumulates=conv.l1_accumulation, has_bias=bias is not None,
                )  # fmt: skip
                dst = np.zeros((1, call.out_channels), np.float32) if dst is None else dst
                how = {"fp32_dest": mode.fp32_dest, "trip": conv.partials_format}
                result[image, *place] = finish(dst, bias, None, BFLOAT16, EXACT, planned.spec, **how)[0]
    return result.reshape(1, 1, -1, call.out_channels)


@pytest.mark.parametrize(
    ("geometry", "compute", "bias"),
    [
        ("2x2", "LoFi", True),
        ("3x3", "HiFi2, 32-bit Dst", False),
        ("3x3", "HiFi3, sums in L1", True),
        ("4x3, strides differ", "HiFi3, sums in L1", False),
        ("4x3, strides differ", "HiFi4", True),
        ("smaller than the stride", "HiFi4", False),
        ("smaller than the stride", "HiFi2, 32-bit Dst", True),
    ],
)
def test_values_are_exact_to_their_own_order(planned, geometry, compute, bias):
    result = planned((3, 4), **GEOMETRIES[geometry], bias=bias, compute=CONFIGS[compute], batch=2)
    given = numbers(result)
    got = phase_values(result, *given).astype(np.float32)
    assert np.array_equal(got, plainly(result, *given))


@pytest.mark.parametrize("scheme", ["HEIGHT_SHARDED", "BLOCK_SHARDED"])
@pytest.mark.parametrize(("geometry", "compute"), [("2x2", "HiFi2, 32-bit Dst"), ("smaller than the stride", "LoFi")])
def test_where_blocks_are_the_same_rows_are_those_of_the_frame_lowering(planned, scheme, geometry, compute):
    options = {"scheme": scheme, "compute": CONFIGS[compute], "channels": (256, 32), "bias": True} | GEOMETRIES[
        geometry
    ]
    phase, frame = (planned((5, 6), **options, phases=phases) for phases in (True, False))
    given = numbers(phase)
    assert np.array_equal(phase_values(phase, *given), frame_values(frame, *given))


def test_a_float32_in_tiles_is_cut_as_tilizing_cuts_it(planned):
    options = {
        "output_layout": Layout.TILE,
        "made": FLOAT32,
        "compute": ComputeConfig(fidelity_phases=4, fp32_dest=True),
    }
    result = planned((3, 4), **options)
    got = phase_values(result, *numbers(result))
    assert got.dtype == np.float32
    assert np.array_equal(got, EXACT.unpack(got, FLOAT32, fp32_dest=True))


def preparing_op(planned):
    return next(
        step.op for step in planned.plan.steps if isinstance(step, Allocate) and step.tensor == "weight.prepared"
    )


@pytest.mark.parametrize("mirror", [True, False])
def test_rows_are_taps_and_channels_of_the_flipped_kernel(planned, mirror):
    weights = np.arange(32 * 32 * 4, dtype=np.float32).reshape(32, 32, 2, 2) % 251
    op = preparing_op(planned())
    op = PreparePhaseWeights(kernel=op.kernel, mirror=mirror, parts=op.parts)
    matrix = prepared_phase_weights(op, weights)[0, 0].astype(np.float32)
    taps = weights[..., ::-1, ::-1] if mirror else weights
    assert np.array_equal(matrix, np.concatenate([taps[:, :, i, j] for i in (0, 1) for j in (0, 1)]))
