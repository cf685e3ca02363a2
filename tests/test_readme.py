"""README is short, its commands and those of the reference can be run, and its figures are those of the docs."""

import re
import shlex
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.conftest import WITH_EXTRAS
from ttsim.__main__ import build_parser

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```sh\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"(?<=\| `)python -m .+?(?=`)")
NUMBER = r"\d(?:[\d,.]*\d)?"
TESTS = "-m pytest -n auto --dist worksteal"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_name_modules_arguments_and_files_that_exist(page):
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    for command in (*"\n".join(BLOCK.findall(text)).splitlines(), *INLINE.findall(text)):
        if "[" in command or "..." in command:
            continue  # the grammar of a command, not a command
        for part in command.split("&&"):
            words = shlex.split(part, comments=True)
            if "-m" in words:
                assert find_spec(words[words.index("-m") + 1]) is not None, command
            if "-m ttsim" in part:
                options, rest = build_parser().parse_known_args(words[words.index("ttsim") + 1 :])
                assert options.command == "pytest" or not rest, command
            for word in words:
                assert not word.startswith((".ci/", "tools/", "tests/", "docs/")) or (ROOT / word).exists(), word


def test_both_commands_set_a_fresh_machine_up():
    setups = [line for line in README.splitlines() if line.startswith("python3 -m venv ")]  # .ci/run takes them
    assert len(setups) == 2
    assert all("pip install" in line for line in setups)
    assert setups[0].endswith("-m ttsim run")
    assert setups[1].endswith(TESTS)
    assert f'"$python" {TESTS} ' in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_readme_is_short():
    assert len(README.split()) <= 900


def test_every_figure_of_the_table_stands_in_the_page_that_tests_hold():
    table = README.partition("## How right ttsim is\n")[2].partition("## ")[0]
    figures = re.findall(NUMBER, table)
    assert len(figures) > 30
    assert set(figures) <= set(re.findall(NUMBER, (ROOT / "docs/reference/limits.md").read_text(encoding="utf-8")))


def test_places_that_are_set_apart_exist():
    assert [place for place in WITH_EXTRAS if not (ROOT / "tests" / place.partition("::")[0]).exists()] == []
