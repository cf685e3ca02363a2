"""Runs the Python and shell blocks of pages, and compares the outputs below them; --write replaces the outputs.

usage: python docs/outputs.py [--write] PAGE ...

The Python blocks of a page run in order and share their names. A shell block runs if a text block follows it. A block
that begins with a file's name, such as ``# layers.toml``, becomes that file. A line of three dots stands for any lines.
"""

import contextlib
import io
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", flags=re.DOTALL | re.MULTILINE)
NAMED = re.compile(r"# ([\w./]+\.\w+)\n")


def matches(shown: str, printed: str) -> bool:
    """Whether a block shows what was printed; a line of three dots stands for any lines."""
    lines = ("(?:.*\n)*" if line == "..." else re.escape(line.rstrip()) + " *\n" for line in shown.splitlines())
    return re.fullmatch("".join(lines), printed.rstrip() + "\n") is not None


def run_page(page: pathlib.Path) -> Iterator[tuple[str, str, str]]:
    """Runs a page in the working folder: of each block the code, the output shown below it, and what it printed."""
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    for _, code, _ in blocks:
        if named := NAMED.match(code):
            pathlib.Path(named[1]).write_text(code, encoding="utf-8")
    names: dict[str, object] = {"__name__": "__main__"}
    for language, code, shown in blocks:
        if NAMED.match(code) or language not in ("python", "sh") or (language == "sh" and not shown):
            continue
        stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        with contextlib.redirect_stdout(stream):
            if language == "python":
                exec(compile(code, str(page), "exec"), names)
            else:
                for command in code.replace("\\\n", " ").splitlines():
                    _run_command(shlex.split(command))
        stream.flush()
        yield code, shown, stream.buffer.getvalue().decode()


def _run_command(words: list[str]) -> None:
    from ttsim.__main__ import main

    if words[:3] == ["python", "-m", "ttsim"]:
        main(words[3:])
        return
    assert words[0] == "python", words
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
    run = subprocess.run([sys.executable, *words[1:]], cwd=ROOT, env=environment, stdout=subprocess.PIPE, check=True)
    print(run.stdout.decode())


def _written(text: str, shown: str, printed: str) -> str:
    """The text of a page with the output of one block; three dots at the end of an output stay there."""
    lines = printed.rstrip().splitlines()
    if shown.splitlines()[-1:] == ["..."]:
        lines = [*lines[: max(1, len(shown.splitlines()) - 1)], "..."]
    return text.replace(
        f"```text\n{shown}```", "```text\n" + "".join(f"{line.rstrip()}\n" for line in lines) + "```", 1
    )


def wrong_outputs(page: pathlib.Path) -> Iterator[tuple[str, str, str]]:
    """Runs a page in a folder of its own: the blocks that print something else than the output below them."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        sys.path.insert(1, folder)
        try:
            yield from (block for block in run_page(page) if block[1] and not matches(*block[1:]))
        finally:
            sys.path.remove(folder)


if __name__ == "__main__":
    sys.path[0] = str(ROOT)
    failed = False
    for given in sys.argv[1:]:
        if given == "--write":
            continue
        page = pathlib.Path(given).resolve()
        for code, shown, printed in wrong_outputs(page):
            failed = True
            print(f"{given}: another output of\n{code}\n{printed}")
            if "--write" in sys.argv:
                text = page.read_text(encoding="utf-8")
                page.write_text(_written(text, shown, printed), encoding="utf-8")
    sys.exit(failed)
