import ml_dtypes
import numpy as np
import pytest

import ttsim as ttnn
from ttsim.runtime import storage as arrays
from ttsim.runtime.storage import copied


def test_ragged_lists_are_refused():
    with pytest.raises(ttnn.ArgumentError, match=r"^Tensor: the rows of nested lists must be of one length"):
        ttnn.Tensor([[1], [1, 2]], ttnn.bfloat16)


def test_masked_elements_are_refused():
    masked = np.ma.masked_array(np.ones((2, 2), np.float32), [[True, False], [False, True]])
    with pytest.raises(ttnn.ArgumentError, match=r"2 masked elements, which are no numbers; .* data.filled"):
        ttnn.Tensor(masked, ttnn.bfloat16)
    assert ttnn.Tensor(masked.filled(0), ttnn.bfloat16).to_list() == [[0, 1], [1, 0]]
    assert ttnn.Tensor(np.ma.masked_array(np.ones(2, np.float32))).to_list() == [1, 1]


@pytest.mark.parametrize("large_bytes", [arrays.LARGE_BYTES, 1 << 20])
@pytest.mark.parametrize("shape", [(), (3, 0), (5,), (3, 700, 300)])
def test_copies_are_of_another_type_and_their_own(monkeypatch, shape, large_bytes):
    monkeypatch.setattr(arrays, "LARGE_BYTES", large_bytes)
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(ml_dtypes.bfloat16)
    made = copied(values, np.dtype(np.float32))
    assert made.dtype == np.float32
    assert np.array_equal(made, values.astype(np.float32))
    assert not np.shares_memory(copied(made, made.dtype), made)
