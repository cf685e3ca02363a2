"""The error for a name that ttnn may have and ttsim does not have."""

from collections.abc import Collection
from difflib import get_close_matches

WAY_OUT = "compute it on the host, between ttsim.to_torch and ttsim.from_torch, or leave it out"


def refusal(name: str, known: Collection[str], owner: str = "ttsim") -> str:
    """One line: that there is no such name, what a script can do, and the nearest names."""
    near = (
        get_close_matches(name, known, n=3)
        or [known_name for known_name in known if name.lower() in known_name.lower().split("_")][:3]
    )
    nearest = f"; the nearest names: {', '.join(near)}" if near else ""
    return f"module {owner!r} has no attribute {name!r}: ttsim does not simulate it; {WAY_OUT}{nearest}"
