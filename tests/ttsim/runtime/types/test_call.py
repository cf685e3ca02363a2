import inspect
import re
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import pytest

import ttsim
from ttsim.runtime.types.call import (
    Call,
    CheckedRecord,
    Padding,
    Pair,
    checked,
    four,
    function_of,
    param,
    required_sides,
    two,
)
from ttsim.runtime.types.docs import texts_of
from ttsim.runtime.types.tensors import DataType


class Window(Call):
    size: int = param("Rows.", kw_only=False)
    step: int = param("From window to window.", default=1)


class Slide(Window, name="slide", parameters="size around step name"):
    """A window that slides.

    Returns:
        All that it was given.

    Raises:
        DeviceError: No room.
    """

    around: Padding = param("Zeros around.", default=(0, 0), kw_only=False)
    name: str = param("A name that is long enough, with what is said of it, to need another line of its own here.")
    step: int = param("From place to place.", default=2)

    def run(self) -> dict[str, object]:
        """What it was given."""
        return vars(self)


slide = function_of(Slide)


def test_a_function_has_the_fields_of_its_call_in_the_order_that_is_listed() -> None:
    assert slide.__name__ == "slide"
    assert slide.__module__ == __name__
    text = inspect.signature(slide)
    assert list(text.parameters) == list(Slide.parameters()) == ["size", "around", "step", "name"]
    keyword_only = [parameter.kind is parameter.KEYWORD_ONLY for parameter in text.parameters.values()]
    assert keyword_only == [False, False, True, True]
    defaults = {name: each.default for name, each in text.parameters.items() if each.default is not each.empty}
    assert defaults == {"around": (0, 0), "step": 2}
    assert text.return_annotation == dict[str, object]


def test_its_docstring_holds_their_texts_and_the_usual_errors() -> None:
    assert inspect.getdoc(slide) == (
        "A window that slides.\n\nArgs:\n    size: Rows.\n    around: Zeros around.\n    step: From place to place.\n"
        "    name: A name that is long enough, with what is said of it, to need another line of its own here.\n\n"
        "Returns:\n    All that it was given.\n\n"
        "Raises:\n    ArgumentTypeError: An argument is unknown, missing or of the wrong type.\n"
        "    ArgumentError: Arguments contradict each other, or need a feature that is not simulated.\n"
        "    DeviceError: No room.\n"
        "    OutOfMemoryError: A buffer does not fit into the free part of its memory."
    )


def test_a_config_tells_its_fields_and_keeps_their_defaults() -> None:
    fields = texts_of(inspect.getdoc(ttsim.Conv2dSliceConfig) or "", "Attributes")
    assert fields == {
        "slice_type": "The axis of the slices, or no slices.",
        "num_slices": "Number of slices; 0 for the fewest that fit.",
    }
    assert ttsim.Conv2dSliceConfig.num_slices == 0
    assert not hasattr(ttsim.Conv2dSliceConfig, "slice_type")


@checked
def scale(
    *,
    size: Pair,
    dtype: DataType | None = None,
    count: int = 1,
    flip: bool = False,
    pad: Padding = (0, 0),
    factor: float = 1.0,
) -> object:
    """A function to check."""
    return two(size), dtype, count, flip, four(pad), *[factor] * (factor != 1)


class Knobs(CheckedRecord):
    level: int = 0
    name: DataType
    _retired: ClassVar[Mapping[str, str]] = {"speed": "use level"}


def test_good_arguments_arrive_in_plain_form() -> None:
    assert slide(3, [1, 2], name="a") == {"size": 3, "around": (1, 2), "step": 2, "name": "a"}
    assert slide(size=3, name="a", step=5) == {"size": 3, "around": (0, 0), "step": 5, "name": "a"}
    assert scale(size=[np.int64(2), 3], count=np.int32(4), flip=np.True_) == ((2, 3), None, 4, True, (0, 0, 0, 0))
    floats = DataType.FLOAT32
    assert scale(size=(1, 1), dtype=floats, pad=(1, 2, 3, 4)) == ((1, 1), floats, 1, False, (1, 2, 3, 4))
    assert scale(size=(1, 1), pad=(1, 2))[-1] == (1, 1, 2, 2)  # type: ignore[index]


@pytest.mark.parametrize("factor", [2, 2.0, np.float32(2), np.int64(2)])
def test_all_real_numbers_are_floats(factor):
    number = scale(size=(1, 1), factor=factor)[-1]  # type: ignore[index]
    assert (number, type(number)) == (2.0, float)
    with pytest.raises(TypeError, match="factor must be float, not '2'"):
        scale(size=(1, 1), factor="2")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("args", "arguments", "words"),
    [
        ((3,), {"size": 3, "name": "a"}, "size is given twice, by position and by name"),
        ((3, (0, 0), 1), {"name": "a"}, "arguments are keyword-only, but 1 came without a name"),
        ((3,), {}, "name is missing; it must be str"),
        ((), {}, "size is missing; it must be 2 non-negative integers"),
        ((), {"size": 2}, "size must be 2 non-negative integers, not 2; write (2, 2)"),
        ((), {"size": (1, 2, 3)}, "size must be 2 non-negative integers, not (1, 2, 3)"),
        ((), {"size": (1.0, 2.0)}, "size must be 2 non-negative integers, not (1.0, 2.0)"),
        (
            (),
            {"size": (1, 1 << 32)},
            "size must be 2 non-negative integers, not (1, 4294967296); it has 32 bits, at most 4,294,967,295",
        ),
        ((), {"size": "12"}, "size must be 2 non-negative integers, not '12'"),
        ((), {"size": (-1, 2)}, "size must be 2 non-negative integers, not (-1, 2)"),
        ((), {"size": (1, 2), "pad": (1, 2, 3)}, "pad must be 2 or 4 non-negative integers, not (1, 2, 3)"),
        ((), {"size": (1, 2), "flip": 1}, "flip must be bool, not 1"),
        ((), {"size": (1, 2), "count": 1.5}, "count must be non-negative int, not 1.5"),
        (
            (),
            {"size": (1, 2), "count": 1 << 32},
            "count must be non-negative int, not 4294967296; it has 32 bits, at most 4,294,967,295",
        ),
        ((), {"size": (1, 2), "count": -1}, "count must be non-negative int, not -1"),
        (
            (),
            {"size": (1, 2), "dtype": "bfloat16"},
            "dtype must be DataType or None, not 'bfloat16'; write ttnn.bfloat16",
        ),
        ((), {"size": (1, 2), "cuont": 1}, "there is no 'cuont'; did you mean 'count'?"),
        ((), {"size": (1, 2), "zzz": 1}, "there is no 'zzz'"),
    ],
)
def test_refusals_begin_like_the_bindings_then_say_it_in_our_words(args, arguments, words: str) -> None:
    function = slide if args else scale
    with pytest.raises(TypeError) as raised:
        function(*args, **arguments)
    text, name = str(raised.value), function.__name__
    first = f"ttnn.{name}(): incompatible function arguments."
    assert text.startswith(f"{first}\n{name}: {words}\n\nCalled with:\n  {name}(")
    assert f"\n\nAvailable signatures:\n  {name}({'' if args else '*, '}size: " in text
    assert ", *, step: " in text or not args


def test_the_real_library_names_operations_by_their_modules_and_functions_alone() -> None:
    """As ttnn 0.81.1 does: operations are told anew in Python, functions of the bindings are not."""
    supported = " The following argument types are supported:"
    for call, name, rest in (
        (ttsim.experimental.convert_to_hwc, "ttnn.experimental.convert_to_hwc", ""),
        (ttsim.prepare_conv_weights, "prepare_conv_weights", supported),
        (ttsim.Conv2dConfig, "__init__", supported),
        (ttsim.conv2d, "ttnn.conv2d", ""),
        (ttsim.add, "ttnn.add", ""),
    ):
        with pytest.raises(TypeError) as raised:
            call(3, 3) if call is ttsim.add else call(weights=3)
        assert str(raised.value).splitlines()[0] == f"{name}(): incompatible function arguments.{rest}"


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
    gone = "Knobs: speed is gone from the library and ignored here; use level"
    with pytest.warns(FutureWarning, match=gone) as caught:
        assert not hasattr(Knobs(name=DataType.UINT8, speed=9), "speed")  # type: ignore[call-arg]
    assert caught[0].filename == __file__
    with pytest.warns(FutureWarning, match=gone):
        knobs.speed = 1  # type: ignore[attr-defined]
    assert vars(knobs) == {"level": 3, "name": DataType.UINT8}


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        (5, "given: shape must be integers, not 5"),
        ("12", "given: shape must be integers, not '12'"),
        ((1, "a"), "given: every side of shape must be an integer, not 'a'"),
        ([2, -1], r"given: no side of shape may be negative, as in [2, -1]"),
    ],
)
def test_what_is_no_shape(shape, text):
    with pytest.raises(ttsim.ArgumentTypeError, match=f"^{re.escape(text)}$"):
        required_sides("given", shape)


def test_sides_of_a_shape_are_plain_integers():
    assert required_sides("given", [np.int64(2), 0]) == (2, 0)


def test_a_sequence_of_a_kind_is_any_sequence() -> None:
    @checked
    def placed(sides: Sequence[int] | None = None) -> object:
        return sides

    assert placed([1, 2]) == [1, 2]
    assert placed(sides=(1, 2)) == (1, 2)
    with pytest.raises(ttsim.ArgumentTypeError, match="sides must be Sequence or None, not 5"):
        placed(5)  # type: ignore[arg-type]
