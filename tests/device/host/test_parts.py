"""Rows some at a time: all of them in order, never none."""

import pytest

from device.host.parts import PART_ELEMENTS, parts_of


@pytest.mark.parametrize(
    ("rows", "columns", "lengths"),
    [
        (5, PART_ELEMENTS // 2, [2, 2, 1]),
        (3, PART_ELEMENTS + 1, [1, 1, 1]),
        (7, 1, [7]),
        (4, 0, [4]),
        (0, 3, []),
    ],
)
def test_parts_hold_every_row_once(rows, columns, lengths):
    parts = [range(rows)[part] for part in parts_of(rows, columns)]
    assert [len(part) for part in parts] == lengths
    assert [row for part in parts for row in part] == list(range(rows))
