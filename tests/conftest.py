"""What all tests have: recordings that lie beside the checkout, and property tests that draw the same examples.

``--hypothesis-profile=explore`` draws new ones.
"""

import gc
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

RECORDINGS = Path(__file__).resolve().parents[2] / "shared"

settings.register_profile("ttsim", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None)
settings.load_profile("ttsim")


@pytest.fixture(scope="session")
def recordings() -> Callable[[str], Path]:
    """Gives a file or folder of the recordings beside the checkout by its path in there, or skips the test."""

    def path_of(name: str) -> Path:
        if not (RECORDINGS / name).exists():
            pytest.skip(f"there is no {name} in ../{RECORDINGS.name} beside the checkout")
        return RECORDINGS / name

    return path_of


@pytest.fixture(scope="session", autouse=True)
def _interruptible() -> None:
    """Ctrl-C interrupts the tests and their processes, also where a shell started the tests in its background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def quick_collections() -> Iterator[None]:
    """Collections look only at what the test makes: at all that other tests left, a thousand of them take minutes."""
    gc.freeze()
    yield
    gc.unfreeze()
