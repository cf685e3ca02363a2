import inspect

import pytest

import ttsim
from ttsim.runtime.types.call import Call, Padding, function_of, param


class Window(Call):
    """What windows have."""

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
    assert [parameter.kind is parameter.KEYWORD_ONLY for parameter in text.parameters.values()] == [
        False,
        False,
        True,
        True,
    ]
    assert {name: one.default for name, one in text.parameters.items() if one.default is not one.empty} == {
        "around": (0, 0),
        "step": 2,
    }
    assert text.return_annotation == dict[str, object]


def test_its_docstring_holds_their_texts_and_the_usual_errors() -> None:
    assert inspect.getdoc(slide) == (
        "A window that slides.\n\nArgs:\n    size: Rows.\n    around: Zeros around.\n    step: From place to place.\n"
        "    name: A name that is long enough, with what is said of it, to need another line of its own here.\n\n"
        "Returns:\n    All that it was given.\n\nRaises:\n    DeviceError: No room.\n"
        "    ArgumentTypeError: An argument is unknown, missing or of the wrong type.\n"
        "    ArgumentError: Arguments contradict each other, or ask for what is not simulated.\n"
        "    OutOfMemoryError: No room."
    )


def test_arguments_are_checked_and_arrive_in_plain_form() -> None:
    assert slide(3, [1, 2], name="a") == {"size": 3, "around": (1, 2), "step": 2, "name": "a"}
    assert slide(size=3, name="a", step=5) == {"size": 3, "around": (0, 0), "step": 5, "name": "a"}


@pytest.mark.parametrize(
    ("args", "named", "words"),
    [
        ((3,), {"size": 3, "name": "a"}, "size is given twice, by position and by name"),
        ((3, (0, 0), 1), {"name": "a"}, "arguments are keyword-only, but 1 came without a name"),
        ((3,), {}, "name is missing; it must be str"),
    ],
)
def test_wrong_arguments_are_refused_in_the_bindings_words(
    args: tuple[object, ...], named: dict[str, object], words: str
) -> None:
    with pytest.raises(ttsim.ArgumentTypeError) as caught:
        slide(*args, **named)  # type: ignore[arg-type]
    first, second, *_ = str(caught.value).splitlines()
    assert (first, second) == ("ttnn.slide(): incompatible function arguments.", f"slide: {words}")


def test_a_config_tells_its_fields_and_keeps_their_defaults() -> None:
    text = inspect.getdoc(ttsim.Conv2dSliceConfig)
    assert text == (
        "Slices out of DRAM.\n\nAttributes:\n    slice_type: Along which axis, or not at all.\n"
        "    num_slices: How many; 0 for as few as fit."
    )
    assert ttsim.Conv2dSliceConfig.num_slices == 0
    assert not hasattr(ttsim.Conv2dSliceConfig, "slice_type")
