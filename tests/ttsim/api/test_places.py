"""Places of elements: numbers by numpy, device operations as ttnn 0.81.1 runs them."""

import numpy as np
import pytest

import ttsim as ttnn
from tests.ttsim.api.calls import operations, put

PLACES = (ttnn.uint32, ttnn.ROW_MAJOR_LAYOUT)


@pytest.mark.parametrize(
    ("words", "axis", "shape", "steps"),
    [
        ("2x3x7 rows", -1, (1, 2, 3), ["ArgMax"]),
        ("2x3x7 tile", 1, (2, 7), ["ArgMax"]),
        ("2x3x7 tile", 0, (3, 7), ["ArgMaxNC", "UntilizeWithUnpadding", "Copy"]),  # this program makes its tensor
    ],
)
def test_places_are_written_into_the_tensor_of_the_caller(device, words, axis, shape, steps):
    x = put(device, words)
    target = ttnn.zeros(shape, *PLACES, device, ttnn.L1_MEMORY_CONFIG)

    def call():
        return ttnn.argmax(x, axis, output_tensor=target)

    assert operations(call) == steps
    assert call().buffer_address() == target.buffer_address()
    assert np.array_equal(target.to_numpy().ravel(), x.to_numpy().argmax(axis).ravel())


def test_the_largest_of_one_number_is_the_first(device):
    number = ttnn.full((), 3.0, layout=ttnn.TILE_LAYOUT, device=device)
    place = ttnn.argmax(number, dim=-1)
    assert (place.shape, place.dtype, place.layout, place.to_list()) == ([], ttnn.uint32, ttnn.TILE_LAYOUT, 0)
    with pytest.raises(ttnn.DeviceError, match=r"^argmax: Dimension out of range for scalar tensor \(expected 0 or -1"):
        ttnn.argmax(number, dim=1)
