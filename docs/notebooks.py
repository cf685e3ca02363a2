"""Writes tutorials as notebooks beside their pages: text and code of the page, without outputs.

usage: python docs/notebooks.py
"""

import json
import pathlib
import re
from collections.abc import Iterator

FOLDER = pathlib.Path(__file__).resolve().parent / "tutorials"
PAGES = ("1-first-layer", "4-making-a-layer-fit")
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```\n(?:\n```text\n.*?^```\n)?", flags=re.DOTALL | re.MULTILINE)


def notebook(page: str) -> str:
    """A page as the text of a notebook; shell commands become ``%run -m``."""
    parts = iter(BLOCK.split(page))
    cells = []
    for words in parts:
        if words.strip():
            cells.append({"cell_type": "markdown", "metadata": {}, "source": words.strip()})
        if language := next(parts, ""):
            code = next(parts).strip()
            source = code if language == "python" else re.sub(r"^python -m", "%run -m", code, flags=re.MULTILINE)
            cell = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": source}
            cells.append(cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    document = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 4}
    return json.dumps(document, indent=1) + "\n"


def notebooks() -> Iterator[tuple[pathlib.Path, str]]:
    """The path and the text of every notebook."""
    for name in PAGES:
        yield FOLDER / f"{name}.ipynb", notebook((FOLDER / f"{name}.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    for path, text in notebooks():
        path.write_text(text, encoding="utf-8")
