"""The tests that ``--set-apart`` chooses: README's test command, without extras, runs the others."""

import re
from pathlib import Path

import pytest

from tests.conftest import WITH_EXTRAS

TESTS = Path(__file__).resolve().parent
SKIPS = re.compile(r"importorskip|find_spec\(|needs_(?:numba|torch)")
SKIPPING = sorted(path for path in TESTS.rglob("test_*.py") if SKIPS.search(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("place", WITH_EXTRAS)
def test_each_place_exists(place):
    assert (TESTS / place).exists()


@pytest.mark.parametrize("path", [path for path in SKIPPING if path != Path(__file__)], ids=lambda path: path.name)
def test_tests_that_skip_without_extras_are_set_apart(path):
    """Otherwise no command of CI would run them."""
    assert any(path.is_relative_to(TESTS / place) for place in WITH_EXTRAS)
