"""The style and the script of a page; the script shows the hints of a picture below it and loads nothing."""

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from typing import Final


def _asset(name: str) -> str:
    return "\n" + files("ttsim.report.writers.html").joinpath(name).read_text(encoding="utf-8")


STYLE: Final = _asset("page.css")
SCRIPT: Final = _asset("page.js")
HASH: Final = f"sha256-{b64encode(sha256(SCRIPT.encode()).digest()).decode()}"
