import pytest
from hypothesis import given, strategies as st

from device.numbers.formats import div_up, round_up


@given(st.integers(0, 10**9), st.integers(1, 10**5))
def test_smallest_multiple(value, multiple):
    rounded = round_up(value, multiple)
    assert rounded % multiple == 0
    assert value <= rounded < value + multiple
    assert div_up(value, multiple) * multiple == rounded


@pytest.mark.parametrize(("value", "expected"), [(0, 0), (1, 32), (32, 32), (33, 64)])
def test_tiles(value, expected):
    assert round_up(value, 32) == expected
