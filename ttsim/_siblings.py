"""Looks, before anything else is imported, whether ``ops`` and ``device`` are the packages that belong to this ttsim.

Both are common names: a ``device.py`` beside a user's script would be imported instead, and fail far from the cause.
"""

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

SIBLINGS = ("device", "ops")
HOME = Path(__file__).resolve().parents[1]


def location(name: str) -> Path | None:
    """Folder or file that ``import name`` gives, or gave already; None if there is none."""
    loaded = sys.modules.get(name)
    if loaded is not None:
        origin = getattr(loaded, "__file__", None)
    else:
        spec = find_spec(name)
        origin = None if spec is None else spec.origin
    if origin is None:
        return None
    path = Path(origin).resolve()
    return path.parent if path.name == "__init__.py" else path


def check_siblings(home: Path = HOME) -> None:
    """Raises ImportError, naming the culprit, if ``ops`` or ``device`` would be someone else's.

    Args:
        home: The folder that holds ttsim.
    """
    for name in SIBLINGS:
        found = location(name)
        if found != home / name:
            culprit = f"Python finds {found} instead" if found else "Python finds none"
            raise ImportError(
                f"ttsim needs its own package {name!r} in {home}, but {culprit}. Rename that file or folder, or run "
                "from another folder; if the package is missing, install ttsim again"
            )


check_siblings()
import_module("device")  # kept from now on, wherever a script may look for modules later
import_module("ops")
