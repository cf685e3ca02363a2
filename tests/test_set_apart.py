"""``--set-apart`` chooses tests that README's test command, without extras and recordings, has not run in full."""

import pytest

from tests.conftest import WITH_EXTRAS
from tests.test_layers import ROOT


@pytest.mark.parametrize("place", WITH_EXTRAS)
def test_each_place_exists(place):
    assert (ROOT / "tests" / place.partition("::")[0]).exists()
