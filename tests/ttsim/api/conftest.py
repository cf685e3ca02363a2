"""A device for calls as users make them."""

import pytest

import ttsim as ttnn


@pytest.fixture
def device():
    with ttnn.open_device(l1_small_size=32768, spec="wormhole_n150") as opened:
        yield opened
