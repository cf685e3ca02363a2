import pytest

from tools.golden.commands import COMMANDS, command_sections
from ttsim.__main__ import build_parser


def test_every_command_runs_and_has_its_help():
    parser = build_parser()
    (commands,) = (action.choices for action in parser._actions if action.dest == "command")
    texts = [arguments.split() for _, arguments in COMMANDS.values()]
    for name in [*commands, "pytest"]:
        assert [name, "--help"] in texts
        assert sum(text[:1] == [name] for text in texts) >= 2  # and one that runs


@pytest.mark.slow
def test_an_error_of_the_command_line_is_recorded():
    sections = command_sections("run on a broken device")
    assert sections["run on a broken device | exit status"] == "2"
    assert sections["run on a broken device | output"] == ""
    error = sections["run on a broken device | error output"]
    assert error.startswith("ttsim: ")
    assert "rowz" in error
