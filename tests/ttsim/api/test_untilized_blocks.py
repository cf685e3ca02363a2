"""Block floats have no rows: untilized, they are bfloat16."""

import numpy as np
import pytest

import ttsim


def test_block_floats_in_rows_are_bfloat16() -> None:
    with ttsim.open_device() as device:
        x = ttsim.Tensor(np.arange(1024, dtype=np.float32).reshape(1, 1, 32, 32), ttsim.bfloat8_b, device)
        rows = ttsim.to_layout(x, ttsim.ROW_MAJOR_LAYOUT)
        assert (rows.dtype, rows.layout) == (ttsim.bfloat16, ttsim.ROW_MAJOR_LAYOUT)
        np.testing.assert_array_equal(rows.to_numpy(), x.to_numpy())


def test_a_data_type_that_is_none_is_refused() -> None:
    x = ttsim.Tensor(np.zeros((1, 1, 32, 32), np.float32), ttsim.bfloat16)
    with pytest.raises(ttsim.ArgumentTypeError, match="dtype must be a DataType"):
        ttsim.to_layout(x, ttsim.TILE_LAYOUT, dtype="x")  # type: ignore[arg-type]
