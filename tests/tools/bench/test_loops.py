"""Loops that are loaded before anything is timed."""

from pathlib import Path

from tools.bench.loops import LOOPS

ROOT = Path(__file__).resolve().parents[3]


def test_all_loops_are_loaded():
    files = [file for package in ("device", "ops", "ttsim") for file in (ROOT / package).rglob("*.py")]
    loops = [file.relative_to(ROOT).with_suffix("") for file in files if "import called_with" in file.read_text()]
    assert {".".join(file.parts) for file in loops} == set(LOOPS)
