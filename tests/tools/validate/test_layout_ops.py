"""Rows of data movement, understood."""

from pathlib import Path

import pytest

from tools.validate.__main__ import read_rows, require_plausible, validate
from tools.validate.layout_ops import operation, predict_layout_op, read_layout_row
from tools.validate.prediction import NotPredictedError
from tools.validate.report import sum_up

ROWS = Path(__file__).resolve().parents[2] / "data" / "measured" / "layout_ops.csv"


def reshapes(in_shape):
    return [row for row in read_rows(ROWS) if operation(row) == "Reshape" and row["in_shape"] == in_shape]


def test_padded_rows_of_a_reshape_follow_from_both_sides():
    """159 images of 159 x 159, and 25281 rows, are the only ones that fit 25312 and 159 x 160 padded rows."""
    rows = reshapes("1x1x25312x256")
    assert rows
    found = read_layout_row(rows[0]).movement
    # 159 images of five by eight tiles on 20 cores: 318 each, each with 64 pieces but the last of an image.
    assert found.writes.core_pages == 159 * 5 * 8 // 20
    assert 60 < found.segments / found.writes.core_pages <= 64


def test_rows_that_fit_no_other_side_are_refused():
    row = reshapes("1x1x25312x256")[0] | {"out_shape": "1x1x64x96"}
    with pytest.raises(NotPredictedError, match="shapes do not fit each other"):
        read_layout_row(row)


def test_a_commit_may_be_a_number():
    row = read_rows(ROWS)[0] | {"commit": "10216031"}
    require_plausible(row)
    with pytest.raises(NotPredictedError, match="cores must be at most"):
        require_plausible(row | {"cores": "10216031"})


def test_every_kind_is_within_what_is_claimed():
    predicted, _ = validate(ROWS)
    for name in {one.group[0] for one in predicted}:
        own = [one for one in predicted if one.group[0] == name and one.architecture == "blackhole"]
        if len({one.configuration for one in own}) >= 5:
            assert sum_up(own).mean < 0.13, name
    assert predict_layout_op(read_rows(ROWS)[0]).measured_ns > 0
