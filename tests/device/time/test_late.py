"""Late figures: computed once, when asked for; like any other field to whoever copies, compares or writes them."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

import pytest

from device.time.stages import Lazy


@dataclass(frozen=True, kw_only=True)
class Drawer:
    """Two figures, one of them late."""

    label: str
    figures: Lazy[tuple[int, ...]] = Lazy()  # noqa: RUF009 (a descriptor, not a default)
    total: Lazy[int] = Lazy(lambda drawer: sum(drawer.figures))  # noqa: RUF009


def counting(calls: list[int]) -> Callable[[], tuple[int, ...]]:
    """A function that gives (3, 4), and notes that it was called."""

    def figures() -> tuple[int, ...]:
        calls.append(1)
        return 3, 4

    return figures


def test_computed_once_and_not_before() -> None:
    calls: list[int] = []
    drawer = Drawer(label="a", figures=counting(calls))
    assert not calls
    assert drawer.figures == drawer.figures == (3, 4)
    assert len(calls) == 1


def test_a_value_is_taken_as_it_is() -> None:
    assert Drawer(label="a", figures=(3, 4)).figures == (3, 4)


def test_copies_comparisons_and_dictionaries_have_the_value() -> None:
    drawer = Drawer(label="a", figures=counting([]))
    assert asdict(drawer) == {"label": "a", "figures": (3, 4), "total": 7}
    assert replace(Drawer(label="a", figures=counting([])), label="b") == Drawer(label="b", figures=(3, 4))
    assert repr(Drawer(label="a", figures=counting([]))) == "Drawer(label='a', figures=(3, 4), total=7)"


def test_what_is_not_given_is_derived_and_what_is_given_is_not() -> None:
    calls: list[int] = []
    assert Drawer(label="a", figures=counting(calls), total=8).total == 8
    assert not calls
    derived = Drawer(label="a", figures=counting(calls))
    assert derived.total == derived.total == 7
    assert len(calls) == 1


def test_without_a_rule_it_has_no_default() -> None:
    with pytest.raises(TypeError, match="figures"):
        Drawer(label="a")  # type: ignore[call-arg, unused-ignore]
