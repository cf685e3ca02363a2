import numpy as np
import pytest

from ops.planners.onednn.problem import Names, check_attributes

GOOD = {"strides": [2, 1], "pads_begin": [1, 0], "pads_end": [0, 0], "dilations": [1, 1], "weights_format": "XOI"}


def check(**changed):
    return check_attributes({**GOOD, **changed}, rank=2, names=Names("Op"), formats=("XOI", "IOX"))


def test_defaults_are_those_of_the_text():
    found = check()
    assert (found.auto_pad, found.groups, found.data_format, found.output_padding) == ("none", 1, "NXC", None)


@pytest.mark.parametrize("written", ["same_upper", "SAME_UPPER", "Same_Upper"])
def test_auto_pad_may_be_written_in_any_case(written):
    assert check(auto_pad=written).auto_pad == "same_upper"


@pytest.mark.parametrize("value", [(2, 1), np.array([2, 1]), [np.int64(2), 1]])
def test_lists_may_be_anything_that_holds_integers(value):
    assert check(strides=value).strides == (2, 1)


@pytest.mark.parametrize(
    ("word", "padding"),
    [
        ("none", ((1, 0), (0, 0))),
        ("valid", ((0, 0), (0, 0))),
        ("same_upper", ((0, 1), (1, 2))),
        ("same_lower", ((1, 2), (0, 1))),
    ],
)
def test_padding_by_auto_pad(word, padding):
    assert check(auto_pad=word).padding((3, 4)) == padding


def test_a_kernel_smaller_than_its_stride_needs_no_padding():
    assert check(auto_pad="same_upper", strides=[3, 3]).padding((2, 1)) == ((0, 0), (0, 0))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"strides": None}, r"^Op: strides is required, a list with one integer of at least 1 .*; it is missing$"),
        ({"pads_begin": None}, "^Op: pads_begin is required"),
        ({"pads_end": None}, "^Op: pads_end is required"),
        ({"dilations": None}, "^Op: dilations is required"),
        ({"strides": [1]}, r"^Op: strides must have one entry for each of the 2 spatial axes, not \[1\]$"),
        ({"pads_begin": [1, 1, 1]}, r"^Op: pads_begin must have one entry .* not \[1, 1, 1\]$"),
        ({"pads_end": []}, r"^Op: pads_end must have one entry .* not \[\]$"),
        ({"dilations": [1]}, "^Op: dilations must have one entry"),
        ({"output_padding": [1]}, "^Op: output_padding must have one entry"),
        ({"strides": [0, 1]}, r"^Op: strides must be at least 1 on every axis, not \[0, 1\]$"),
        ({"dilations": [1, -1]}, r"^Op: dilations must be at least 1 on every axis, not \[1, -1\]$"),
        ({"pads_begin": [-1, 0]}, r"^Op: pads_begin must be at least 0 on every axis, not \[-1, 0\]$"),
        ({"pads_end": [0, -2]}, r"^Op: pads_end must be at least 0 on every axis, not \[0, -2\]$"),
        ({"output_padding": [-1, 0]}, "^Op: output_padding must be at least 0"),
        ({"strides": 2}, "^Op: strides must be a list of integers, not 2$"),
        ({"strides": "22"}, "^Op: strides must be a list of integers, not '22'$"),
        ({"strides": [1.5, 1]}, r"^Op: strides must be a list of integers, not \[1.5, 1\]$"),
        ({"strides": [True, 1]}, "^Op: strides must be a list of integers"),
        ({"groups": 0}, "^Op: groups must be at least 1, not 0$"),
        ({"groups": 1.0}, "^Op: groups must be an integer, not 1.0$"),
        ({"auto_pad": "same"}, "^Op: auto_pad must be one of none, same_upper, same_lower, valid, not 'same'$"),
        ({"auto_pad": 3}, "^Op: auto_pad must be one of .*, not 3$"),
        ({"data_format": "NHWC"}, "^Op: data_format must be one of NXC, NCX, not 'NHWC'$"),
        ({"weights_format": "OIHW"}, "^Op: weights_format must be one of XOI, IOX, not 'OIHW'$"),
        ({"kernel": [3]}, "^Op: 'kernel' is no attribute of this operation; its attributes are strides, "),
    ],
)
def test_every_refusal_names_attribute_value_and_rule(changed, message):
    with pytest.raises(ValueError, match=message):
        check(**changed)
