"""Windows over an image, worked out by hand; that any convolution comes out as step by step is tested with programs."""

from dataclasses import replace

import numpy as np
import pytest

from device.host.compiling import numba_installed
from device.host.products import multiplies_numbers
from device.matrix_unit import fast as window_runs
from device.matrix_unit.fast import Trips, WindowBlock, WindowOperands, WindowWeights
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT16, FLOAT32, to_read

pytestmark = pytest.mark.skipif(not numba_installed(), reason="numba is not installed")
PLAIN = Trips(
    fidelity_phases=4, fp32_dest=True, partials=FLOAT32, accumulates=False, untilizes=False, relu=False, made=FLOAT32
)
NARROW = replace(PLAIN, fp32_dest=False, partials=BFLOAT16, made=BFLOAT16)


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Runs are computed at once, however short."""
    if not multiplies_numbers():
        pytest.skip("the processor has no instruction that adds a product")
    monkeypatch.setattr(window_runs, "worth_loading", lambda module, seconds: True)


def outputs(trips, pixels, blocks, weights, shape, *, taps=1, down=1, bias=None, is_cut=True):
    """Rows of outputs of ``shape``, [rows, outputs, columns]; 16 columns, of which the first ones are given."""
    matrix = np.zeros((len(weights), 16), weights.dtype)
    matrix[:, : weights.shape[1]] = weights
    rows = np.arange(len(weights))[None]
    result = np.zeros((*shape, 16), trips.made.storage)
    operands = WindowOperands(
        pixels=pixels, first=0, is_cut=is_cut, blocks=blocks, taps=taps, down=down,
        bias=None if bias is None else np.resize(bias, 16),
        weights=WindowWeights(matrix=matrix, rows=to_read(rows), columns=slice(0, 16)), packs_last=bias is not None,
    )  # fmt: skip
    window_runs.window_runs(trips, 1)(operands, result, result[:, :, None, :])
    return result.astype(np.float32)[:, :, : weights.shape[1]]


@pytest.mark.parametrize("held", [np.float32, BFLOAT16.storage], ids=str)
def test_each_output_meets_pixels_one_further(held):
    """Sums of three neighbors of 0, 1, 2, ... in rows of eight, and twice that; the first pixel is met by none."""
    image = np.arange(16, dtype=np.float32).reshape(2, 8, 1).astype(held)
    weights = np.array([[1, 2]] * 3, np.float32)
    made = outputs(PLAIN, image, [WindowBlock(0, 1, 0, 1)], weights, (2, 5), taps=3)
    assert made[:, :, 0].tolist() == [[6, 9, 12, 15, 18], [30, 33, 36, 39, 42]]
    assert np.array_equal(made[:, :, 1], 2 * made[:, :, 0])


@pytest.mark.parametrize("outputs_of_row", [1, 2, 3, 4])
def test_rows_may_be_shorter_than_taps(outputs_of_row):
    image = np.arange(6, dtype=np.float32).reshape(1, 6, 1)
    made = outputs(PLAIN, image, [WindowBlock(0, 0, 0, 1)], np.ones((3, 1), np.float32), (1, outputs_of_row), taps=3)
    assert made[0, :, 0].tolist() == [3, 6, 9, 12][:outputs_of_row]


def test_blocks_take_their_own_row_and_channels():
    """The second channel of row 0 under both taps and, a hundred times, the first one of row 1."""
    image = np.zeros((2, 4, 2), np.float32)
    image[0, :, 1], image[1, :, 0] = [1, 2, 3, 4], [5, 6, 7, 8]
    weights = np.array([[1, 1], [10, 10], [100, 100], [1000, 0]], np.float32)
    blocks = [WindowBlock(0, 0, 1, 1), WindowBlock(1, 1, 0, 1)]
    made = outputs(PLAIN, image, blocks, weights, (1, 2), taps=2)
    assert made.tolist() == [[[21 + 7600, 21 + 600], [32 + 8700, 32 + 700]]]


def test_weights_are_cut_and_rows_that_are_not_there_are_zeros():
    """LoFi multiplies five bits of 1 + 2^-4 + 2^-5, and a row of the matrix may serve twice or be left out."""
    matrix = np.full((2, 16), [[1 + 2**-4 + 2**-5], [1]], np.float32).astype(BFLOAT16.storage)
    image, result = np.ones((1, 4, 1), np.float32), np.zeros((1, 1, 16), np.float32)
    operands = WindowOperands(
        pixels=image, first=0, is_cut=True, blocks=[WindowBlock(0, 0, 0, 1)], taps=4, down=1, bias=None,
        packs_last=False,
        weights=WindowWeights(matrix=matrix, rows=to_read(np.array([[0, 0, -1, 2]])), columns=slice(0, 16)),
    )  # fmt: skip
    window_runs.window_runs(replace(PLAIN, fidelity_phases=1), 1)(operands, result, result[:, :, None, :])
    assert result[0, 0].tolist() == [2 + 2**-3] * 16


def test_rows_may_be_some_apart():
    image = np.arange(10, dtype=np.float32).reshape(5, 2, 1)
    blocks = [WindowBlock(0, 0, 0, 1)]
    made = outputs(PLAIN, image, blocks, np.ones((1, 2), np.float32), (3, 2), down=2)
    assert made[:, :, 0].tolist() == [[0, 1], [4, 5], [8, 9]]


def test_relu_leaves_no_negative_zero_and_no_negative_number():
    trips = replace(NARROW, relu=True)
    image, blocks = np.array([[[1], [2]]], np.float32), [WindowBlock(0, 0, 0, 1)]
    made = outputs(trips, image, blocks, np.array([[-1, 3]], np.float32), (1, 2), bias=np.array([1, 0], np.float32))
    assert made.tolist() == [[[0, 3], [0, 6]]]
    assert not np.signbit(made).any()


@pytest.fixture(params=[False, True], ids=["one by one", "in pairs"])
def in_pairs(request, monkeypatch):
    monkeypatch.setattr(window_runs, "multiplies_pairs", lambda: request.param)
    return request.param


def paired_outputs(trips, image, blocks, weights, shape, **how):
    """Outputs of bfloat16 numbers."""
    image, weights = (values.astype(BFLOAT16.storage) for values in (image, weights))
    return outputs(trips, image, blocks, weights, shape, **how)


def test_two_channels_are_multiplied_together(in_pairs):
    """Rows of four pixels under two taps: channel 0 under 1 and 10, channel 1 under 100 and 1000; rows two apart."""
    image = np.arange(24, dtype=np.float32).reshape(3, 4, 2) % 7
    weights, blocks = np.array([[1], [100], [10], [1000]], np.float32), [WindowBlock(0, 1, 0, 2)]
    made = paired_outputs(PLAIN, image, blocks, weights, (2, 2), taps=2, down=2)
    expected = [[image[row, x] @ [1, 100] + image[row, x + 1] @ [10, 1000] for x in (1, 2)] for row in (0, 2)]
    assert made[:, :, 0].tolist() == expected


def test_blocks_of_the_same_channels_share_pixels(in_pairs):
    """Channels 2 and 3 of row 0 and of row 1 a pixel further on, then channels 0 and 1 of row 1."""
    image = np.arange(24, dtype=np.float32).reshape(2, 3, 4) % 5
    blocks = [WindowBlock(0, 0, 2, 2), WindowBlock(1, 1, 2, 2), WindowBlock(1, 0, 0, 2)]
    weights = np.array([[1], [2], [4], [8], [16], [32]], np.float32)
    made = paired_outputs(PLAIN, image, blocks, weights, (1, 2))
    met = [[*image[0, x, 2:], *image[1, x + 1, 2:], *image[1, x, :2]] for x in (0, 1)]
    assert made[0, :, 0].tolist() == (np.array(met) @ weights[:, 0]).tolist()


def test_more_outputs_than_are_worked_on_at_a_time(in_pairs, monkeypatch):
    """Six at a time of rows of five: some begin in one row and end in the next."""
    monkeypatch.setattr(window_runs, "OUTPUTS_TOGETHER", 6)
    image = np.arange(30, dtype=np.float32).reshape(3, 5, 2)
    made = paired_outputs(PLAIN, image, [WindowBlock(0, 0, 0, 2)], np.array([[1], [2]], np.float32), (3, 5))
    assert made[:, :, 0].tolist() == (image @ [1, 2]).tolist()


def test_more_pixels_than_are_worked_on_at_a_time(in_pairs, monkeypatch):
    """Two rows of outputs at a time, of which each meets 24 numbers more, and the fifth alone."""
    monkeypatch.setattr(window_runs, "MOST_WORDS", 48 // (1 + in_pairs))
    image = np.arange(144, dtype=np.float32).reshape(12, 6, 2) % 11
    blocks, weights = [WindowBlock(row, 0, 0, 2) for row in (0, 2)], np.array([[1], [2], [3], [4]], np.float32)
    made = paired_outputs(PLAIN, image, blocks, weights, (5, 6), down=2)
    assert made[:, :, 0].tolist() == (image[:-2:2] @ [1, 2] + image[2::2] @ [3, 4])[:5].tolist()


def test_processors_that_round_products_go_step_by_step(monkeypatch):
    monkeypatch.setattr(window_runs, "multiplies_numbers", lambda: False)
    assert window_runs.window_runs(PLAIN, 1) is None


def test_pixels_are_cut_where_they_are_not_yet(in_pairs):
    """LoFi multiplies seven bits of 1 + 2^-6 + 2^-7."""
    trips, image = replace(PLAIN, fidelity_phases=1), np.full((1, 1, 2), 1 + 2**-6 + 2**-7, np.float32)
    blocks, weights = [WindowBlock(0, 0, 0, 2)], np.array([[1], [0]], np.float32)
    assert paired_outputs(trips, image, blocks, weights, (1, 1), is_cut=False).tolist() == [[[1 + 2**-6]]]
    assert paired_outputs(trips, image, blocks, weights, (1, 1)).tolist() == [[[1 + 2**-6 + 2**-7]]]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({"fp32_dest": False}, 258),  # 256, 258 and 260, each rounded half up to eight bits, less the bias of 2
        ({"fp32_dest": False, "accumulates": True}, 258),
        ({"partials": FLOAT32}, 256),
        ({"partials": FLOAT32, "accumulates": True}, 256),
        ({"partials": BFLOAT8_B}, 254),  # its unit is 4, so that 257 is 256, twice
    ],
    ids=str,
)
def test_trips_between_blocks(in_pairs, how, expected):
    """256, 1 and 1 in three blocks."""
    trips = Trips(**{
        "fidelity_phases": 4, "fp32_dest": True, "partials": BFLOAT16, "accumulates": False, "untilizes": False,
        "relu": False, "made": FLOAT32, **how,
    })  # fmt: skip
    image = np.array([[[256, 0, 1, 0, 1, 0]] * 2], np.float32)
    blocks = [WindowBlock(0, 0, channel, 2) for channel in (0, 2, 4)]
    made = paired_outputs(trips, image, blocks, np.ones((6, 1), np.float32), (1, 2), bias=np.float32(-2))
    assert made[0, :, 0].tolist() == [expected] * 2


def test_what_loops_do_not_store_goes_step_by_step():
    trips = Trips(
        fidelity_phases=4,
        fp32_dest=True,
        partials=FLOAT32,
        accumulates=False,
        untilizes=False,
        relu=False,
        made=FLOAT16,
    )
    assert window_runs.window_runs(trips, 1) is None


@pytest.mark.parametrize(
    ("length", "most", "multiple", "size"),
    [
        (64, 128, 16, 64),
        (65, 128, 16, 80),
        (192, 128, 16, 96),
        (11, 20, 1, 11),
        (21, 10, 1, 7),
        (7, 3, 1, 3),
        (5, 0, 1, 1),
    ],
)
def test_parts_are_about_even(length, most, multiple, size):
    """One may be shorter; there is one at least, of which no more is asked than there is."""
    assert window_runs._even(length, most, multiple) == size
