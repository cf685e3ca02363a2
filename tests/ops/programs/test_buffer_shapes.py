"""Buffers, shards and cores that programs share."""

import pytest

from device.cores import first_cores
from device.numbers.formats import BFLOAT8_B, BFLOAT16
from ops.programs import buffer_shapes
from tests.build import buffer_rows

CORES = first_cores(3, 8, 8)


def test_what_buffers_are_made_of():
    """A tile of bfloat8_b: 1,024 mantissas and 64 exponents."""
    buffers = [
        buffer_shapes.paged_buffer("rows", 3, 80, BFLOAT16, CORES, "tensor"),
        buffer_shapes.tile_buffer("tiles", 2, BFLOAT8_B, CORES),
        buffer_shapes.scratchpad("pad", 96, BFLOAT16, CORES),
        *buffer_shapes.sized_buffers({"a": 32, "b": 64}, BFLOAT16, CORES),
    ]
    assert buffer_rows(buffers, "page_bytes", "view_of", "scratchpad") == [
        ("rows", 240, 3, 80, "tensor", False),
        ("tiles", 2 * 1088, 3, 1088, None, False),
        ("pad", 96, 3, 96, None, True),
        ("a", 32, 3, 32, None, False),
        ("b", 64, 3, 64, None, False),
    ]


@pytest.mark.parametrize(
    ("items", "cores", "used", "core_items"),
    [(1, 64, 1, 1), (64, 64, 64, 1), (65, 64, 33, 2), (128, 64, 64, 2), (150, 64, 50, 3), (5, 1, 1, 5)],
)
def test_all_but_the_last_core_have_as_many(items, cores, used, core_items):
    assert buffer_shapes.spread_evenly(items, cores) == (used, core_items)
