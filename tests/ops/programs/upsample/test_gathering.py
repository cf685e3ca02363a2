"""Lists of sticks to gather, worked by hand."""

import pytest

from ops.programs.upsample import interval_words


@pytest.mark.parametrize(
    ("rows", "width", "repeats", "shard_rows", "intervals"),
    [
        (64, 64, 2, 64, 1),  # a core has one row: each processor one repetition of it
        (7, 7, 1, 49, 1),  # nothing is repeated: either half is one run
        (7, 7, 3, 49, 8),  # 21 rows behind one another; a row's first repetition follows the row before it
        (16, 8, 3, 2, 2),  # 6 sticks of a core: three each, that lie in two shards
        (4, 4, 1, 1, 1),  # one stick: a single processor gathers it
    ],
)
def test_a_list_has_as_many_intervals_as_the_longest_needs(rows, width, repeats, shard_rows, intervals):
    assert interval_words(rows, width, repeats, shard_rows) == 2 * 4 * intervals
