"""Rows some at a time: all of them in order, never none."""

import pytest

from device.host.pieces import PART_ELEMENTS, parts_of


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


def test_parts_are_as_large_as_asked_for():
    assert list(parts_of(5, 10, 20)) == [slice(0, 2), slice(2, 4), slice(4, 5)]
