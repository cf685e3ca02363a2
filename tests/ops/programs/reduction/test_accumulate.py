"""Numbers of scans and added images, by hand."""

from copy import copy

import numpy as np
import pytest

import ttsim


def tensor_of(numbers, device, dtype="bfloat16"):
    return ttsim.Tensor(np.array(numbers, np.float32), ttsim.DataType[dtype.upper()], device, ttsim.TILE_LAYOUT)


@pytest.mark.parametrize(
    ("name", "options", "result"),
    [
        ("cumsum", {}, [[1, 3, 7]]),
        ("cumsum", {"reverse_order": True}, [[7, 6, 4]]),
        ("cumprod", {}, [[1, 2, 8]]),
        ("cumsum", {"dtype": ttsim.int32}, [[1, 3, 7]]),
    ],
)
def test_scans(name, options, result):
    with ttsim.open_device() as device:
        scanned = getattr(ttsim, name)(tensor_of([[1, 2, 4]], device), -1, **options)
        assert scanned.to_numpy().tolist() == result


def test_a_scan_gives_its_buffer_to_a_tensor_of_the_callers():
    with ttsim.open_device() as device:
        tensor, out = (tensor_of([numbers], device) for numbers in ([1, 2, 4], [9, 9, 9]))
        sharer = copy(out)
        result = ttsim.cumsum(tensor, -1, out=out)
        assert (out.to_list(), sharer.to_list()) == ([[1, 3, 7]], [[9, 9, 9]])
        assert out.buffer is result.buffer


def test_compensated_sums_keep_what_additions_of_float32_lose():
    numbers = [[2.0**24], [1.0], [1.0]]
    with ttsim.open_device() as device:
        tensor = tensor_of(numbers, device, "float32")
        assert ttsim.cumsum(tensor, 0).to_numpy()[-1, 0] == 2.0**24 + 2
        assert ttsim.cumsum(tensor, 0, disable_compensated_sum=True).to_numpy()[-1, 0] == 2.0**24


def test_images_with_the_padding_of_their_tiles():
    with ttsim.open_device() as device:
        total = ttsim.experimental.fast_reduce_nc(tensor_of(np.full((3, 1, 2, 2), 1.5), device), dims=[0]).to_numpy()
    assert total.shape == (1, 1, 32, 32)
    assert total[0, 0, :2, :3].tolist() == [[4.5, 4.5, 0.0]] * 2
