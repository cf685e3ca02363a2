"""Sums tap by tap: those of the definition, exactly where numbers are small and whole."""

import numpy as np
import pytest

from device.host.threads import in_turn, side_by_side
from ops.frame.axis import axis_of_windows, convolution_axis, transposed_axis
from ops.programs.patch_matmul import fast_taps
from ops.programs.patch_matmul.fast_taps import add_up_taps, layout_by_taps
from ops.programs.patch_matmul.float64 import _gathered, _products


def transposed(length, kernel, stride, padding, dilation=1):
    return transposed_axis(
        input_length=length, kernel=kernel, stride=stride, padding=(padding, padding), output_padding=0,
        dilation=dilation,
    )  # fmt: skip


def strided(length, kernel, stride, padding, dilation=1):
    return convolution_axis(
        input_length=length, kernel=kernel, stride=stride, padding=(padding, padding), dilation=dilation
    )


AXES = [
    (transposed(40, 4, 2, 1),),
    (transposed(17, 3, 2, 1), transposed(16, 3, 1, 2, 2)),
    (strided(33, 4, 2, 1), strided(34, 3, 2, 0, 2)),
    (transposed(6, 4, 2, 0), transposed(7, 2, 1, 0), strided(9, 3, 1, 1)),
    (transposed(16, 3, 3, 0, 3), transposed(16, 4, 2, 1)),  # two outputs of three meet nothing on the first axis
]


def whole(rng, *shape):
    return rng.integers(-4, 5, shape).astype(np.float32)


@pytest.mark.parametrize("axes", AXES, ids=range(len(AXES)))
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("biased", [True, False])
def test_sums_are_those_of_the_definition(axes, parts, biased, monkeypatch):
    monkeypatch.setattr(fast_taps, "MOST_NEEDLESS", 9.0)
    monkeypatch.setattr(fast_taps, "LEAST_ROWS", 16)
    rng = np.random.default_rng(0)
    image = whole(rng, 2, *(axis.input_length for axis in axes), 32 * parts)
    dense = whole(rng, parts, *(axis.taps for axis in axes), 32, 3)
    bias = whole(rng, 3 * parts) if biased else None
    layout = layout_by_taps.__wrapped__(axes, 2, 32, 3, parts)
    result = np.full((2, *(axis.outputs for axis in axes), 3 * parts), np.nan, np.float32)
    add_up_taps(layout, image, dense, bias, result, side_by_side)
    wanted = _products(_gathered(image.astype(np.float64), axes), dense.astype(np.float64))
    assert np.array_equal(result, wanted if bias is None else wanted + bias)


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (1, 2, 0), (2, 1, 0)])
def test_weights_may_lie_in_any_order(order):
    rng, axes = np.random.default_rng(0), (transposed(300, 3, 1, 1),)
    image, stored = whole(rng, 1, 300, 32), whole(rng, *np.take((3, 32, 5), order))
    weights = stored.transpose(np.argsort(order))
    results = [np.empty((1, 300, 5), np.float32) for _ in range(2)]
    layout = layout_by_taps(axes, 1, 32, 5, 1)
    add_up_taps(layout, image, weights[None], None, results[0], in_turn)
    add_up_taps(layout, image, np.ascontiguousarray(weights)[None], None, results[1], in_turn)
    assert np.array_equal(*results)


def test_runs_hold_every_output_once():
    axes = (transposed(64, 4, 2, 1), transposed(64, 4, 2, 1))
    layout = layout_by_taps(axes, 1, 32, 32, 1)
    seen = np.zeros((1, 128, 128), int)
    for phase in layout.phases:
        for run in phase.runs:
            seen[phase.place][run.box] += 1
    assert (seen == 1).all()
    assert sum(len(phase.runs) for phase in layout.phases) == fast_taps.LEAST_PIECES


@pytest.mark.parametrize(("axes", "batch", "ins"), [
    ((transposed(64, 3, 1, 1),), 1, 31),  # too few channels for BLAS
    ((transposed(64, 2, 2, 0),), 1, 32),  # one tap: patches are the positions themselves
    ((transposed(2, 3, 1, 1),), 1, 32),  # 4 places for 2 outputs
])  # fmt: skip
def test_patches_are_gathered_where_that_is_less(axes, batch, ins):
    assert layout_by_taps(axes, batch, ins, 32, 1) is None


def test_a_layout_is_found_once_for_calls_that_are_alike():
    axes = (axis_of_windows(input_length=64, outputs=63, taps=2, start=0),)
    assert layout_by_taps(axes, 1, 32, 32, 1) is layout_by_taps(axes, 1, 32, 32, 1)
    assert layout_by_taps(axes, 2, 32, 32, 1) is not layout_by_taps(axes, 1, 32, 32, 1)
