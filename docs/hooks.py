"""Expands ``::: names of MODULE`` on a page of the site to all public names that ttsim takes from the module."""

import ast
import importlib
import pathlib
import re
import sys
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]
LINE = re.compile(r"^::: names of ([\w.]+)$", flags=re.MULTILINE)
sys.path.insert(0, str(ROOT))


def public_names() -> dict[str, list[str]]:
    """The public names of each module, as the stub of ttsim says; functions first."""
    stub = ast.parse((ROOT / "ttsim" / "__init__.pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    return {
        str(node.module): sorted((alias.name for alias in node.names), key=lambda name: not name[0].islower())
        for node in imports
    }


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The page with an entry for each name."""
    return LINE.sub(lambda found: "\n\n".join(_entry(found[1], name) for name in names_of(found[1])), markdown)


def names_of(module: str) -> list[str]:
    """The public names of a module: those that ttsim takes from the module, or else the module's own list."""
    loaded = importlib.import_module(module)
    own = [name for name, value in vars(loaded).items() if getattr(value, "__module__", None) == module]
    public = public_names().get(module) or getattr(loaded, "__all__", own)
    return [name for name in public if not name.startswith("_")]


def _entry(module: str, name: str) -> str:
    loaded = importlib.import_module(module)
    if vars(loaded).get(name) is not None:
        return f"::: {module}.{name}"
    text = (getattr(loaded, name).__doc__ or "A text of the environment; None where there is none.").partition(
        "\n\nArgs"
    )
    return f"## {name}\n\n{text[0]}"  # computed when asked for: mkdocstrings does not find it
