"""What all tests have: recordings that lie beside the checkout, and property tests that draw the same examples.

``--hypothesis-profile=explore`` draws new ones, and more of them.
"""

import gc
import os
import re
import signal
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

TESTS = Path(__file__).resolve().parent
RECORDINGS = TESTS.parents[1] / "shared"
# In the text of a file: its tests differ where numba is installed, or run only where torch or mcp is
EXTRAS = re.compile("|".join(["numba", *(rf'importorskip\(".*{name}' for name in ("torch", "mcp") if find_spec(name))]))
SET_APART = re.compile(rf"mark\.(slow|long)|\brecordings\b|{EXTRAS.pattern}")
WITH_EXTRAS = (  # whose code goes another way where numba is installed: compiled loops compute these values
    "device/host",
    "device/matrix_unit",
    "device/numbers",
    "end_to_end/test_even_values.py",
    "end_to_end/test_recorded_runs.py",
    "ops/programs/conv2d",
    "ops/programs/matmul",
    "ops/programs/patch_matmul",
    "ops/programs/phase_conv2d",
    "ttsim/torch",
)

os.environ.pop("COLUMNS", None)  # which xdist sets; reports would drop columns
settings.register_profile("ttsim", deadline=None, derandomize=True, max_examples=40)
settings.register_profile("explore", deadline=None)
settings.load_profile("ttsim")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the choice of the tests that README's test command does not run, or runs without extras."""
    parser.addoption(
        "--set-apart",
        action="store_true",
        help="only tests that take long, read recordings, or can differ where numba, torch and mcp are installed",
    )


def pytest_configure() -> None:
    """Reads files without collections of garbage: trees of new files, which grow, would be walked again and again."""
    gc.disable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Does not read files without tests that are set apart, where only these are wanted."""
    if config.getoption("--set-apart") and collection_path.name.startswith("test_"):
        return not (_lies_where_extras_count(collection_path) or _mentions(SET_APART, collection_path)) or None
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what README's test command has run, where only other tests are wanted; the longest begin first."""
    if config.getoption("--set-apart"):
        config.hook.pytest_deselected(items=[item for item in items if not _is_set_apart(item)])
        items[:] = sorted(filter(_is_set_apart, items), key=lambda item: item.get_closest_marker("long") is None)


def pytest_collection_finish() -> None:
    """Collections of garbage are rare, and look only at what tests make: the thousands of tests themselves stay."""
    gc.freeze()
    gc.enable()
    gc.set_threshold(50_000, 20, 20)  # which Python's own numbers would make a twentieth of the tests' time


def _is_set_apart(item: pytest.Item) -> bool:
    if any(map(item.get_closest_marker, ("slow", "long"))) or "recordings" in getattr(item, "fixturenames", ()):
        return True
    return _lies_where_extras_count(item.path) or _mentions(EXTRAS, item.path)


def _lies_where_extras_count(path: Path) -> bool:
    return path.relative_to(TESTS).as_posix().startswith(WITH_EXTRAS)


@cache
def _mentions(pattern: re.Pattern[str], path: Path) -> bool:
    return pattern.search(path.read_text(encoding="utf-8")) is not None


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
def quick_collections() -> None:
    """Collections look only at what the test makes: at all that other tests left, a thousand of them take minutes."""
    gc.freeze()
