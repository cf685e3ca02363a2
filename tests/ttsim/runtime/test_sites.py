from pathlib import Path

from ttsim.runtime.traces import CallSite, script_sites


def here() -> tuple[CallSite, ...]:
    return script_sites()


def test_the_lines_of_a_script_are_told_outermost_first() -> None:
    outer, inner = here()[-2:]
    assert (outer.file, inner.file) == (__file__, __file__)
    assert outer.line - inner.line == 4


def test_installed_packages_and_the_library_are_left_out() -> None:
    names = {Path(site.file).name for site in max([here()], key=lambda stack: len(stack))}
    assert "python.py" not in names  # of pytest, which runs this


def test_code_without_a_file_is_told() -> None:
    space = {"script_sites": script_sites}
    exec(compile("def f():\n    return script_sites()\nfound = f()", "<cell>", "exec"), space)
    assert space["found"][-2:] == (CallSite("<cell>", 3), CallSite("<cell>", 2))  # type: ignore[index]
