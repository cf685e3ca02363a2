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
TESTS = Path(__file__).resolve().parent
WITH_EXTRAS = (  # folders and files whose tests numba or torch can change: numbers, their speed, who imports what
    "device",
    "end_to_end",
    "fuzz",
    "ops/test_reference.py",
    "ops/programs",
    "test_readme.py",
    "tools/bench",
    "ttsim/dropin",
    "ttsim/study/test_executor.py",
    "ttsim/study/test_sweep.py",
    "ttsim/study/test_killed_sweeps.py",
    "ttsim/study/test_command.py",
    "ttsim/study/test_evaluate.py",
    "ttsim/api",
    "ttsim/study/layers",
    "ttsim/model_preprocessing",
    "ttsim/recording",
    "ttsim/runtime",
    "ttsim/test_interrupts.py",
    "ttsim/test_odd_arguments.py",
    "ttsim/torch",
)

settings.register_profile("ttsim", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None)
settings.load_profile("ttsim")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the choice of the tests that README's test command does not run, or runs without extras."""
    parser.addoption(
        "--set-apart",
        action="store_true",
        help="only tests that are slow, read recordings, or can differ where numba and torch are installed",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what README's test command has run, where only other tests are wanted."""
    if config.getoption("--set-apart"):
        config.hook.pytest_deselected(items=[item for item in items if not _is_set_apart(item)])
        items[:] = filter(_is_set_apart, items)


def _is_set_apart(item: pytest.Item) -> bool:
    if item.get_closest_marker("slow") or "recordings" in getattr(item, "fixturenames", ()):
        return True
    return any(item.path.is_relative_to(TESTS / place) for place in WITH_EXTRAS)


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
