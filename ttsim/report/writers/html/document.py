"""A page as one self-contained document: the same bytes for the same page."""

import json
from base64 import b64encode
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template
from typing import Any, Final

from ttsim.report.formatting import plain
from ttsim.report.sections import Page, Section, document


def _asset(name: str) -> str:
    return files("ttsim.report.writers.html").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


TEMPLATE: Final = Template(_asset("page.html"))
STYLE, LIBRARY, SCRIPT = map(_asset, ("page.css", "d3.js", "page.js"))
PACKED: Final = ("rows", "marks")
# Nothing is loaded; only these scripts and this style are run
POLICY: Final = f"default-src 'none'; style-src {_hash(STYLE)}; script-src {_hash(LIBRARY)} {_hash(SCRIPT)}"


def page_html(page: Page) -> str:
    """The document that shows a page."""
    shown = document(page)
    data = json.dumps(plain(_packed(shown)), separators=(",", ":")).replace("<", "\\u003c")  # text ends no script
    return TEMPLATE.substitute(
        policy=POLICY, title=escape(shown["title"]), style=STYLE, data=data, library=LIBRARY, script=SCRIPT
    )


def _packed(shown: Section) -> Section:
    """The document with repeated texts of rows and marks stored once in "texts" and referenced as [index]."""
    places: dict[str, int] = {}

    def packed(value: Any, inside: bool = False) -> Any:
        if isinstance(value, dict):
            return {key: packed(item, key in PACKED) for key, item in value.items()}
        if isinstance(value, list):
            return [packed(item, inside) for item in value]
        return [places.setdefault(value, len(places))] if inside and isinstance(value, str) else value

    return {**packed(shown), "texts": list(places)}


def page_frame(page: Page) -> str:
    """The page in a sandboxed frame."""
    return (
        f'<iframe title="{escape(document(page)["title"])}" sandbox="allow-scripts" '
        'style="width: 100%; height: 40rem; border: 1px solid #8888; resize: vertical" '
        f'srcdoc="{escape(page_html(page))}"></iframe>'
    )
