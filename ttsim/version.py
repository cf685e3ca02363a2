"""Which version this is, and which one of the real library it follows."""

from typing import Final

from ttsim.study.points.version import model_version

VERSION = "0.1.0"
FOLLOWED: Final = "ttnn 0.81.1"  # plans, memory, errors and values are compared with recorded runs of it


def version_line() -> str:
    """Both in one line, and which model exactly: equal texts give equal figures."""
    return f"ttsim {VERSION}, following {FOLLOWED}, model {model_version()}"
