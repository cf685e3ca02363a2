"""Outputs at once, worked out by hand; that any convolution comes out as step by step is tested with the programs."""

import numpy as np
import pytest

from device.host.compiling import numba_installed
from device.host.products import sgemm_address
from device.matrix_unit import fused
from device.matrix_unit.fused import KLoop, MetPixels, RunOperands
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT16, FLOAT32, to_read

needs_loops = pytest.mark.skipif(
    not numba_installed() or sgemm_address() is None, reason="numba is not installed, or numpy has another BLAS"
)


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Runs are computed at once, however short."""
    monkeypatch.setattr(fused, "worth_loading", lambda module, seconds: True)


def k_loop(made, **changes):
    return KLoop(**{
        "fidelity_phases": 4, "fp32_dest": False, "partials": BFLOAT16, "accumulates": False, "untilizes": False,
        "relu": False, "out_format": made, **changes,
    })  # fmt: skip


WIDE = {"fp32_dest": True, "partials": FLOAT32}


def met(taps, blocks, *, first=0, down=0, across=1):
    return MetPixels(
        first=first, down=down, across=across, taps=to_read(np.array(taps, np.int64)),
        blocks=to_read(np.array(blocks, np.int64)),
    )  # fmt: skip


def outputs(how, image, pixels, weights, bias=None, *, shape=(1, 2), is_cut=True):
    """Rows of outputs [rows, outputs, columns], every other column of a buffer of zeros."""
    result = np.zeros((*shape, 2, weights.shape[1]), how.out_format.storage)
    run = RunOperands(
        image=image, is_cut=is_cut, met=pixels, weights=weights, bias=bias, packs_last=bias is not None
    )  # fmt: skip
    fused.fused_loop(how, 1)(run, result, result[:, :, 1:, :])
    assert not result[:, :, 0].any()
    return result[:, :, 1].astype(np.float32)


def of_rows(how, activations, weights, depths, bias=None):
    """Outputs of one pixel each, whose channels are all K blocks one after the other."""
    ends = np.cumsum(depths)
    taps = [[end - depth, 0, depth] for depth, end in zip(depths, ends, strict=True)]
    blocks = [[depth, n, n + 1, 1] for n, depth in enumerate(depths)]
    pixels = met(taps, blocks, across=activations.shape[1])
    return outputs(how, activations[None], pixels, weights, bias)[0].tolist()


@needs_loops
def test_partial_sums_are_cut_and_a_bias_is_added_after_the_last_trip():
    """1 + 2^-12 loses its last bit when a float32 sum is fetched back to a 32-bit Dst."""
    how = k_loop(FLOAT32, **WIDE)
    activations, weights = np.array([[1 + 2**-12], [2]], np.float32), np.array([[1, 2]], np.float32)
    assert of_rows(how, activations, weights, [1]) == [[1 + 2**-12, 2 + 2**-11], [2, 4]]
    assert of_rows(how, activations, weights, [1], np.array([1, -1], np.float32)) == [[2, 1], [3, 3]]


@needs_loops
def test_negative_outputs_are_zeros_and_have_no_part_in_a_shared_exponent():
    """Beside -64 there would be whole numbers; without it 1.515625 stays."""
    weights = np.zeros((1, 16), np.float32)
    weights[0, :2] = -64, 1.515625
    first, _ = of_rows(k_loop(BFLOAT8_B, relu=True), np.array([[1], [1]], np.float32), weights, [1])
    assert first == [0, 1.515625] + [0] * 14
    result = of_rows(
        k_loop(BFLOAT16, relu=True), np.array([[1], [2]], np.float32), np.array([[-1, 3]], np.float32), [1]
    )
    assert result == [[0, 3], [0, 6]]
    assert not np.signbit(result).any()


@needs_loops
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
def test_trips_between_blocks(how, expected):
    """256, 1 and 1 in three blocks; 16 columns are a group."""
    activations, weights = np.array([[256, 1, 1]] * 2, np.float32), np.ones((3, 16), np.float32)
    result = of_rows(
        k_loop(FLOAT32, **{"fp32_dest": True, **how}), activations, weights, [1] * 3, np.float32([-2] * 16)
    )
    assert result == [[expected] * 16] * 2


@needs_loops
def test_pixels_are_cut_where_they_are_not_yet():
    """LoFi multiplies seven bits of 1 + 2^-6 + 2^-7."""
    image, weights = np.full((1, 2, 1), 1 + 2**-6 + 2**-7, np.float32), np.ones((1, 1), np.float32)
    how, pixels = k_loop(FLOAT32, fidelity_phases=1, **WIDE), met([[0, 0, 1]], [[1, 0, 1, 1]])
    for held in (np.float32, BFLOAT16.storage):
        for is_cut, expected in ((False, 1 + 2**-6), (True, 1 + 2**-6 + 2**-7)):
            result = outputs(how, image.astype(held), pixels, weights, is_cut=is_cut)
            assert result.tolist() == [[[expected]] * 2]


@needs_loops
@pytest.mark.parametrize("chunk", [1, 1 << 14])
def test_taps_of_blocks_have_their_places(monkeypatch, chunk):
    """Pixels of two channels in rows of five, outputs two rows and one pixel apart, from row 1 on.

    Block 0 is channel 1 of two pixels side by side with zeros between them, block 1 channel 0 a row further.
    """
    monkeypatch.setattr(fused, "CHUNK_ELEMENTS", chunk)
    image = np.arange(60, dtype=np.float32).reshape(6, 5, 2) % 7
    pixels = met([[1, 0, 1], [3, 2, 1], [10, 0, 1]], [[3, 0, 2, 0], [1, 2, 3, 1]], first=10, down=20, across=2)
    weights = np.array([[1], [7], [100], [10000]], np.float32)
    result = outputs(k_loop(FLOAT32, **WIDE), image, pixels, weights, shape=(2, 3))
    expected = [
        [image[row, x, 1] + 100 * image[row, x + 1, 1] + 10000 * image[row + 1, x, 0] for x in range(3)]
        for row in (1, 3)
    ]
    assert result[..., 0].tolist() == expected


def test_what_the_loop_does_not_store_goes_step_by_step(monkeypatch):
    assert fused.fused_loop(k_loop(FLOAT16), 1) is None
    monkeypatch.setattr(fused, "sgemm_address", lambda: None)
    assert fused.fused_loop(k_loop(BFLOAT16), 1) is None
