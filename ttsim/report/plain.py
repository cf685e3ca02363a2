"""Frozen figures as JSON text: the same bytes for the same figures."""

import json
from typing import Any


def text(document: dict[str, Any]) -> str:
    """Indented, without NaN (which is no JSON): an infinite or undefined figure becomes null."""
    return json.dumps(plain(document), indent=1, allow_nan=False)


def plain(value: Any) -> Any:
    """Only what JSON has."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value
