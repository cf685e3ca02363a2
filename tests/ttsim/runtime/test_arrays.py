import pytest

import ttsim as ttnn


def test_ragged_lists_are_refused():
    with pytest.raises(ttnn.ArgumentError, match=r"^Tensor: the rows of nested lists must be of one length"):
        ttnn.Tensor([[1], [1, 2]], ttnn.bfloat16)
