from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import pytest

import ttsim as ttnn
from ttsim.runtime.types.call import CheckedRecord, Padding, Pair, checked, four, two
from ttsim.runtime.types.tensors import DataType


@checked
def scale(
    *, size: Pair, dtype: DataType | None = None, count: int = 1, flip: bool = False, pad: Padding = (0, 0)
) -> object:
    """A function to check."""
    return two(size), dtype, count, flip, four(pad)


class Knobs(CheckedRecord):
    level: int = 0
    name: DataType
    _retired: ClassVar[Mapping[str, str]] = {"speed": "use level"}


def test_good_arguments_arrive_in_plain_form() -> None:
    assert scale(size=[np.int64(2), 3], count=np.int32(4), flip=np.True_) == ((2, 3), None, 4, True, (0, 0, 0, 0))
    floats = DataType.FLOAT32
    assert scale(size=(1, 1), dtype=floats, pad=(1, 2, 3, 4)) == ((1, 1), floats, 1, False, (1, 2, 3, 4))
    assert scale(size=(1, 1), pad=(1, 2))[-1] == (1, 1, 2, 2)  # type: ignore[index]


@pytest.mark.parametrize(
    ("arguments", "second_line"),
    [
        ({}, "scale: size is missing; it must be 2 non-negative integers"),
        ({"size": 2}, "scale: size must be 2 non-negative integers, not 2; write (2, 2)"),
        ({"size": (1, 2, 3)}, "scale: size must be 2 non-negative integers, not (1, 2, 3)"),
        ({"size": (1.0, 2.0)}, "scale: size must be 2 non-negative integers, not (1.0, 2.0)"),
        ({"size": "12"}, "scale: size must be 2 non-negative integers, not '12'"),
        ({"size": (-1, 2)}, "scale: size must be 2 non-negative integers, not (-1, 2)"),
        ({"size": (1, 2), "pad": (1, 2, 3)}, "scale: pad must be 2 or 4 non-negative integers, not (1, 2, 3)"),
        ({"size": (1, 2), "flip": 1}, "scale: flip must be bool, not 1"),
        ({"size": (1, 2), "count": 1.5}, "scale: count must be non-negative int, not 1.5"),
        ({"size": (1, 2), "count": -1}, "scale: count must be non-negative int, not -1"),
        ({"size": (1, 2), "dtype": "bfloat16"}, "scale: dtype must be DataType or None, not 'bfloat16'"),
        ({"size": (1, 2), "cuont": 1}, "scale: there is no 'cuont'; did you mean 'count'?"),
        ({"size": (1, 2), "zzz": 1}, "scale: there is no 'zzz'"),
    ],
)
def test_refusals_begin_like_the_bindings_then_say_it_in_our_words(
    arguments: dict[str, object], second_line: str
) -> None:
    with pytest.raises(TypeError) as raised:
        scale(**arguments)  # type: ignore[arg-type]
    text = str(raised.value)
    assert text.startswith(f"ttnn.scale(): incompatible function arguments.\n{second_line}\n\nCalled with:\n  scale(")
    assert "\n\nAvailable signatures:\n  scale(*, size: 2 non-negative integers, " in text


def test_the_real_library_names_operations_by_their_modules_and_functions_alone() -> None:
    """As ttnn 0.81.1 does: operations are told anew in Python, functions of the bindings are not."""
    text = []
    for call in (ttnn.experimental.convert_to_hwc, ttnn.prepare_conv_weights, ttnn.Conv2dConfig, ttnn.conv2d, ttnn.add):
        with pytest.raises(TypeError) as raised:
            call(3, 3) if call is ttnn.add else call(weights=3)
        text.append(str(raised.value).splitlines()[0])
    assert text == [
        "ttnn.experimental.convert_to_hwc(): incompatible function arguments.",
        "prepare_conv_weights(): incompatible function arguments. The following argument types are supported:",
        "__init__(): incompatible function arguments. The following argument types are supported:",
        "ttnn.conv2d(): incompatible function arguments.",
        "ttnn.add(): incompatible function arguments.",
    ]


def test_records_check_assignments_too() -> None:
    knobs = Knobs(name=DataType.UINT8)
    knobs.level = 3
    assert knobs == Knobs(name=DataType.UINT8, level=3)
    assert repr(knobs) == "Knobs(level=3,name=DataType::UINT8)"
    with pytest.raises(TypeError, match="level must be non-negative int, not 'x'"):
        knobs.level = "x"  # type: ignore[assignment]
    with pytest.raises(AttributeError, match=r"^'Knobs' object has no attribute 'levle'; did you mean 'level'\?$"):
        knobs.levle = 1  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="Knobs: name is missing"):
        Knobs()  # type: ignore[call-arg]
    assert knobs.level == 3


def test_retired_fields_are_ignored_with_a_warning() -> None:
    with pytest.warns(
        FutureWarning, match="Knobs: speed is gone from the library and ignored here; use level"
    ) as caught:
        knobs = Knobs(name=DataType.UINT8, speed=9)  # type: ignore[call-arg]
    assert caught[0].filename == __file__
    with pytest.warns(FutureWarning, match="speed is gone"):
        knobs.speed = 1  # type: ignore[attr-defined]
    assert not hasattr(knobs, "speed")
