"""Reports as JSON: the fields of the figures under their own names, the same bytes for the same run."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from device.spec import DeviceSpec
from ttsim.report.result import LayerResult

FORMAT = 1  # raised when a field changes its meaning or goes


def layers_as_json(results: Sequence[LayerResult]) -> str:
    """A document with one entry for each layer: what was asked, the summary, or the error and how far it came."""
    return text({"format": FORMAT, "layers": [entry(result) for result in results]})


def entry(result: LayerResult) -> dict[str, Any]:
    """One layer."""
    return {
        "layer": asdict(result.layer),
        "summary": None if result.summary is None else asdict(result.summary),
        "error": result.error,
        "reached": [asdict(operation) for operation in result.reached],
    }


def devices_as_json(specs: Sequence[DeviceSpec]) -> str:
    """A document with the figures of devices."""
    return text({"format": FORMAT, "devices": [spec.to_dict() for spec in specs]})


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
