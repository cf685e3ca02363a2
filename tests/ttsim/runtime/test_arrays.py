import numpy as np
import pytest

import ttsim as ttnn


def test_ragged_lists_are_refused():
    with pytest.raises(ttnn.ArgumentError, match=r"^Tensor: the rows of nested lists must be of one length"):
        ttnn.Tensor([[1], [1, 2]], ttnn.bfloat16)


def test_masked_elements_are_refused():
    masked = np.ma.masked_array(np.ones((2, 2), np.float32), [[True, False], [False, True]])
    with pytest.raises(ttnn.ArgumentError, match=r"2 masked elements, which are no numbers; .* data.filled"):
        ttnn.Tensor(masked, ttnn.bfloat16)
    assert ttnn.Tensor(masked.filled(0), ttnn.bfloat16).to_list() == [[0, 1], [1, 0]]
    assert ttnn.Tensor(np.ma.masked_array(np.ones(2, np.float32))).to_list() == [1, 1]
