import pytest

from ops.planners.onednn.checks import Names, check_attributes

GOOD = {"strides": [2, 1], "pads_begin": [1, 0], "pads_end": [0, 0], "dilations": [1, 1], "weights_format": "XOI"}


def check(**changed):
    return check_attributes({**GOOD, **changed}, rank=2, names=Names("Op"), formats=("XOI", "IOX"))


def test_defaults_are_those_of_the_text():
    found = check()
    assert (found.auto_pad, found.groups, found.data_format, found.output_padding) == ("none", 1, "NXC", None)


@pytest.mark.parametrize(
    ("word", "padding"),
    [
        ("none", ((1, 0), (0, 0))),
        ("valid", ((0, 0), (0, 0))),
        ("same_upper", ((0, 1), (1, 2))),
        ("Same_Upper", ((0, 1), (1, 2))),
        ("same_lower", ((1, 2), (0, 1))),
    ],
)
def test_padding_by_auto_pad(word, padding):
    assert check(auto_pad=word).padding((3, 4)) == padding


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"strides": 2}, "^Op: strides must be a list of integers, not 2$"),
        ({"strides": "22"}, "^Op: strides must be a list of integers, not '22'$"),
        ({"strides": [1.5, 1]}, r"^Op: strides must be a list of integers, not \[1.5, 1\]$"),
        ({"strides": [True, 1]}, "^Op: strides must be a list of integers"),
        ({"groups": 1.0}, "^Op: groups must be an integer, not 1.0$"),
        ({"groups": True}, "^Op: groups must be at least 1, not True$"),
        ({"auto_pad": 3}, "^Op: auto_pad must be one of .*, not 3$"),
        ({"kernel": [3]}, "^Op: 'kernel' is no attribute of this operation; its attributes are strides, "),
    ],
)
def test_every_refusal_names_attribute_value_and_rule(changed, message):
    with pytest.raises(ValueError, match=message):
        check(**changed)
