"""What a conv2d program computes, against the definition.

Small integers come out exactly in every format, whatever the order of additions: most tests compare for equality.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from device.host.threads import Shared
from device.matrix_unit.arithmetic import EXACT, FAST
from device.numbers.formats import BFLOAT8_B, FLOAT32
from ops.programs.conv2d import model as values
from ops.programs.conv2d.partition import BLOCK, HEIGHT, WIDTH, ConvOptions
from ops.programs.conv2d.weights import prepare_weights
from tests.ops.programs.conv2d.value_cases import (
    Case,
    arrays,
    cases,
    computed,
    expected,
    integers,
    normal,
    weights_layout,
    work_of,
)

ARITHMETICS = {"fast": FAST, "exact": EXACT}
LARGEST_EXACT = 127  # magnitudes up to here share an exponent exactly in bfloat8_b


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
@settings(max_examples=30, deadline=None)
@given(cases(), st.integers(0, 99))
def test_small_integers_come_out_exactly(arithmetic, case, seed):
    x, w, b = arrays(case, integers(seed))
    want = expected(case, x, w, b)
    assume(np.abs(want).max() <= LARGEST_EXACT)
    got, dtype = computed(case, x, w, b, ARITHMETICS[arithmetic])
    assert dtype == case.out_format.storage
    assert np.array_equal(got, want)


@pytest.mark.parametrize("run_elements", [1, 7, 40, 1000])
def test_runs_are_put_together(run_elements, monkeypatch):
    """However few elements are computed at a time, down to one row."""
    monkeypatch.setattr(values, "RUN_ELEMENTS", run_elements)
    for size in ((9, 2), (2, 9), (1, 1)):
        case = replace(Case(channels=3, outputs=2, kernel=(3, 2)), size=size, batch=2)
        x, w, b = arrays(case, integers(3))
        assert np.array_equal(computed(case, x, w, b, FAST)[0], expected(case, x, w, b))


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
@pytest.mark.parametrize(
    "case",
    [
        Case(channels=32, outputs=100, kernel=(2, 2), out_format=BFLOAT8_B, bias=True),
        Case(channels=32, outputs=40, size=(2, 3), scheme=WIDTH, batch=2),
    ],
    ids=["phases side by side", "phases apart"],
)
@pytest.mark.parametrize("apart", [False, True], ids=["operands together", "operands apart"])
def test_channels_are_put_together(case, arithmetic, apart, monkeypatch):
    """Whatever part of the output channels is computed at a time; 100 of bfloat8_b fill six groups and a quarter.

    Parts of 32 columns are 16 channels of two phases side by side, or 32 of one; by default all channels are one part.
    """
    x, w, b = arrays(case, normal(3))
    whole, _ = computed(case, x, w, b, ARITHMETICS[arithmetic])
    widths = set()

    def shared(make, uses):
        widths.add(make.args[0].stop - make.args[0].start)
        return Shared(make, uses=uses)

    for name, changed in {
        "LEAST_COLUMNS": 32,
        "PART_COLUMNS": 32,
        "Shared": shared,
        "OPERAND_ELEMENTS": 1 if apart else 1 << 20,
    }.items():
        monkeypatch.setattr(values, name, changed)
    assert np.array_equal(computed(case, x, w, b, ARITHMETICS[arithmetic])[0], whole)
    if case.outputs == 100:
        assert widths == ({16} if apart else {112})
    else:
        assert widths == ({32, 8} if apart else {40})


def test_parts_that_are_no_whole_tiles_are_multiplied_as_the_reader_packs_them():
    """Two parts of 48 channels on each of six cores: every block meets one tile of weights for each tap, then zeros."""
    options = ConvOptions(act_block_w_div=2, fp32_dest=True)
    case = Case(
        channels=576, outputs=4, size=(2, 2), kernel=(2, 2), stride=(1, 1), padding=(1, 1, 1, 1), scheme=WIDTH,
        out_format=FLOAT32, options=options,
    )  # fmt: skip
    x, w, b = arrays(case, integers(8))
    matrix = prepare_weights(w, weights_layout(case, work_of(case))).astype(np.float64)
    want = np.zeros(4)
    for core in range(6):
        for part in range(2):
            first = core * 96 + part * 48
            columns = x[0, :, :, first : first + 48].reshape(-1)
            packed = [matrix[tap * 576 + (core * 2 + part) * 32 :][:32, :4] for tap in range(4)]
            want += columns @ np.concatenate([*packed, np.zeros((64, 4))])
    assert np.array_equal(computed(case, x, w, b, FAST)[0].ravel(), want)


def test_weights_are_not_read_for_parts_below_a_tile():
    """Recorded with 32 channels on a core, kernel 2x2 and act_block_w_div 2: the output is the bias alone."""
    options = ConvOptions(act_block_w_div=2)
    case = Case(channels=192, size=(2, 2), kernel=(2, 2), scheme=WIDTH, bias=True, options=options)
    x, w, b = arrays(case, integers(5))
    got, _ = computed(case, x, w, b, FAST)
    assert np.array_equal(got, np.broadcast_to(b, got.shape))


@pytest.mark.parametrize("bias", [False, True])
def test_an_overpadded_frame_holds_nothing(bias):
    case = Case(kernel=(2, 2), stride=(1, 1), padding=(2, 0, 0, 0), bias=bias)
    x, w, b = arrays(case, integers(6))
    got, _ = computed(case, x, w, b, FAST)
    assert got.shape == (1, 3, 5, 8)
    assert np.array_equal(got, np.broadcast_to(b if bias else 0, got.shape))


def test_inputs_that_stay_follow_each_other_where_padding_cuts_some_off():
    """As in the halo's numbering of sticks: rows of three begin with the 1st, 4th and 7th pixel, not with every 4th."""
    case = Case(size=(3, 4), channels=1, outputs=1, kernel=(1, 2), stride=(1, 1), padding=(0, 0, 0, 2))
    x = np.arange(1, 13, dtype=np.float32).reshape(1, 3, 4, 1)
    w = np.array([0, 1], np.float32).reshape(1, 1, 1, 2)
    got, _ = computed(case, x, w, None, FAST)
    assert got[0, ..., 0].tolist() == [[0, 1, 2], [0, 4, 5], [0, 7, 8]]


def test_a_dilation_of_zero_puts_all_taps_on_one_input():
    case = Case(kernel=(2, 2), stride=(1, 1), dilation=(0, 0))
    x, w, b = arrays(case, integers(8))
    got, _ = computed(case, x, w, b, FAST)
    assert np.array_equal(got, np.einsum("nhwc,coij->nhwo", x, w))


def test_replicated_padding():
    """Around the image the frame holds the nearest pixel; a 3x3 window over 4x5 pixels, two positions of padding."""
    case = Case(size=(4, 5), stride=(1, 1), replicate=True, batch=2)
    x, w, b = arrays(case, integers(7))
    frame = np.pad(x, ((0, 0), (2, 2), (2, 2), (0, 0)), mode="edge")
    flipped = w[:, :, ::-1, ::-1]
    windows = np.lib.stride_tricks.sliding_window_view(frame, (3, 3), axis=(1, 2))
    want = np.einsum("nhwcij,coij->nhwo", windows, flipped)
    assert np.array_equal(computed(case, x, w, b, FAST)[0], want)


@pytest.mark.parametrize(("scheme", "channels"), [(HEIGHT, 8), (BLOCK, 16)])
def test_channels_of_several_pixels_share_an_exponent(scheme, channels):
    """8 channels on a core: two kernel columns lie in one group of 16.

    A pixel of 64s makes its neighbor's 0.25 a quarter of the shared unit of 1; beside another 0.25 it would be kept.
    """
    case = Case(
        size=(1, 2), channels=channels, outputs=1, kernel=(1, 2), stride=(1, 1), padding=(0, 0, 1, 1),
        out_format=BFLOAT8_B, options=ConvOptions(fp32_dest=True), scheme=scheme,
    )  # fmt: skip
    x = np.full((1, 1, 2, channels), 0.25, np.float32)
    w = np.zeros((channels, 1, 1, 2), np.float32)
    w[0, 0, 0, 0] = 1.0
    assert computed(case, x, w, None, FAST)[0].tolist() == [[[[0.25]]]]
    x[:, :, 0] = 64.0
    assert computed(case, x, w, None, FAST)[0].tolist() == [[[[0.0]]]]


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_partials_are_rounded_between_kernel_rows(arithmetic):
    """256 from the first kernel row and 1 from the second: 257 needs nine bits, and halves go away from zero.

    One WIDTH block adds both before anything is packed, in a float32 Dst; the third row then takes the 1 away again.
    """
    case = Case(
        size=(3, 1), channels=1, outputs=1, kernel=(3, 1), stride=(1, 1), padding=(2, 2, 0, 0),
        options=ConvOptions(fp32_dest=True), fidelity_phases=4,
    )  # fmt: skip
    x = np.array([256.0, 1.0, -1.0], np.float32).reshape(1, 3, 1, 1)
    w = np.ones((1, 1, 3, 1), np.float32)
    got = {}
    for scheme in (HEIGHT, WIDTH):
        output, _ = computed(replace(case, scheme=scheme), x, w, None, ARITHMETICS[arithmetic])
        got[scheme] = output.item()
    assert got == {HEIGHT: 258.0, WIDTH: 256.0}


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_sums_are_packed_before_the_bias_is_added(arithmetic):
    """257 becomes 258 in bfloat16, and 258 + 1 becomes 260; 257 + 1 would be 258."""
    case = Case(
        size=(1, 1), channels=2, outputs=1, kernel=(1, 1), stride=(1, 1), bias=True, options=ConvOptions(fp32_dest=True)
    )
    x = np.array([256.0, 1.0], np.float32).reshape(1, 1, 1, 2)
    one = np.ones(1, np.float32)
    got, _ = computed(case, x, np.ones((2, 1, 1, 1), np.float32), one, ARITHMETICS[arithmetic])
    assert got.item() == 260.0


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_row_major_float32_makes_one_more_trip(arithmetic):
    """1 + 2**-12, the sum of two steps, is a float32 but no operand of the matrix unit."""
    case = Case(
        size=(1, 1), channels=17, outputs=1, kernel=(1, 1), stride=(1, 1), out_format=FLOAT32,
        in_format=FLOAT32, weight_format=FLOAT32, options=ConvOptions(fp32_dest=True),
    )  # fmt: skip
    x = np.zeros((1, 1, 1, 17), np.float32)
    x[..., 0], x[..., 16] = 1.0, 2.0**-12
    w = np.ones((17, 1, 1, 1), np.float32)
    assert computed(case, x, w, None, ARITHMETICS[arithmetic])[0].item() == 1 + 2.0**-12
    untilized = replace(case, options=replace(case.options, untilize_out=True))
    assert computed(untilized, x, w, None, ARITHMETICS[arithmetic])[0].item() == 1.0


def test_activations_come_after_the_bias():
    case = Case(size=(1, 1), channels=1, outputs=2, kernel=(1, 1), bias=True, activation=("relu", ()))
    x, w, b = np.ones((1, 1, 1, 1)), np.ones((1, 2, 1, 1)), np.array([-3.0, 2.0])
    x, w, b = (v.astype(np.float32) for v in (x, w, b))
    assert computed(case, x, w, b, FAST)[0].ravel().tolist() == [0.0, 3.0]
    squared = replace(case, activation=("square", ()))
    assert computed(squared, x, w, b, FAST)[0].ravel().tolist() == [4.0, 9.0]
