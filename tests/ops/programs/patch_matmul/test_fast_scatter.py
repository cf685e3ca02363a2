import numpy as np
import pytest

from ops.programs.patch_matmul import gather, scatter as fast_scatter
from ops.programs.patch_matmul.scatter import scattered, scatters
from ops.window import convolution_axis, transposed_axis


def upsampling(length, kernel=4):
    return transposed_axis(input_length=length, kernel=kernel, stride=2, padding=(1, 1), output_padding=0, dilation=1)


def test_few_channels_of_a_result_are_added_up():
    assert scatters([upsampling(32)] * 2, 8, np.zeros((4, 4, 64, 3), np.float32))


def test_a_step_cannot_be_added_up():
    axis = convolution_axis(input_length=8, kernel=2, stride=2, padding=(0, 0), dilation=1)
    assert not scatters([axis] * 2, 1, np.zeros((2, 2, 64, 3), np.float32))


def test_a_single_window_is_not_multiplied_at_every_position():
    """Adding products up moves 819,200 numbers, gathering 950,272; but 15 of 16 products would not be needed."""
    axis = convolution_axis(input_length=4, kernel=4, stride=1, padding=(0, 0), dilation=1)
    weights = np.zeros((100, 512, 4, 4), np.float32).transpose(2, 3, 1, 0)  # stored with the taps inside
    assert not scatters([axis] * 2, 8, weights)


@pytest.mark.parametrize("stored", [(0, 1, 2, 3), (2, 3, 0, 1), (3, 2, 0, 1), (0, 1, 3, 2)])
@pytest.mark.parametrize(("ins", "outs"), [(2, 3), (40, 3), (2, 20), (40, 20)])
def test_sums_do_not_depend_on_how_weights_lie_in_memory(monkeypatch, stored, ins, outs):
    monkeypatch.setattr(fast_scatter, "LEAST_TOGETHER", 8)
    monkeypatch.setattr(gather, "LEAST_ROWS", 8)
    rng, axis = np.random.default_rng(1), upsampling(3, 3)
    image = rng.integers(-3, 4, (3, 3, 3, ins)).astype(np.float32)
    weights = rng.integers(-3, 4, (3, 3, ins, outs)).astype(np.float32)
    laid = np.ascontiguousarray(weights.transpose(stored)).transpose(np.argsort(stored))
    bias, result = np.arange(outs, dtype=np.float32), np.empty((3, axis.outputs, axis.outputs, outs), np.float32)
    pieces = list(scattered([axis] * 2, image, laid, bias, result))
    assert len(pieces) == 2
    for piece in pieces:
        piece()
    want = np.broadcast_to(bias, result.shape).copy()
    for y, x, j, k in np.ndindex(axis.outputs, axis.outputs, 3, 3):
        (row, odd_row), (column, odd_column) = divmod(y + j - 1, 2), divmod(x + k - 1, 2)
        if not odd_row and not odd_column and 0 <= row < 3 and 0 <= column < 3:
            want[:, y, x] += image[:, row, column] @ weights[j, k]
    assert np.array_equal(result, want)
