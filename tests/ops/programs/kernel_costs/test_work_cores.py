"""Work dealt to cores."""

import pytest

from ops.programs.buffer_shapes import dealt_evenly


@pytest.mark.parametrize(
    ("items", "cores", "used", "core_items"),
    [(1, 64, 1, 1), (64, 64, 64, 1), (65, 64, 33, 2), (128, 64, 64, 2), (150, 64, 50, 3), (5, 1, 1, 5)],
)
def test_all_but_the_last_core_have_as_many(items, cores, used, core_items):
    assert dealt_evenly(items, cores) == (used, core_items)
