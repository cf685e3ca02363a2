"""The measured rows as cases, read once for all tests."""

from pathlib import Path

import pytest

from tools.calibrate.cases import cases_in

DATA = Path(__file__).resolve().parents[2] / "data" / "measured"


@pytest.fixture(scope="session")
def cases():
    return cases_in(DATA)
