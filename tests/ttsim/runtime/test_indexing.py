"""What stands between brackets."""

import pytest

from device.errors import ArgumentError, ArgumentIndexError, ArgumentTypeError
from ttsim.runtime.operators import box_of

SHAPE = (2, 3, 4)


def test_integers_slices_and_what_is_not_named():
    box = box_of((1, ..., slice(1, None, 2)), SHAPE)
    assert box.corners == ((1, 0, 1), (2, 3, 4), (1, 1, 2))
    assert box.gone == (0,)
    assert box_of(-1, SHAPE).corners == ((1, 0, 0), (2, 3, 4), (1, 1, 1))
    assert box_of(slice(-2, -1), SHAPE).corners == ((-2, 0, 0), (-1, 3, 4), (1, 1, 1))
    assert box_of(..., SHAPE).gone == ()


@pytest.mark.parametrize(
    ("index", "kind", "text"),
    [
        ((..., ...), ArgumentError, r"^Only one ellipsis"),
        ((0, 0, 0, 0), ArgumentIndexError, r"^Too many indices for tensor of dimension 3"),
        ((0, 3), ArgumentIndexError, r"^Index 3 \(converted to 3\) is out of bounds for dimension 1 of size 3"),
        ("a", ArgumentTypeError, r"^Invalid slice type: 'a'"),
    ],
)
def test_what_is_no_index(index, kind, text):
    with pytest.raises(kind, match=text):
        box_of(index, SHAPE)
