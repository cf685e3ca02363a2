import numpy as np
import pytest
from hypothesis import given, strategies as st

from ops.programs.patch_matmul.values import WEIGHTS_FORMATS, canonical_shape, from_canonical, to_canonical

SHAPES = {"IOX": (2, 3, 4, 5), "OIX": (3, 2, 4, 5), "XOI": (4, 5, 3, 2), "XIO": (4, 5, 2, 3)}


@pytest.mark.parametrize("name", WEIGHTS_FORMATS)
def test_every_format_is_a_view_of_one_array(name):
    canonical = np.arange(120).reshape(2, 3, 4, 5)
    stored = from_canonical(canonical, name)
    assert stored.shape == SHAPES[name]
    assert canonical_shape(stored.shape, name) == canonical.shape
    assert np.array_equal(to_canonical(stored, name), canonical)
    assert np.shares_memory(to_canonical(stored, name), canonical)


def test_letters_say_where_an_element_is():
    w = np.arange(120).reshape(2, 3, 4, 5)
    assert from_canonical(w, "XOI")[3, 4, 2, 1] == w[1, 2, 3, 4]
    assert from_canonical(w, "OIX")[2, 1, 3, 4] == w[1, 2, 3, 4]
    assert from_canonical(w, "XIO")[3, 4, 1, 2] == w[1, 2, 3, 4]


@given(st.sampled_from(WEIGHTS_FORMATS), st.lists(st.integers(1, 3), min_size=3, max_size=5))
def test_round_trips_in_any_rank(name, shape):
    stored = np.arange(np.prod(shape)).reshape(shape)
    assert np.array_equal(from_canonical(to_canonical(stored, name), name), stored)
