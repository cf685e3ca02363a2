"""The longest common subsequence, against one that is found by trying all."""

import random
from itertools import combinations

import pytest

from device.errors import ArgumentError
from ttsim.report import comparison as matching
from ttsim.report.comparison import kind_of, matched


def test_equal_names_are_one_operation_and_the_others_stand_between() -> None:
    assert matched("abc", "abc") == [(0, 0), (1, 1), (2, 2)]
    assert matched("axc", "ayc") == [(0, 0), (1, None), (None, 1), (2, 2)]
    assert matched("", "ab") == [(None, 0), (None, 1)]
    assert matched("aa", "a") == [(0, 0), (1, None)]


def longest(before: str, after: str) -> int:
    """By trying all."""
    for count in range(min(len(before), len(after)), 0, -1):
        if set(combinations(before, count)) & set(combinations(after, count)):
            return count
    return 0


def test_as_many_as_can_be_are_matched() -> None:
    random.seed(3)
    for _ in range(60):
        before, after = ("".join(random.choices("abc", k=random.randrange(8))) for _ in range(2))
        found = matched(before, after)
        both = [(one, other) for one, other in found if one is not None and other is not None]
        assert all(before[one] == after[other] for one, other in both)
        assert len(both) == longest(before, after)
        for side, length in ((0, len(before)), (1, len(after))):
            assert [pair[side] for pair in found if pair[side] is not None] == list(range(length))


def test_what_is_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "MOST_CELLS", 8)
    assert len(matched("a" * 1000, "a" * 1000)) == 1000  # nothing differs
    with pytest.raises(ArgumentError, match="compare: 2 and 2 operations that differ are too many to match"):
        matched("ab", "ba")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("HaloDeviceOperation", "Halo"),
        ("UntilizeWithHaloV2", "Halo"),
        ("OptimizedConvNew", "Conv2d"),
        ("GridSampleOperation", "GridSample"),
        ("UntilizeCodegenDeviceOperation", "Untilize"),
        ("Operation", "Operation"),
    ],
)
def test_versions_of_a_name_are_one_kind(name: str, kind: str) -> None:
    assert kind_of(name) == kind
